"""Presets of co-scheduling: a synthetic pool of applications, measured ones, CSV profiles."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from optgap.models.coscheduling.fits import drawn_queue, refit
from optgap.models.coscheduling.predicted import dram_fit, filled
from optgap.models.coscheduling.problem import (
    MOST_GPUS,
    MOST_JOBS,
    Application,
    CoschedulingProblem,
    Goal,
    Mode,
)
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.performance.measured import ECOSCHED, Scaling, h100_runtime, h100_scaling
from optgap.models.performance.saved import FittedParameters, read_fits
from optgap.models.spec import Entry, entries
from optgap.models.tables import Column, read_table

PREDICTED = -1.0
"""Placeholder for a run time that the file leaves to a model."""
NODE_PARAMS = {"gpus": 4, "numa": 2, "idle_w": 70.0, "goal": "energy"}


def _presets() -> dict[str, Callable[..., Any]]:
    return {"synthetic": synthetic, "measured": measured, "stream": stream}


PRESETS = entries(
    _presets,
    Entry(
        "synthetic",
        "a synthetic pool of 17 applications (size = jobs, 17) on one node",
        params={"size": 17, **NODE_PARAMS, "tau": None},
        seeded=True,
    ),
    Entry(
        "measured",
        "jobs of 13 applications (size = jobs, 17) from fits of EcoSched's H100 profiles and DRAM",
        params={"size": 17, **NODE_PARAMS},
        seeded=True,
    ),
    Entry(
        "stream",
        "the synthetic pool as a stream: exponential times between jobs (mean between_s)",
        params={"size": 17, "between_s": 20.0, **NODE_PARAMS},
        seeded=True,
    ),
)

POOL = (
    # name, kinds of GPU counts, parallel share, slowdown per further GPU, W per GPU, fall per GPU
    *((f"scales-{k}", 0, 0.97, 0.002, 0.03) for k in range(1, 5)),
    *((f"levels-off-{k}", 0, 0.86, 0.012, 0.05) for k in range(1, 6)),
    *((f"three-best-{k}", 0, 0.90, 0.090, 0.05) for k in range(1, 4)),
    *((f"one-best-{k}", 0, 0.02, 0.030, 0.06) for k in range(1, 4)),
    *((f"pair-only-{k}", 2, 0.80, 0.020, 0.05) for k in range(1, 3)),
)
"""Name, only GPU count (0: all), parallel share, loss per further GPU, fall of power per GPU:
most scale to all four GPUs with little gained from the last, some are fastest on three or one, and
two run on a pair only, as in the paper's Table II."""


def synthetic(
    *,
    seed: int,
    size: int = 17,
    gpus: int = 4,
    numa: int = 2,
    idle_w: float = 70.0,
    goal: Goal = "energy",
    tau: float | None = None,
    between_s: float = 0.0,
) -> CoschedulingProblem:
    """Return `size` jobs of a synthetic pool: each application once before any repeats.

    T_g = T_1·(1 − s + s/g + c·(g − 1)), with 20 to 240 GPU-s of work, and a GPU draws 250 to
    490 W, less by a few per cent for each further one; all drawn from `seed`. With
    `between_s`, the mean of exponential times between jobs, they come as a stream; with `tau`,
    GPU counts slower than 1 + τ times the fastest are left out.

    Raises
    ------
    InputError: for a size below 1, a time that is none, or a node that the pool does not fit.
    """
    rng = np.random.default_rng(seed)
    applications = []
    for name, only, share, loss, fall in POOL:
        single = float(np.exp(rng.uniform(np.log(20), np.log(240))))
        watts = float(rng.uniform(250, 490))
        parallel = share - float(rng.uniform(0, 0.02))
        modes = []
        for g in (only,) if only else range(1, min(gpus, 64) + 1):
            time = _scaled_s(single, parallel, loss, g)
            power = watts * max(0.3, 1 - fall * (g - 1))
            modes.append(Mode(g, max(0.01, round(time, 2)), round(power, 2)))
        if modes and modes[0].gpu_count <= gpus:
            applications.append(Application(name, tuple(modes)))
    return _queued(
        applications,
        rng,
        size=size,
        between_s=between_s,
        tau=tau,
        gpus=gpus,
        numa=numa,
        idle_w=idle_w,
        goal=goal,
        name=f"synthetic pool, {size} jobs, seed {seed}",
        origin="synthetic",
    )


