"""Back ends that crash, lie or return rubbish: the answer says so, and nothing false gets out."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from conftest import two_nodes_problem
from trust.agreement import best_of_policies, holds, small_problems
from trust.answers import SMALL

import optgap
from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.models.spec import Entry
from optgap.registry import FAMILIES
from optgap.solvers.backends import BACKENDS, highs, solve
from optgap.solvers.backends.linear import LinearBuilder, LinearModel, Options, Solved, normalised

pytestmark = pytest.mark.usefixtures("here")

HONEST = highs.solve
METHODS = [
    (name, method)
    for name, spec in FAMILIES.items()
    for method, entry in spec.methods.items()
    if entry.kind == "exact"
]


class CrashError(RuntimeError):
    """The solver went down."""


def crash(*_: Any, **__: Any) -> NoReturn:
    raise CrashError("the solver went down")


def no_memory(*_: Any, **__: Any) -> NoReturn:
    raise MemoryError


def rubbish(model: LinearModel, limits: Limits, options: Options) -> Solved:
    """Says optimal of a point drawn at random."""
    rng = np.random.default_rng(0)
    low, high = np.maximum(model.lower, -9), np.minimum(model.upper, 9)
    values = rng.uniform(low, np.maximum(low, high))
    return claimed(model, values, model.objective(model.rounded(values)))


def not_numbers(model: LinearModel, limits: Limits, options: Options) -> Solved:
    """Says optimal of NaN."""
    return claimed(model, np.full(model.variables, np.nan), 0.0)


def denial(model: LinearModel, limits: Limits, options: Options) -> Solved:
    """Has a right answer, and a bound that rules it out."""
    solved = HONEST(model, limits, options)
    if solved.values is None:
        return solved
    far = 2 * abs(solved.objective) + 1
    return claimed(model, solved.values, far if model.sense == "min" else -far)


def claimed(model: LinearModel, values: Any, bound: float) -> Solved:
    return normalised(
        model,
        solver="a liar",
        proven=True,
        infeasible=False,
        values=values,
        bound=bound,
        termination=Termination.COMPLETED,
    )


@cache
def problem_of(family: str, method: str) -> tuple[Any, float]:
    """A problem that the method takes, and the best objective of a few policies."""
    for problem in small_problems(family):
        try:
            optgap.solve(problem, method, time_limit=20)
        except InputError:
            continue
        return problem, best_of_policies(problem)
    pytest.fail(f"no problem for {method}")


@pytest.mark.parametrize("fault", [crash, rubbish, not_numbers, denial, no_memory])
@pytest.mark.parametrize(("family", "method"), METHODS)
def test_nothing_false_gets_out(
    monkeypatch: pytest.MonkeyPatch, family: str, method: str, fault: Callable[..., Solved]
) -> None:
    problem, known = problem_of(family, method)
    for backend in BACKENDS.values():
        module = import_module(backend.module)
        if fault is no_memory:
            monkeypatch.setattr(module, "watch", fault)
        elif backend.linear:
            monkeypatch.setattr(module, "solve", fault)
        elif fault is crash:  # CP-SAT takes models of its own
            monkeypatch.setattr(module, "run", crash)
    try:
        result = optgap.solve(problem, method, time_limit=20)
    except (RefereeError, CrashError):
        assert fault is not no_memory
        return  # said aloud
    holds(problem, result, known)
    if fault is no_memory and result.status is not Status.OPTIMAL:  # one needs no solver
        assert result.status is not Status.INFEASIBLE
        assert result.termination is Termination.ERROR


@pytest.mark.parametrize(
    "script",
    [
        "kill -9 $$",
        "exit 3",
        "echo 'Optimal - objective value 1.00000000' > $out; kill -9 $$",
        "echo 'Optimal - objective' > $out",
        "head -c 3000 /dev/urandom > $out",
        "true > $out",
        "echo 'Lower bound: nonsense'; sleep 0.2; kill -9 $$",
    ],
)
def test_a_cbc_that_dies_or_babbles(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = Path("cbc")
    program.write_text(f"#!/bin/sh\nfor out; do :; done  # the last argument\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr("cbcbox.cbc_bin_path", lambda: str(program.resolve()))
    problem = two_nodes_problem()
    try:
        result = optgap.solve(problem, "milp", backend="cbc", time_limit=20)
    except RefereeError:
        return
    assert result.status is Status.ERROR
    assert result.termination is Termination.ERROR
    assert result.objective is None
    assert result.message


# -- too little memory ---------------------------------------------------------------------


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


LIMITED = """
import resource, sys
from pathlib import Path

import optgap.cli, optgap.api, optgap.documents, optgap.cli.run, optgap.cli.solve
import optgap.cli.work, optgap.plotting.gaps
import highspy, numba, ortools.sat.python.cp_model, pandas, scipy.optimize

lines = Path("/proc/self/status").read_text().splitlines()
used = next(int(line.split()[1]) for line in lines if line.startswith("VmSize")) * 1024
most = used + int(sys.argv[1]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (most, most))
sys.exit(optgap.cli.main(sys.argv[2:]))
"""


@pytest.mark.skipif(
    not (Path("/proc/self/status").exists() and hasattr(resource, "RLIMIT_AS")),
    reason="needs /proc and a limit on memory",
)
@pytest.mark.parametrize("spare_mib", [2, 40])
def test_solving_with_hardly_any_memory_is_one_line_or_a_result_that_holds(
    tmp_path: Path, spare_mib: int
) -> None:
    problem = optgap.generate("coscheduling", size=12)
    optgap.save(problem, "problem.json")
    known = min(optgap.run(problem, name).objective for name in ("marble", "sequential_max_gpu"))
    Path("limited.py").write_text(LIMITED)
    asked = ("solve", "problem.json", "--time-limit", "2", "--json", "result.json")
    command = [sys.executable, "limited.py", str(spare_mib), *asked]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert "Traceback" not in done.stderr
    written = Path("result.json")
    if not written.exists():
        assert done.returncode not in (0, 2, 3)
        assert done.stderr.strip()
        return
    result = json.loads(written.read_text())
    assert result["bound"] is None or result["bound"] <= known * (1 + 1e-6)
    assert result["objective"] is None or result["objective"] >= (result["bound"] or 0) * (1 - 1e-6)
    assert {p.name for p in tmp_path.glob("*.json")} == {"problem.json", "result.json"}
