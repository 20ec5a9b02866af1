"""No default result is decided by a clock: results with a faster, a slower and a limiting one.

A long run (``HYPOTHESIS_PROFILE=fuzz``) takes every preset, and the whole overview.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from conftest import ROOT
from trust.agreement import FUZZ, elsewhere
from trust.answers import SMALL, everything

import optgap
from optgap.comparing.overview import compare_all
from optgap.models.clock import COMPILING, CompileTimer
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Result, Status, Termination
from optgap.registry import FAMILIES

MORE: dict[str, dict[str, dict[str, Any]]] = {
    "coscheduling": {"synthetic": {"size": 12}, "measured": {"size": 8}, "stream": {"size": 5}},
    "queueing": {"mixed": {"size": 12}},
    "consolidation": {"pai": {"size": 6, "present": 6}},
}
"""Presets of a short run beside the tiny problem, for which the whole of a method runs."""
REFERENCES = ("assignment", "intervals", "milp", "printed")
"""Printed formulations, which take minutes beyond the tiny problem."""
SPEEDS = ((20.0, None), (0.05, 1e6))
"""Of the clock, and limits of time, s, that cut nothing."""
QUICK_S = 10.0
"""What takes longer is left out of a long run."""


def cases() -> Iterator[tuple[str, str, str]]:
    """Family, preset and name of every policy and method, in a long run of default methods."""
    for name, spec in FAMILIES.items():
        for preset in list(spec.presets) if FUZZ else ["tiny", *MORE.get(name, {})]:
            methods = [m for m in spec.methods if preset == "tiny" or m not in REFERENCES]
            policies = spec.policies if FUZZ or preset == "tiny" else ()
            for method in (*(AUTO if FUZZ else methods), *policies):
                yield name, preset, method


AUTO = ("auto", "auto-bound")
CASES = list(cases())
DEFAULTS = CASES if FUZZ else [(family, "tiny", name) for family in FAMILIES for name in AUTO]
"""What a short run does more than twice."""


@cache
def problem_of(family: str, preset: str) -> Any:
    """A small problem; in a long run the preset as it is."""
    if preset == "tiny":
        return optgap.generate(family, seed=3, **SMALL[family])
    given = {} if FUZZ else MORE[family][preset]
    return optgap.generate(family, preset, seed=3, **given)


def made(problem: Any, name: str, limits: Limits | None = None) -> Result:
    """A result by a policy, a method or a default method."""
    limits = limits or Limits()
    if name in FAMILIES[problem.family].methods:
        return optgap.solve(problem, name, limits=limits)
    if name == "auto":
        return optgap.solve(problem, limits=limits)
    if name == "auto-bound":
        return optgap.bound(problem, limits=limits)
    return optgap.run(problem, name, limits=limits)


def told(result: Result) -> str:
    """All of a result but how long it took."""
    document = result.to_json()
    del document["seconds"]
    return repr(document)


@cache
def by_the_clock(family: str, preset: str, name: str) -> str:
    """A result with the clock as it is; a refusal, or that it takes too long."""
    began = time.monotonic()
    try:
        found = told(made(problem_of(family, preset), name))
    except InputError as error:
        return f"refused: {error}"
    return "slow" if FUZZ and time.monotonic() - began > QUICK_S else found


@pytest.mark.parametrize(
    ("family", "preset", "name", "speed", "limit_s"),
    [(*case, *SPEEDS[0]) for case in CASES] + [(*case, *SPEEDS[1]) for case in DEFAULTS],
)
def test_a_clock_of_any_speed_and_a_limit_that_cuts_nothing_give_the_same_result(
    family: str,
    preset: str,
    name: str,
    speed: float,
    limit_s: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = by_the_clock(family, preset, name)
    if expected == "slow" or expected.startswith("refused"):
        pytest.skip(expected)
    working = CompileTimer.working
    monkeypatch.setattr(CompileTimer, "working", lambda self: speed * working(self))
    assert COMPILING.working() > 0
    assert told(made(problem_of(family, preset), name, Limits(limit_s))) == expected


@cache
def whole_work(family: str, name: str) -> float:
    """The work of a result of the tiny problem that nothing cuts."""
    limits = Limits()
    made(problem_of(family, "tiny"), name, limits)
    return limits.spent


CUT = [(family, name) for family, preset, name in DEFAULTS if preset == "tiny"]
CUT += [] if FUZZ else [("elastic", "offline"), ("elastic", "bound-prices")]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("family", "name"), CUT)
def test_what_a_budget_cuts_is_the_same_by_a_faster_clock_and_says_so(
    family: str, name: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test with a share of the work that it takes to its end."""
    problem = problem_of(family, "tiny")
    if by_the_clock(family, "tiny", name).startswith("refused"):
        pytest.skip("not for this problem")
    if (whole := whole_work(family, name)) == 0:
        pytest.skip("no work is counted here")
    one = made(problem, name, Limits(work=share * whole))
    working = CompileTimer.working
    monkeypatch.setattr(CompileTimer, "working", lambda self: SPEEDS[0][0] * working(self))
    assert told(made(problem, name, Limits(work=share * whole))) == told(one)
    if name != "auto-bound" and one.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        assert one.termination is Termination.WORK_LIMIT
    if one.bound is not None and one.objective is not None:
        assert one.bound <= one.objective * (1 + 1e-6)


def test_the_overview_is_the_same_in_one_process_and_in_two() -> None:
    names = None if FUZZ else ["coscheduling", "consolidation"]
    one, two = (compare_all(names, processes=count) for count in (1, 2))

    def shown(answer: Any) -> Any:
        document = json.loads(json.dumps(answer.to_json()["families"]))
        for family in document:
            for row in family["rows"]:
                del row["seconds"]
        return document

    assert shown(one) == shown(two)


CLOCKS = re.compile(r"\b(monotonic|perf_counter|working_time|time_limit)\b")
ALLOWED = {
    "solvers/backends/highs.py": "how often progress is told; the user's limit for the solver",
    "solvers/backends/cbc.py": "the user's limit for the solver",
    "solvers/backends/growing.py": "the user's limit for the solver",
    "solvers/backends/watch.py": "how long a solver may take to stop",
    "solvers/consolidation/turns.py": "hands the user's limit on",
}
"""Files that may read a clock, and what for: it decides no result."""


def test_no_solver_and_no_policy_reads_a_clock() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ("solvers", "heuristics")
        for path in (ROOT / room).rglob("*.py")
        if CLOCKS.search(path.read_text())
    }
    assert found == set(ALLOWED)


# -- other threads, another order, another process -----------------------------------------


def test_neither_threads_nor_order_nor_hashing_change_an_answer() -> None:
    names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    single = dict.fromkeys(names, "1")
    one = json.loads(json.dumps(everything()))
    two = elsewhere("trust.answers", PYTHONHASHSEED="2", **single)  # the last family first
    assert one.keys() == two.keys() == FAMILIES.keys()
    for family, given in one.items():
        assert given.keys() == two[family].keys()
        assert {n: a for n, a in given.items() if a != two[family][n]} == {}, family
        assert set(FAMILIES[family].policies) <= set(given)
