"""The documentation site, from docstrings and Markdown, in one command.

    python demos/docs/build.py [--out FOLDER]

Draws the pictures, makes the tables, and lets Sphinx build the pages; any warning is an error. Needs the extra ``docs``
(``pip install '.[docs]'``). The site is demos/docs/_site/index.html, or in FOLDER.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import comparison_table
import pictures
from sphinx.cmd.build import build_main

HERE = Path(__file__).parent
MADE = HERE / "_made"
"""Where pages find pictures and tables."""


def main() -> int:
    """Build the site; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "_site", help="where the site goes")
    out = parser.parse_args().out
    MADE.mkdir(exist_ok=True)
    pictures.draw_all(MADE)
    comparison_table.write(HERE / "comparison.json", MADE / "comparison.md")
    code = build_main(["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet", str(HERE), str(out)])
    if code == 0:
        print(f"site: {out / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
