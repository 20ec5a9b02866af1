"""PowerFlow: Algorithm 1 at every event, with profiling, buddy placement and nodes switched off."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from optgap.heuristics.elastic import kernels
from optgap.heuristics.elastic.budget import within_budget_by_eta
from optgap.heuristics.elastic.common import previous_count
from optgap.heuristics.elastic.engine import Decision, Making, Settings, State, simulate
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.problem import POWER_SLACK, Floats, Ints
from optgap.models.errors import InputError, one_of
from optgap.models.limits import Limits
from optgap.models.result import Outcome

Mode = Literal["strict", "paper"]
ClockPolicy = Literal["fixed", "per_n"]
First = Literal["energy", "ee", "fifo", "srtf"]
Profiles = Literal["fitted", "oracle"]


@within_budget_by_eta
def powerflow(
    problem: ElasticProblem,
    *,
    limits: Limits,
    seed: int,
    mode: Mode = "strict",
    frequency: ClockPolicy = "fixed",
    first_gpu: First = "energy",
    profiles: Profiles = "fitted",
    sigma_time: float = 0.044,
    sigma_energy: float = 0.055,
    prerun_s: float = 240.0,
    profile_s: float = 240.0,
    preempt_profile: bool = False,
    migration: Making = "least",
    consolidate: bool = False,
    switch_off: bool = True,
    boot_s: float = 0.0,
    count_idle: bool = False,
    eta: float | None = None,
) -> Outcome:
    """PowerFlow (Algorithm 1).

    Parameters
    ----------
    mode: ``strict``: a step is taken only if the limit holds after it; ``paper``: as printed,
        steps end once the limit has been passed.
    frequency: ``fixed``: f* of the fewest GPUs for all counts; ``per_n``: f* of each count.
    first_gpu: order of the first GPUs when there are more jobs than GPUs: least remaining
        energy, best energy efficiency, submission, or least remaining time.
    profiles: ``fitted``: predictions are off by as much as the paper's Table 2 says, twice as
        much on GPU counts not yet profiled, and profiling costs time and energy; ``oracle``:
        they are exact and profiling is free.
    sigma_time, sigma_energy: standard deviation of the logarithm of those errors.
    prerun_s, profile_s: the run before a job may start, and the window on each new GPU count, s.
    preempt_profile: windows may be cut short.
    migration: see `engine.Making`.
    consolidate: keep no more nodes on than needed, at the price of moves.
    switch_off: nodes without jobs are switched off.
    boot_s: what a job waits for a node that was off, s; nothing in the paper.
    count_idle: the limit also counts the idle GPUs of as many nodes as hold the jobs.
    eta: η to plan with instead of the problem's; a job that needs more power runs alone.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    for name, value, choices in (
        ("mode", mode, get_args(Mode)),
        ("frequency", frequency, get_args(ClockPolicy)),
        ("first_gpu", first_gpu, get_args(First)),
        ("profiles", profiles, get_args(Profiles)),
        ("migration", migration, get_args(Making)),
    ):
        if value not in choices:
            raise InputError("powerflow", name, value, one_of(choices))
    for name, number in (
        ("sigma_time", sigma_time),
        ("sigma_energy", sigma_energy),
        ("prerun_s", prerun_s),
        ("profile_s", profile_s),
        ("boot_s", boot_s),
    ):
        if not 0 <= number < 1e9:
            raise InputError("powerflow", name, number, "a number of at least 0")
    if eta is not None and not (isinstance(eta, (int, float)) and 0 <= eta <= 1):
        raise InputError("powerflow", "eta", eta, "a number from 0 to 1")
    oracle = profiles == "oracle"
    settings = Settings(
        making=migration,
        switch_off=switch_off,
        consolidate=consolidate,
        prerun_s=0.0 if oracle else prerun_s,
        profile_s=0.0 if oracle else profile_s,
        preempt_profile=preempt_profile,
        strict=mode == "strict",
        boot_s=boot_s if switch_off else 0.0,
    )
    if oracle or not (sigma_time or sigma_energy):
        model: Known = Known(problem)
    else:
        model = Predicted(problem, seed, sigma_time, sigma_energy)
    limit = problem.power_limit_w
    if eta is not None:
        limit = min(limit, eta * problem.gpus * problem.p_max_w)
    elif not math.isfinite(limit):  # no limit on power: η still steers
        limit = problem.eta * problem.gpus * problem.p_max_w
    policy = PowerFlow(problem, settings, model, limit, mode, frequency, first_gpu)
    policy.idle_w = problem.idle_w if count_idle else 0.0
    return simulate(problem, policy, limits)


