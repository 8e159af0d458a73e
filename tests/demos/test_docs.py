"""The pages of the documentation: every code block runs, shows what it says, and the site builds without a warning."""

from __future__ import annotations

import io
import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

import streamlearn
from streamlearn.learners.registry import MODULES
from streamlearn.runtime.cli import main

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "demos" / "docs"
PAGES = sorted(DOCS.glob("*.md"))

BLOCK = re.compile(
    r"^```(?P<language>[a-z]*)(?P<directive>\{[^}]*\})?[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
RUN = {"python", "bash", "toml"}


class Block(NamedTuple):
    """One fenced block; `shown` is the block of text behind it."""

    language: str
    code: str
    shown: str | None


def blocks(page: Path) -> Iterator[Block]:
    found = [m for m in BLOCK.finditer(page.read_text()) if m["directive"] is None]
    for this, following in itertools.zip_longest(found, found[1:]):
        shown = following["code"] if following is not None and following["language"] == "text" else None
        if this["language"] != "text":
            yield Block(this["language"], this["code"], shown)


def run_python(code: str, names: dict) -> str:
    written = io.StringIO()
    with redirect_stdout(written):
        exec(code, names)  # noqa: S102 - our own pages
    return written.getvalue()


def run_bash(code: str) -> None:
    for line in code.splitlines():
        command, *arguments = shlex.split(line)
        if command == "pip":  # an environment is not installed into by its own tests
            continue
        assert command == "streamlearn", line
        with redirect_stdout(io.StringIO()):
            assert main(arguments) == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_the_page_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    (tmp_path / "demos").symlink_to(ROOT / "demos")
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    for block in blocks(page):
        assert block.language in RUN, f"{page.name}: a block of {block.language!r} would not be run"
        if block.language == "python":
            assert run_python(block.code, names) == (block.shown or ""), block.code
        elif block.language == "bash":
            run_bash(block.code)
        else:
            Path(block.code.split("\n", 1)[0].removeprefix("# ")).write_text(block.code)


def test_every_public_name_has_its_place():
    told = re.findall(r"auto(?:class|function):: streamlearn\.(\w+)", "".join(page.read_text() for page in PAGES))

    assert sorted(told) == sorted(set(streamlearn.__all__) - {"load"})
    assert set(MODULES) <= set(told)


def test_every_page_is_in_the_index():
    listed = re.findall(
        r"^([a-z_]+)$", "\n".join(re.findall(r"```\{toctree\}\n(.*?)```", index(), re.DOTALL)), re.MULTILINE
    )

    assert {page.stem for page in PAGES} == {"index", *listed}


def index() -> str:
    return (DOCS / "index.md").read_text()


@pytest.mark.slow
def test_the_site_builds_in_one_command_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    pytest.importorskip("myst_parser", reason="the extra docs is not installed")
    pytest.importorskip("furo", reason="the extra docs is not installed")

    command = [sys.executable, str(DOCS / "build.py"), "--out", str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    for page in PAGES:
        html = (tmp_path / "site" / f"{page.stem}.html").read_text()
        assert "streamlearn" in html
    for family in ("auc", "reject", "robust", "muffled"):
        assert (tmp_path / "site" / "_images" / f"{family}.png").stat().st_size > 10_000
    assert "half_life" in (tmp_path / "site" / "auc.html").read_text()
    assert "times ours" in (tmp_path / "site" / "comparison.html").read_text()
