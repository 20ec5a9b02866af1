"""Meanings of the methods' parameters; one that differs in an entry is ``entry.parameter``."""

from dataclasses import dataclass

from optgap.models.spec import Parameter, parameter
from optgap.solvers.formulation import BACKEND

PARAMETERS = {
    "backend": BACKEND,
    "rounds": Parameter("rounds of the ascent; 0: 240, fewer for many jobs"),
    "at_s": Parameter("when all start; -1 for the last submission", "s", "PowerFlow, Eq. 18"),
}


@dataclass(frozen=True)
class ExhaustiveParams:
    """The search of orders, where starts take time: unless it ends, more programs prove more."""

    programs: int = parameter(
        1200,
        "linear programs solved at most where starts take time: 10 to 30 s",
        within=(0, 100_000_000),
    )


@dataclass(frozen=True)
class OfflineParams:
    """The search with hindsight."""

    runs: int = parameter(
        0, "schedules made at most; 0: by the number of jobs", within=(0, 1_000_000)
    )
    rounds: int = parameter(
        0,
        "rounds of the bound's ascent; 0: 240, fewer for many jobs",
        within=(0, 1_000_000),
    )
