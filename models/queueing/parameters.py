"""Meaning of the presets' parameters; ``entry.parameter`` is special to one preset."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "size": Parameter("number of jobs", "jobs", "HPS/PBS/SBS, Sec. IV-A"),
    "load": Parameter("ρ, arriving GPU time over the cluster's GPU time", "share"),
    "corr": Parameter(
        "GPU counts and durations: independent, long jobs large, or long jobs small",
        choices=("none", "positive", "negative"),
    ),
    "arrivals": Parameter(
        "a Poisson process, or all jobs at time 0", choices=("poisson", "all_at_zero")
    ),
    "large": Parameter(
        "GPUs of the largest class, 16+: 16, or 16, 24 and 32",
        source="HPS/PBS/SBS, Sec. IV-A",
        choices=("16", "16-32"),
    ),
    "patience": Parameter(
        "when jobs leave: never, after patience_s, exponential, or with their duration",
        choices=("inf", "const", "exp", "duration"),
    ),
    "patience_s": Parameter("wait after which jobs leave", "s"),
    "estimate": Parameter(
        "durations that policies know: true, with an error, or users' time limits",
        choices=("exact", "lognormal", "limits"),
    ),
    "sigma": Parameter("standard deviation of the logarithm of their error (estimate=lognormal)"),
    "nodes": Parameter("nodes of the cluster", "nodes", "HPS/PBS/SBS, Sec. IV-A"),
    "gpus_per_node": Parameter("GPUs of a node", "GPUs", "HPS/PBS/SBS, Sec. IV-A"),
    "placement": Parameter(
        "a job's GPUs are together on nodes, or only their number counts", choices=("node", "count")
    ),
    "goal": Parameter("objective", choices=("mean_wait", "mean_jct", "makespan")),
}
