"""What the parameters of the presets mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "size": Parameter("how many jobs", "jobs", "HPS/PBS/SBS, Sec. IV-A"),
    "load": Parameter("ρ, GPU time that arrives over GPU time there is", "share"),
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
    "patience_s": Parameter("how long jobs wait before they leave", "s"),
    "estimate": Parameter(
        "durations that policies are told: true, with an error, or users' time limits",
        choices=("exact", "lognormal", "limits"),
    ),
    "sigma": Parameter("standard deviation of the logarithm of their error (estimate=lognormal)"),
    "nodes": Parameter("nodes of the cluster", "nodes", "HPS/PBS/SBS, Sec. IV-A"),
    "gpus_per_node": Parameter("GPUs of a node", "GPUs", "HPS/PBS/SBS, Sec. IV-A"),
    "placement": Parameter(
        "a job's GPUs must be together on nodes, or only be enough", choices=("node", "count")
    ),
    "goal": Parameter("what is minimised", choices=("mean_wait", "mean_jct", "makespan")),
}
