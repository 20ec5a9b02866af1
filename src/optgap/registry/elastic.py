"""The family elastic: training jobs that grow and shrink."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    name="elastic",
    question="how many GPUs and which clock does each training job get now?",
    files={
        "jobs": "job,submit_s,model,batch,iterations[,gpus]",
        "models": "JSON of tables or parameters; or a fit of powerflow-energy, or fits of "
        f"powerflow-throughput and of power; {REPEATABLE}",
        "trace": "a Philly, Gavel, ElasticFlow, Pollux or Sia trace, instead of --jobs",
    },
    tables_out={
        "timeline": "time_s,job,event,gpus,frequency_mhz",
        "series": "jobs, GPUs and power after each change",
    },
    per_event="optimal",
    tiny={"preset": "tiny", "size": 4},
    overview="offline(runs=30,rounds=75)",
)
