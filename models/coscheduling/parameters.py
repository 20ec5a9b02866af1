"""Meaning of the presets' parameters; ``entry.parameter`` is special to one preset."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "size": Parameter("number of jobs, each application once before any repeats", "jobs"),
    "gpus": Parameter("GPUs of the node, M", "GPUs", "EcoSched"),
    "numa": Parameter("NUMA domains K, the most jobs that run at a time", "domains", "EcoSched"),
    "idle_w": Parameter("power of an idle GPU; 70 on H100", "W", "EcoSched"),
    "goal": Parameter(
        "energy of the node, makespan, or their product",
        source="EcoSched",
        choices=("energy", "makespan", "edp"),
    ),
    "tau": Parameter(
        "leave out GPU counts slower than 1 + τ times the fastest; empty: none", "share"
    ),
    "between_s": Parameter("mean of the exponential time between arrivals; 0: all at once", "s"),
}
