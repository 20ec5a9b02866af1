"""Presets of elastic training: synthetic workloads on fitted models, CSV jobs, traces."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from optgap.models.elastic import pools, workload
from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.checks import MOST_GPUS, MOST_JOBS
from optgap.models.elastic.fits import noted
from optgap.models.elastic.jobs import JobClass, Jobs, Overhead
from optgap.models.elastic.modelfile import ModelFile, read_models
from optgap.models.elastic.problem import ElasticProblem
from optgap.models.elastic.tables import Maker
from optgap.models.elastic.traces import read_trace
from optgap.models.errors import InputError, NoQuote, Said, one_of
from optgap.models.shown import counted
from optgap.models.spec import Entry, entries
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
    clocks: int = 0,
) -> ElasticProblem:
    """Return a problem of a pool of models and a workload drawn from published statistics.

    Parameters
    ----------
    name: name of the problem; its size and seed follow.
    size: number of jobs; hours: the span of arrivals; scale: factor on the durations.
    requested: GPUs that every job requests; 0: shares as published.
    gpus, gpus_per_node: the cluster; 0 per node: all on one node.
    eta, cap: the limit.
    pool: ``a100``, ``t4`` (fitted) or ``v100`` (synthetic).
    restarts: whether a (re)start costs time.
    clocks: how many of the board's clocks are kept, from a third of them up; 0: all.
    """
    _within("1 to {:g} jobs", MOST_JOBS, size=size)
    _within("above 0, at most {:g}", 1e6, hours=hours, scale=scale)
    _cluster(gpus, gpus_per_node or gpus)
    mhz = pools.board_of(pool).clocks
    if clocks:
        _within("1 to {:g}", 30, clocks=clocks)
        kept = np.linspace(len(mhz) // 3, len(mhz) - 1, clocks).round().astype(int)
        mhz = mhz[np.unique(kept)]
    classes = pools.classes(pool, gpus, gpus_per_node or gpus, mhz)
    rng = np.random.default_rng(seed)
    if requested and requested not in classes[0].counts:
        shown = "0, or one of " + ", ".join(map(str, classes[0].counts))
        raise InputError("--set", "requested", requested, shown)
    asked = {requested: 1.0} if requested else None
    jobs = workload.jobs(classes, rng, size, 3600 * hours, duration_scale=scale, requests=asked)
    return _problem(
        classes, jobs, mhz, pool=pool, restarts=restarts, gpus=gpus,
        gpus_per_node=gpus_per_node or gpus, eta=eta, cap=cap,
        name=f"{name}, {size} jobs, seed {seed}", origin="synthetic jobs", source="--set",
    )  # fmt: skip


small = partial(drawn, "small", size=48, gpus=32, hours=2.0, scale=0.5)
day = partial(drawn, "day", size=1901, gpus=256, hours=24.0)
tiny = partial(
    drawn, "tiny", size=6, gpus=4, gpus_per_node=0, hours=0.1, scale=0.2, restarts=False, clocks=4
)
"""Small enough for an exact search."""


def _within(words: str, most: float, **values: float) -> None:
    """Raise InputError, in these words, for a setting that is not above 0 and at most `most`."""
    for name, value in values.items():
        if not 0 < value <= most:
            raise InputError("--set", name, value, words.format(most))


def _cluster(gpus: int, gpus_per_node: int) -> None:
    _within("an integer from 1 to {:g}", MOST_GPUS, gpus=gpus, gpus_per_node=gpus_per_node)


def _problem(
    classes: Sequence[JobClass],
    jobs: Jobs,
    clocks: Floats,
    *,
    pool: str,
    restarts: bool,
    **given: Any,
) -> ElasticProblem:
    """Return the problem; GPUs without work draw as the pool's board does, unless given."""
    given.setdefault("idle_w", pools.BOARDS[pool].idle_w)
    overhead = None if restarts else Overhead(0.0, 0.0, 0.0)
    return ElasticProblem.of(classes, jobs, clocks.tolist(), overhead=overhead, **given)


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
    clocks = pools.board_of(pool).clocks  # a wrong name is told before any file is read
    if frequencies:
        clocks = np.array(sorted(_number("frequencies", f) for f in frequencies))
    given: dict[str, Any] = {
        "gpus": gpus, "gpus_per_node": gpus_per_node, "eta": eta, "cap": cap, "pool": pool,
        "restarts": restarts,
    }  # fmt: skip
    watts = {"idle_w": idle_w, "p_max_w": p_max_w}
    given |= {name: _number(name, w) for name, w in watts.items() if w is not None}
    _cluster(gpus, gpus_per_node)
    if trace is not None and jobs is None:
        if models is not None:
            raise InputError("--models", "", Said("conflicts with --trace"), "give --set pool=…")
        classes = pools.classes(pool, gpus, gpus_per_node, clocks)
        read = read_trace(trace, classes, seed=seed, size=size, hours=hours)
        name = os.path.basename(os.fspath(trace)).removesuffix(".gz").rsplit(".", 1)[0]
        given |= {"name": name, "origin": read.origin, "notes": read.notes, "source": str(trace)}
        return _problem(classes, read.jobs, clocks, **given)
    if jobs is None or trace is not None:
        found = NoQuote("nothing" if jobs is None else "both")
        raise InputError("--jobs, --trace", "", found, "one of them")
    file = None if models in (None, []) else read_models(models)
    makers = pools.makers(pool) if file is None else file.makers
    if file is not None:
        given.setdefault("idle_w", None)  # a tenth of P_max
        clocks = clocks if frequencies or file.clocks is None else file.clocks
    table = _job_table(jobs, makers)
    keys = sorted(set(zip(table["model"], table["batch"], strict=True)))
    classes = [makers[m](b, clocks, gpus, gpus_per_node) for m, b in keys]
    of_class = [keys.index(key) for key in zip(table["model"], table["batch"], strict=True)]
    requested, notes = _requests(jobs, table, [classes[c] for c in of_class], gpus)
    made = Jobs(
        tuple(table["job"]),
        np.array(table["submit_s"], dtype=np.float64),
        np.array(of_class, dtype=np.int64),
        np.array(table["iterations"], dtype=np.float64),
        np.array(requested, dtype=np.int64),
    )
    read_ = models if isinstance(models, list) else [models]
    paths = [jobs, *(m for m in read_ if isinstance(m, (str, os.PathLike)))]
    names = [os.path.basename(os.fspath(x)) for x in paths]
    problem = _problem(
        classes, made, clocks, name=os.path.splitext(names[0])[0], origin=", ".join(names),
        notes=[*([] if file is None else _beyond(file, classes)), *notes], source=str(paths[-1]),
        **given,
    )  # fmt: skip
    if file is None or file.fitted is None:
        return problem
    return noted(problem, file.fits, file.fitted)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        raise InputError("--set", name, value, "a number of at least 0")
    return float(value)


