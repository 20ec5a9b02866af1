"""Knowledge of jobs from their runs: noisy measurements, and models fitted to them.

Each job is measured for itself. Its measurement in a configuration differs from the truth by a
factor that depends on the job, the configuration and the seed alone. Different policies, and one
policy under different limits, therefore see the same measurements.
"""

from __future__ import annotations

import math

import numpy as np

from optgap.heuristics.elastic.online_model import Configurations, OnlineModel, board_of
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.problem import ElasticProblem
from optgap.models.elastic.simulation.protocol import ElasticState


class Beliefs:
    """Models of the jobs that have run, fitted to measurements (PowerFlow, Sec. 5.2).

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
        self.problem, self.seed = problem, seed
        self.sigma = (sigma_time, sigma_energy)
        self.noise = (sigma_time, math.hypot(sigma_time, sigma_energy))  # of T, and of P = E/T
        clocks = problem.frequencies_mhz
        least = np.array([c.power_w[0] / c.counts[0] for c in problem.classes])
        board = board_of(clocks, least)
        self.columns = [np.searchsorted(problem.counts, c.counts) for c in problem.classes]
        self.where = [
            Configurations(
                np.array(c.counts, dtype=float),
                float(max(c.batch, c.counts[-1])),  # any batch will do where none is told
                clocks,
                problem.gpus_per_node,
                board,
            )
            for c in problem.classes
        ]
        self.jobs: dict[int, tuple[OnlineModel, Floats, Floats]] = {}
        self.shown = np.zeros(len(problem), dtype=np.int64)  # configurations, when last asked

    def fresh(self, state: ElasticState, jobs: Ints) -> Ints:
        """Return which of `jobs` ran in a new configuration, and forget completed jobs."""
        for job in self.jobs.keys() - set(state.jobs.tolist()):
            del self.jobs[job]
        seen = np.count_nonzero(state.seen[jobs], axis=(1, 2))
        new: Ints = jobs[seen != self.shown[jobs]]
        self.shown[jobs] = seen
        return new

    def learnt(self, job: int, seen: np.ndarray) -> tuple[Floats, Floats]:
        """Return estimates of T_iter (s) and power (W) after having `seen` configurations, (K, F).

        A configuration in which the job may not run has infinite time and no power.
        """
        c = int(self.problem.jobs.of_class[job])
        model, time, power = self.jobs.get(job) or self._measured(job, c)
        rows = self.columns[c]
        model.update(seen[rows].reshape(-1), time, power)
        time_s = np.full(seen.shape, np.inf)
        power_w = np.zeros(seen.shape)
        time_s[rows], power_w[rows] = model.predict()
        return time_s, power_w

    def _measured(self, job: int, c: int) -> tuple[OnlineModel, Floats, Floats]:
        """Return a model without data, and the measurements that the job will give."""
        truth, rng = self.problem.classes[c], np.random.default_rng([self.seed, job])
        off = np.array(self.sigma)[:, None] * rng.standard_normal((2, truth.time_s.size))
        time = np.log(truth.time_s).reshape(-1) + off[0]
        energy = np.log(truth.power_w * truth.time_s / np.array(truth.counts)[:, None]).reshape(-1)
        made = OnlineModel(self.where[c], *self.noise), time, energy + off[1] - time
        self.jobs[job] = made
        return made