def _scaled_s(single_s: float, share: float, loss: float, g: int) -> float:
    """T_g = T_1·(1 − s + s/g + c·(g − 1)) in s, of parallel share s and loss c."""
    return single_s * (1 - share + share / g + loss * (g - 1))


def _queued(
    applications: Sequence[Application],
    rng: np.random.Generator,
    *,
    size: int,
    between_s: float = 0.0,
    tau: float | None = None,
    **node_and_names: Any,
) -> CoschedulingProblem:
    """Make a queue of these applications, drawn from `rng`.

    Raises
    ------
    InputError: as for `synthetic`.
    """
    if not 0 <= between_s < 1e9:
        raise InputError("between_s", "", between_s, "a time in s of at least 0")
    if not 1 <= size <= MOST_JOBS:
        raise InputError("size", "", size, f"1 to {MOST_JOBS} jobs")
    queue = drawn_queue(rng, len(applications), size)
    gaps = rng.exponential(between_s, size) if between_s else np.zeros(size)
    return CoschedulingProblem.of(
        within(applications, tau),
        queue,
        releases=np.round(np.cumsum(gaps) - gaps[0], 2).tolist(),
        **node_and_names,
    )


def measured(
    *,
    seed: int,
    size: int = 17,
    gpus: int = 4,
    numa: int = 2,
    idle_w: float = 70.0,
    goal: Goal = "energy",
) -> CoschedulingProblem:
    """Return applications on 1 to 4 GPUs with times, powers and DRAM activity after measurements.

    Policies decide on run times fitted to DRAM activity, the referee counts T_g; both are fits of
    EcoSched's H100 profiles. Parameters as for `synthetic`.

    Raises
    ------
    InputError: as for `synthetic`.
    """
    made = _queued(
        [
            Application(name, tuple(_scaled(item, g) for g in range(1, min(gpus, 4) + 1)))
            for name, item in h100_scaling().items()
        ],
        np.random.default_rng(seed),
        size=size,
        gpus=gpus,
        numa=numa,
        idle_w=idle_w,
        goal=goal,
        name=f"measured, {size} jobs, seed {seed}",
        origin=f"fits of public measurements: {ECOSCHED}; queue synthetic",
    )
    return refit(made, [h100_runtime()])


def _scaled(item: Scaling, g: int) -> Mode:
    """Return one GPU count of a measured application."""
    time, (x, m), (watts, fall) = _scaled_s(*item.time, g), item.signal, item.power
    return Mode(g, round(time, 3), round(watts - fall * (g - 1), 2), round(x * g**m, 5))


stream = partial(synthetic, between_s=20.0)


def from_csv(
    profiles: str | os.PathLike[str],
    jobs: str | os.PathLike[str] | None = None,
    model: Any = None,
    *,
    seed: int,
    gpus: int = 4,
    numa: int = 2,
    idle_w: float = 70.0,
    goal: Goal = "energy",
    tau: float | None = None,
    strict: bool = True,
) -> CoschedulingProblem:
    """Return a problem of measured profiles, and of how often each application is queued.

    Without `jobs` every application is queued once, in file order. With `model`, a fit of
    ``dram-runtime`` by application, policies decide on run times fitted from ``dram_util_sum``, and
    the referee counts those measured, or where they are left empty the fitted ones.
    With `tau`, GPU counts slower than 1 + τ times the fastest are left out. With `strict`, values
    that look like another unit are refused. `seed` is not used.

    Raises
    ------
    InputError: with file, row and column of a value that cannot be used.
    """
    fits = read_fits(model)
    applications, source = _profiles(profiles, fits, strict), str(profiles)
    queue, releases = (None, None) if jobs is None else _queue(jobs, applications)
    parts = [profiles] if jobs is None else [profiles, jobs]
    problem = CoschedulingProblem.of(
        within(applications, tau, gpus),
        queue,
        gpus=gpus,
        numa=numa,
        idle_w=idle_w,
        goal=goal,
        name=os.path.splitext(os.path.basename(os.fspath(parts[-1])))[0],
        origin=", ".join(os.path.basename(os.fspath(part)) for part in parts),
        releases=releases,
        source=source,
    )
    return refit(problem, fits, deal=False) if fits else problem


