"""What the parameters of the presets mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "size": Parameter("how many tasks", "tasks"),
    "servers": Parameter("servers; 0 for enough of them", "servers"),
    "gpus_per_server": Parameter("GPUs of a server", "GPUs", "CATS, simulation set-up"),
    "gpu_memory_gb": Parameter("memory of a GPU", "GB", "CATS, Eq. 8"),
    "server_static_w": Parameter("power of an awake server beside its GPUs'", "W", "CATS, Eq. 4"),
    "capacity": Parameter(
        "what utilisations on a GPU must keep: nothing, means, every sample, or peaks <= 100 %",
        source="CATS, Eq. 8 extended",
        choices=("none", "mean", "slot", "peak"),
    ),
    "gang": Parameter(
        "a task's GPUs in one server, or anywhere", source="CATS, Eq. 7", choices=("server", "free")
    ),
    "samples": Parameter("length of a utilisation series", "samples"),
    "kappas": Parameter(
        "how many tolerances κ there are; 0 for one of each task's own", source="CATS, Eq. 14"
    ),
    "util_scaled": Parameter("power follows utilisation, P_gs + α·f·min(1, U)"),
    "stage": Parameter(
        "tasks of the first or second stage; 0 for both",
        source="CATS, Table 4",
    ),
    "goal": Parameter(
        "power of tasks that are all present, or energy over time",
        source="CATS, Eq. 6",
        choices=("power", "energy"),
    ),
    "wake_s": Parameter("how long a GPU that slept takes to wake", "s", "CATS, Alg. 3"),
    "present": Parameter("tasks that are there at a time, on average", "tasks"),
    "contention": Parameter("exponent q of the slow-down max(1, U^q) by shared GPUs"),
    "migration": Parameter("a task that runs may go on elsewhere, for nothing"),
    "waiting": Parameter("a task may start later than it is submitted"),
    "series": Parameter(
        "utilisation: synthetic, or recorded by a GenAI cluster or Philly, with Philly's jobs",
        choices=("synthetic", "philly", "genai"),
    ),
    "data": Parameter("folder with recorded series; empty for $OPTGAP_DATA", "path"),
}
