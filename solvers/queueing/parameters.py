"""What the parameters of the methods mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

RESERVE_AFTER_S = 600.0
"""The wait after which a job of a whole node or more books nodes, by default, s."""

PARAMETERS = {
    "workers": Parameter(
        "threads of CP-SAT; 0 for one per core, and no fewer than eight", "threads"
    ),
    "moves": Parameter("lists that are tried per start; 0 for as many as there is time for"),
    "starts": Parameter("independent searches, side by side; the best of them counts"),
    "seconds": Parameter("time for the search at most", "s"),
    "jobs": Parameter("arrivals of a period at most", "jobs"),
    "rounds": Parameter("programs per period; 0 for as many as there is time for", "programs"),
    "steps": Parameter("subgradient steps of a round; fewer with many jobs"),
}
