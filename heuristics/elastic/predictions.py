"""PowerFlow's knowledge of jobs: each step of Algorithm 1, from exact or predicted tables."""

from __future__ import annotations

import math

import numpy as np

from optgap.heuristics.elastic.online_model import Configurations, OnlineModel, board_of
from optgap.heuristics.elastic.powerflow_kernels import FINITE, FREE, NO_STEP, Steps
from optgap.heuristics.elastic.shared_clock import neighbours
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.simulation.protocol import ElasticState


def steps_of(
    time_s: Floats, energy_j: Floats, counted_w: Floats, *, clock_policy: str, counts: Ints
) -> Steps:
    """Return every step's kind and value.

    Parameters
    ----------
    time_s, energy_j: (C, K, F) per iteration; infinite time where there is no configuration.
    counted_w: (C, K, F) power as the limit counts it.
    clock_policy: ``fixed`` or ``per_n``, see `PowerFlowParams.frequency`.
    """
    least, following, _ = neighbours(time_s)
    with np.errstate(invalid="ignore"):
        product = np.where(np.isfinite(time_s), time_s * energy_j, np.inf)
    start = product.argmin(axis=2)  # the lower clock of equals
    if clock_policy == "fixed":
        start[:] = start[np.arange(len(start)), least][:, None]
    grow = _growth(time_s, energy_j, start, following)
    return Steps(counts, least, following, start, *grow, counted_w, *_rises(time_s, energy_j))


def _growth(time_s: Floats, energy_j: Floats, start: Ints, following: Ints) -> tuple[Ints, Floats]:
    """Return kind and value of the step to the next GPU count at frequencies `start`, (C, K)."""
    begin = np.take_along_axis(time_s, start[:, :, None], axis=2)[:, :, 0]
    spent = np.take_along_axis(energy_j, start[:, :, None], axis=2)[:, :, 0]
    after = np.maximum(following, 0)
    possible = (following >= 0) & np.isfinite(begin)
    with np.errstate(invalid="ignore"):
        saved = begin - np.take_along_axis(begin, after, axis=1)
        cost = np.take_along_axis(spent, after, axis=1) - spent
    return _priority(np.where(possible, saved, 0.0), np.where(possible, cost, 0.0))


def _rises(time_s: Floats, energy_j: Floats) -> tuple[Ints, Floats]:
    """Return kind and value of the step to the next frequency, (C, K, F)."""
    kind, value = np.zeros(time_s.shape, dtype=np.int64), np.zeros(time_s.shape)
    with np.errstate(invalid="ignore"):
        saved = time_s[:, :, :-1] - time_s[:, :, 1:]
        cost = energy_j[:, :, 1:] - energy_j[:, :, :-1]
    saved, cost = np.nan_to_num(saved, nan=0.0), np.nan_to_num(cost, nan=0.0)
    kind[:, :, :-1], value[:, :, :-1] = _priority(saved, cost)
    return kind, value


def _priority(saved: Floats, cost: Floats) -> tuple[Ints, Floats]:
    """Return kind and value of steps by s saved and J spent per iteration (Eq. 20-21)."""
    free = (saved > 0) & (cost <= 0)
    finite = (saved > 0) & (cost > 0)
    kind = np.where(free, FREE, np.where(finite, FINITE, NO_STEP))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(free, saved, np.where(finite, saved / cost, 0.0))
    return kind, value


class Known:
    """Exact tables, with a row for each class."""

    def __init__(self, problem: ElasticProblem) -> None:
        self.problem = problem
        self.counted_w = problem.counted_w
        with np.errstate(invalid="ignore"):
            self.energy_j = np.where(
                np.isfinite(problem.time_s), problem.power_w * problem.time_s, np.inf
            )
        self.time_s = problem.time_s
        self.exact = True
        self._steps: Steps | None = None

    def steps(self, state: ElasticState, clock_policy: str) -> tuple[Steps, Ints]:
        """Return the steps, and each active job's row in them, (A,)."""
        if self._steps is None:
            self._steps = steps_of(
                self.time_s, self.energy_j, self.counted_w, clock_policy=clock_policy,
                counts=self.problem.counts,
            )  # fmt: skip
        return self._steps, state.of_class


