"""Presets of elastic training: synthetic workloads on fitted models, CSV jobs, traces."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from optgap.models.elastic import pools, workload
from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.checks import MOST_JOBS
from optgap.models.elastic.fits import noted
from optgap.models.elastic.jobs import JobClass, Jobs, Overhead
from optgap.models.elastic.modelfile import ModelFile, read_models
from optgap.models.elastic.problem import ElasticProblem
from optgap.models.elastic.tables import Maker, maker_of
from optgap.models.errors import InputError, NoQuote, Said, one_of
from optgap.models.shown import counted
from optgap.models.spec import Entry, defaults, entries
from optgap.models.tables import Column, read_table


def drawn(
    name: str,
    *,
    seed: int,
    size: int,
    gpus: int,
    hours: float,
    scale: float = 1.0,
    gpus_per_node: int = 8,
    requested: int = 0,
    eta: float = 0.6,
    cap: str = "power",
    pool: str = "a100",
    restarts: bool = True,
) -> ElasticProblem:
    """Return a problem of a pool of models and a workload drawn from published statistics.

    Parameters
    ----------
    name: name of the problem; its size and seed follow.
    size: number of jobs; hours: the span of arrivals; scale: factor on the durations.
    requested: GPUs that every job requests; 0: shares as published.
    gpus, gpus_per_node: the cluster.
    eta, cap: the limit.
    pool: ``a100``, ``t4`` (fitted) or ``v100`` (synthetic).
    restarts: whether a (re)start costs time.
    """
    _sizes(size, hours, scale)
    _multiple(gpus, gpus_per_node)
    classes = pools.classes(pool, gpus, gpus_per_node)
    rng = np.random.default_rng(seed)
    if requested and requested not in classes[0].counts:
        shown = "0, or one of " + ", ".join(map(str, classes[0].counts))
        raise InputError("--set", "requested", requested, shown)
    asked = {requested: 1.0} if requested else None
    jobs = workload.jobs(classes, rng, size, 3600 * hours, duration_scale=scale, requests=asked)
    given = {
        "gpus": gpus, "gpus_per_node": gpus_per_node, "eta": eta, "cap": cap, "pool": pool,
        "restarts": restarts,
    }  # fmt: skip
    return _problem(classes, jobs, given, f"{name}, {size} jobs, seed {seed}", "synthetic jobs")


small = partial(drawn, "small", size=48, gpus=32, hours=2.0, scale=0.5)
day = partial(drawn, "day", size=1901, gpus=256, hours=24.0)


def tiny(
    *,
    seed: int,
    size: int = 6,
    gpus: int = 4,
    clocks: int = 4,
    eta: float = 0.6,
    pool: str = "a100",
) -> ElasticProblem:
    """Return a problem small enough for an exact search: six minutes, free restarts."""
    _sizes(size, 1.0, 1.0)
    if not 1 <= clocks <= 30:
        raise InputError("--set", "clocks", clocks, "1 to 30")
    _multiple(gpus, gpus)
    board = pools.board_of(pool).clocks
    chosen = board[np.unique(np.linspace(len(board) // 3, len(board) - 1, clocks).round())
                   .astype(int)]  # fmt: skip
    classes = pools.classes(pool, gpus, gpus, chosen)
    rng = np.random.default_rng(seed)
    jobs = workload.jobs(classes, rng, size, 360.0, duration_scale=0.2)
    given = {
        "gpus": gpus, "gpus_per_node": gpus, "eta": eta, "cap": "power", "pool": pool,
        "restarts": False,
    }  # fmt: skip
    name = f"tiny, {size} jobs, seed {seed}"
    return _problem(classes, jobs, given, name, "synthetic jobs", chosen)


def _sizes(size: int, hours: float, scale: float) -> None:
    if not 1 <= size <= MOST_JOBS:
        raise InputError("--set", "size", size, f"1 to {MOST_JOBS} jobs")
    for name, value in (("hours", hours), ("scale", scale)):
        if not 0 < value < 1e6:
            raise InputError("--set", name, value, "a positive number")


def _multiple(gpus: int, per_node: int) -> None:
    for name, value in (("gpus", gpus), ("gpus_per_node", per_node)):
        if value < 1:
            raise InputError("--set", name, value, "an integer of at least 1")


def _problem(
    classes: Sequence[JobClass],
    jobs: Jobs,
    p: dict[str, Any],
    name: str,
    origin: str,
    clocks: Floats | None = None,
    notes: Sequence[str] = (),
    source: str = "--set",
) -> ElasticProblem:
    board = pools.BOARDS[p["pool"]]
    return ElasticProblem.of(
        classes,
        jobs,
        list(board.clocks if clocks is None else clocks),
        gpus=p["gpus"],
        gpus_per_node=p["gpus_per_node"],
        eta=p["eta"],
        idle_w=p.get("idle_w", board.idle_w),
        p_max_w=p.get("p_max_w"),
        cap=p["cap"],
        overhead=None if p["restarts"] else Overhead(0.0, 0.0, 0.0),
        name=name,
        origin=origin,
        notes=notes,
        source=source,
    )


# -- CSV ----------------------------------------------------------------------------------


def from_csv(
    jobs: str | os.PathLike[str] | None = None,
    models: Any = None,
    trace: str | os.PathLike[str] | None = None,
    *,
    seed: int,
    gpus: int = 32,
    gpus_per_node: int = 8,
    eta: float = 0.6,
    cap: str = "power",
    pool: str = "a100",
    restarts: bool = True,
    idle_w: float | None = None,
    p_max_w: float | None = None,
    frequencies: tuple[float, ...] = (),
    size: int = 0,
    hours: float = 0.0,
    strict: bool = True,
) -> ElasticProblem:
    """Return a problem of jobs and models, or of one of the public traces.

    Parameters
    ----------
    jobs: ``job,submit_s,model,batch,iterations[,gpus]``.
    models: JSON, see ``docs/elastic.md``, or fits of powerflow-energy, or of powerflow-throughput
        and of power; the models of `pool` without it.
    trace: instead of `jobs`, a Philly or ElasticFlow trace, whose models are mapped to those of
        `pool`.
    frequencies: frequencies, MHz; by default those of the file or the board.
    size, hours: limits on a trace, its first jobs and its first hours.
    strict: whether to refuse values that look like another unit. Default True.

    Raises
    ------
    InputError: with file, row and column of a value that cannot be used.
    """
    if (jobs is None) == (trace is None):
        found = NoQuote("nothing" if jobs is None else "both")
        raise InputError("--jobs, --trace", "", found, "one of them")
    pools.board_of(pool)  # a wrong name is told before any file is read
    p: dict[str, Any] = {
        "gpus": gpus, "gpus_per_node": gpus_per_node, "eta": eta, "cap": cap, "pool": pool,
        "restarts": restarts,
    }  # fmt: skip
    if idle_w is not None:
        p["idle_w"] = _number("idle_w", idle_w)
    if p_max_w is not None:
        p["p_max_w"] = _number("p_max_w", p_max_w)
    _multiple(gpus, gpus_per_node)
    if trace is not None:
        from optgap.models.elastic.traces import read_trace

        if models is not None:
            raise InputError("--models", "", Said("conflicts with --trace"), "give --set pool=…")
        clocks = np.array([_number("frequencies", f) for f in frequencies] or
                          pools.BOARDS[pool].clocks)  # fmt: skip
        classes = pools.classes(pool, gpus, gpus_per_node, clocks)
        read = read_trace(trace, classes, seed=seed, size=size, hours=hours)
        name = os.path.basename(os.fspath(trace)).removesuffix(".gz").rsplit(".", 1)[0]
        return _problem(classes, read.jobs, p, name, read.origin, clocks, read.notes, str(trace))
    if jobs is None:
        raise AssertionError("jobs or trace, checked above")
    return _from_jobs(jobs, models, p, [_number("frequencies", f) for f in frequencies])


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        raise InputError("--set", name, value, "a number of at least 0")
    return float(value)


def _from_jobs(
    path: str | os.PathLike[str],
    models: Any,
    p: dict[str, Any],
    frequencies: Sequence[float],
) -> ElasticProblem:
    board = pools.BOARDS[p["pool"]]
    makers: dict[str, Maker]
    clocks: Floats = board.clocks
    file: ModelFile | None = None
    if models in (None, []):
        makers = {name: maker_of(model) for name, model in pools.trained(p["pool"]).items()}
    else:
        file = read_models(models)
        makers = file.makers
        clocks = clocks if file.clocks is None else file.clocks
        p.setdefault("idle_w", None)
    if frequencies:
        clocks = np.array(sorted(frequencies))
    table = _job_table(path, makers)
    keys = sorted(set(zip(table["model"], table["batch"], strict=True)))
    classes = [makers[m](b, clocks, p["gpus"], p["gpus_per_node"]) for m, b in keys]
    allowed = [
        [n for n in c.counts if n <= p["gpus"] and n <= c.batch] if c.counts else []
        for c in classes
    ]
    of_class = [keys.index(key) for key in zip(table["model"], table["batch"], strict=True)]
    notes = [] if file is None else _beyond(file, classes)
    requested = _requests(path, table, of_class, allowed, notes)
    jobs = Jobs(
        tuple(table["job"]),
        np.array(table["submit_s"], dtype=np.float64),
        np.array(of_class, dtype=np.int64),
        np.array(table["iterations"], dtype=np.float64),
        np.array(requested, dtype=np.int64),
    )
    name = os.path.splitext(os.path.basename(os.fspath(path)))[0]
    read = models if isinstance(models, list) else [models]
    paths = [path, *(m for m in read if isinstance(m, (str, os.PathLike)))]
    origin = ", ".join(os.path.basename(os.fspath(x)) for x in paths)
    problem = _problem(classes, jobs, p, name, origin, clocks, notes, str(paths[-1]))
    if file is None or file.fitted is None:
        return problem
    return noted(problem, file.fits, file.fitted)


def _beyond(file: ModelFile, classes: Sequence[JobClass]) -> list[str]:
    """Say which GPU counts lie beyond those that a fit saw."""
    times = {} if file.fitted is None else file.fitted.times
    found = {}
    for item in classes:
        seen = times.get(item.model)
        if seen is not None and item.counts and item.counts[-1] > seen.gpus[1]:
            found[item.model] = f"{item.model}: fitted on up to {seen.gpus[1]:g} GPUs, used beyond"
    return list(found.values())


def _job_table(path: str | os.PathLike[str], makers: dict[str, Maker]) -> dict[str, list[Any]]:
    table = read_table(
        path,
        [
            Column("job"),
            Column("submit_s", "time"),
            Column("model"),
            Column("batch", "integer", minimum=1),
            Column("iterations", "number"),
            Column("gpus", "integer", minimum=1, required=False, empty=1),
        ],
    )
    if not table["job"]:
        raise InputError(str(path), "", NoQuote("no rows"), "at least one job")
    seen: set[str] = set()
    for k, row in enumerate(table["#"]):
        if table["model"][k] not in makers:
            expected = one_of(makers)
            raise InputError(str(path), f"row {row}, column model", table["model"][k], expected)
        if table["iterations"][k] <= 0:
            found = table["iterations"][k]
            raise InputError(str(path), f"row {row}, column iterations", found, "more than 0")
        if table["job"][k] in seen:
            raise InputError(str(path), f"row {row}, column job", table["job"][k], "a new name")
        seen.add(table["job"][k])
    return table


def _requests(
    path: str | os.PathLike[str],
    table: dict[str, list[Any]],
    of_class: list[int],
    allowed: list[list[int]],
    notes: list[str],
) -> list[int]:
    """GPUs requested: up to the next power of two, and one that the class may run on."""
    requested, rounded = [], 0
    for k, row in enumerate(table["#"]):
        asked, batch = table["gpus"][k], table["batch"][k]
        if batch < asked:
            expected = f"at least one sample for each of {asked} GPUs"
            raise InputError(str(path), f"row {row}, column batch", batch, expected)
        up = 1 << (asked - 1).bit_length()
        rounded += up != asked
        fitting = [n for n in allowed[of_class[k]] if n >= up] or allowed[of_class[k]][-1:]
        if not fitting or (up > fitting[0] and up > batch):
            up = max((n for n in allowed[of_class[k]]), default=1)
        elif up not in allowed[of_class[k]]:
            found = NoQuote(f"{up} GPUs")
            shown = ", ".join(map(str, allowed[of_class[k]])) or "no count"
            raise InputError(str(path), f"row {row}, column gpus", found, f"one of {shown}")
        requested.append(up)
    if rounded:
        notes.append(counted(rounded, "request for GPUs rounded up to a power of two"))
    return requested


CLUSTER = {"gpus_per_node": 8, "eta": 0.6, "cap": "power", "pool": "a100", "restarts": True}


def _presets() -> dict[str, Callable[..., Any]]:
    return {"small": small, "day": day, "tiny": tiny}


PRESETS = entries(
    _presets,
    Entry(
        "small",
        "48 jobs in two hours on 32 GPUs; models fitted to A100 profiles, synthetic workload",
        params={"size": 48, "gpus": 32, "hours": 2.0, **CLUSTER},
        seeded=True,
    ),
    Entry(
        "day",
        "1,901 jobs in 24 hours on 256 GPUs, from published statistics; synthetic workload",
        params={"size": 1901, "gpus": 256, "hours": 24.0, **CLUSTER},
        seeded=True,
    ),
    Entry(
        "tiny",
        "6 jobs on 4 GPUs with 4 clocks and free restarts, where the optimum can be searched",
        params=defaults(tiny),
        seeded=True,
    ),
)
