"""Meaning of the presets' parameters; ``entry.parameter`` is special to one preset."""

from optgap.models.spec import Parameter

_OVER_TIME = Parameter(
    "objective over the horizon; mean_weighted is α·power + (1 - α)·fragmentation",
    source="PWR+FGD, Eq. 3 to 5",
    choices=("energy", "mean_fragmentation", "mean_weighted", "mean_accepted_gpu"),
)

PARAMETERS = {
    "alibaba.size": Parameter(
        "nodes, models in the cluster's own proportions; 1,213 is the cluster",
        "nodes",
        "PWR+FGD, Table II",
    ),
    "size": Parameter("tasks drawn from the Default workload", "tasks", "PWR+FGD, Table I"),
    "load": Parameter("GPU demand of the arrivals over the cluster's GPUs", "share"),
    "sampling": Parameter(
        "tasks drawn with replacement, or first every task of the trace once",
        source="PWR+FGD, Sec. V; the FGD simulator",
        choices=("monte-carlo", "trace-first"),
    ),
    "goal": Parameter(
        "objective; weighted is α·power + (1 - α)·fragmentation",
        source="PWR+FGD, Eq. 3 to 5",
        choices=("power", "fragmentation", "weighted", "accepted_gpu"),
    ),
    "alibaba-time.goal": _OVER_TIME,
    "alibaba-time.size": Parameter("tasks; the trace has 8,152", "tasks"),
    "alibaba-time.load": Parameter(
        "highest GPU demand over the cluster's GPUs, where nodes is 0", "share"
    ),
    "nodes": Parameter(
        "nodes in the Alibaba cluster's proportions; 0 for as many as load says", "nodes"
    ),
    "days": Parameter("span of the synthetic arrivals", "days"),
    "alpha": Parameter("weight α of power under goal=weighted", source="PWR+FGD, Eq. 5"),
    "cpu_rule": Parameter(
        "active CPU packages: counted from cores, or as the equation is printed",
        source="PWR+FGD, Eq. 1",
        choices=("packages", "eq1"),
    ),
}
