"""Every back end gives the known answer, keeps its limits and never overstates what it found."""

from __future__ import annotations

import itertools
import re
import sys
import threading
import time
from fractions import Fraction
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from trust.agreement import examples

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Sense, Status, Termination
from optgap.solvers import backends
from optgap.solvers.backends import BackendUnavailable, available, cbc, cpsat, highs, require, solve
from optgap.solvers.backends.linear import LinearBuilder, LinearModel
from optgap.solvers.backends.pulp_model import to_pulp
from optgap.solvers.backends.safe import outwards, safe_bound, solver_slack

BOTH = ("highs", "cbc")


def knapsack(values: list[float], weights: list[int], capacity: int) -> LinearModel:
    model = LinearBuilder("max")
    items = [model.variable(upper=1, cost=value, integer=True) for value in values]
    model.row(zip(items, weights, strict=True), upper=capacity)
    return model.build()


def best_by_enumeration(model: LinearModel) -> float | None:
    """The best objective over all integer points, or None when none is feasible."""
    ranges = [
        range(int(low), int(high) + 1) for low, high in zip(model.lower, model.upper, strict=True)
    ]
    points = (np.array(point, dtype=float) for point in itertools.product(*ranges))
    found = [model.objective(point) for point in points if model.violation(point) <= 1e-9]
    if not found:
        return None
    return max(found) if model.sense == "max" else min(found)


def market_split(rows: int = 4, columns: int = 30) -> LinearModel:
    """Σ_j a_ij x_j = half of Σ_j a_ij with slack at a price: hard for branch and bound."""
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 100, size=(rows, columns))
    model = LinearBuilder(offset=5)
    items = [model.variable(upper=1, integer=True) for _ in range(columns)]
    for row in weights.tolist():
        over, under = (model.variable(upper=10_000, cost=1, integer=True) for _ in range(2))
        model.row(
            [*zip(items, row, strict=True), (over, 1), (under, -1)], sum(row) // 2, sum(row) // 2
        )
    return model.build()


@st.composite
def small_programs(draw: st.DrawFn) -> LinearModel:
    size = draw(st.integers(1, 6))
    entry, divisor = st.integers(-4, 9), draw(st.sampled_from((1, 7.0)))
    model = LinearBuilder(draw(st.sampled_from(("min", "max"))), draw(st.sampled_from((0, -7))))
    columns = [
        model.variable(low, low + draw(st.integers(0, 3)), draw(entry) / divisor, integer=True)
        for low in draw(st.lists(st.sampled_from((0, 0, -2, 1)), min_size=size, max_size=size))
    ]
    for _ in range(draw(st.integers(0, 3))):
        low = draw(st.none() | st.integers(-12, 4))
        high = draw(st.none() | st.integers(0 if low is None else low, 15))
        row = draw(st.lists(entry, min_size=size, max_size=size))
        model.row(
            zip(columns, row, strict=True),
            -np.inf if low is None else low,
            np.inf if high is None else high,
        )
    return model.build()


@pytest.mark.parametrize("name", BOTH)
def test_small_programs_agree_with_enumeration(name: str) -> None:
    @examples(15 if name == "cbc" else 30)
    @given(small_programs())
    def agrees(model: LinearModel) -> None:
        best = best_by_enumeration(model)
        solved = solve(model, backend=name, limits=Limits())
        if best is None:
            assert solved.status is Status.INFEASIBLE
            return
        assert solved.status is Status.OPTIMAL
        assert solved.objective == pytest.approx(best, abs=1e-6)
        assert solved.bound == pytest.approx(best, abs=1e-6)
        assert solved.values is not None
        assert model.violation(solved.values) <= 1e-6
        assert solved.solver

    agrees()


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("limit_s", [0.0, 0.4])
def test_a_stopped_search_is_not_called_optimal(limit_s: float, name: str) -> None:
    model = market_split()
    solved = solve(model, backend=name, limits=Limits(time_limit=limit_s))
    assert solved.termination is Termination.TIME_LIMIT
    assert solved.status in (Status.FEASIBLE, Status.BOUND_ONLY, Status.NO_SOLUTION)
    if limit_s == 0.0:
        assert (solved.status, solved.bound) == (Status.NO_SOLUTION, None)
    if solved.bound is not None:
        assert solved.bound <= 6  # the optimum is at least the offset and at most 6
    if solved.values is not None:
        assert model.violation(solved.values) <= 1e-6
        assert solved.objective == pytest.approx(model.objective(solved.values))


