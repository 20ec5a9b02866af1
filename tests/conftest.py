"""What all tests share: the data folder, small problems, and how hard hypothesis searches."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from optgap.models.placement import Cluster, PlacementObjective, PlacementProblem, Tasks

ROOT = Path(__file__).parents[1]

os.environ.pop("COLUMNS", None)  # workers of xdist set it, and texts would wrap as nowhere else

_SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "ci", max_examples=15, deadline=None, derandomize=True, suppress_health_check=_SLOW
)
settings.register_profile(
    "fuzz", max_examples=3000, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


TURNS = ({"placement"}, {"coscheduling"}, {"elastic"}, {"consolidation", "queueing"})
"""Families in this order. Two workers begin with an eighth of the tests each: one compiles for
placement, the other for nearly all else; coscheduling has nothing to compile."""

LONG = ("test_notebooks.py", "test_docs_commands.py", "test_sweep.py", "test_hostile_files.py")
"""Run before all else: whoever is given one of these last keeps the others waiting."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let workers that start without machine code make it for one another."""

    def turn(item: pytest.Item) -> int:
        role, *words = os.path.relpath(item.path, ROOT / "tests").split(os.sep)
        words += re.findall(r"\w+", item.name)  # the family may be a parameter
        of = TURNS if role in ("solvers", "heuristics") else ()
        rest = len(TURNS) + (item.path.name not in LONG)
        return next((k for k, families in enumerate(of) if families & {*words}), rest)

    items.sort(key=turn)


def pytest_configure() -> None:
    """Collect garbage less often: each time half a million objects of libraries are gone through,
    which takes a worker 5 to 7 s of CPU time, most of it while tests are collected.
    """
    gc.set_threshold(50_000, 20, 100)


def pytest_collection_finish() -> None:
    """Leave what was imported to the end."""
    gc.collect()
    gc.freeze()


RESULT_KEYS = {
    "schema", "family", "method", "kind", "status", "termination", "objective", "unit", "sense",
    "bound", "bound_by", "gap", "seconds", "seed", "versions", "metrics", "solution",
}  # fmt: skip

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
UNCOMPILED_S = 10.0
"""CPU seconds: what takes longer without compilation is too large for it, and left out."""


def _measured(frame: FrameType | None) -> bool:
    """Whether coverage is at work on top of what is tested."""
    while frame is not None:
        name = frame.f_code.co_filename
        if f"{os.sep}site-packages{os.sep}coverage{os.sep}" in name:
            return True
        if name.startswith(str(ROOT)) and "site-packages" not in name:
            return False
        frame = frame.f_back
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Let `make coverage` run kernels as Python on whatever is small enough for that."""
    if not UNCOMPILED:
        return (yield)

    def late(_: int, frame: FrameType | None) -> None:
        if _measured(frame):  # it may hold a lock, which no exception may leave behind
            signal.setitimer(signal.ITIMER_PROF, 0.01)
            return
        pytest.skip(f"takes more than {UNCOMPILED_S:g} s uncompiled")

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, UNCOMPILED_S)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with public traces and profiles, which is not part of the repository."""
    place = Path(os.environ.get("OPTGAP_DATA") or ROOT.parent / "shared" / "data")
    if not place.is_dir():
        pytest.skip(f"no data at {place}; set OPTGAP_DATA to the folder with openb/ and profiles/")
    return place


def two_nodes_problem(extra: int = 0, goal: str = "power") -> PlacementProblem:
    """Two G2 nodes with two GPUs each; tasks of 1, 0.5, 0.5 GPUs and one of CPU only.

    Least power: all on one node, two GPUs and one package active there. With `extra` more tasks of
    two GPUs each, of which two fit when alone.
    """
    count = 4 + extra
    return PlacementProblem.of(
        Cluster.of(["a", "b"], [16_000, 16_000], [4096, 4096], [2, 2], ["G2", "G2"]),
        Tasks.of(
            [f"t{k}" for k in range(count)],
            [1000] * count,
            [0] * count,
            [1, 1, 1, 0] + [2] * extra,
            [1000, 500, 500, 0] + [1000] * extra,
            [""] * count,
        ),
        objective=PlacementObjective(goal),  # type: ignore[arg-type]
        name="two nodes",
        origin="synthetic",
    )


TWO_NODES = two_nodes_problem()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def problem_file(here: Path) -> str:
    """`TWO_NODES` as a file, in the current directory."""
    from optgap import save

    save(TWO_NODES, "problem.json")
    return "problem.json"


@pytest.fixture
def enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods of placement whose answers are known."""
    import enumeration

    import optgap.solvers.placement as room

    monkeypatch.setattr(room, "METHODS", enumeration.METHODS)
    monkeypatch.setattr(room, "auto", lambda problem: "enumerate")
    monkeypatch.setattr(room, "auto_bound", lambda problem: "loose")


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do all in this process that would be spread over others, which import everything anew."""
    monkeypatch.setattr("optgap.processes.cores", lambda: 1)


class Answer(NamedTuple):
    """What one call of the command line gave."""

    code: int
    out: str
    err: str


Cli = Callable[..., Answer]


def refused(answer: Answer, *words: str) -> None:
    """Raise unless bad input was told in one line, with these words in it, and nothing else."""
    assert answer.code == 2, answer
    assert answer.out == ""
    lines = answer.err.splitlines()
    assert len(lines) == 1, answer.err
    assert lines[0].startswith("optgap: ")
    assert "Traceback" not in lines[0]
    for word in words:
        assert word in lines[0], lines[0]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line, called in this process."""
    from optgap.cli import main

    def call(*arguments: str) -> Answer:
        capsys.readouterr()
        code = main(arguments)
        return Answer(code, *capsys.readouterr())

    return call
