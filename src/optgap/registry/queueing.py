"""The family queueing: gang jobs that wait."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    name="queueing",
    question="which waiting gang job starts next?",
    files={
        "jobs": "job,arrival_s,duration_s,gpus[,type,family,iterations,estimate_s,"
        "patience_s,batch]; or a .swf log",
        "model": "a fit of powerflow-throughput (JSON), for jobs that tell family, batch "
        f"and iterations; {REPEATABLE}",
    },
    needed=1,
    tables_out={"schedule": "job,start_s,end_s,nodes per job that starts"},
    per_event="replan",
    tiny={"preset": "small", "size": 5},
    overview="time-indexed(rounds=2,moves=100000)",
)
