"""CATS: correlation analysis, scheduler, periodic sleep and frequency adaptation."""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.consolidation.clocks import adaptation, highest
from optgap.heuristics.consolidation.engine import Choice, ClockRule, State
from optgap.heuristics.consolidation.kernels import correlate
from optgap.heuristics.consolidation.parameters import CatsParams
from optgap.heuristics.consolidation.selection import awake_first, pick, run_at
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen

EDGE = 1e-9


class Cats:
    """Algorithms 1 and 2; `options` say how far to the letter.

    Raises
    ------
    InputError: for an error of predictions that is out of range.
    """

    def __init__(self, options: CatsParams, seed: int = 0) -> None:
        noise = options.pred_noise
        if not 0 <= noise <= 100:
            raise InputError("cats", "pred_noise", noise, "0 to 100 points")
        self.options = options
        self.edge = EDGE if options.inclusive else -EDGE
        self.unit = 1.0 if options.literal_units else 100.0
        self.headroom = round(options.mem_headroom_gb * 1e9)
        self.rng = np.random.default_rng(seed)

    def decide(self, state: State, task: int) -> Choice:
        """GPUs for a newcomer."""
        if not self.options.literal_empty:
            return awake_first(self.score)(state, task)
        room = state.fits(task) & self._headroom(state, task)
        scores = np.full(len(room), np.inf)
        gpus = np.flatnonzero(room)
        if gpus.size:
            scores[gpus] = self.score(state, task, gpus)
        return pick(state, task, scores, np.zeros(len(room), dtype=np.bool_))

    def _headroom(self, state: State, task: int) -> np.ndarray:
        left = state.free_bytes - state.problem.memory[task]
        return np.asarray(left >= self.headroom)

    def score(self, state: State, task: int, gpus: np.ndarray) -> FloatArray:
        """λ1·ρ − λ2·δμ of each GPU, infinite where a threshold is exceeded."""
        options = self.options
        own = state.problem.tasks[task].util_percent
        if options.pred_noise:
            own = np.clip(own + self.rng.normal(0, options.pred_noise, own.size), 0, 100)
        means, rhos, mean = np.zeros(len(gpus)), np.zeros(len(gpus)), float(own.mean())
        most = np.inf if options.literal_thresholds else options.u_max - mean + 1.0
        from_start = options.align == "start"
        correlate(state.tables, gpus, own, state.time_s, from_start, most, means, rhos)
        means[state.count[gpus] == 0] = 0.0
        scores = options.lambda1 * rhos - options.lambda2 * np.abs(means - mean) / self.unit
        if not options.literal_thresholds:
            over = means + mean > options.u_max + self.edge * 100
            scores[over | (rhos > options.rho_max + self.edge)] = np.inf
        if self.headroom:
            scores[~self._headroom(state, task)[gpus]] = np.inf
        return np.asarray(scores)


def cats(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """CATS; `given` as in `CatsParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(CatsParams, given, "cats")
    policy = Cats(options, seed)
    clocks: ClockRule = highest
    if options.dfs:
        clocks = adaptation(options.delta_mhz, options.instant, options.contention_aware)
    return run_at(problem, policy.decide, limits, clocks, options.strict_queue)
