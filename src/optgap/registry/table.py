"""Families by name, with the files that each reads and writes."""

from __future__ import annotations

from collections.abc import Mapping

from optgap.models.errors import InputError, one_of
from optgap.registry.spec import REPEATABLE, FamilySpec

SPECS = (
    FamilySpec(
        name="placement",
        question="which node and which GPU does each arriving task get?",
        files={
            "nodes": "sn,cpu_milli,memory_mib,gpu,model",
            "tasks": "name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec][,submit_s,duration_s]",
            "order": "seq,task",
            "ranks": "rank,node",
            "devices": "model,idle_w,full_w",
            "model": f"a fit of device-power (JSON); {REPEATABLE}",
        },
        needed=2,
        tables_out={
            "placements": "seq,node,gpu_index per arrival",
            "series": "demand, use, fragmentation and power after each arrival",
        },
        per_event="greedy-exact",
        tiny={"preset": "small", "size": 6},
        overview="patterns(tolerance=0.0015,patience=10,first_nodes=10,rounds=8)",
    ),
    FamilySpec(
        name="consolidation",
        question="which tasks share which GPUs, at which clock?",
        files={
            "tasks": "task,memory_gb[,submit_s,gpus,duration_s,kappa,util_percent,app]",
            "series": "task,t_s,util_percent",
            "model": f"fits of linear-power, power-law-jct (JSON); {REPEATABLE}",
        },
        needed=1,
        tables_out={"placements": "task,start_s,server,gpu_index per stay of a task"},
        per_event="opt_nomig",
        tiny={"size": 4, "servers": 2},
    ),
    FamilySpec(
        name="coscheduling",
        question="which jobs share a node, on how many GPUs each, and when?",
        files={
            "profiles": "app,gpu_count,runtime_s,avg_power_per_gpu_w[,dram_util_sum]",
            "jobs": "app,count[,release_s]",
            "model": "a fit of dram-runtime (JSON): policies decide on it, and it fills in run "
            f"times left empty; {REPEATABLE}",
        },
        needed=1,
        tables_out={"schedule": "job,app,gpu_count,start_s,end_s,gpu_index per run"},
        per_event="exact-window",
        tiny={"size": 5},
    ),
    FamilySpec(
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
        overview="time-indexed(rounds=2,moves=300000)",
    ),
    FamilySpec(
        name="elastic",
        question="how many GPUs and which clock does each training job get now?",
        files={
            "jobs": "job,submit_s,model,batch,iterations[,gpus]",
            "models": "JSON of tables; or a fit of powerflow-energy, or fits of "
            f"powerflow-throughput and of power; {REPEATABLE}",
            "trace": "a Philly or ElasticFlow trace, instead of --jobs",
        },
        tables_out={
            "timeline": "time_s,job,event,gpus,frequency_mhz",
            "series": "jobs, GPUs and power after each change",
        },
        per_event="optimal",
        tiny={"preset": "tiny", "size": 4},
        overview="offline(runs=30,rounds=75)",
    ),
)
"""Families in the order in which lists show them."""
FAMILIES: Mapping[str, FamilySpec] = {spec.name: spec for spec in SPECS}


def file_options(outgoing: bool) -> dict[str, str]:
    """Return every file that some family reads, or with `outgoing` writes, and its content."""
    found: dict[str, list[str]] = {}
    for spec in FAMILIES.values():
        columns = spec.tables_out if outgoing else spec.files
        for name, text in columns.items():
            one = "model" if name == "models" else name  # fits go by either name
            found.setdefault(one, []).append(f"{spec.name}: {text}")
    return {name: "; ".join(texts) for name, texts in found.items()}


def families() -> tuple[str, ...]:
    """Return the names of the problem families."""
    return tuple(FAMILIES)


def family(name: str, source: str = "family") -> FamilySpec:
    """Return the family of this name.

    Raises
    ------
    InputError: for an unknown name, with a list of the known ones.
    """
    if not isinstance(name, str) or name not in FAMILIES:
        raise InputError(source, "", name, one_of(FAMILIES))
    return FAMILIES[name]
