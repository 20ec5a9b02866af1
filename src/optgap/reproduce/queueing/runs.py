"""The runs that the items share: every policy on the same streams, metric by metric."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optgap.api import run
from optgap.models.queueing.presets import mixed
from optgap.reproduce.report import Study

JOBS = 1000
STATIC = ("fifo", "sjf", "shortest", "shortest-gpu")
DYNAMIC = ("hps", "pbs", "sbs")
OTHERS = ("hps_fixed", "adaptive", "easy", "conservative")
NAMES = {
    "fifo": "FIFO",
    "sjf": "SJF",
    "shortest": "Shortest",
    "shortest-gpu": "Shortest-GPU",
    "hps": "HPS",
    "pbs": "PBS",
    "sbs": "SBS",
    "hps_fixed": "HPS repaired",
    "adaptive": "adaptive (ours)",
    "easy": "EASY",
    "conservative": "conservative",
}
PATIENCE_S = 3600.0
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """One metric over seeds: the mean and half the width of its 95 % confidence interval."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Values) -> Spread:
        """By Student's t; no interval for one seed."""
        count = len(values)
        if count < 2:
            return cls(float(values.mean()), math.nan)
        from scipy.stats import t

        half = float(t.ppf(0.975, count - 1)) * float(values.std(ddof=1)) / math.sqrt(count)
        return cls(float(values.mean()), half)

    def text(self, digits: int = 1) -> str:
        """``mean ± half``."""
        shown = f"{self.mean:,.{digits}f}"
        return shown if math.isnan(self.half) else f"{shown} ± {self.half:,.{digits}f}"


@dataclass(frozen=True)
class Runs:
    """Every policy's metrics, one value per seed.

    Parameters
    ----------
    patience: ``const`` or ``inf``.
    estimate: what schedulers are told, ``exact``, ``lognormal`` or ``limits``.
    """

    study: Study
    patience: str = "const"
    estimate: str = "exact"

    def metric(self, policy: str, name: str) -> Values:
        """One metric of one policy over the seeds."""
        return np.array([self._one(policy, seed)[name] for seed in self.study.seeds])

    def spread(self, policy: str, name: str) -> Spread:
        """The same as mean and interval."""
        return Spread.of(self.metric(policy, name))

    def _one(self, policy: str, seed: int) -> dict[str, float]:
        setting = (self.patience, self.estimate)
        key = ("queueing", setting, policy, seed)
        if key not in self.study.shared:
            self.study.proceed(f"{NAMES[policy]}, seed {seed}, patience {self.patience}")
            stream = ("queueing stream", setting, seed)
            if stream not in self.study.shared:
                self.study.shared[stream] = mixed(
                    seed=seed,
                    size=JOBS,
                    patience=self.patience,  # type: ignore[arg-type]  # one of the two
                    patience_s=PATIENCE_S,
                    estimate=self.estimate,  # type: ignore[arg-type]  # one of the three
                )
            result = run(self.study.shared[stream], policy)
            self.study.shared[key] = dict(result.metrics)
        found: dict[str, float] = self.study.shared[key]
        return found
