"""Tasks and their utilisation from CSV files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from optgap.models.consolidation.cluster import GpuKind, PowerLine, Server
from optgap.models.consolidation.fits import refit
from optgap.models.consolidation.problem import Capacity, ConsolidationProblem, Gang, Goal, Rules
from optgap.models.consolidation.tasks import Task, validate_series
from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.saved import read_fits
from optgap.models.tables import Column, read_table

V100 = GpuKind()
MISSING = -1.0


def from_csv(
    tasks: str | os.PathLike[str],
    series: str | os.PathLike[str] | None = None,
    model: Sequence[str] | str = (),
    *,
    seed: int,
    servers: int = 4,
    gpus_per_server: int = 8,
    gpu_memory_gb: float = 32.0,
    server_static_w: float = 0.0,
    capacity: Capacity = "none",
    limit_percent: float = 100.0,
    gang: Gang = "server",
    goal: Goal = "power",
    kappa: float = 1.2,
    gpu: str = "V100",
    gpu_static_w: float = V100.power.static_w,
    gpu_slope_w_per_mhz: float = V100.power.slope_w_per_mhz,
    beta: float = V100.beta,
    f_min_mhz: float | None = None,
    f_max_mhz: float | None = None,
    clock_step_mhz: float | None = None,
    period_s: float = 0.0,
    contention: float = 1.0,
    waiting: bool = True,
    migration: bool = True,
    series_rule: str = "strict",
    strict: bool = True,
) -> ConsolidationProblem:
    """Make a problem from a table of tasks, with utilisation by sample and fits if given.

    `seed` is not used. `kappa` is for tasks without one, `period_s` for series of one sample.
    `series_rule` is ``strict``, where series of different lengths and constant ones are refused,
    or ``loose``: a task goes on with its last sample, and a constant correlates with nothing.
    Clocks (`f_min_mhz`, `f_max_mhz`, `clock_step_mhz`) are those of the fits, or without fits
    the V100's of the paper, unless given; a step of 0 is any clock.
    With `strict`, values that look like another unit are refused.

    Raises
    ------
    InputError: naming file, row and column of what cannot be used.
    """
    _require_settings(
        series_rule, servers, gpus_per_server, kappa=kappa, server_static_w=server_static_w
    )
    clocks = (f_min_mhz, f_max_mhz, clock_step_mhz)
    line = PowerLine(gpu_static_w, gpu_slope_w_per_mhz)
    kind = _gpu(gpu, gpu_memory_gb, clocks, line, beta=beta)
    read, apps = _tasks(tasks, kappa, strict)
    period = period_s or 60.0
    if series is not None:
        alike = series_rule == "strict"
        read, period = _with_series(read, series, period_s, strict=alike, believed=strict)
    if capacity != "none":
        _require_utilisation(read, f"capacity {capacity}", str(tasks))
    pairs = zip(read, apps, strict=True)
    known = [replace(_known(task), app="" if app == task.name else app) for task, app in pairs]
    origin = ", ".join(os.path.basename(os.fspath(p)) for p in (tasks, series) if p is not None)
    if goal == "power" and len({task.submit_s for task in read}) > 1:
        origin += "; times: submit_s orders tasks that are there at once (goal=energy: they leave)"
    problem = ConsolidationProblem.of(
        [kind],
        [Server((0,) * gpus_per_server, server_static_w)] * min(servers, 1_000_000),
        known,
        goal=goal,
        rules=Rules(capacity, limit_percent, gang, contention, waiting, migration),
        period_s=period,
        name=os.path.splitext(os.path.basename(os.fspath(tasks)))[0],
        origin=origin,
        source=str(tasks),
    )
    fits = read_fits(model)
    if not fits:
        return problem
    return refit(problem, fits, clocks=clocks == (None, None, None), deal=False)


def _require_settings(
    series_rule: str, servers: int, gpus_per_server: int, *, kappa: float, server_static_w: float
) -> None:
    """Raise InputError for a setting that no problem can have."""
    if series_rule not in ("strict", "loose"):
        raise InputError("--set", "series_rule", series_rule, "strict or loose")
    if servers < 1 or gpus_per_server < 1:
        found = NoQuote(f"{servers} servers of {gpus_per_server} GPUs")
        raise InputError("--set", "servers", found, "at least 1 of at least 1")
    if not 1 <= kappa < 1e6:
        raise InputError("--set", "kappa", kappa, "a tolerance of at least 1")
    if not 0 <= server_static_w < 1e6:
        raise InputError("--set", "server_static_w", server_static_w, "0 to below 1e6 W")


def _gpu(
    gpu: str,
    memory_gb: float,
    clocks: tuple[float | None, float | None, float | None],
    line: PowerLine,
    *,
    beta: float,
) -> GpuKind:
    """Return a GPU with frequencies at equal steps down from the highest, or with all of them.

    Lowest and highest clock are the V100's unless given.
    """
    low, high, step = clocks
    low = V100.f_min_mhz if low is None else low
    high = V100.f_max_mhz if high is None else high
    if not 0 < low <= high:
        found = NoQuote(f"{low:g} with f_max_mhz {high:g}")
        raise InputError("--set", "f_min_mhz", found, "0 < f_min ≤ f_max")
    steps: tuple[float, ...] = ()
    if step:
        many = (high - low) / step if step > 0 else -1.0
        if not 0 <= many <= 10_000:
            expected = "0, or a step in MHz that gives up to 10,000 clocks"
            raise InputError("--set", "clock_step_mhz", step, expected)
        steps = tuple(high - k * step for k in range(int(many + 1e-9), -1, -1))
    kind = GpuKind(gpu, memory_gb, line, low, high, beta, steps)
    kind.validate("--set", "GPU")
    return kind


def _require_utilisation(tasks: Sequence[Task], needs: str, source: str) -> None:
    """Raise InputError, naming what needs it, for a task of unknown utilisation."""
    for task in tasks:
        if np.isnan(task.util_percent[0]):
            expected = f"its util_percent or series, for {needs}"
            raise InputError(source, f"task {task.name}", NoQuote("nothing"), expected)


def _known(task: Task) -> Task:
    """Return the task with a utilisation of 0 if the table has none."""
    if not np.isnan(task.util_percent[0]):
        return task
    return replace(task, util_percent=np.zeros(1))


def _tasks(
    path: str | os.PathLike[str], kappa: float, believed: bool
) -> tuple[list[Task], list[str]]:
    table = read_table(
        path,
        [
            Column("task"),
            Column("memory_gb", "number"),
            Column("submit_s", "time", required=False, empty=0.0),
            Column("gpus", "integer", minimum=1, required=False, empty=1),
            Column("duration_s", "number", required=False, empty=MISSING),
            Column("kappa", "number", minimum=1, required=False, empty=kappa),
            Column("util_percent", "number", required=False, empty=MISSING),
            Column("app", required=False, empty=""),
        ],
        strict=believed,
    )
    found: list[Task] = []
    seen: set[str] = set()
    for k, name in enumerate(table["task"]):
        row = f"row {table['#'][k]}, column"
        if name in seen:
            raise InputError(str(path), f"{row} task", NoQuote(f"{name} twice"), "each once")
        seen.add(name)
        util, lasting = table["util_percent"][k], table["duration_s"][k]
        if util > 100:
            raise InputError(str(path), f"{row} util_percent", util, "0 to 100")
        if lasting == 0:
            raise InputError(str(path), f"{row} duration_s", lasting, "a positive time")
        found.append(
            Task(
                name,
                table["memory_gb"][k],
                table["gpus"][k],
                table["kappa"][k],
                table["submit_s"][k],
                max(0.0, lasting),
                np.array([util if util >= 0 else np.nan]),
            )
        )
    if not found:
        raise InputError(str(path), "", NoQuote("no rows"), "at least one task")
    return found, [app or task.name for app, task in zip(table["app"], found, strict=True)]


def _with_series(
    tasks: list[Task],
    path: str | os.PathLike[str],
    period_s: float,
    *,
    strict: bool,
    believed: bool,
) -> tuple[list[Task], float]:
    """Return the tasks with their series, and the time between two samples."""
    samples = _samples(path, {task.name for task in tasks}, believed)
    period = _period(samples, path, period_s)
    lengths: dict[str, int] = {}
    found = []
    for task in tasks:
        where = f"task {task.name}"
        if task.name not in samples:
            if np.isnan(task.util_percent[0]):
                raise InputError(str(path), where, NoQuote("no samples"), "at least one")
            found.append(task)
            continue
        series = np.array([u for _, u in samples[task.name]])
        validate_series(series, str(path), where)
        lengths[task.name] = series.size
        first = next(iter(lengths))
        if strict and series.size != lengths[first]:
            shown = NoQuote(f"{series.size} samples")
            expected = f"{lengths[first]} as of {first} (or --set series_rule=loose)"
            raise InputError(str(path), where, shown, expected)
        if strict and series.size > 1 and (series == series[0]).all():
            shown = NoQuote(f"{series[0]:g} throughout")
            expected = "a series that changes (or --set series_rule=loose)"
            raise InputError(str(path), where, shown, expected)
        found.append(replace(task, util_percent=series))
    return found, period


def _samples(
    path: str | os.PathLike[str], names: set[str], believed: bool
) -> dict[str, list[tuple[float, float]]]:
    table = read_table(
        path,
        [Column("task"), Column("t_s", "time"), Column("util_percent", "number")],
        strict=believed,
    )
    samples: dict[str, list[tuple[float, float]]] = {}
    for k, name in enumerate(table["task"]):
        row = f"row {table['#'][k]}, column"
        if name not in names:
            raise InputError(str(path), f"{row} task", name, "a task of the other file")
        if table["util_percent"][k] > 100:
            raise InputError(str(path), f"{row} util_percent", table["util_percent"][k], "0 to 100")
        own = samples.setdefault(name, [])
        if own and table["t_s"][k] <= own[-1][0]:
            expected = f"a time after {own[-1][0]:g}"
            raise InputError(str(path), f"{row} t_s", table["t_s"][k], expected)
        own.append((table["t_s"][k], table["util_percent"][k]))
    if not samples:
        raise InputError(str(path), "", NoQuote("no rows"), "at least one sample")
    return samples


def _period(
    samples: dict[str, list[tuple[float, float]]], path: str | os.PathLike[str], given: float
) -> float:
    """Return the one time between samples."""
    period = given
    for name, own in samples.items():
        for (before, _), (after, _) in itertools.pairwise(own):
            period = period or after - before
            if abs(after - before - period) > 1e-6 * period:
                found = NoQuote(f"{after - before:g} s between samples at {after:g} s")
                raise InputError(str(path), f"task {name}", found, f"{period:g} s throughout")
    return period or 60.0
