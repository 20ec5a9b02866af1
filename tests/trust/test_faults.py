"""Back ends that crash, lie or return rubbish: the answer says so, and nothing false gets out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from conftest import two_nodes_problem
from trust.agreement import best_of_policies, holds, small_problems

import optgap
from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.registry import FAMILIES
from optgap.solvers.backends import BACKENDS, highs
from optgap.solvers.backends.linear import LinearModel, Options, Solved, normalised

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
def test_a_cbc_that_dies_or_babbles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    program = tmp_path / "cbc"
    program.write_text(f"#!/bin/sh\nfor out; do :; done  # the last argument\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr("cbcbox.cbc_bin_path", lambda: str(program))
    problem = two_nodes_problem()
    try:
        result = optgap.solve(problem, "milp", backend="cbc", time_limit=20)
    except RefereeError:
        return
    assert result.status is Status.ERROR
    assert result.termination is Termination.ERROR
    assert result.objective is None
    assert result.message
