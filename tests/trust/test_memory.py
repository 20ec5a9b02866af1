"""Too little memory: the answer says so, keeps what holds, and no traceback gets out."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from trust.answers import SMALL
from trust.test_faults import no_memory

import optgap
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.models.spec import Entry
from optgap.registry import FAMILIES
from optgap.solvers.backends import BACKENDS, solve
from optgap.solvers.backends.linear import LinearBuilder


@pytest.mark.parametrize("backend", ["highs", "cbc"])
def test_a_back_end_without_memory_says_so(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    monkeypatch.setattr(import_module(BACKENDS[backend].module), "watch", no_memory)
    model = LinearBuilder("max")
    model.row([(model.variable(upper=1, cost=1, integer=True), 1)], upper=1)
    solved = solve(model.build(), backend=backend, limits=Limits())
    assert solved.status is Status.ERROR
    assert solved.termination is Termination.ERROR
    assert solved.values is None
    assert solved.bound is None


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("kind", ["policies", "methods"])
def test_whoever_runs_out_of_memory_is_an_error(
    monkeypatch: pytest.MonkeyPatch, family: str, kind: str
) -> None:
    problem = optgap.generate(family, **SMALL.get(family, {}))
    name = next(iter(getattr(FAMILIES[family], kind)))
    monkeypatch.setattr(Entry, "load", lambda entry: no_memory)
    call = optgap.run if kind == "policies" else optgap.solve
    result = call(problem, name)
    assert result.status is Status.ERROR
    assert result.termination is Termination.ERROR
    assert result.message == "out of memory"
    assert result.objective is None
    assert result.bound is None


HUNGRY = """
import numpy as np

def hungry(task, state):
    return [np.ones(10**7) for _ in range(10_000)]
"""

LIMITED = """
import resource, sys
from pathlib import Path

import optgap.cli, optgap.api, optgap.documents, optgap.cli.run, optgap.cli.solve
import optgap.cli.results, optgap.cli.work, optgap.plotting.gaps
import highspy, numba, ortools.sat.python.cp_model, pandas, scipy.optimize

lines = Path("/proc/self/status").read_text().splitlines()
used = next(int(line.split()[1]) for line in lines if line.startswith("VmSize")) * 1024
most = used + int(sys.argv[1]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (most, most))
sys.exit(optgap.cli.main(sys.argv[2:]))
"""


def limited(spare_mib: int, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One call of the command line in a process that gets so much more memory."""
    program = folder / "limited.py"
    program.write_text(LIMITED)
    command = [sys.executable, str(program), str(spare_mib), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=folder
    )


needs_proc = pytest.mark.skipif(
    not (Path("/proc/self/status").exists() and hasattr(resource, "RLIMIT_AS")),
    reason="needs /proc and a limit on memory",
)


@needs_proc
def test_a_policy_of_ones_own_that_eats_all_memory_is_named(tmp_path: Path) -> None:
    optgap.save(optgap.generate("placement", "small", size=6), tmp_path / "problem.json")
    (tmp_path / "hungry.py").write_text(HUNGRY)
    arguments = ("problem.json", "--policy", "hungry.py:hungry", "--json", "result.json")
    done = limited(500, tmp_path, "run", *arguments)
    assert done.returncode in (1, 2), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "emory" in done.stderr
    assert not (tmp_path / "result.json").exists()


@needs_proc
@pytest.mark.parametrize("spare_mib", [2, 40])
def test_solving_with_hardly_any_memory_is_one_line_or_a_result_that_holds(
    tmp_path: Path, spare_mib: int
) -> None:
    problem = optgap.generate("coscheduling", size=12)
    optgap.save(problem, tmp_path / "problem.json")
    known = min(optgap.run(problem, name).objective for name in ("marble", "sequential_max_gpu"))
    done = limited(
        spare_mib, tmp_path, "solve", "problem.json", "--time-limit", "2", "--json", "result.json"
    )
    assert "Traceback" not in done.stderr
    written = tmp_path / "result.json"
    if not written.exists():
        assert done.returncode not in (0, 2, 3)
        assert done.stderr.strip()
        return
    result = json.loads(written.read_text())
    assert result["bound"] is None or result["bound"] <= known * (1 + 1e-6)
    assert result["objective"] is None or result["objective"] >= (result["bound"] or 0) * (1 - 1e-6)
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".json") == [
        "problem.json",
        "result.json",
    ]
