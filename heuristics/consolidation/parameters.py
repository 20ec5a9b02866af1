"""What the parameters of the policies mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "u_max": Parameter(
        "most that the mean utilisations on a GPU may add up to", "%", "CATS, Alg. 1"
    ),
    "rho_max": Parameter("highest correlation at which a task joins others", source="CATS, Alg. 1"),
    "lambda1": Parameter("weight λ1 of the correlation in the score", source="CATS, Alg. 2"),
    "lambda2": Parameter("weight λ2 of the difference of the means", source="CATS, Alg. 2"),
    "inclusive": Parameter("thresholds may be met (<=); otherwise <"),
    "literal_empty": Parameter(
        "empty GPUs are candidates like others, with correlation 0",
        source="CATS, Alg. 2 as printed",
    ),
    "literal_units": Parameter(
        "the difference of means counts in percent, beside a correlation in -1..1",
        source="CATS, Alg. 2 as printed",
    ),
    "literal_thresholds": Parameter(
        "nothing is held against the thresholds", source="CATS, Alg. 1 as printed"
    ),
    "align": Parameter(
        "residents' series are compared from this moment on, or from their starts",
        source="CATS, Alg. 2",
        choices=("now", "start"),
    ),
    "mem_headroom_gb": Parameter("memory that stays free on every GPU", "GB"),
    "strict_queue": Parameter("a task that has to wait holds back those behind it"),
    "dfs": Parameter("lower the clock of awake GPUs as far as κ allows", source="CATS, Alg. 4"),
    "delta_mhz": Parameter(
        "step Δf of the clock, which the paper leaves open", "MHz", "CATS, Alg. 4"
    ),
    "instant": Parameter("go to where the steps end at once, not one step every 100 ms"),
    "contention_aware": Parameter(
        "count the slow-down by contention, too, when clocks are lowered"
    ),
    "pred_noise": Parameter(
        "standard deviation of the error of a newcomer's predicted utilisation", "points of %"
    ),
    "fit": Parameter(
        "the first GPU that will do, or the one of highest mean",
        source="HotCloud",
        choices=("first", "best"),
    ),
    "q": Parameter("utilisation now and the first sample stay below this", "%", "CATS, First"),
    "dp_sign": Parameter(
        "1: the smallest product; -1: the largest, as in Tetris", source="DotProd"
    ),
    "capacity": Parameter(
        "a rule for each decision beside the problem's own; empty for that alone",
        source="CATS, Eq. 6 extended",
        choices=("none", "mean", "slot", "peak"),
    ),
    "opt_nomig.capacity": Parameter(
        "mean: mean utilisations within 100 % beside the problem's rule; empty for that alone",
        choices=("none", "mean"),
    ),
    "event_s": Parameter("time for each event; 0 for 2 s, less with many events", "s"),
}