def within(
    applications: Sequence[Application], tau: float | None, gpus: int = MOST_GPUS
) -> list[Application]:
    """Return the applications with only the modes within 1 + τ of the fastest on `gpus` GPUs.

    Raises
    ------
    InputError: for a τ below 0.
    """
    if tau is None:
        return list(applications)
    if not 0 <= tau < math.inf:
        raise InputError("tau", "", tau, "a slow-down of at least 0")
    kept = []
    for app in applications:
        modes = [m for m in app.modes if m.gpu_count <= gpus] or list(app.modes)
        limit = min(m.runtime_s for m in modes) * (1 + tau + 1e-9)
        kept.append(Application(app.name, tuple(m for m in modes if m.runtime_s <= limit)))
    return kept


def _profiles(
    path: str | os.PathLike[str], fits: Sequence[FittedParameters], strict: bool
) -> list[Application]:
    table = read_table(
        path,
        [
            Column("app"),
            Column("gpu_count", "integer", minimum=1),
            Column("runtime_s", "number", required=not fits, empty=PREDICTED if fits else None),
            Column("avg_power_per_gpu_w", "number"),
            Column("dram_util_sum", "number", required=False, empty=-1.0),
        ],
        strict=strict,
    )
    found: dict[str, dict[int, Mode]] = {}
    missing: dict[str, set[int]] = {}
    for k, name in enumerate(table["app"]):
        row = f"row {table['#'][k]}, column"
        count = table["gpu_count"][k]
        for column in ("runtime_s", "avg_power_per_gpu_w"):
            if table[column][k] == PREDICTED:
                missing.setdefault(name, set()).add(count)
            elif table[column][k] <= 0:
                raise InputError(
                    str(path), f"{row} {column}", table[column][k], "a positive number"
                )
        if count in found.setdefault(name, {}):
            shown = NoQuote(f"{count} GPUs of {name} twice")
            raise InputError(str(path), f"{row} gpu_count", shown, "one row per application and it")
        signal = table["dram_util_sum"][k]
        found[name][count] = Mode(
            count,
            table["runtime_s"][k],
            table["avg_power_per_gpu_w"][k],
            None if signal < 0 else signal,
        )
    if not found:
        raise InputError(str(path), "", NoQuote("no rows"), "at least one profile")
    apps = [Application(name, tuple(modes.values())) for name, modes in found.items()]
    if not fits:
        return apps
    fit = dram_fit(fits[0])
    return [filled(app, missing.get(app.name, set()), fit, fit.source) for app in apps]


def _queue(
    path: str | os.PathLike[str], applications: list[Application]
) -> tuple[list[int], list[float]]:
    """Return the application and the release of each job, in file order."""
    table = read_table(
        path,
        [
            Column("app"),
            Column("count", "integer", minimum=0),
            Column("release_s", "time", required=False, empty=0.0),
        ],
    )
    index = {app.name: k for k, app in enumerate(applications)}
    queue: list[int] = []
    releases: list[float] = []
    rows = zip(table["app"], table["count"], table["release_s"], table["#"], strict=True)
    for name, count, release, row in rows:
        if name not in index:
            raise InputError(str(path), f"row {row}, column app", name, one_of(index))
        if len(queue) + count > MOST_JOBS:
            raise InputError(
                str(path), f"row {row}, column count", count, f"at most {MOST_JOBS} jobs in all"
            )
        queue += [index[name]] * count
        releases += [release] * count
    if not queue:
        raise InputError(str(path), "", NoQuote("no jobs"), "at least one job")
    return queue, releases
