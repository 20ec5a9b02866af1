"""What the parameters of the policies mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "tau": Parameter(
        "τ, slow-down against the fastest GPU count that is tolerated; 0.14 on H100, 0.20 on V100",
        "share",
        "EcoSched, Phase II",
    ),
    "idle_weight": Parameter(
        "λ, weight of the share of GPUs left idle; empty for idle over mean busy power",
        source="EcoSched, Eq. 2",
    ),
    "window": Parameter("waiting jobs looked at, in queue order; 0 for all", "jobs"),
    "signal": Parameter(
        "relative run times: fitted where there are (auto), true, from DRAM, fitted, with an error",
        source="EcoSched, Phase I",
        choices=("auto", "perfect", "dram", "fitted", "noisy"),
    ),
    "sigma": Parameter("standard deviation of the logarithm of run times' error (signal=noisy)"),
    "repeat": Parameter("choose again at the same instant until nothing more fits"),
    "model": Parameter("file of a dram-runtime fit (signal=fitted)", "path"),
    "profiling_s": Parameter(
        "how long each GPU count is profiled, on other nodes", "s", "EcoSched, Sec. V-C"
    ),
    "count_profiling": Parameter("count the energy of profiling as a metric"),
    "normalise": Parameter(
        "least energy of an application over all its GPU counts, or those that τ keeps",
        source="EcoSched, Eq. 1",
        choices=("all", "kept"),
    ),
    "strict": Parameter("the first job that does not fit ends the scan of the queue"),
    "numa_limit": Parameter("no more jobs at a time than NUMA domains", source="EcoSched"),
    "breadth": Parameter("actions that are played to the end, those of least score"),
    "seconds": Parameter("time for one plan", "s"),
    "workers": Parameter(
        "threads of CP-SAT; 0 for one per core, and no fewer than eight", "threads"
    ),
}
