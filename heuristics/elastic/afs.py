"""AFS-L (Hwang et al., NSDI 2021): an elastic policy that knows lengths and doubles GPU counts.

The next GPUs go to the winner of a tournament of pairs, until no job gains. The longer of two jobs
wins if its gain relative to its new speed, (s' − s)/s', exceeds the shorter one's gain relative to
the old speed, (s' − s)/s. Of two jobs without GPUs, the shorter one on its fewest GPUs wins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.elastic.parameters import ClockParams
from optgap.heuristics.elastic.shared_clock import Clock, Elastic
from optgap.models.compiled import compiled, inner
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Ints
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import ElasticState
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def afs(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run AFS-L; `given` is as in `ClockParams`."""
    return simulate(problem, Afs(problem, Clock(problem, "afs", ClockParams(**given))), limits)


class Afs(Elastic):
    """AFS-L as a policy of the engine."""

    def shares(self, state: ElasticState) -> tuple[Ints, Ints]:
        count = tournament(
            state.of_class, state.remaining, self.problem.counts, self.following, self.least,
            self.speed, self.problem.gpus,
        )  # fmt: skip
        length = state.remaining / self.speed[state.of_class, self.least[state.of_class]]
        return count, np.argsort(length, kind="stable")


@compiled
def tournament(
    of_class: Any, remaining: Any, counts: Any, following: Any, least: Any, speed: Any, gpus: int
) -> Any:
    """Return the count index of each job, (A,), −1 for none, by AFS-L's tournament of pairs.

    `speed` has (C, K) iterations per second at the common clock. A job leaves the tournament if it
    is at its fastest, or if its next step needs more GPUs than are free.
    """
    size = len(of_class)
    chosen = np.full(size, -1, np.int64)
    # what the comparisons ask of each job; only the winner's changes
    length, single = np.empty(size), np.empty(size)
    gain_short, gain_long = np.empty(size), np.empty(size)
    more = np.empty(size, np.int64)
    for j in range(size):
        single[j] = remaining[j] / speed[of_class[j], least[of_class[j]]]
        _ask(j, of_class, chosen, remaining, counts, following, least, speed, length, gain_short,
             gain_long, more)  # fmt: skip
    left = np.arange(size)
    free = gpus
    while free > 0:
        s, kept = -1, 0
        for i in range(len(left)):
            j = left[i]
            if more[j] > free:
                continue  # out of it for good: fewer GPUs are free from here on
            left[kept] = j
            kept += 1
            if s < 0:
                s = j
            elif chosen[s] < 0 and chosen[j] < 0:
                if single[j] < single[s]:
                    s = j
            elif length[j] < length[s]:  # j is the shorter, s the longer
                if not gain_long[s] > gain_short[j]:
                    s = j
            elif gain_long[j] > gain_short[s]:
                s = j
        left = left[:kept]
        if s < 0:
            break
        free -= more[s]
        c, k = of_class[s], chosen[s]
        chosen[s] = least[c] if k < 0 else following[c, k]
        _ask(s, of_class, chosen, remaining, counts, following, least, speed, length, gain_short,
             gain_long, more)  # fmt: skip
    return chosen


@inner
def _ask(
    j: int, of_class: Any, chosen: Any, remaining: Any, counts: Any, following: Any, least: Any,
    speed: Any, length: Any, gain_short: Any, gain_long: Any, more: Any,
) -> None:  # fmt: skip
    """Write a job's length at its present GPUs, the gains of its next step as the shorter and as
    the longer job, and the GPUs of that step (more than there are if the job is at its fastest)."""
    c, k = of_class[j], chosen[j]
    if k < 0:
        length[j], gain_long[j], gain_short[j] = np.inf, 1.0, np.inf
        more[j] = counts[least[c]]
        return
    length[j] = remaining[j] / speed[c, k]
    after = following[c, k]
    if after < 0 or not speed[c, after] > speed[c, k]:
        more[j] = np.iinfo(np.int64).max
        return
    new, old = speed[c, after], speed[c, k]
    gain_long[j], gain_short[j] = (new - old) / new, (new - old) / old
    more[j] = counts[after] - counts[k]
