"""The package is what it says: rooms, imports, public names, what is shipped."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import streamlearn

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "streamlearn"
INSTALLED = Path(streamlearn.__file__).parent
ADAPTERS = ROOT / "adapters"
FILES = sorted(SOURCE.rglob("*.py")) + sorted(ADAPTERS.rglob("*.py"))

# room -> the rooms it may import from, besides itself
ROOMS = {
    "errors": set(),
    "contracts": {"errors"},
    "snapshot": {"errors", "contracts"},
    "features": {"errors", "contracts"},
    "kernels": {"contracts"},  # names of array types only
    "learners": {"errors", "contracts", "snapshot", "features", "kernels"},
    "evaluation": {"errors", "contracts", "snapshot", "kernels"},
    "runtime": {"errors", "contracts", "snapshot", "features", "kernels", "learners", "evaluation"},
}
ROOMS["adapters"] = set(ROOMS)


def room_of(path: Path) -> str:
    if path.is_relative_to(ADAPTERS):
        return "adapters"
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module = node.module or ""
            found += [f"{module}.{alias.name}" for alias in node.names] if module == "streamlearn" else [module]
    return found


def dependencies() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {line.split(">=")[0].split("[")[0] for line in project["dependencies"]}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_import_only_from_where_they_may(path):
    room = room_of(path)
    if room == "__init__":
        return
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "streamlearn":
            target = parts[1] if len(parts) > 1 else "__init__"
            assert target == room or target in ROOMS[room], f"{room} may not import {name}"
        if parts[0] == "numba":
            assert room == "kernels", "Numba is named only in kernels"


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) == "kernels"], ids=lambda p: p.name)
def test_kernels_import_only_numpy_and_the_switches(path):
    allowed = {
        "__future__",
        "numpy",
        "numpy.typing",
        "math",
        "typing",
        "streamlearn.contracts",
        "streamlearn.kernels.jit",
    }
    extra = {"jit.py": {"numba", "collections.abc"}}.get(path.name, set())
    assert set(imports(path)) <= allowed | extra


def test_the_packages_list_is_the_folders():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    roots = {"streamlearn": SOURCE, "streamlearn.adapters": ADAPTERS}
    folders = {
        ".".join([name, *path.parent.relative_to(root).parts])
        for name, root in roots.items()
        for path in root.rglob("__init__.py")
    }
    assert set(listed) == folders
    assert len(listed) == len(set(listed))


def test_importing_the_package_imports_nothing_heavy():
    code = "import streamlearn, sys; print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "numpy",
        "numba",
        "scipy",
        "sklearn",
        "river",
        "polars",
        "pandas",
        "pyarrow",
        "narwhals",
        "rich",
        "cyclopts",
    }
    assert not heavy & set(loaded)


def test_using_a_learner_imports_neither_river_nor_sklearn_nor_polars():
    code = "import streamlearn, sys; streamlearn.AUCRO().learn_one({'a': 1.0}, 1); print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"river", "sklearn", "polars", "pandas", "pyarrow", "narwhals", "matplotlib"} & set(loaded)


def test_every_public_name_exists_and_no_other_is_public():
    for name in streamlearn.__all__:
        assert getattr(streamlearn, name).__name__ == name
    assert sorted(streamlearn.__all__) == dir(streamlearn)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = streamlearn.nonsense


def test_every_learner_of_the_table_is_public():
    from streamlearn.learners.registry import MODULES

    assert set(MODULES) <= set(streamlearn.__all__)


def test_the_package_is_typed_and_licensed():
    assert (INSTALLED / "py.typed").exists()
    assert "BSD 3-Clause" in (ROOT / "LICENSE").read_text()


def test_runtime_dependencies_have_lower_bounds_only():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in project["dependencies"]:
        assert ">=" in line
        assert "<" not in line.replace("<=", "")
    assert {"numpy", "numba", "scipy", "scikit-learn", "river", "narwhals", "safetensors", "msgspec"} <= dependencies()
