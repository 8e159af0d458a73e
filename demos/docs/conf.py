"""How Sphinx builds the site; `python demos/docs/build.py` runs it."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any

project = "streamlearn"
release = metadata.version("streamlearn")
copyright = "the streamlearn authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_site", "_made/*.md"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "streamlearn"
html_copy_source = False
pygments_style = "friendly"

autodoc_typehints = "none"  # the parameters' lines say more
autodoc_class_signature = "mixed"
napoleon_use_rtype = False
napoleon_preprocess_types = False
default_role = "code"  # docstrings write `name` for code

_LITERAL = re.compile(r"(``.+?``|`.+?`)")


def escape_pipes(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Escape the bars of |x| outside of code, where reStructuredText would see substitutions."""
    for i, line in enumerate(lines):
        parts = _LITERAL.split(line)
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[i] = "".join(parts)


def setup(app: Any) -> None:
    """Register what the docstrings need."""
    app.connect("autodoc-process-docstring", escape_pipes)
