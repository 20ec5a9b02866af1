"""Small consolidation problems: awkward memory, series that collide, servers that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from optgap.models.consolidation import ConsolidationProblem, GpuKind, PowerLine, Server, Task
from optgap.models.consolidation.problem import Capacity, Rules

CAPACITIES: tuple[Capacity, ...] = ("none", "mean", "slot", "peak")
MEMORY = (0.0, 1.0, 4.0, 5.5, 8.0, 10 / 3, 16.0)
KAPPAS = (1.0, 1.1, 1.2, 1.5, 20.0)
UTILS = (0.0, 10.0, 100 / 3, 50.0, 60.0, 100.0)


@st.composite
def tasks(draw: st.DrawFn, name: str, widest: int, lines: bool) -> Task:
    """One task; with `lines`, perhaps a power line and an exponent of its own."""
    samples = draw(st.integers(1, 3))
    own = draw(st.sampled_from((None, None, PowerLine(40.0, 0.05), PowerLine(5.0, 0.12))))
    return Task(
        name,
        draw(st.sampled_from(MEMORY)),
        draw(st.sampled_from((1, 1, 1, 2, 3)).filter(lambda v: v <= widest)),
        draw(st.sampled_from(KAPPAS)),
        submit_s=draw(st.sampled_from((0.0, 0.0, 30.0, 90.0))),
        duration_s=draw(st.sampled_from((0.0, 45.0, 200.0))),
        util_percent=np.array([draw(st.sampled_from(UTILS)) for _ in range(samples)]),
        beta=draw(st.sampled_from((None, None, 0.4, 1.1))) if lines else None,
        power=own if lines else None,
    )


@st.composite
def consolidation_problems(
    draw: st.DrawFn,
    *,
    goal: str = "power",
    capacities: Sequence[Capacity] = CAPACITIES,
    max_tasks: int = 4,
    lines: bool = True,
    even: bool | None = None,
) -> ConsolidationProblem:
    """A few tasks on a small cluster; with `even`, of one kind of GPU in equal servers.

    Over time GPUs perhaps take a while to wake.
    """
    even = draw(st.booleans()) if even is None else even
    steps = draw(st.sampled_from(((), (), (300.0, 900.0, 1350.0))))
    floor = steps[0] if steps else 135.0
    kinds = [GpuKind(memory_gb=16.0, frequencies_mhz=steps, f_min_mhz=floor)]
    width = draw(st.integers(1, 3))
    static = draw(st.sampled_from((0.0, 30.0, 150.0)))
    servers = [Server((0,) * width, static)] * draw(st.integers(1, 3))
    if not even:
        kinds.append(GpuKind("other", 24.0, PowerLine(50.0, 0.02), beta=0.5))
        servers.append(Server((1, 0), draw(st.sampled_from((0.0, 90.0)))))
    widest = max(len(server.gpus) for server in servers)
    count = draw(st.integers(1, max_tasks))
    own = lines and draw(st.booleans())
    return ConsolidationProblem.of(
        kinds,
        servers,
        [draw(tasks(f"t{k}", widest, own)) for k in range(count)],
        goal=goal,  # type: ignore[arg-type]
        rules=Rules(
            draw(st.sampled_from(list(capacities))),
            gang=draw(st.sampled_from(("server", "free"))),
            contention=draw(st.sampled_from((1.0, 0.6))),
            waiting=draw(st.booleans()),
        ),
        name="random",
        origin="synthetic",
    )


EVEN = GpuKind(
    memory_gb=10.0, power=PowerLine(10.0, 0.1), f_min_mhz=500.0, f_max_mhz=1000.0, beta=1.0
)
"""Stretch is 1000/f, power 10 W + 0.1 W per MHz: κ = 1 costs 110 W, 1.25 90 W and 2 60 W."""
STEPS = [
    Task("a", 6.0, kappa=1.0), Task("b", 6.0, kappa=1.25), Task("c", 6.0, kappa=2.0),
    Task("d", 3.0, kappa=2.0),
]  # fmt: skip
"""The last fits beside any other: three GPUs at 110, 90 and 60 W in two servers."""


def on_even_gpus(
    tasks: list[Task], kinds: Any = (EVEN,), servers: Any = None, **more: Any
) -> ConsolidationProblem:
    """Eight servers of two GPUs and 100 W, unless told."""
    rules = {k: more.pop(k) for k in list(more) if k in Rules.__dataclass_fields__}
    servers = [Server((0, 0), 100.0)] * 8 if servers is None else servers
    return ConsolidationProblem.of(list(kinds), servers, tasks, rules=Rules(**rules), **more)


def micro(**changes: object) -> ConsolidationProblem:
    """t1, t2, t3 of 12, 10 and 6 GB on two servers of two GPUs, 100 W each; by hand."""
    series = ([80, 20, 80, 20], [20, 70, 20, 70], [60, 60, 10, 10])
    rows = zip((12.0, 10.0, 6.0), series, strict=True)
    kind = changes.pop("kind", GpuKind())
    goal = changes.pop("goal", "power")
    return ConsolidationProblem.of(
        [kind],  # type: ignore[list-item]
        [Server((0, 0), 100.0)] * 2,
        [Task(f"t{k + 1}", d, util_percent=np.array(u, float)) for k, (d, u) in enumerate(rows)],
        goal=goal,  # type: ignore[arg-type]
        rules=Rules(**changes),  # type: ignore[arg-type]
        period_s=1.0,
        name="three tasks",
    )
