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
        choices=("highs", "cbc"),
    ),
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
class OfflineParams(ExhaustiveParams):
    """The search with hindsight."""

    runs: int = parameter(
        0, "schedules made at most; 0: by the number of jobs", within=(0, 1_000_000)
    )
    rounds: int = parameter(
        0, "rounds of the bound's ascent; 0: by the number of jobs", within=(0, 1_000_000)
    )
    orders: int = parameter(6, "orders of completions whose linear program is solved at most")
    gap: float = parameter(
        1e-3, "relative gap up to which a decision is searched", "share", within=(0.0, 1.0)
    )
    powers: tuple[float, ...] = parameter(
        (0.75, 0.85, 0.6),
        "the first schedules are those of `work-value`, with such powers",
    )
    change: float = parameter(
        0.6,
        "most by which the logarithm of what a job's work is worth is varied at a time",
        within=(0.0, 10.0),
    )
    spread_s: float = parameter(
        300.0,
        "time over which a restart is spread, to begin with: what it has to pay off in",
        "s",
        within=(1e-3, 1e9),
    )