def knapsacks() -> Any:
    """200 knapsacks over 400 items for CP-SAT: the optimum is below −4000, and far away."""
    rng = np.random.default_rng(1)
    program = cp_model.CpModel()
    items = [program.new_bool_var("") for _ in range(400)]
    for _ in range(200):
        chosen = [items[j] for j in rng.choice(400, 40, replace=False).tolist()]
        weights = rng.integers(1, 99, 40).tolist()
        program.add(cp_model.LinearExpr.weighted_sum(chosen, weights) <= 700)
    program.minimize(cp_model.LinearExpr.weighted_sum(items, rng.integers(-99, 0, 400).tolist()))
    return program


def test_cp_sat_stopped_at_once_claims_no_bound() -> None:
    # Its response then holds a bound of 0, which is wrong where the optimum is negative.
    for limit in (1e-4, 1e-3, 5e-3, 2e-2):
        bound = cpsat.run(knapsacks(), Limits(time_limit=limit)).bound
        assert bound is None or bound <= -4000


@pytest.mark.parametrize("name", BOTH)
def test_an_interrupt_ends_the_search_at_once(name: str) -> None:
    limits = Limits(time_limit=6.0)
    model = market_split(5, 40)
    start = np.zeros(model.variables)
    start[40::2] = model.row_lower
    threading.Timer(0.3, limits.interrupted.set).start()
    solved = solve(model, backend=name, limits=limits, start=start)
    assert solved.termination is Termination.INTERRUPTED
    assert solved.status in (Status.FEASIBLE, Status.BOUND_ONLY, Status.NO_SOLUTION)
    assert limits.seconds_left > 0


@pytest.mark.parametrize("name", ["highs", "cpsat"])
def test_a_budget_of_work_stops_at_the_same_place_whatever_the_clock_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped() -> tuple[object, ...]:
        limits = Limits(work=0.3)
        if name == "cpsat":
            answer = cpsat.run(knapsacks(), limits)
            ended = cpsat.terminated(answer.status, limits)
            return ended, limits.spent, answer.status, answer.bound
        solved = solve(market_split(5, 40), backend=name, limits=limits)
        values = None if solved.values is None else solved.values.tolist()
        return solved.termination, limits.spent, solved.bound, solved.objective, values

    first = stopped()
    assert first[0] is Termination.WORK_LIMIT
    monkeypatch.setattr("optgap.models.limits.working_time", lambda: 20 * time.monotonic())
    assert stopped() == first


def test_a_linear_program_stops_after_its_iterations() -> None:
    rng = np.random.default_rng(0)
    builder = LinearBuilder()
    columns = [builder.variable(cost=float(c)) for c in rng.uniform(1, 2, 300)]
    for _ in range(200):
        chosen = rng.choice(300, 30, replace=False)
        builder.row([(columns[j], float(rng.uniform(0.5, 1.5))) for j in chosen], lower=1)
    model = builder.build()
    whole = Limits(work=60.0)
    assert solve(model, backend="highs", limits=whole).status is Status.OPTIMAL
    assert (whole.cut, 0 < whole.spent < 60) == (None, True)
    part = Limits(work=0.2 * whole.spent)
    solved = solve(model, backend="highs", limits=part)
    assert (solved.termination, part.cut) == (Termination.WORK_LIMIT, Termination.WORK_LIMIT)
    assert solved.values is None


def test_progress_is_told() -> None:
    found = threading.Event()

    def told(_: str, value: float | None, bound: float | None) -> None:
        if value is not None:
            found.set()

    cpsat.run(knapsacks(), Limits(time_limit=20.0, interrupted=found, progress=told))
    assert found.is_set()


@pytest.mark.parametrize("name", BOTH)
def test_linear_program_and_its_duals(name: str) -> None:
    # min x − y  s.t.  x + y ≤ 4, y ≤ 3 − x/2, 0 ≤ x: the optimum is x = 0, y = 3
    model = LinearBuilder(offset=1)
    x, y = model.variable(cost=1), model.variable(cost=-1)
    model.row([(x, 1), (y, 1)], upper=4)
    model.row([(x, 0.5), (y, 1)], upper=3)
    solved = solve(model.build(), backend=name, limits=Limits())
    assert solved.objective == pytest.approx(-2)
    assert solved.bound == pytest.approx(-2)
    if name == "highs":
        assert solved.duals == pytest.approx([0, -1])


@pytest.mark.parametrize("name", BOTH)
def test_nothing_to_decide(name: str) -> None:
    assert solve(LinearBuilder(offset=3).build(), backend=name, limits=Limits()).objective == 3
    impossible = LinearBuilder()
    impossible.variable(upper=1, integer=True)
    impossible.row([], lower=1)
    solved = solve(impossible.build(), backend=name, limits=Limits())
    assert solved.status is Status.INFEASIBLE


