"""A consolidation problem as JSON and back."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.consolidation.cluster import MOST_GPUS, GpuKind, PowerLine, Server
from optgap.models.consolidation.tasks import Task
from optgap.models.errors import NoQuote
from optgap.models.jsonio import Fields, plain
from optgap.models.performance import saved

if TYPE_CHECKING:
    from optgap.models.consolidation.problem import ConsolidationProblem

SCHEMA = "optgap.consolidation.problem/1"
RULES = ("capacity", "limit_percent", "gang", "contention", "waiting")
KIND = ("name", "memory_gb", "f_min_mhz", "f_max_mhz", "beta", "frequencies_mhz")
LINE = ("static_w", "slope_w_per_mhz")
TASK = ("name", "memory_gb", "gpus", "kappa", "submit_s", "duration_s", "util_percent")


def written(problem: ConsolidationProblem) -> dict[str, Any]:
    """Return the JSON form; equal servers in a row stand once, with a count."""
    rules = problem.rules
    return {
        "schema": SCHEMA,
        **plain(problem, "family", "name", "origin"),
        "objective": {"goal": problem.objective.goal},
        **plain(rules, *RULES),
        "wake_s": 0.0,
        "util_scaled": False,
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
    return {**plain(kind, *KIND[:2]), **plain(kind.power, *LINE), **plain(kind, *KIND[2:])}


def _task(task: Task) -> dict[str, Any]:
    return {
        **plain(task, *TASK),
        **({} if task.beta is None else {"beta": task.beta}),
        **({} if task.power is None else plain(task.power, *LINE)),
        **({"app": task.app} if task.app else {}),
    }


def arguments(fields: Fields) -> dict[str, Any]:
    """Return what `ConsolidationProblem.of` takes, but for its rules.

    Raises
    ------
    InputError: naming the field that is missing or not what it should be.
    """
    fields.schema(SCHEMA)
    if fields.number("wake_s", default=0.0):
        raise fields.fail("wake_s", fields.number("wake_s"), "0: GPUs wake at once")
    if fields.flag("util_scaled", False):
        expected = "false: power follows clocks alone"
        raise fields.fail("util_scaled", NoQuote("true"), expected)
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
        "period_s": fields.number("period_s", default=60.0),
        "name": fields.text("name", "consolidation"),
        "origin": fields.text("origin", ""),
        "source": fields.source,
    }


def _read_kind(item: Fields) -> GpuKind:
    line = PowerLine(**item.like(PowerLine(), *LINE))
    return GpuKind(power=line, **item.like(GpuKind(), *KIND))


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
