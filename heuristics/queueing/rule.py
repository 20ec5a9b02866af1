"""Policy as data for the compiled loop: its rule, and the run in which the rule decides.

At every arrival, end and departure a rule starts jobs, one round after another, until it finds
none to start. Candidates are the waiting jobs that fit now; ties go to the job that arrived first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import inner
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.solvers.queueing.online import INF, Online

HPS, ADAPTIVE, EASY, PBS, SBS = range(5)
"""Rules that the loop knows; fixed orders and plans have loops of their own."""
DIGITS = 1e9
"""Steps per unit to which scores are rounded, so that ties on paper are ties here."""


class Rule(NamedTuple):
    """Policy and its parameters; each policy sets its own and ignores the others.

    Parameters
    ----------
    kind: one of the constants above.
    threshold, boost, full, fixed: HPS's aging.
    reserve: wait, s, after which the oldest job's start is protected (HPS); infinite for never.
    tau, spread, pairs: PBS's τ and Δ, and the place of pairs (0 off, 1 after rule 1, 2 first).
    similar, unit, every: SBS's θ, seconds in a unit of time, and the number of waiting jobs up to
        which all sets are tried.
    """

    kind: int
    threshold: float = 0.0
    boost: float = 0.0
    full: float = 0.0
    fixed: bool = False
    reserve: float = INF
    tau: float = 0.0
    spread: float = 0.0
    pairs: int = 0
    similar: float = 0.0
    unit: float = 0.0
    every: int = 0


class QueueRun(NamedTuple):
    """Tables of one run of one policy.

    Parameters
    ----------
    online: the stream being served.
    iterations, efficiency: per job; it/(n·t) rounded to 1e-9.
    family, families: the model family of each job, from 0 on, and how many there are.
    rank: the places of each job by (t, n) and by (n, t).
    picks: jobs chosen together.
    free, level, ends, ending: the cluster and the running jobs by planned end, to look ahead on.
    spare: nodes of a placement that is only tried.
    lists: the jobs of a family that SBS looks at, by both ranks.
    """

    rule: Rule
    online: Online
    iterations: FloatArray
    efficiency: FloatArray
    family: IntArray
    families: int
    rank: IntArray
    picks: IntArray
    free: IntArray
    level: IntArray
    ends: FloatArray
    ending: IntArray
    spare: IntArray
    lists: IntArray


@inner
def rounded(score: float) -> float:
    """Return a score rounded to 1e-9."""
    near: float = np.floor(score * DIGITS + 0.5)
    return near / DIGITS
