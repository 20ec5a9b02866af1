"""Every exact method with every back end against brute force: one optimum, bounds below it.

A long run (``HYPOTHESIS_PROFILE=fuzz``) tries hundreds of problems per family.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from trust.agreement import ENUMERATED, FUZZ, enumerated, examples, problems, solved
from trust.clock import arrivals, changed, problem_of

import optgap
from optgap.models.errors import InputError
from optgap.models.result import Result, Status, Termination
from optgap.models.times import ROUNDING
from optgap.registry import FAMILIES
from optgap.solvers.backends import BACKENDS, unusable

SMALL = {
    "placement": {"max_nodes": 3, "max_tasks": 5, "max_gpus": 3},
    "coscheduling": {"max_jobs": 4},
    "consolidation": {"max_tasks": 4},
    "elastic": {"max_jobs": 3, "free": True},
    "queueing": {"max_jobs": 4},
}

EXAMPLES = {"consolidation": 9, "elastic": 3, "placement": 20}
"""10 elsewhere, and 600 in a long run."""
CLOSE = 2e-6
"""Relative; the methods stop at gaps of 1e-6."""
USABLE = [name for name, one in BACKENDS.items() if one.linear and not unusable(name)]


def variants(family: str, exact: bool) -> list[tuple[str, dict[str, str]]]:
    """Every method, once per back end where it has the choice."""
    found: list[tuple[str, dict[str, str]]] = []
    for name, entry in FAMILIES[family].methods.items():
        if (entry.kind == "exact") == exact:
            chosen = USABLE if "backend" in entry.params else []
            found += [(name, {"backend": b}) for b in chosen] or [(name, {})]
    return found


def tried(problem: Any, method: str, limit_s: float = 60, **params: str) -> Result | None:
    """What a method says; None where it refuses the problem."""
    try:
        return optgap.solve(problem, method, time_limit=limit_s, **params)
    except InputError:
        return None


def answers(problem: Any, exact: bool) -> dict[str, Result]:
    """What every method says that takes the problem, by its name and back end."""
    return {
        " ".join([method, *params.values()]): found
        for method, params in variants(problem.family, exact)
        if (found := tried(problem, method, **params)) is not None
    }


def ahead(value: float, best: float, sense: str) -> bool:
    """Whether `value` is better than `best` by more than rounding."""
    sign = -1.0 if sense == "max" else 1.0
    return sign * (best - value) > CLOSE * max(1.0, abs(value), abs(best))


def compared(family: str, problem: Any) -> None:
    """Raise unless all methods and brute force agree on one problem."""
    results = {"brute force": enumerated(problem)} if family in ENUMERATED else {}
    results |= answers(problem, exact=True)
    done = {n: r for n, r in results.items() if finished(r)}
    undone = {n: r.message for n, r in results.items() if n not in done}
    unproven = unexplained(results, undone)
    assert not unproven, f"{unproven} came to an end without a proof: {undone}"
    event(f"{len(done)} of {len(results)} exact variants finished")
    optima = {n: r.objective for n, r in done.items() if r.objective is not None}
    assert len(optima) in (0, len(done)), f"feasible for some only: {optima} of {list(done)}"
    best = next(iter(optima.values()), None)
    event("optimum" if optima else "infeasible" if done else "nothing proven")
    sense = problem.objective.described.sense
    for name, value in optima.items():
        assert not ahead(value, best, sense), f"{name}: {optima}"
        assert not ahead(best, value, sense), f"{name}: {optima}"
    if done:
        bounds_hold(problem, results | answers(problem, exact=False), best)
        nothing_beats(problem, best)


def finished(result: Result) -> bool:
    """Whether a method says that nothing is better."""
    return result.status in (Status.OPTIMAL, Status.INFEASIBLE)


def unexplained(results: dict[str, Result], undone: dict[str, str]) -> list[str]:
    """Those that ended by themselves, with neither a proof nor a word of why there is none."""
    return [
        name
        for name, message in undone.items()
        if results[name].termination is Termination.COMPLETED
        and (not message or "not counted as optimal" in message or "breaks a con" in message)
    ]


def comparable(problem: Any, result: Result) -> bool:
    """Whether a solution serves everything, or as much as it can where that is the question."""
    if result.objective is None:
        return False
    return problem.objective.described.sense == "max" or problem.serves_all(result.solution)


def bounds_hold(problem: Any, results: dict[str, Result], best: float | None) -> None:
    """No bound is better than the optimum; back ends of one method find the same one."""
    sense = problem.objective.described.sense
    for name, result in results.items():
        if best is None:  # nothing to be above: but nothing may be found either
            assert result.objective is None or not problem.serves_all(result.solution), name
            continue
        if comparable(problem, result):
            assert not ahead(result.objective, best, sense), name  # type: ignore[arg-type]
        if result.bound is not None:
            reverse = "min" if sense == "max" else "max"
            assert not ahead(result.bound, best, reverse), f"{name}: {result.bound} above {best}"
    for name, result in results.items():
        first = next(r for n, r in results.items() if n.split()[0] == name.split()[0])
        if {str(first.termination), str(result.termination)} == {"completed"} and first.bound:
            assert result.bound == pytest.approx(first.bound, rel=1e-5, abs=1e-5), name


def nothing_beats(problem: Any, best: float | None) -> None:
    """No policy serves everything at less, or where nobody can."""
    sense = problem.objective.described.sense
    for policy in FAMILIES[problem.family].policies:
        try:
            run = optgap.run(problem, policy, seed=1)
        except InputError:  # another objective than it treats
            continue
        if comparable(problem, run):
            assert best is not None, f"{policy} serves what is called infeasible"
            assert not ahead(run.objective, best, sense), policy  # type: ignore[arg-type]


@pytest.mark.parametrize("family", FAMILIES)
def test_all_methods_agree(family: str) -> None:
    @examples(EXAMPLES.get(family, 10), long=600)
    @given(problem=problems(family, **SMALL[family]))
    def agree(problem: Any) -> None:
        compared(family, problem)

    agree()


# -- numbers up to twelve orders of magnitude apart: a solver's tolerance is nothing beside --------


FEW: dict[str, dict[str, Any]] = {
    "placement": {"max_nodes": 3, "max_tasks": 4, "max_gpus": 3},
    "coscheduling": {"max_jobs": 3},
    "consolidation": {"max_tasks": 3},
    "elastic": {"max_jobs": 3, "max_clocks": 2, "free": True},
    "queueing": {"max_jobs": 4},
}
USUAL = {"consolidation": 4, "elastic": 5, "queueing": 8}
"""Problems of a short run where each takes long; 12 elsewhere."""
LIMIT_S = 3.0 if FUZZ else 1.0
"""Of a method: a bound that it is cut off at has to hold as well."""
NUMBERS = {
    "placement": ("gpu_idle_w", "cpu_idle_w", "cpu_full_w"),
    "coscheduling": ("idle_w", "runtime_s", "avg_power_per_gpu_w", "release_s"),
    "consolidation": ("static_w", "slope_w_per_mhz"),
    "elastic": ("submit_s", "iterations"),
    "queueing": ("arrival_s", "duration_s"),
}
"""Where a problem says how much or how long."""


def stretched(problem: Any, seed: int) -> Any:
    """The same problem with every such number times 10⁻⁶ to 10⁶."""
    rng = np.random.default_rng(seed)
    document = changed(
        problem.to_json(), lambda x: x * 10.0 ** rng.uniform(-6, 6), NUMBERS[problem.family]
    )
    if problem.family == "placement":
        power = document["power"]
        power["cpu_full_w"] += power["cpu_idle_w"]
        for model, idle in power["gpu_idle_w"].items():
            power["gpu_full_w"][model] = idle + float(10.0 ** rng.uniform(-6, 6))
    try:
        return problem_of(document)
    except InputError:  # too much of a good thing
        assume(False)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_bound_is_above_the_optimum_of_numbers_far_apart(family: str) -> None:
    @examples(USUAL.get(family, 12))
    @given(problem=problems(family, **FEW[family]), seed=st.integers(0, 2**32 - 1))
    def hold(problem: Any, seed: int) -> None:
        problem = stretched(problem, seed)
        brute = solved(problem, "exhaustive", LIMIT_S)
        best = brute.objective
        assume(brute.status is Status.OPTIMAL)
        assert best is not None
        sign = 1.0 if problem.objective.described.sense == "min" else -1.0
        slack = 1e-9 * abs(best)  # between a bound and the least of sums of floats
        if family in ("elastic", "queueing"):  # as are times that are late
            slack += 4 * ROUNDING * max(arrivals(problem.to_json()))
        for method in FAMILIES[family].methods:
            found = tried(problem, method, LIMIT_S)
            if found is None:
                continue
            if found.bound is not None:
                beyond = sign * (found.bound - best)
                assert beyond <= slack, f"{method} ({found.bound_by}): {found.bound} {best}"
            if found.status is Status.OPTIMAL and found.objective is not None:
                assert sign * (found.objective - best) <= 1e-6 * max(1.0, abs(best)), method

    hold()