@pytest.mark.parametrize("name", BOTH)
def test_unbounded_is_an_error_and_no_solution(name: str) -> None:
    model = LinearBuilder()
    model.variable(cost=-1)
    solved = solve(model.build(), backend=name, limits=Limits())
    assert solved.status is Status.ERROR
    assert solved.values is None
    assert "nbounded" in solved.message


def test_models_that_cannot_be_are_refused() -> None:
    crossed = LinearBuilder()
    crossed.variable(2, 1)
    with pytest.raises(InputError, match=r"variables\[0\]"):
        solve(crossed.build(), backend="highs", limits=Limits())
    infinite = LinearBuilder()
    infinite.variable(cost=float("nan"))
    with pytest.raises(InputError, match="cost"):
        solve(infinite.build(), backend="highs", limits=Limits())


def test_an_unknown_back_end_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match="highs, cbc, cpsat"):
        require("gurobi")
    with pytest.raises(InputError, match=r"cpsat.*one of highs, cbc$"):
        solve(market_split(), backend="cpsat", limits=Limits())


@pytest.mark.parametrize("name", backends.BACKENDS)
def test_the_back_ends_here_are_usable(name: str) -> None:
    assert available(name) == ""
    rows = {row.name: row for row in backends.backends()}
    assert rows[name].usable
    assert rows[name].versions


@pytest.mark.parametrize(
    ("name", "versions", "words", "remedy"),
    [
        ("highs", {"highspy": "1.15.1", "ortools": "9.15.6755"}, "clash in a process", ""),
        ("highs", {"highspy": "1.14.0"}, "wrong solutions", ""),
        ("highs", {"highspy": "1.11.0"}, "too old", ""),
        ("highs", {}, "highspy not installed", ""),
        ("cbc", {}, "pulp and cbcbox not installed", "optgap[cbc]"),
        ("cbc", {"pulp": "4.2.0"}, "cbcbox not installed", "optgap[cbc]"),
    ],
)
def test_a_package_that_will_not_do_is_one_clear_line_that_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, name: str, versions: dict[str, str], words: str, remedy: str
) -> None:
    monkeypatch.setattr(backends, "_version", lambda package: versions.get(package, ""))
    with pytest.raises(BackendUnavailable, match=words) as caught:
        require(name)
    assert f"pip install '{remedy or 'highspy>=1.12,<1.14'}'" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert words in {row.name: row.reason for row in backends.backends()}[name]


def test_highspy_alone_may_be_newer_than_what_ortools_bears(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backends, "_version", {"highspy": "1.15.1"}.get)
    assert backends.unusable("highs") == ""


@pytest.mark.skipif(int(version("pulp").split(".")[0]) > 3, reason="PuLP 4 carries no CBC")
def test_without_cbcbox_the_cbc_in_pulp_3_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cbcbox", None)
    monkeypatch.setattr(backends, "_version", lambda p: "" if p == "cbcbox" else version(p))
    assert backends.unusable("cbc") == ""
    assert "pulp" in cbc.executable()
    solved = solve(knapsack([5.0, 4.0, 3.0], [2, 2, 2], 4), backend="cbc", limits=Limits())
    assert (solved.status, solved.objective) == (Status.OPTIMAL, pytest.approx(9.0))
    assert solved.solver.startswith("CBC (PuLP 3")


def test_an_import_that_fails_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ImportError("libhighs.so.1: undefined symbol:\n _ZN5Highs")

    monkeypatch.setattr(highs, "probe", broken)
    with pytest.raises(BackendUnavailable, match="undefined symbol: _ZN5Highs") as caught:
        require("highs")
    assert "\n" not in str(caught.value)


def test_an_optimum_of_cbc_is_proven_to_its_gap_whatever_digits_the_log_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # any line is one of a bound: logs of CBC differ from version to version
    monkeypatch.setattr(cbc, "BOUND", re.compile(r"^()", re.MULTILINE))
    monkeypatch.setattr(cbc, "_at_least", lambda text: -45.0)  # as of "Lower bound: -4e+01"
    model = knapsack([16.0, 22.0, 12.0, 8.0, 11.0, 19.0], [5, 7, 4, 3, 4, 6], 14)
    solved = solve(model, backend="cbc", limits=Limits(), gap=1e-6)
    assert solved.bound == pytest.approx(43, rel=2e-6)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_cbc_stopped_after_its_first_linear_program_has_a_bound_alone(sense: Sense) -> None:
    builder = LinearBuilder(sense, offset=10.0)
    sign = -1 if sense == "min" else 1
    items = [builder.variable(upper=1, cost=sign * value, integer=True) for value in (6, 5)]
    builder.row(zip(items, (4, 3), strict=True), upper=5)
    model = builder.build()
    # as CBC writes it where its time is up before its tree begins: a half of the first item
    log = "LP Optimal - Frac: 1/2 (50.0%)   Obj: -8\n"
    problem = to_pulp(model)
    for variable, value in zip(problem.variables(), (0.5, 1.0), strict=True):
        variable.varValue = value
    optimal = SimpleNamespace(status=1, has_solution=True)  # as PuLP 4 says it
    late = cbc._read(model, problem, optimal, log, limits=Limits(0.0), gap=0.0)
    assert (late.status, late.termination) == (Status.BOUND_ONLY, Termination.TIME_LIMIT)
    assert late.bound == pytest.approx(10 + sign * 8)
    assert late.values is None

    # with time left nothing excuses such a point
    early = cbc._read(model, problem, optimal, log, limits=Limits(60.0), gap=0.0)
    assert (early.status, early.values) == (Status.ERROR, None)
    assert "breaks the model" in early.message


