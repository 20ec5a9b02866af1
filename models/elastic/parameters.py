"""Meaning of the presets' parameters; ``entry.parameter`` is special to one preset."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "size": Parameter("number of jobs", "jobs"),
    "gpus": Parameter("GPUs of the cluster", "GPUs"),
    "gpus_per_node": Parameter("GPUs of a node", "GPUs"),
    "hours": Parameter("time within which jobs arrive", "h"),
    "eta": Parameter(
        "η, power limit as a share of all GPUs at full power", "share", "PowerFlow, Eq. 19"
    ),
    "cap": Parameter(
        "a limit on power at any time, or none",
        source="PowerFlow, Eq. 19",
        choices=("power", "none"),
    ),
    "pool": Parameter(
        "GPU that models are measured on; v100 is synthetic", choices=("a100", "t4", "v100")
    ),
    "restarts": Parameter("a start or restart costs time"),
    "clocks": Parameter("number of frequencies that are kept"),
}
