"""A consolidation problem as JSON and back."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.consolidation.cluster import MOST_GPUS, GpuKind, PowerLine, Server
from optgap.models.consolidation.tasks import Task
from optgap.models.jsonio import Fields
from optgap.models.performance import saved

if TYPE_CHECKING:
    from optgap.models.consolidation.problem import ConsolidationProblem

SCHEMA = "optgap.consolidation.problem/1"


def written(problem: ConsolidationProblem) -> dict[str, Any]:
    """The JSON form; equal servers in a row stand once, with a count."""
    rules = problem.rules
    return {
        "schema": SCHEMA,
        "family": problem.family,
        "name": problem.name,
        "origin": problem.origin,
        "objective": {"goal": problem.objective.goal},
        "capacity": rules.capacity,
        "limit_percent": rules.limit_percent,
        "gang": rules.gang,
        "contention": rules.contention,
        "waiting": rules.waiting,
        "wake_s": rules.wake_s,
        "util_scaled": rules.util_scaled,
        **({} if rules.migration else {"migration": False}),
        "period_s": problem.period_s,
        "kinds": [_kind(kind) for kind in problem.kinds],
        "servers": [
            {"count": len(list(same)), "gpus": list(server.gpus), "static_w": server.static_w}
            for server, same in groupby(problem.servers)
        ],
        "tasks": [_task(task) for task in problem.tasks],
        **saved.written(problem.fits),
    }


def _kind(kind: GpuKind) -> dict[str, Any]:
    return {
        "name": kind.name,
        "memory_gb": kind.memory_gb,
        "static_w": kind.power.static_w,
        "slope_w_per_mhz": kind.power.slope_w_per_mhz,
        "f_min_mhz": kind.f_min_mhz,
        "f_max_mhz": kind.f_max_mhz,
        "beta": kind.beta,
        "frequencies_mhz": list(kind.frequencies_mhz),
    }


def _task(task: Task) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": task.name,
        "memory_gb": task.memory_gb,
        "gpus": task.gpus,
        "kappa": task.kappa,
        "submit_s": task.submit_s,
        "duration_s": task.duration_s,
        "util_percent": task.util_percent.tolist(),
    }
    if task.beta is not None:
        entry["beta"] = task.beta
    if task.power is not None:
        entry["static_w"] = task.power.static_w
        entry["slope_w_per_mhz"] = task.power.slope_w_per_mhz
    if task.app:
        entry["app"] = task.app
    return entry


def arguments(fields: Fields) -> dict[str, Any]:
    """What `ConsolidationProblem.of` takes; `rules` by name.

    Raises
    ------
    InputError: naming the field that is missing or not what it should be.
    """
    fields.schema(SCHEMA)
    servers: list[Server] = []
    for item in fields.objects("servers"):
        count = item.integer("count", minimum=1, default=1)
        if len(servers) + count > MOST_GPUS:
            raise item.fail("count", count, f"at most {MOST_GPUS} servers in all")
        server = Server(tuple(item.integers("gpus")), item.number("static_w", default=0.0))
        servers += [server] * count
    return {
        "kinds": [_read_kind(item) for item in fields.objects("kinds")],
        "servers": servers,
        "tasks": [_read_task(item) for item in fields.objects("tasks")],
        "goal": fields.object("objective").text("goal"),
        "rules": {
            "capacity": fields.text("capacity", "none"),
            "limit_percent": fields.number("limit_percent", default=100.0),
            "gang": fields.text("gang", "server"),
            "contention": fields.number("contention", default=1.0),
            "waiting": _flag(fields, "waiting", True),
            "wake_s": fields.number("wake_s", default=0.0),
            "util_scaled": _flag(fields, "util_scaled", False),
            "migration": _flag(fields, "migration", True),
        },
        "period_s": fields.number("period_s", default=60.0),
        "name": fields.text("name", "consolidation"),
        "origin": fields.text("origin", ""),
        "source": fields.source,
    }


def _flag(fields: Fields, name: str, default: bool) -> bool:
    known = name in fields.document
    return bool(fields.get(name, bool, "true or false")) if known else default


def _read_kind(item: Fields) -> GpuKind:
    known = GpuKind()
    listed = "frequencies_mhz" in item.document
    return GpuKind(
        item.text("name", known.name),
        item.number("memory_gb", default=known.memory_gb),
        PowerLine(
            item.number("static_w", default=known.power.static_w),
            item.number("slope_w_per_mhz", default=known.power.slope_w_per_mhz),
        ),
        item.number("f_min_mhz", default=known.f_min_mhz),
        item.number("f_max_mhz", default=known.f_max_mhz),
        item.number("beta", default=known.beta),
        tuple(item.numbers("frequencies_mhz")) if listed else (),
    )


def _read_task(item: Fields) -> Task:
    known = item.document
    own = "static_w" in known or "slope_w_per_mhz" in known
    series = item.numbers("util_percent") if "util_percent" in known else [0.0]
    return Task(
        item.text("name"),
        item.number("memory_gb"),
        item.integer("gpus", minimum=1, default=1),
        item.number("kappa", default=1.2),
        item.number("submit_s", default=0.0),
        item.number("duration_s", default=0.0),
        np.array(series, dtype=np.float64),
        item.number("beta") if "beta" in known else None,
        PowerLine(item.number("static_w"), item.number("slope_w_per_mhz")) if own else None,
        item.text("app", ""),
    )