class Steps:
    """Every step's kind and value, from tables of time and energy; classes along the first axis.

    Parameters
    ----------
    time_s, energy_j: (C, K, F) per iteration; infinite time where there is no configuration.
    counted_w: (C, K, F) power as the limit counts it.
    clock_policy: see `powerflow`.
    """

    def __init__(
        self, time_s: Floats, energy_j: Floats, counted_w: Floats, clock_policy: str
    ) -> None:
        classes, n_counts, n_clocks = time_s.shape
        allowed = np.isfinite(time_s[:, :, 0])
        self.least = allowed.argmax(axis=1)
        self.following = np.full((classes, n_counts), -1, dtype=np.int64)
        for k in range(n_counts - 1):
            for after in range(n_counts - 1, k, -1):
                self.following[:, k] = np.where(
                    allowed[:, k] & allowed[:, after], after, self.following[:, k]
                )
        with np.errstate(invalid="ignore"):
            product = np.where(np.isfinite(time_s), time_s * energy_j, np.inf)
        best = product.argmin(axis=2)  # the lower clock of equals
        rows = np.arange(classes)
        if clock_policy == "fixed":
            best = np.repeat(best[rows, self.least][:, None], n_counts, axis=1)
        self.start = best
        self.watts = counted_w
        self._grow(time_s, energy_j, best, rows)
        self._raise(time_s, energy_j, n_clocks)

    def _grow(self, time_s: Floats, energy_j: Floats, best: Ints, rows: Ints) -> None:
        shape = self.following.shape
        self.grow_kind = np.zeros(shape, dtype=np.int64)
        self.grow_value = np.zeros(shape)
        for k in range(shape[1]):
            after = self.following[:, k]
            has = after >= 0
            a, b = rows[has], after[has]
            saved = time_s[a, k, best[a, k]] - time_s[a, b, best[a, b]]
            cost = energy_j[a, b, best[a, b]] - energy_j[a, k, best[a, k]]
            self.grow_kind[has, k], self.grow_value[has, k] = _priority(saved, cost)

    def _raise(self, time_s: Floats, energy_j: Floats, n_clocks: int) -> None:
        self.raise_kind = np.zeros(time_s.shape, dtype=np.int64)
        self.raise_value = np.zeros(time_s.shape)
        if n_clocks > 1:
            with np.errstate(invalid="ignore"):
                saved = time_s[:, :, :-1] - time_s[:, :, 1:]
                cost = energy_j[:, :, 1:] - energy_j[:, :, :-1]
            kind, value = _priority(np.nan_to_num(saved, nan=0.0), np.nan_to_num(cost, nan=0.0))
            self.raise_kind[:, :, :-1], self.raise_value[:, :, :-1] = kind, value


def _priority(saved: Floats, cost: Floats) -> tuple[Ints, Floats]:
    """Kind and value of steps that save so many s and cost so many J per iteration (Eq. 20-21)."""
    free = (saved > 0) & (cost <= 0)
    finite = (saved > 0) & (cost > 0)
    kind = np.where(free, kernels.FREE, np.where(finite, kernels.FINITE, kernels.NO_STEP))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(free, saved, np.where(finite, saved / cost, 0.0))
    return kind, value


class Known:
    """Exact tables: one row per class."""

    def __init__(self, problem: ElasticProblem) -> None:
        self.problem = problem
        idle = problem.idle_w * problem.counts[None, :, None]
        self.counted_w = np.maximum(problem.power_w, idle)
        with np.errstate(invalid="ignore"):
            self.energy_j = np.where(
                np.isfinite(problem.time_s), problem.power_w * problem.time_s, np.inf
            )
        self.time_s = problem.time_s
        self.exact = True
        self._steps: Steps | None = None

    def steps(self, state: State, clock_policy: str) -> tuple[Steps, Ints]:
        """The steps, and (A,) each active job's row in them."""
        if self._steps is None:
            self._steps = Steps(self.time_s, self.energy_j, self.counted_w, clock_policy)
        return self._steps, state.of_class


class Predicted(Known):
    """Predictions that are off by a factor per class and GPU count, squared where not profiled.

    Jobs of one class that have been profiled on the same GPU counts share a row of tables.
    """

    def __init__(
        self, problem: ElasticProblem, seed: int, sigma_time: float, sigma_energy: float
    ) -> None:
        super().__init__(problem)
        rng = np.random.default_rng(seed)
        shape = (len(problem.classes), len(problem.counts))
        self.time_error = sigma_time * rng.standard_normal(shape)
        self.energy_error = sigma_energy * rng.standard_normal(shape)
        self.first = np.isfinite(problem.time_s[:, :, 0]).argmax(axis=1)
        self.bits = 1 << np.arange(len(problem.counts), dtype=np.int64)
        self.rows: dict[int, int] = {}
        self.true_time_s, self.true_energy_j = self.time_s, self.energy_j
        self.exact = False

    def steps(self, state: State, clock_policy: str) -> tuple[Steps, Ints]:
        c = state.of_class
        # the run before a job starts has profiled its fewest GPUs
        masks = state.profiled[state.jobs] @ self.bits | self.bits[self.first[c]]
        codes, inverse = np.unique(masks * len(self.problem.classes) + c, return_inverse=True)
        known = len(self.rows)
        index = np.array([self.rows.setdefault(code, len(self.rows)) for code in codes.tolist()])
        if self._steps is None or len(self.rows) > known:
            self._steps = self._predict(clock_policy)
        return self._steps, index[inverse]

    def _predict(self, clock_policy: str) -> Steps:
        codes = np.array(list(self.rows))
        masks, c = np.divmod(codes, len(self.problem.classes))
        scale = np.where(masks[:, None] & self.bits[None, :], 1.0, 2.0)
        self.time_s = self.true_time_s[c] * np.exp(scale * self.time_error[c])[:, :, None]
        self.energy_j = self.true_energy_j[c] * np.exp(scale * self.energy_error[c])[:, :, None]
        with np.errstate(invalid="ignore"):
            watts = np.where(np.isfinite(self.time_s), self.energy_j / self.time_s, 0.0)
        idle = self.problem.idle_w * self.problem.counts[None, :, None]
        return Steps(self.time_s, self.energy_j, np.maximum(watts, idle), clock_policy)


