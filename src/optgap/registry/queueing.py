"""Where the parts of the family queueing are: gang jobs that wait."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    "queueing",
    "which waiting gang job starts next?",
    problem="optgap.models.queueing.problem:QueueingProblem",
    solution="optgap.models.queueing.solution:QueueingSolution",
    tables="optgap.models.queueing.presets:from_file",
    tiny={"preset": "small", "size": 5},
    overview="time-indexed(rounds=1,moves=200000)",
    files={
        "jobs": "job,arrival_s,duration_s,gpus[,type,family,iterations,estimate_s,"
        "patience_s,batch]; or a .swf log",
        "model": "a fit of powerflow-throughput (JSON), for jobs that tell family, batch "
        f"and iterations; {REPEATABLE}",
    },
    needed=1,
    tables_out={
        "schedule": (
            "optgap.models.queueing.csvout:schedule",
            "job,start_s,end_s,nodes per job that starts",
        )
    },
    view="optgap.views.queueing:draw",
    doubts="optgap.models.queueing.doubts:doubts",
    per_event="replan",
    per_event_exact=False,
    relaxed=("nodes", "optgap.models.queueing.problem:counted"),
    regrets="optgap.heuristics.queueing.regret:regrets",
    refit="optgap.models.queueing.fits:refit",
)
