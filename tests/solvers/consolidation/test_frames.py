"""Frames: tasks of several GPUs first, the others poured beside them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optgap.models.consolidation import ConsolidationProblem, GpuKind, PowerLine, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.solvers.consolidation.frames import Frames
from optgap.solvers.consolidation.levels import counted, levels
from optgap.solvers.consolidation.packing import IntArray, Packing, packing
from optgap.solvers.consolidation.search import Search

EVEN = GpuKind(
    memory_gb=10.0, power=PowerLine(10.0, 0.1), f_min_mhz=500.0, f_max_mhz=1000.0, beta=1.0
)


def packed(tasks: list[Task], seats: int, servers: int) -> Packing:
    every = [Server((0,) * seats, 100.0)] * servers
    return packing(ConsolidationProblem.of([EVEN], every, tasks, rules=Rules(gang="server")))


def begun(pack: Packing, vector: tuple[int, ...], seed: int) -> tuple[IntArray, IntArray] | None:
    frames = Frames(pack, levels(pack), np.random.default_rng(seed))
    assert frames.useful
    return frames.begun(vector, Search(pack, 0).start)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 99), size=st.integers(6, 40), more=st.integers(0, 2), draw=st.integers(0, 9)
)
def test_a_frame_keeps_servers_levels_and_memory(
    seed: int, size: int, more: int, draw: int
) -> None:
    pack = packing(mixed(seed=seed, size=size, capacity="none", gang="server"))
    own = levels(pack)
    if not Frames(pack, own, np.random.default_rng(0)).useful:
        return
    vector = tuple(min(pack.gpus, count + more) for count in counted(pack, own, Limits()))
    found = begun(pack, vector, draw)
    if found is None:
        return
    place, cap = found
    assert tuple(int((cap >= q).sum()) for q in range(len(vector))) == vector
    start, width = Search(pack, 0).start, int(pack.server_gpus[0])
    load = np.zeros(len(cap), dtype=np.int64)
    for ell in range(pack.tasks):
        gpus = place[start[ell] : start[ell + 1]]
        assert len(set(gpus.tolist())) == pack.width[ell]
        assert len({int(g) // width for g in gpus}) == 1
        assert (cap[gpus] >= own.of[ell]).all()
        if pack.width[ell] > 1:
            load[gpus] += pack.rows[0, ell]
    assert (load <= pack.limits[0, 0]).all()


def test_the_least_memory_leaves_no_room_but_one() -> None:
    """Two pairs of GPUs hold 6 and 5 of 10 GB, and what is left is filled to the last."""
    tasks = [
        Task("v", 6.0, gpus=2, kappa=1.0), Task("w", 5.0, gpus=2, kappa=2.0),
        Task("a", 4.0, kappa=1.0), Task("b", 4.0, kappa=1.0),
        Task("c", 5.0, kappa=2.0), Task("d", 5.0, kappa=2.0),
    ]  # fmt: skip
    pack = packed(tasks, seats=2, servers=3)
    found = begun(pack, (4, 2), 0)
    assert found is not None
    place, cap = found
    assert sorted(cap.tolist()) == [0, 0, 1, 1]
    load = np.zeros(4)
    for ell, gpu in zip([0, 0, 1, 1, 2, 3, 4, 5], place.tolist(), strict=True):
        load[gpu] += tasks[ell].memory_gb
    assert load.tolist() == [10.0] * 4


@pytest.mark.parametrize("vector", [(3, 2), (4, 1)])
def test_counts_that_tasks_of_several_gpus_exceed_have_no_frame(vector: tuple[int, ...]) -> None:
    tasks = [
        Task("v", 6.0, gpus=2, kappa=1.0), Task("w", 5.0, gpus=2, kappa=2.0),
        Task("a", 1.0, kappa=2.0),
    ]  # fmt: skip
    assert begun(packed(tasks, seats=2, servers=3), vector, 0) is None


def test_what_no_server_can_hold_together_has_no_frame() -> None:
    tasks = [Task("v", 6.0, gpus=2), Task("w", 5.0, gpus=2), Task("a", 1.0)]
    assert begun(packed(tasks, seats=2, servers=3), (2,), 0) is None
