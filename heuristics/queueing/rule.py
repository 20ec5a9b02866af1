"""A policy as data for the compiled event loop, and the door through which it is run.

At every arrival, end and departure a rule starts jobs, one round after another, until it finds
none to start. Candidates are the waiting jobs that fit now; ties go to the job that arrived first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import inner
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome

FIFO, SJF, SHORTEST, SHORTEST_GPU, HPS, ADAPTIVE, EASY, PBS, SBS = range(9)
"""Rules that the loop knows; conservative backfilling has a loop of its own."""
INF = float("inf")
DIGITS = 1e9
"""Scores are compared after rounding to this, so that ties on paper are ties here."""


class Rule(NamedTuple):
    """A policy and its parameters; each sets its own, and the others are nothing to it.

    Parameters
    ----------
    kind: one of the constants above.
    threshold, boost, full, fixed: HPS's aging.
    reserve: s after which the oldest job's start is protected (HPS); infinite for never.
    tau, spread, pairs: PBS's τ, Δ, and where pairs stand (0 off, 1 after rule 1, 2 first).
    similar, unit, every: SBS's θ, seconds in a unit of time, and of how many jobs all sets are
        tried.
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


def simulate(
    problem: QueueingProblem, rule: Rule, *, limits: Limits, label: str, lookahead: int = 0
) -> Outcome:
    """Run a policy to the end of the stream, or until `limits` say stop: `engine.simulate`."""
    # here, as the engine's loop calls the compiled selections that stand beside each policy
    from optgap.heuristics.queueing.engine import simulate as run

    return run(problem, rule, limits=limits, label=label, lookahead=lookahead)


def require(who: str, name: str, value: object, holds: bool, expected: str) -> None:
    """Refuse a parameter out of range.

    Raises
    ------
    InputError: by policy `who` unless it `holds`.
    """
    if not holds:
        raise InputError(who, name, value, expected)


@inner
def rounded(score: float) -> float:
    """To 1e-9."""
    near: float = np.floor(score * DIGITS + 0.5)
    return near / DIGITS
