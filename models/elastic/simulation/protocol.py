"""Interface of a policy: the state at an event, the decision, and the cluster's settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints

Making = Literal["least", "repack", "none"]
"""Measures when a job fits nowhere although enough GPUs are free: move as few as possible,
place all jobs anew, or let it wait."""


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings of the cluster.

    Parameters
    ----------
    making: see `Making`.
    strict_order: a job that has to wait for a place lets none behind it start.
    switch_off: nodes without a job draw nothing.
    prerun_s: a job can run so much later than it is submitted, and is profiled meanwhile on one
        GPU outside the cluster.
    profile_s: length of the window in which a job is profiled on a GPU count new to it; 0: none.
    strict: the power limit holds at all times, in windows, too, which pass through all clocks and
        count at the one that draws most.
    """

    making: Making = "least"
    strict_order: bool = False
    switch_off: bool = False
    prerun_s: float = 0.0
    profile_s: float = 0.0
    strict: bool = True


@dataclass(eq=False)
class ElasticState:
    """State that a policy sees.

    Parameters
    ----------
    problem: cluster, classes and jobs.
    time_s: now.
    jobs: (A,) active jobs (may run, not done), in order of submission.
    of_class, remaining: (A,) class and iterations left.
    count: (A,) index into ``problem.counts`` of what each holds, −1 for none.
    clock: (A,) index into the clocks.
    locked: (A,) the count index of a job in a profiling window, −1 for the others.
    locked_w: (A,) its power in the window, W.
    seen: (J, K, F) configurations in which each job has run, before it started or since.
    held_s: (J,) seconds that each job has held GPUs.
    """

    problem: ElasticProblem
    time_s: float
    jobs: Ints
    of_class: Ints
    remaining: Floats
    count: Ints
    clock: Ints
    locked: Ints
    locked_w: Floats
    seen: np.ndarray
    held_s: Floats


@dataclass(eq=False)
class Decision:
    """Decision of a policy, by active job.

    Parameters
    ----------
    count: (A,) index into ``problem.counts``, −1 to wait.
    clock: (A,) index into the clocks.
    order: (A,) positions in the order in which places are given; by GPUs, largest first,
        without it.
    wake_s: when to be asked again at the latest.
    places: the blocks of each active job, where the policy places itself.
    """

    count: Ints
    clock: Ints
    order: Ints | None = None
    wake_s: float = math.inf
    places: Sequence[tuple[int, ...]] | None = None


class Policy(Protocol):
    """Decides at every event."""

    settings: Settings

    def decide(self, state: ElasticState) -> Decision:
        """GPU counts and clocks from now on."""
