"""What the parameters of the methods mean; one that differs in an entry is ``entry.parameter``."""

from dataclasses import dataclass

from optgap.models.spec import Parameter, parameter

PARAMETERS = {
    "pieces": Parameter("pieces of constant prices; 0: by the number of jobs"),
    "rounds": Parameter("rounds of the ascent; 0: by the number of jobs"),
    "slot_s": Parameter("length of a time slot; 0 for a hundredth of the horizon", "s"),
    "bound-milp.slot_s": Parameter("length of a time slot; 0 for a twentieth of the horizon", "s"),
    "at_s": Parameter("when all start; -1 for the last submission", "s", "PowerFlow, Eq. 18"),
    "backend": Parameter(
        "the MILP solver; `optgap info` shows which are usable",
        choices=("highs", "cbc", "scip", "scipy"),
    ),
}


@dataclass(frozen=True)
class OfflineParams:
    """The search with hindsight."""

    runs: int = parameter(
        0, "schedules made at most; 0: by the number of jobs, or as many as a time limit lets"
    )
    rounds: int = parameter(0, "rounds of the bound's ascent; 0: by the number of jobs")
    orders: int = parameter(12, "orders of completions whose linear program is solved at most")
    gap: float = parameter(1e-3, "relative gap up to which a decision is searched", "share")
    change: float = parameter(
        0.3, "standard deviation of the logarithm of what a job's work is worth, when varied"
    )
    share: float = parameter(0.15, "share of the jobs whose worth is varied at a time", "share")
    spread_s: float = parameter(
        600.0, "time over which a restart is spread, to begin with: what it has to pay off in", "s"
    )
