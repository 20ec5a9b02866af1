"""What the parameters of the methods mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "workers": Parameter("threads of CP-SAT; 0 for one per core", "threads"),
    "backend": Parameter(
        "the MILP solver; `optgap info` shows which are usable",
        choices=("highs", "cbc"),
    ),
    "tolerance": Parameter(
        "stop once the bound is within this share of the LP over the patterns found so far",
        "share",
    ),
    "rounds": Parameter("neighbourhoods of nodes that are solved again"),
    "placed": Parameter("a file with a solution: what it places stays where it is", "path"),
    "gap": Parameter("stop once the pooled problem is solved to this relative gap", "share"),
}