def _beyond(file: ModelFile, classes: Sequence[JobClass]) -> list[str]:
    """Say which GPU counts lie beyond those that a fit saw."""
    times = {} if file.fitted is None else file.fitted.times
    found = {}
    for item in classes:
        seen = times.get(item.model)
        if seen is not None and item.counts and item.counts[-1] > seen.gpus[1]:
            found[item.model] = f"{item.model}: fitted on up to {seen.gpus[1]:g} GPUs, used beyond"
    return list(found.values())


def _job_table(path: str | os.PathLike[str], makers: Mapping[str, Maker]) -> dict[str, list[Any]]:
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
    path: str | os.PathLike[str], table: dict[str, list[Any]], of: Sequence[JobClass], most: int
) -> tuple[list[int], list[str]]:
    """Return GPUs requested, up to the next power of two that the class may have, and notes."""
    requested, rounded = [], 0
    for k, row in enumerate(table["#"]):
        asked, batch = table["gpus"][k], table["batch"][k]
        if batch < asked:
            expected = f"at least one sample for each of {asked} GPUs"
            raise InputError(str(path), f"row {row}, column batch", batch, expected)
        allowed = [n for n in of[k].counts if n <= min(most, of[k].batch)]
        up = 1 << (asked - 1).bit_length()
        rounded += up != asked
        fitting = [n for n in allowed if n >= up] or allowed[-1:]
        if not fitting or (up > fitting[0] and up > batch):
            up = max(allowed, default=1)
        elif up not in allowed:
            shown = ", ".join(map(str, allowed)) or "no count"
            found = NoQuote(f"{up} GPUs")
            raise InputError(str(path), f"row {row}, column gpus", found, f"one of {shown}")
        requested.append(up)
    text = counted(rounded, "request for GPUs rounded up to a power of two")
    return requested, [text] if rounded else []


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
        params={"size": 6, "gpus": 4, "clocks": 4, "eta": 0.6, "pool": "a100"},
        seeded=True,
    ),
)
