"""Every policy over every trace and seed, read off at the PWR paper's grid of loads.

The recipe is that of the paper's own experiments: a trace is inflated to 1.3 times the GPU
capacity, tasks arrive one after another and never leave, and each of ten seeds draws another
order of arrivals and other ranks. The seeds are the paper's, 42 to 51; the random streams
behind them are ours, so that single runs differ from the published ones and averages should
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optgap.api import run as run_policy
from optgap.models.placement import PlacementProblem, presets
from optgap.models.placement.arrays import FloatArray
from optgap.models.placement.sampling import Sampling
from optgap.models.placement.series import Series, replay
from optgap.models.result import Termination
from optgap.reproduce.grid import Curve, curve_of, loads, on_grid, savings
from optgap.reproduce.placement import NODES, ORDER_42, RANKS_42, pods
from optgap.reproduce.report import Stopped, Study

LOAD = 1.3
"""GPU demand of all arrivals over GPU capacity."""

FGD, PWR = "fgd", "pwr"
COMBINATIONS = ("pwr+fgd(alpha=0.05)", "pwr+fgd(alpha=0.1)", "pwr+fgd(alpha=0.2)")
HALF = "pwr+fgd(alpha=0.5)"
COMPETITORS = ("bestfit", "dotprod", "gpupacking", "gpuclustering")
TESTED = (*COMBINATIONS, *COMPETITORS)

QUANTITIES: dict[str, Callable[[Series], FloatArray]] = {
    "power_w": lambda series: series.power_w,
    "power_gpu_w": lambda series: series.power_gpu_w,
    "grar": lambda series: series.grar,
}


@dataclass(frozen=True)
class Trace:
    """A set of runs: which tasks, and how they arrive.

    Parameters
    ----------
    name: as in ``openb_pod_list_<name>.csv``.
    sampling: see `optgap.models.placement.sampling.inflate`.
    published: the simulator's own arrivals and ranks at seed 42 instead of ours; one run.
    """

    name: str
    sampling: Sampling = "trace-first"
    published: bool = False

    def problem(self, data: Path | None, seed: int) -> PlacementProblem:
        """The problem of one seed; without a data folder from the counts in the package."""
        if data is None:
            return presets.alibaba(seed=seed, load=LOAD, sampling=self.sampling)
        return presets.from_csv(
            data / NODES,
            data / pods(self.name),
            data / ORDER_42 if self.published else None,
            data / RANKS_42 if self.published else None,
            seed=seed,
            load=LOAD,
            sampling=self.sampling,
        )


class Runs:
    """The runs on one trace, made when they are first asked for and shared between items."""

    def __init__(self, study: Study, trace: Trace, data: Path | None) -> None:
        self.study = study
        self.trace = trace
        self.data = data
        self.seeds = (42,) if trace.published else study.seeds
        self._rows: dict[tuple[str, int], dict[str, FloatArray]] = study.shared.setdefault(
            (trace, data), {}
        )

    def make(self, policies: Iterable[str]) -> Runs:
        """Run these policies on every seed, unless they have been.

        Raises
        ------
        Stopped: when the study's limits end the work.
        """
        wanted = list(policies)
        for seed in self.seeds:
            missing = [policy for policy in wanted if (policy, seed) not in self._rows]
            if missing:
                self._run(missing, seed)
        return self

    def _run(self, policies: list[str], seed: int) -> None:
        self.study.proceed(f"{self.trace.name}, seed {seed}")
        problem = self.trace.problem(self.data, seed)
        for policy in policies:
            self.study.proceed(f"{self.trace.name}, seed {seed}: {policy}")
            result = run_policy(problem, policy, seed=seed, limits=self.study.limits)
            if result.termination is not Termination.COMPLETED or result.solution is None:
                raise Stopped(result.termination)
            series = replay(problem, result.solution)
            self._rows[policy, seed] = {
                name: on_grid(series.arrived_gpu_milli, series.capacity_gpu_milli, of(series))
                for name, of in QUANTITIES.items()
            }

    def curve(self, policy: str, quantity: str) -> Curve:
        """One of `QUANTITIES` of a policy over load."""
        self.make([policy])
        rows = [self._rows[policy, seed][quantity] for seed in self.seeds]
        return curve_of(loads(), np.array(rows))

    def power(self, policy: str) -> Curve:
        """EOPC, Eq. 3, in W."""
        return self.curve(policy, "power_w")

    def grar(self, policy: str) -> Curve:
        """GPU demand placed over GPU demand arrived."""
        return self.curve(policy, "grar")

    def saving(self, policy: str) -> Curve:
        """Power saved against FGD, in percent."""
        return savings(self.power(FGD), self.power(policy))
