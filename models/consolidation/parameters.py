"""Meaning of the presets' parameters; ``entry.parameter`` is special to one preset."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "size": Parameter("number of tasks", "tasks"),
    "servers": Parameter("servers; 0 for enough of them", "servers"),
    "gpus_per_server": Parameter("GPUs of a server", "GPUs", "CATS, simulation set-up"),
    "server_static_w": Parameter("power of an active server beside its GPUs'", "W", "CATS, Eq. 4"),
    "capacity": Parameter(
        "utilisations on a GPU that stay within 100 %: none, means, every sample, or peaks",
        source="CATS, Eq. 8 extended",
        choices=("none", "mean", "slot", "peak"),
    ),
    "gang": Parameter(
        "a task's GPUs in one server, or anywhere", source="CATS, Eq. 7", choices=("server", "free")
    ),
    "samples": Parameter("length of a utilisation series", "samples"),
    "kappas": Parameter(
        "number of different tolerances κ; 0 for one per task", source="CATS, Eq. 14"
    ),
    "stage": Parameter(
        "tasks of the first or second stage; 0 for both",
        source="CATS, Table 4",
    ),
    "goal": Parameter(
        "power of tasks that are all present, or energy over time",
        source="CATS, Eq. 6",
        choices=("power", "energy"),
    ),
    "present": Parameter("tasks present at a time, on average", "tasks"),
    "contention": Parameter("exponent q of the slowdown max(1, U^q) on shared GPUs"),
    "migration": Parameter("a running task may migrate at no cost"),
    "waiting": Parameter("a task may start later than it is submitted"),
    "series": Parameter(
        "utilisation: synthetic, or recorded in Philly, with Philly's jobs",
        choices=("synthetic", "philly"),
    ),
    "data": Parameter("folder with recorded series; empty for $OPTGAP_DATA", "path"),
}
