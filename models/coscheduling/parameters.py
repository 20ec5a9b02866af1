"""What the parameters of the presets mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "size": Parameter("jobs, each application once before any comes again", "jobs"),
    "gpus": Parameter("GPUs of the node, M", "GPUs", "EcoSched"),
    "numa": Parameter("NUMA domains K: so many jobs run at a time", "domains", "EcoSched"),
    "idle_w": Parameter("power of an idle GPU; 70 on H100", "W", "EcoSched"),
    "goal": Parameter(
        "energy of the node, makespan, or their product",
        source="EcoSched",
        choices=("energy", "makespan", "edp"),
    ),
    "tau": Parameter(
        "leave out GPU counts slower than 1 + τ times the fastest; empty: none", "share"
    ),
    "between_s": Parameter("mean of exponential times between jobs; 0: all at once", "s"),
}