class PowerFlow:
    """Algorithm 1 as a policy of the engine."""

    def __init__(
        self,
        problem: ElasticProblem,
        settings: Settings,
        model: Known,
        limit_w: float,
        mode: Mode,
        clock_policy: ClockPolicy,
        first_gpu: First,
    ) -> None:
        self.problem, self.settings, self.model = problem, settings, model
        self.limit_w = limit_w * (1 + POWER_SLACK)
        self.strict = mode == "strict"
        self.clock_policy, self.first_gpu = clock_policy, first_gpu
        self.fewer = previous_count(problem)
        self.idle_w = 0.0
        """W that the limit counts for an idle GPU of a node that is on."""

    def decide(self, state: State) -> Decision:
        """Phases 1 and 2 from scratch; predictions that break the limit are reined in."""
        steps, row = self.model.steps(state, self.clock_policy)
        first = self._first(state, steps, row)
        count, clock, _ = kernels.powerflow(
            row,
            first,
            state.remaining,
            state.locked,
            state.locked_w,
            self.problem.counts,
            steps.least,
            steps.following,
            steps.start,
            steps.grow_kind,
            steps.grow_value,
            steps.watts,
            steps.raise_kind,
            steps.raise_value,
            self.problem.gpus,
            self.problem.gpus_per_node,
            self.limit_w,
            self.strict,
            self.idle_w,
        )
        if self.strict:
            self._rein_in(state, count, clock)
            if (count < 0).all():
                self._at_least_one(state, first, count, clock)
        return Decision(count, clock)

    def _first(self, state: State, steps: Steps, row: Ints) -> Floats:
        """(A,) the order of the first GPUs."""
        if self.first_gpu == "fifo":
            return np.arange(len(row), dtype=np.float64)
        k = steps.least[row]
        index = (row, k, steps.start[row, k])
        time_s, energy_j = self.model.time_s[index], self.model.energy_j[index]
        if self.first_gpu == "energy":
            return np.asarray(state.remaining * energy_j)
        if self.first_gpu == "srtf":
            return np.asarray(state.remaining * time_s)
        return np.asarray(time_s * energy_j * state.remaining)

    def _rein_in(self, state: State, count: Ints, clock: Ints) -> None:
        """Meters know better than predictions: lower clocks until the true power fits."""
        if self.model.exact:
            return
        held = np.where(state.locked >= 0, state.locked_w, -1.0)
        order = np.arange(len(count))
        kernels.govern(
            state.of_class,
            count,
            clock,
            order,
            self.model.counted_w,
            held,
            self.fewer,
            self.limit_w - self._idle(count),
        )

    def _idle(self, count: Ints) -> float:
        """W of the idle GPUs of as many nodes as hold what these jobs have."""
        per = self.problem.gpus_per_node
        return self.idle_w * (-int(self.problem.counts[count[count >= 0]].sum()) % per)

    def _at_least_one(self, state: State, first: Floats, count: Ints, clock: Ints) -> None:
        """f* alone may be above the limit: then the first job that fits runs below it.

        Where the limit planned with (η, or with idle GPUs) is below what any of them needs, the
        first job at the least power: within the problem's own limit it always is.
        """
        finite = np.isfinite(self.problem.time_s)
        watts = np.where(finite, self.model.counted_w, np.inf)
        idle = self.idle_w * (-self.problem.counts % self.problem.gpus_per_node)
        order = np.argsort(first, kind="stable").tolist()
        for a in order:
            allowed = watts[state.of_class[a]] <= self.limit_w - idle[:, None]
            if allowed.any():
                k = int(allowed.any(axis=1).argmax())
                count[a], clock[a] = k, int(np.flatnonzero(allowed[k])[-1])
                return
        least = watts[state.of_class[order[0]]]
        count[order[0]], clock[order[0]] = np.unravel_index(int(least.argmin()), least.shape)
