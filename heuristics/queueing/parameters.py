"""What the parameters of the policies mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "fit_first": Parameter("jobs that do not fit are skipped; otherwise the first blocks"),
    "strict": Parameter("the first job of the order blocks while it does not fit"),
    "sjf_key": Parameter(
        "fewest GPUs first (the text), or shortest first (Table I)",
        source="HPS/PBS/SBS, Table I",
        choices=("gpus", "time"),
    ),
    "short_queue": Parameter("weights of efficiency, fairness and size, with up to 10 waiting"),
    "middle_queue": Parameter("weights of efficiency, fairness and size, with up to 50 waiting"),
    "long_queue": Parameter("weights of efficiency, fairness and size, with more waiting"),
    "aging_threshold": Parameter("wait from which a job ages", "s", "HPS/PBS/SBS, HPS"),
    "aging_boost": Parameter("factor that long waits end up with", source="HPS/PBS/SBS, HPS"),
    "max_wait_time": Parameter("wait at which the boost is full", "s", "HPS/PBS/SBS, HPS"),
    "reserve_after_s": Parameter(
        "wait after which the oldest job has a reservation; 0 for never", "s"
    ),
    "tau": Parameter(
        "τ, by how much the most efficient job must lead to be started for it",
        "share",
        "HPS/PBS/SBS, PBS",
    ),
    "gamma": Parameter("γ: jobs of fewer GPUs fill gaps", "GPUs", "HPS/PBS/SBS, PBS"),
    "medium_s": Parameter("T: jobs below it are taken to avoid blocking", "s", "HPS/PBS/SBS, PBS"),
    "delta": Parameter("Δ, by which run times of a pair may differ", "share", "HPS/PBS/SBS, PBS"),
    "node_cap": Parameter("most GPUs of a pair, which shares a node", "GPUs", "HPS/PBS/SBS, PBS"),
    "pair_stage": Parameter(
        "where pairs are looked for, which the paper leaves open",
        source="HPS/PBS/SBS, PBS",
        choices=("after_rule1", "first", "off"),
    ),
    "theta": Parameter("θ, least similarity of a batch", source="HPS/PBS/SBS, SBS"),
    "batch_gpus": Parameter("G_max, most GPUs of a batch", "GPUs", "HPS/PBS/SBS, SBS"),
    "batch_jobs": Parameter("most jobs of a batch, up to 4", "jobs"),
    "time_unit_s": Parameter(
        "run times of a batch are compared in this unit; 1 as printed", "s", "HPS/PBS/SBS, SBS"
    ),
    "start": Parameter(
        "all jobs of a batch are started, or its first",
        source="HPS/PBS/SBS, SBS",
        choices=("all", "first"),
    ),
    "lookahead": Parameter("waiting jobs of each family looked at; 0 for all", "jobs"),
    "depth": Parameter("waiting jobs that hold reservations; 0 for all", "jobs"),
    "shortest-reserve.reserve_after_s": Parameter(
        "wait after which a job of a whole node or more books nodes", "s"
    ),
    "jobs": Parameter("waiting jobs that are planned, in the order of the last plan", "jobs"),
    "moves": Parameter("lists tried per plan, at most"),
}
