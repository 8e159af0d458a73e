"""The table of cost and AUC by width: every case runs batch by batch, and the published steps are those of NumPy."""

from __future__ import annotations

import re


def test_every_case_ranks_better_than_chance_and_has_a_cost(run, tmp_path):
    text = run("auc_width.py", "--quick", "--out", str(tmp_path))
    rows = re.findall(r"^ +(\d+) features  (.+?) +([\d.]+) us .+ AUC (\d\.\d{4})$", text, re.MULTILINE)
    widths = {width for width, *_ in rows}
    assert len(widths) == 2
    for width in widths:
        areas = {title: float(auc) for at, title, _, auc in rows if at == width}
        assert areas.keys() >= {"AUCRO", "OPAUC", "the same in NumPy", "FSAUC", "OAMseq", "OAMgd", "River LR"}
        assert min(areas.values()) > 0.5
        assert areas["OPAUC, published steps"] == areas["the same in NumPy"]
    assert (tmp_path / "auc_width.png").stat().st_size > 0
