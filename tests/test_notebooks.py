"""Every notebook runs, from no names at all; those about a paper are kept with what they give."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import ROOT
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PAPERS = [path for path in NOTEBOOKS if path.stem.startswith("paper-")]
OTHERS = [path for path in NOTEBOOKS if path not in PAPERS]

NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
VERSION = re.compile(r"(HiGHS|CP-SAT|CBC|SCIP) [\d.]+")
CLOSE = 2e-2
"""Relative, or of a percentage point: what another release of a library may make of a number."""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelManager]:
    """One kernel for all, away from the tree: each new one would import everything again."""
    manager, client = start_new_kernel(cwd=str(tmp_path_factory.mktemp("kernel")))
    client.stop_channels()
    yield manager
    manager.shutdown_kernel(now=True)


def executed(path: Path, folder: Path, kernel: KernelManager) -> Any:
    """The notebook run elsewhere, so that only what is installed can be imported.

    As after a restart of the kernel: no name is left of the notebook before.
    """
    shutil.copytree(FOLDER / "profiles", folder / "profiles")
    notebook = nbformat.read(path, as_version=4)
    fresh = nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {folder}\nassert 'optgap' not in dir()")
    notebook.cells.insert(0, fresh)
    NotebookClient(notebook, km=kernel, timeout=300).execute()
    assert notebook.cells.pop(0).outputs == []
    return notebook


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: Any) -> list[tuple[str, str]]:
    """What a cell gives: kinds of data, and text without versions; pictures by their kind alone.

    What is printed comes in as many pieces as the kernel found time for, and counts as one.
    """
    found: list[tuple[str, str]] = []
    for output in cell.outputs:
        if "text" in output:
            before = found.pop()[1] if found and found[-1][0] == "text" else ""
            found.append(("text", before + output.text))
        data_of = output.get("data", {})
        for kind, data in sorted(data_of.items()):
            if kind == "text/plain" and len(data_of) > 1:
                continue  # a repr, cut short, of what is shown
            found.append((kind, "" if kind.startswith("image/") else str(data)))
    return [(kind, VERSION.sub(r"\1", text)) for kind, text in found]


def alike(one: str, other: str) -> bool:
    """The same words, and numbers that are close."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(
        math.isclose(float(a.replace(",", "")), float(b.replace(",", "")), rel_tol=CLOSE,
                     abs_tol=CLOSE)
        for a, b in pairs
    )  # fmt: skip


def test_there_is_a_notebook_per_paper() -> None:
    assert len(PAPERS) == 5
    assert OTHERS


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_ends_with_a_picture_and_gives_what_it_is_kept_with(
    path: Path, tmp_path: Path, kernel: KernelManager
) -> None:
    notebook = executed(path, tmp_path, kernel)
    code = code_of(notebook)
    assert "image/png" in {kind for kind, _ in shown(code[-1])}
    assert not any(output.get("name") == "stderr" for cell in code for output in cell.outputs)
    if path in PAPERS:
        for cell, kept in zip(code, code_of(nbformat.read(path, as_version=4)), strict=True):
            new, old = shown(cell), shown(kept)
            assert [kind for kind, _ in new] == [kind for kind, _ in old], cell.source
            for (_, a), (_, b) in zip(new, old, strict=True):
                assert alike(a, b), f"{cell.source}\n{b}\nis now\n{a}"


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_a_papers_notebook_is_kept_with_outputs_and_uses_nothing_but_optgap_and_pandas(
    path: Path,
) -> None:
    for cell in code_of(nbformat.read(path, as_version=4)):
        assert cell.outputs or cell.source.startswith("import"), cell.source
        imports = re.findall(r"^(?:import|from) (\S+)", cell.source, re.MULTILINE)
        assert set(imports) <= {"optgap", "pandas"}
        assert "to_string" not in cell.source


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_any_other_notebook_is_stored_without_outputs(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_first_says_what_is_learnt(path: Path) -> None:
    first = nbformat.read(path, as_version=4).cells[0]
    assert first.cell_type == "markdown"
    assert "learn" in first.source
