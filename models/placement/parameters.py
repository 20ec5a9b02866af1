"""What the parameters of the presets mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

_OVER_TIME = Parameter(
    "what is optimised, over the horizon; mean_weighted is α·power + (1 - α)·fragmentation",
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
    "alibaba-time.goal": _OVER_TIME,
    "alibaba-time.size": Parameter("tasks; the trace has 8,152", "tasks"),
    "alibaba-time.load": Parameter(
        "highest GPU demand over the GPUs there are, where nodes is 0", "share"
    ),
    "nodes": Parameter(
        "nodes in the Alibaba cluster's proportions; 0 for as many as load says", "nodes"
    ),
    "times": Parameter(
        "lives drawn from the trace's quantiles and arrivals at random, or both as recorded",
        source="the trace's creation_time and deletion_time",
        choices=("synthetic", "recorded"),
    ),
    "days": Parameter("how long synthetic times go on", "days"),
    "data": Parameter("folder with openb/, for recorded times; empty for $OPTGAP_DATA", "path"),
    "queue": Parameter(
        "a task that does not fit: turned away, in line with all behind it, or overtaken",
        choices=("reject", "fifo", "backfill"),
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
