"""What the parameters of the methods mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "workers": Parameter(
        "threads of CP-SAT; 0 for one per core, and no fewer than eight", "threads"
    ),
    "gap": Parameter("stop once the integer program is solved to this relative gap", "share"),
}
