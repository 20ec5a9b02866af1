"""What the parameters of the policies mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "mode": Parameter(
        "a step only if the limit holds after it, or as printed: until it has been passed",
        source="PowerFlow, Alg. 1",
        choices=("strict", "paper"),
    ),
    "powerflow.frequency": Parameter(
        "clock f* while GPUs are handed out: of the fewest GPUs, or of each count",
        source="PowerFlow, Alg. 1",
        choices=("fixed", "per_n"),
    ),
    "frequency": Parameter(
        "common clock of all jobs; 0 for the highest", "MHz", "PowerFlow, evaluation"
    ),
    "first_gpu": Parameter(
        "who gets a first GPU: least energy, best efficiency, first come, least time",
        source="PowerFlow, Eq. 20",
        choices=("energy", "ee", "fifo", "srtf"),
    ),
    "profiles": Parameter(
        "predictions with the paper's errors and paid for, or exact and free",
        source="PowerFlow, Table 2 and Fig. 9",
        choices=("fitted", "oracle"),
    ),
    "sigma_time": Parameter(
        "standard deviation of the logarithm of predicted times' error", source="PowerFlow, Table 2"
    ),
    "sigma_energy": Parameter(
        "standard deviation of the logarithm of predicted energies' error",
        source="PowerFlow, Table 2",
    ),
    "prerun_s": Parameter("run of a new job on one GPU before it may start", "s", "PowerFlow"),
    "profile_s": Parameter("profiling on each GPU count that is new to a job", "s", "PowerFlow"),
    "preempt_profile": Parameter("profiling may be cut short"),
    "migration": Parameter(
        "where a job fits nowhere: move the fewest, place all anew, or wait",
        source="PowerFlow, Sec. 5.3",
        choices=("least", "repack", "none"),
    ),
    "consolidate": Parameter("no more nodes on than needed, at the price of moves"),
    "switch_off": Parameter("nodes without jobs are switched off", source="PowerFlow"),
    "boot_s": Parameter("what a job waits for a node that was off", "s"),
    "count_idle": Parameter("the limit counts idle GPUs of as many nodes as hold the jobs"),
    "eta": Parameter("η to plan with; empty for the problem's", "share", "PowerFlow, Alg. 1"),
    "capped": Parameter("keep the power limit by lower clocks and by waiting"),
    "discipline": Parameter(
        "order within a queue: by attained service, or by the Gittins index",
        source="Tiresias",
        choices=("2d-las", "gittins"),
    ),
    "threshold_1": Parameter("attained service at which the first queue ends", "GPU-s", "Tiresias"),
    "threshold_2": Parameter(
        "attained service at which the second queue ends; 0 for none", "GPU-s", "Tiresias"
    ),
    "promote": Parameter(
        "κ: who waited κ times as long as it ran goes to the first queue; 0: never",
        source="Tiresias",
    ),
    "repack": Parameter("place all jobs anew when one fits nowhere; otherwise it waits"),
    "gittins": Parameter(
        "remaining service in the index's denominator, or total as in the public code",
        source="Tiresias",
        choices=("corrected", "public"),
    ),
    "quantum_s": Parameter("length of a time slice", "s", "Gandiva"),
    "zeus_eta": Parameter(
        "η_z of Zeus's cost, 0 for time alone, 1 for energy alone", source="Zeus"
    ),
    "zeus_profile": Parameter(
        "each job first runs at every clock, from the highest down", source="Zeus"
    ),
    "backfill": Parameter("jobs behind one that does not fit may start"),
    "objective": Parameter(
        "remaining times, or each over the least that the job could have",
        source="PowerFlow, Eq. 18",
        choices=("jct", "slowdown"),
    ),
    "gap": Parameter("relative gap at which a decision counts as proven", "share"),
}
