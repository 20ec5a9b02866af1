"""The preset that rests on fits of public measurements alone."""

from __future__ import annotations

from dataclasses import replace

from optgap.models.elastic.fits import refit
from optgap.models.elastic.presets import drawn
from optgap.models.elastic.problem import ElasticProblem
from optgap.models.performance.measured import a100_iterations, lstm_power, lstm_time


def measured(
    *,
    seed: int,
    size: int = 48,
    gpus: int = 32,
    gpus_per_node: int = 8,
    hours: float = 2.0,
    scale: float = 0.5,
    requested: int = 0,
    eta: float = 0.6,
    restarts: bool = True,
) -> ElasticProblem:
    """`small` with every class as fitted: no public profile has GPU counts and clocks at once."""
    made = refit(
        drawn("measured", seed=seed, size=size, gpus=gpus, gpus_per_node=gpus_per_node,
              hours=hours, scale=scale, requested=requested, eta=eta, restarts=restarts),
        [a100_iterations(), lstm_power(), lstm_time()],
        seed,
    )  # fmt: skip
    origin = "fits of public measurements; jobs synthetic"
    return replace(made, origin=origin)
