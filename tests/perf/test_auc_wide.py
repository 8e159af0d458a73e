"""The table of the forms of the covariance on wide events: each is measured, and ranks better than chance."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not (Path(__file__).parents[3] / "shared" / "data").exists(), reason="the data sets are not shipped"
)


def test_every_form_of_both_learners_and_both_of_rivers_are_in_the_table(run, tmp_path):
    text = run("auc_wide.py", "--out", str(tmp_path))
    rows = re.findall(r"^(\w+) +(.+?) +AUC (\d\.\d{4}) +([\d,]+) events/s \(", text, re.MULTILINE)
    ours = {f"{who}, {form}" for who in ("AUCRO", "AdaptiveAUCRO") for form in ("full", "diagonal", "means", "sketch")}
    for name in ("a9a", "w8a"):
        areas = {title: float(auc) for where, title, auc, _ in rows if where == name}
        assert set(areas) >= ours | {"AUCRO, auto", "AdaptiveAUCRO, auto", "River LR", "River StandardScaler | LR"}
        assert areas["AUCRO, auto"] == areas["AUCRO, full"]
        assert min(areas.values()) > 0.5
    assert set(json.loads((tmp_path / "auc_wide_quick.json").read_text())) == {"a9a", "w8a"}


def test_what_was_measured_before_is_kept_beside_what_is_new(run, tmp_path):
    for form in ("means", "diagonal"):
        run("auc_wide.py", "--sets", "a9a", "--forms", form, "--out", str(tmp_path))
    assert {"AUCRO, means", "AUCRO, diagonal"} <= set(json.loads((tmp_path / "auc_wide_quick.json").read_text())["a9a"])


def test_the_parts_of_an_event_are_timed(run):
    text = run("auc_width.py", "--parts")
    for part in ("forecast and learn", "learn ", "learn, never solve", "X'X by BLAS"):
        assert re.search(rf"^ +54 features  {part} +\d+\.\d+ us", text, re.MULTILINE)
