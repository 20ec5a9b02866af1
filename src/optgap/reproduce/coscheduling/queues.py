"""The authors' queues and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.coscheduling.presets import from_csv
from optgap.reproduce.coscheduling import profiles

ORDER = (
    *("minisweep", "lbm", "cloverleaf", "tealeaf", "miniweather", "bert", "gpt2", "resnet50"),
    *("conjugateGradientMultiDeviceCG", "pot3d", "simpleP2P", "streamOrderedAllocationP2P"),
    *("resnet101", "resnet152", "vgg19", "vgg16", "MonteCarloMultiGPU"),
    *("resnet50",) * 3,
    *("vgg16",) * 5,
)
"""The main queue on H100, as the authors' sequential runs went through it: 25 jobs, vgg16 six
times, resnet50 four times. On V100 each application was queued once; its order is not known."""

SIX = ("pot3d", "resnet50", "gpt2", "simpleP2P", "vgg16", "vgg19")
"""The case study's applications."""


@dataclass(frozen=True, slots=True)
class Platform:
    """A node with four GPUs in two NUMA domains, and EcoSched's settings on it.

    Parameters
    ----------
    tau, idle_weight: τ, and λ = idle / mean busy power per GPU, as the authors' runs had them.
    idle_w: power of an idle GPU, W.
    """

    name: str
    tau: float
    idle_weight: float
    idle_w: float

    @property
    def ecosched(self) -> str:
        """The policy as the authors ran it; its other defaults are theirs, too."""
        return f"ecosched(tau={self.tau},idle_weight={self.idle_weight})"


H100 = Platform("H100", 0.14, 0.2036, 70.0)
V100 = Platform("V100", 0.20, 0.2065, 43.0)
PLATFORMS = (H100, V100)


def queue(
    platform: Platform, data: Path, names: Sequence[str] | None = None
) -> CoschedulingProblem:
    """The main queue of a platform in the order of `ORDER`, or the applications `names`."""
    everything = from_csv(data / profiles(platform.name), seed=0, idle_w=platform.idle_w)
    index = {app.name: k for k, app in enumerate(everything.applications)}
    order = ORDER if platform is H100 else tuple(dict.fromkeys(ORDER))
    jobs = tuple(index[name] for name in (names or order))
    return replace(everything, jobs=jobs, name=f"{platform.name}, {len(jobs)} jobs")


def policies(tau: float) -> tuple[str, ...]:
    """Whose gaps are told; the second EcoSched and the second look-ahead take every GPU count."""
    ecosched = ("ecosched", "ecosched(tau=1.0)")
    lookahead = (f"lookahead(tau={tau})", "lookahead", "exact-window")
    return (*ecosched, *lookahead, "marble", "sequential_optimal_gpu", "sequential_max_gpu")


def shuffled(problem: CoschedulingProblem, seeds: Sequence[int]) -> list[CoschedulingProblem]:
    """The same jobs in another order for every seed."""
    found = []
    for seed in seeds:
        jobs = np.random.default_rng(seed).permutation(problem.jobs).tolist()
        found.append(replace(problem, jobs=tuple(jobs)))
    return found
