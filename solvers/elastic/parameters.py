"""What the parameters of the methods mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

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