class Online(Known):
    """Tables from models fitted to what each job's runs measured, a row for each job (Sec. 5.2).

    A measurement differs from the truth by a factor that depends on the job, the configuration and
    the seed alone, so different policies, and one under different limits, see the same.

    Parameters
    ----------
    problem: the truth.
    seed: of the measurements' errors.
    sigma_time, sigma_energy: standard deviation of the logarithm of one measured T_iter and
        E_iter, at one GPU count and clock.
    """

    def __init__(
        self, problem: ElasticProblem, seed: int, sigma_time: float, sigma_energy: float
    ) -> None:
        super().__init__(problem)
        self.exact, self.seed, self.sigma = False, seed, (sigma_time, sigma_energy)
        self.noise = (sigma_time, math.hypot(sigma_time, sigma_energy))  # of T, and of P = E/T
        least = np.array([c.power_w[0] / c.counts[0] for c in problem.classes])
        board = board_of(problem.frequencies_mhz, least)
        self.columns = [np.searchsorted(problem.counts, c.counts) for c in problem.classes]
        self.where = [
            Configurations(
                np.array(c.counts, dtype=float),
                float(max(c.batch, c.counts[-1])),  # any batch will do where none is told
                problem.frequencies_mhz,
                problem.gpus_per_node,
                board,
            )
            for c in problem.classes
        ]
        self.models: dict[int, tuple[OnlineModel, Floats, Floats]] = {}
        self.shown = np.zeros(len(problem), dtype=np.int64)  # configurations, when last asked
        shape = (len(problem), *problem.time_s.shape[1:])
        self.time_s, self.energy_j = np.empty(shape), np.empty(shape)  # rows are filled in turn

    def steps(self, state: ElasticState, clock_policy: str) -> tuple[Steps, Ints]:
        for job in self.models.keys() - set(state.jobs.tolist()):
            del self.models[job]
        seen = np.count_nonzero(state.seen[state.jobs], axis=(1, 2))
        learning = state.jobs[seen != self.shown[state.jobs]]
        self.shown[state.jobs] = seen
        if len(learning):
            learnt = [self.learnt(job, state.seen[job]) for job in learning.tolist()]
            time_s, power_w = (np.stack(tables) for tables in zip(*learnt, strict=True))
            counts = self.problem.counts
            counted = np.maximum(power_w, self.problem.idle_w * counts[:, None])
            with np.errstate(invalid="ignore"):
                energy_j = np.where(np.isfinite(time_s), power_w * time_s, np.inf)
            made = steps_of(time_s, energy_j, counted, clock_policy=clock_policy, counts=counts)
            self.time_s[learning], self.energy_j[learning] = time_s, energy_j
            if self._steps is None:
                rows = (len(self.problem),)
                empty = (np.empty(rows + part.shape[1:], part.dtype) for part in made[1:])
                self._steps = Steps(counts, *empty)
            for table, part in zip(self._steps[1:], made[1:], strict=True):
                table[learning] = part
        assert self._steps is not None  # made by the first call
        return self._steps, state.jobs

    def learnt(self, job: int, seen: np.ndarray) -> tuple[Floats, Floats]:
        """Return estimates of T_iter (s) and power (W) after having `seen` configurations, (K, F).

        A configuration in which the job may not run has infinite time and no power.
        """
        c = int(self.problem.jobs.of_class[job])
        if job not in self.models:
            self.models[job] = (OnlineModel(self.where[c], *self.noise), *self._measured(job, c))
        model, time, power = self.models[job]
        rows = self.columns[c]
        model.update(seen[rows].reshape(-1), time, power)
        time_s, power_w = np.full(seen.shape, np.inf), np.zeros(seen.shape)
        time_s[rows], power_w[rows] = model.predict()
        return time_s, power_w

    def _measured(self, job: int, c: int) -> tuple[Floats, Floats]:
        """Return ln of T_iter and of a GPU's power, as measured in every configuration."""
        truth, rng = self.problem.classes[c], np.random.default_rng([self.seed, job])
        off = np.array(self.sigma)[:, None] * rng.standard_normal((2, truth.time_s.size))
        time = np.log(truth.time_s).reshape(-1) + off[0]
        energy = np.log(truth.power_w * truth.time_s / np.array(truth.counts)[:, None]).reshape(-1)
        return time, energy + off[1] - time
