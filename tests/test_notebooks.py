"""Every notebook runs, from no names at all, and gives what it is stored with."""

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
FAMILIES = ("placement", "consolidation", "coscheduling", "elastic", "queueing")

NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
VERSION = re.compile(r"(HiGHS|CP-SAT|CBC|SCIP) [\d.]+")
SECONDS = re.compile(r"[\d,.]+(?=</td>(?:<td[^>]*></td>)?</tr>| s</div>)")
"""What runs took: the last column of a table with this title, or that before an empty note."""
TIMED = "time (s)"
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
    """What a cell gives: kinds of data, and text without versions and times of runs; pictures by
    their kind alone.

    What is printed comes in as many pieces as the kernel found time for, and counts as one.
    """
    found: list[tuple[str, str]] = []
    for output in cell.outputs:
        if output.get("name") == "stderr" and " - distributed." in output.text:
            continue  # Dask's log of a cluster that closes, when it comes in time
        if "text" in output:
            before = found.pop()[1] if found and found[-1][0] == "text" else ""
            found.append(("text", before + output.text))
        data_of = output.get("data", {})
        for kind, data in sorted(data_of.items()):
            if kind == "text/plain" and len(data_of) > 1:
                continue  # a repr, cut short, of what is shown
            found.append((kind, "" if kind.startswith("image/") else str(data)))
    found = [(kind, VERSION.sub(r"\1", text)) for kind, text in found]
    return [(kind, SECONDS.sub("", text) if TIMED in text else text) for kind, text in found]


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


def test_notebooks_are_numbered_and_there_is_one_for_each_family() -> None:
    numbers, names = zip(*(path.stem.split("-", 1) for path in NOTEBOOKS), strict=True)
    assert numbers == tuple(f"{k:02d}" for k in range(1, len(NOTEBOOKS) + 1))
    assert tuple(name.split("-")[0] for name in names[1:6]) == FAMILIES


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_what_it_is_stored_with(
    path: Path, tmp_path: Path, kernel: KernelManager
) -> None:
    code = code_of(executed(path, tmp_path, kernel))
    for cell, stored in zip(code, code_of(nbformat.read(path, as_version=4)), strict=True):
        new, old = shown(cell), shown(stored)
        assert [kind for kind, _ in new] == [kind for kind, _ in old], cell.source
        for (_, a), (_, b) in zip(new, old, strict=True):
            assert alike(a, b), f"{cell.source}\n{b}\nis now\n{a}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_what_is_learnt_and_is_stored_with_pictures(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    first, code = notebook.cells[0], code_of(notebook)
    assert first.cell_type == "markdown"
    assert "you learn" in " ".join(first.source.split())
    assert "image/png" in {kind for kind, _ in shown(code[-1])}
    assert not any(output.get("name") == "stderr" for cell in code for output in cell.outputs)
    if path.stem.split("-")[1] in FAMILIES:
        assert "\nSubject To\n" in "".join(text for cell in code for _, text in shown(cell))
        assert "## The paper's numbers beside ours" in {
            line for cell in notebook.cells for line in cell.source.splitlines()
        }


def test_every_notebook_is_in_the_list() -> None:
    listed = re.findall(
        r"\(\.\./notebooks/([\w-]+)\.ipynb\)", (ROOT / "docs/notebooks.md").read_text()
    )
    assert listed == [path.stem for path in NOTEBOOKS]


def test_every_model_is_fitted_in_a_notebook() -> None:
    from optgap.fitting import ESTIMATORS

    text = (FOLDER / "07-profiles-to-gaps.ipynb").read_text()
    assert {name for name in ESTIMATORS if f'\\"{name}\\"' in text} == set(ESTIMATORS)


@pytest.mark.slow
@pytest.mark.parametrize("reader", [True, False])
def test_progress_is_shown_to_a_reader_and_never_stored(
    reader: bool, kernel: KernelManager
) -> None:
    """Test that a line appears below a running cell, and is empty once the cell has run."""
    client = kernel.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    lines: list[str] = []
    client.execute_interactive(
        "from optgap import progress\n"
        "progress.AFTER_S = 0\n"
        "progress.in_notebook('planning', 3.0, 2.0)",
        allow_stdin=reader,
        stdin_hook=lambda message: None,
        output_hook=lambda message: lines.append(
            message["content"].get("data", {}).get("text/plain", message["msg_type"])
        ),
        timeout=60,
    )
    client.stop_channels()
    told = [line for line in lines if line not in ("status", "execute_input")]
    assert told == (["0 s · planning · best 3.00000 · bound 2.00000 · gap 50.0 %", ""] * reader)
