"""The package list, the links and the wheel agree with the tree."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from optgap.solvers.backends import BACKENDS

ROLES = ("models", "fitting", "solvers", "heuristics", "instances")


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


def packages_of(folder: Path, name: str) -> set[str]:
    """Dotted names of the folders with an ``__init__.py``, links not followed."""
    found = set()
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = [f for f in folders if not (here / f).is_symlink()]
        if "__init__.py" in files:
            found.add(".".join([name, *here.relative_to(folder).parts]))
    return found


def tree(root: Path) -> set[str]:
    found = packages_of(root / "src" / "optgap", "optgap")
    for role in ROLES:
        found |= packages_of(root / role, f"optgap.{role}")
    return found


def test_the_package_list_is_that_of_the_tree(root: Path, project: dict[str, Any]) -> None:
    listed = project["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(tree(root))
    assert len(listed) == len(set(listed))


def test_every_folder_with_code_is_a_package(root: Path) -> None:
    for role in ROLES:
        for file in (root / role).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), file


@pytest.mark.parametrize("role", ROLES)
def test_roles_are_imported_from_the_top_of_the_tree_where_links_for_static_tools_point(
    root: Path, role: str
) -> None:
    spec = importlib.util.find_spec(f"optgap.{role}")
    assert spec.origin is not None
    assert Path(spec.origin).resolve() == root / role / "__init__.py"
    assert (root / "src" / "optgap" / role).resolve() == root / role


def test_the_version_is_the_same_everywhere(root: Path, project: dict[str, Any]) -> None:
    import optgap

    assert optgap.__version__ == project["project"]["version"]
    assert f"\nversion: {optgap.__version__}\n" in (root / "CITATION.cff").read_text()


def test_every_requirement_has_a_lowest_version_and_back_ends_ask_for_the_same(
    project: dict[str, Any],
) -> None:
    table = project["project"]
    extras = table["optional-dependencies"]
    groups = {"": table["dependencies"], **extras}
    for requirement in map(Requirement, [text for texts in groups.values() for text in texts]):
        lower = {s.operator for s in requirement.specifier} & {">=", "==", "~="}
        assert lower or requirement.name == "optgap", requirement
    for backend in BACKENDS.values():
        texts = [*groups[""], *extras.get(backend.extra, [])]
        asked = {r.name: r.specifier for r in map(Requirement, texts)}
        for name, spec in backend.packages.items():
            assert SpecifierSet(spec) == asked[name], name


def wheel(root: Path, place: Path) -> zipfile.ZipFile:
    copy = place / "source"  # the build leaves its own folders behind

    def left_out(at: str, names: list[str]) -> list[str]:
        own = ("__pycache__", "optgap.egg-info")
        return [name for name in names if name in own or (Path(at) / name).is_symlink()]

    for name in ("src", *ROLES):
        shutil.copytree(root / name, copy / name, ignore=left_out)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(place), "."]  # no network needed
    built = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(place.glob("*.whl")))


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_nothing_beside_optgap(root: Path, tmp_path: Path) -> None:
    names = set(wheel(root, tmp_path).namelist())
    folders = {"optgap": root / "src" / "optgap"}
    folders |= {f"optgap/{role}": root / role for role in ROLES}
    for name, folder in folders.items():
        for place, inner, files in os.walk(folder):
            inner[:] = [f for f in inner if not (Path(place) / f).is_symlink()]
            for file in files:
                if file.endswith(".py"):
                    path = Path(name, Path(place, file).relative_to(folder)).as_posix()
                    assert path in names, path
    library = [p for p in (root / "instances").rglob("*.json*") if p.name != "scores.json"]
    assert len(library) > 80
    assert {f"optgap/{path.relative_to(root).as_posix()}" for path in library} <= names
    assert "optgap/py.typed" in names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"optgap"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_benchmarks_find_what_they_import(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (root, root / "tests", root / "benchmarks"):
        monkeypatch.syspath_prepend(str(folder))
    for path in sorted((root / "benchmarks").glob("*.py")):
        import_module(path.stem)
