"""Queueing policies: asked whenever a job arrives, ends or leaves, without knowing later jobs."""

from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.queueing"
HPS = {
    "aging_threshold": 300.0,
    "aging_boost": 2.0,
    "max_wait_time": 1800.0,
    "reserve_after_s": 0.0,
}

POLICIES = entries(
    Entry(
        "fifo",
        f"{HERE}.policies:fifo",
        "FIFO: by arrival, the first job blocks the queue",
        params={"fit_first": False},
    ),
    Entry(
        "sjf",
        f"{HERE}.policies:sjf",
        "SJF: the fewest GPUs first",
        params={"strict": False, "sjf_key": "gpus"},
    ),
    Entry(
        "shortest",
        f"{HERE}.policies:shortest",
        "Shortest: the least run time first",
        params={"strict": False},
    ),
    Entry(
        "shortest-reserve",
        f"{HERE}.shortest_reserve:shortest_reserve",
        "Shortest on nodes in use that long anyway; a wide job that waits for long books nodes",
        params={"reserve_after_s": 600.0},
    ),
    Entry(
        "shortest-gpu",
        f"{HERE}.policies:shortest_gpu",
        "Shortest-GPU: the least run time x GPUs first",
        params={"strict": False},
    ),
    Entry(
        "adaptive",
        f"{HERE}.policies:adaptive",
        "a reconstruction of the multi-factor scheduler that the paper gave up",
        params={
            "short_queue": "0.5-0.2-0.3",
            "middle_queue": "0.3-0.4-0.3",
            "long_queue": "0.2-0.6-0.2",
        },
    ),
    Entry("hps", f"{HERE}.policies:hps", "HPS as printed: base x aging x penalty", params=HPS),
    Entry(
        "hps_fixed",
        f"{HERE}.policies:hps_fixed",
        "HPS with aging that never falls",
        params=HPS,
    ),
    Entry(
        "pbs",
        f"{HERE}.policies:pbs",
        "PBS: efficiency, pairs for a node, gap filling, blocking avoidance",
        params={
            "tau": 0.1,
            "gamma": 4,
            "medium_s": 7200.0,
            "delta": 0.25,
            "node_cap": 8,
            "pair_stage": "after_rule1",
        },
    ),
    Entry(
        "sbs",
        f"{HERE}.policies:sbs",
        "SBS: batches of like jobs of one family",
        params={
            "theta": 0.5,
            "batch_gpus": 8,
            "batch_jobs": 4,
            "time_unit_s": 3600.0,
            "start": "all",
            "lookahead": 256,
        },
    ),
    Entry("easy", f"{HERE}.policies:easy", "EASY backfilling: the oldest job is never delayed"),
    Entry(
        "conservative",
        f"{HERE}.conservative:conservative",
        "conservative backfilling: no job is delayed by a later one",
        params={"depth": 0},
    ),
    Entry(
        "replan",
        f"{HERE}.replan:replan",
        "the waiting jobs planned anew by annealing at every event; what starts now is started",
        params={"jobs": 64, "moves": 1000},
        deterministic=False,
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: place(state) returns the jobs to start now",
    deterministic=False,
)

__all__ = ["CUSTOM", "POLICIES"]
