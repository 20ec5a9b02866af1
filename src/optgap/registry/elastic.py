"""Where the parts of the family elastic are: training jobs that grow and shrink."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    "elastic",
    "how many GPUs and which clock does each training job get now?",
    problem="optgap.models.elastic.problem:ElasticProblem",
    solution="optgap.models.elastic.solution:ElasticSolution",
    tables="optgap.models.elastic.presets:from_csv",
    tiny={"preset": "tiny", "size": 4},
    files={
        "jobs": "job,submit_s,model,batch,iterations[,gpus]",
        "models": "JSON of tables or parameters; or a fit of powerflow-energy, or fits of "
        f"powerflow-throughput and of power; {REPEATABLE}",
        "trace": "a Philly, Gavel, ElasticFlow, Pollux or Sia trace, instead of --jobs",
    },
    needed=0,
    tables_out={
        "timeline": (
            "optgap.models.elastic.csvout:timeline",
            "time_s,job,event,gpus,frequency_mhz",
        ),
        "series": ("optgap.models.elastic.csvout:series", "jobs, GPUs and power after each change"),
    },
    view="optgap.views.elastic:draw",
    doubts="optgap.models.elastic.doubts:doubts",
    exact=dict.fromkeys(
        ("optimal", "optimal-slowdown", "work-value"), "optgap.solvers.elastic.snapshot:solve"
    ),
    overview="offline(runs=20)",
    per_event="optimal",
    spared="optgap.models.elastic.problem:spared",
    informed={"profiles": "perfect"},
    unpaid={"prerun_s": 0.0, "profile_s": 0.0},
    regrets="optgap.solvers.elastic.regret:regrets",
    refit="optgap.models.elastic.fits:refit",
)
