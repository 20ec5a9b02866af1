"""CATS: correlation analysis, scheduler, periodic sleep and frequency adaptation."""

from __future__ import annotations

import numpy as np

from optgap.heuristics.consolidation.clocks import adaptation, highest
from optgap.heuristics.consolidation.kernels import correlate
from optgap.heuristics.consolidation.selection import awake_first, pick, require, run
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.engine import Choice, State
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.errors import one_of
from optgap.models.limits import Limits
from optgap.models.result import Outcome

EDGE = 1e-9
ALIGN = ("now", "start")


class Cats:
    """Algorithms 1 and 2.

    Parameters
    ----------
    u_max, rho_max: thresholds on the sum of means, %, and on the correlation.
    lambda1, lambda2: weights of correlation and of the difference of means.
    inclusive: ≤ rather than < at both thresholds; constant series have correlation 0.
    literal_empty: empty GPUs are candidates like others, with correlation 0 (as printed).
    literal_units: the difference of means in percent, beside a correlation in −1..1.
    literal_thresholds: the thresholds are inputs that nothing is held against (as printed).
    align: residents' series from ``now`` on, or from their ``start`` (literal).
    mem_headroom_gb: memory that stays free.
    pred_noise: standard deviation of the error of a newcomer's predicted series, points.
    """

    def __init__(
        self,
        *,
        u_max: float = 100.0,
        rho_max: float = 0.0,
        lambda1: float = 0.5,
        lambda2: float = 0.5,
        inclusive: bool = True,
        literal_empty: bool = False,
        literal_units: bool = False,
        literal_thresholds: bool = False,
        align: str = "now",
        mem_headroom_gb: float = 0.0,
        pred_noise: float = 0.0,
        seed: int = 0,
    ) -> None:
        require("cats", "align", align, align in ALIGN, one_of(ALIGN))
        require("cats", "pred_noise", pred_noise, 0 <= pred_noise <= 100, "0 to 100 points")
        self.u_max, self.rho_max = u_max, rho_max
        self.lambda1, self.lambda2 = lambda1, lambda2
        self.edge = EDGE if inclusive else -EDGE
        self.literal_empty, self.literal_thresholds = literal_empty, literal_thresholds
        self.unit = 1.0 if literal_units else 100.0
        self.from_start = align == "start"
        self.headroom = round(mem_headroom_gb * 1e9)
        self.pred_noise = pred_noise
        self.rng = np.random.default_rng(seed)

    def decide(self, state: State, task: int) -> Choice:
        """GPUs for a newcomer."""
        if not self.literal_empty:
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
        own = state.problem.tasks[task].util_percent
        if self.pred_noise:
            own = np.clip(own + self.rng.normal(0, self.pred_noise, own.size), 0, 100)
        means, rhos, mean = np.zeros(len(gpus)), np.zeros(len(gpus)), float(own.mean())
        most = np.inf if self.literal_thresholds else self.u_max - mean + 1.0
        correlate(state.tables, gpus, own, state.time_s, self.from_start, most, means, rhos)
        means[state.count[gpus] == 0] = 0.0
        scores = self.lambda1 * rhos - self.lambda2 * np.abs(means - mean) / self.unit
        if not self.literal_thresholds:
            over = means + mean > self.u_max + self.edge * 100
            scores[over | (rhos > self.rho_max + self.edge)] = np.inf
        if self.headroom:
            scores[~self._headroom(state, task)[gpus]] = np.inf
        return np.asarray(scores)


def cats(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    u_max: float = 100.0,
    rho_max: float = 0.0,
    lambda1: float = 0.5,
    lambda2: float = 0.5,
    inclusive: bool = True,
    literal_empty: bool = False,
    literal_units: bool = False,
    literal_thresholds: bool = False,
    align: str = "now",
    mem_headroom_gb: float = 0.0,
    pred_noise: float = 0.0,
    strict_queue: bool = False,
    dfs: bool = True,
    delta_mhz: float = 15.0,
    instant: bool = True,
    contention_aware: bool = False,
) -> Outcome:
    """CATS; parameters of `Cats` beside those of the queue and of Algorithm 4.

    Parameters
    ----------
    strict_queue: a task that has to wait holds back those behind it.
    dfs: Algorithm 4; without it GPUs stay at f_max.
    delta_mhz: Δf, which the paper does not state.
    instant: jump to where the steps end rather than take one every τ = 100 ms.
    contention_aware: let Algorithm 4 count the slowdown by contention, too.
    """
    policy = Cats(
        u_max=u_max,
        rho_max=rho_max,
        lambda1=lambda1,
        lambda2=lambda2,
        inclusive=inclusive,
        literal_empty=literal_empty,
        literal_units=literal_units,
        literal_thresholds=literal_thresholds,
        align=align,
        mem_headroom_gb=mem_headroom_gb,
        pred_noise=pred_noise,
        seed=seed,
    )
    clocks = adaptation(delta_mhz, instant, contention_aware) if dfs else highest
    return run(problem, policy.decide, limits, strict_queue=strict_queue, clocks=clocks)