# -- safe bounds ---------------------------------------------------------------------------


def around(rng: np.random.Generator) -> tuple[LinearModel, np.ndarray]:
    """Numbers over twelve orders of magnitude, and a point that keeps every row by construction."""

    def wild(low: float = -6, high: float = 6) -> float:
        return float(rng.choice([-1, 1]) * 10.0 ** rng.uniform(low, high))

    builder = LinearBuilder("min", offset=wild())
    point = [abs(wild(-3, 3)) for _ in range(int(rng.integers(1, 7)))]
    for x in point:
        builder.variable(x * rng.uniform(0, 1), x * rng.uniform(1, 3), wild())
    for _ in range(int(rng.integers(1, 5))):
        terms = [(j, wild()) for j in range(len(point)) if rng.random() < 0.7]
        level = float(sum(Fraction(v) * Fraction(point[j]) for j, v in terms))
        room = abs(level) * 1e-12 + 1e-300
        sides = rng.random(2)
        builder.row(terms, level - room if sides[0] < 0.7 else -np.inf,
                    level + room if sides[1] < 0.7 else np.inf)  # fmt: skip
    return builder.build(), np.array(point)


@given(seed=st.integers(0, 2**32 - 1))
def test_no_price_however_wrong_puts_the_bound_above_a_feasible_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, point = around(rng)
    duals = rng.choice([-1, 1], model.rows) * 10.0 ** rng.uniform(-6, 6, model.rows)
    value = Fraction(model.offset)
    value += sum(Fraction(c) * Fraction(x) for c, x in zip(model.cost, point, strict=True))
    assert Fraction(safe_bound(model, duals)) <= value
    solved = solve(model, backend="highs", limits=Limits())
    if solved.duals is not None:
        assert Fraction(safe_bound(model, solved.duals)) <= value


@given(seed=st.integers(0, 2**32 - 1))
def test_at_the_solvers_prices_little_is_lost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    builder = LinearBuilder("min")
    for _ in range(6):
        builder.variable(upper=float(rng.uniform(1, 5)), cost=float(rng.uniform(-1, 1)))
    for _ in range(4):
        builder.row([(j, float(rng.uniform(0, 1))) for j in range(6)], 0.5, 2.0)
    model = builder.build()
    solved = solve(model, backend="highs", limits=Limits())
    if solved.duals is not None and solved.objective is not None:
        found = safe_bound(model, solved.duals)
        assert found == pytest.approx(solved.objective, rel=1e-6, abs=1e-6)


def test_a_variable_without_a_limit_needs_one_where_it_would_be_cheap() -> None:
    builder = LinearBuilder("min")
    x = builder.variable(cost=1.0)
    builder.row([(x, 1.0)], lower=2.0)
    model = builder.build()
    assert safe_bound(model, np.array([0.75])) == pytest.approx(1.5, rel=1e-12)
    assert safe_bound(model, np.array([1.0])) == -np.inf  # it may be negative by rounding
    limited = safe_bound(model, np.array([1.0 + 1e-9]), np.array([10.0]))
    assert limited == pytest.approx(2 - 8e-9, abs=1e-12)
    assert safe_bound(model, np.array([-5.0])) == 0  # an upper limit that is not there
    assert solver_slack(model, 1e-6, np.array([10.0])) == pytest.approx(1e-5)
    with pytest.raises(ValueError, match="minimisation"):
        safe_bound(LinearBuilder("max").build(), np.zeros(0))


def test_sums_are_rounded_down() -> None:
    terms = [0.1] * 10 + [1e16, -1e16]
    assert outwards(terms) <= 1.0
    assert outwards([1.0, -np.inf]) == -np.inf
