"""What the parameters of the presets mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "alibaba.size": Parameter(
        "nodes, models in the cluster's own proportions; 1,213 is the cluster",
        "nodes",
        "PWR+FGD, Table II",
    ),
    "size": Parameter("tasks drawn from the Default workload", "tasks", "PWR+FGD, Table I"),
    "load": Parameter("GPU demand of the arrivals over the GPUs there are", "share"),
    "sampling": Parameter(
        "tasks drawn with replacement, or first every task of the trace once",
        source="PWR+FGD, Sec. V; the FGD simulator",
        choices=("monte-carlo", "trace-first"),
    ),
    "goal": Parameter(
        "what is optimised; weighted is α·power + (1 - α)·fragmentation",
        source="PWR+FGD, Eq. 3 to 5",
        choices=("power", "fragmentation", "weighted", "accepted_gpu"),
    ),
    "alpha": Parameter("weight α of power under goal=weighted", source="PWR+FGD, Eq. 5"),
    "watts_per_gpu": Parameter(
        "what a GPU of fragmentation counts as under goal=weighted", "W/GPU"
    ),
    "cpu_rule": Parameter(
        "active CPU packages: counted from cores, or as the equation is printed",
        source="PWR+FGD, Eq. 1",
        choices=("packages", "eq1"),
    ),
}
