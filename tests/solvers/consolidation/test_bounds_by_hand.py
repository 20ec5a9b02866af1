"""Bounds worked out by hand: one that became weaker or stronger fails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from strategies_consolidation import STEPS
from strategies_consolidation import on_even_gpus as problem

from optgap.models.consolidation import ConsolidationProblem, GpuKind, PowerLine, Server, Task
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.consolidation.bounding import bound_area, bound_columns, column_bound
from optgap.solvers.consolidation.bounds import (
    closed_form_w,
    cost_levels,
    gpus_needed,
    least_static_w,
    level_counts,
    server_limit,
)
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.over_time.bounding import first_prices
from optgap.solvers.consolidation.over_time.master import priced
from optgap.solvers.consolidation.over_time.relaxation import relaxation


def sizes(*gigabytes: float, name: str = "t", **more: Any) -> list[Task]:
    return [Task(f"{name}{k}", gb, **more) for k, gb in enumerate(gigabytes)]


def everything(instance: Instance) -> np.ndarray:
    return np.arange(instance.tasks)


# -- how many GPUs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gigabytes", "gpus"),
    [
        ((1.0,), 1),
        ((4.0, 4.0, 2.0), 1),
        ((4.0, 4.0, 2.000000001), 2),  # the sum
        ((6.0, 6.0, 6.0), 3),  # no two together
        ((5.0, 5.0, 5.0, 5.0), 2),
        ((5.000000001, 5.000000001), 2),
        ((6.0, 6.0, 4.0, 4.0), 2),
        ((6.0, 6.0, 4.0, 4.0, 4.0), 3),
        ((7.0, 7.0, 4.0, 4.0), 3),  # above 10 − 4 alone, and the fours beside one another
        ((7.0, 6.0, 4.0, 4.0, 4.0), 3),  # of those a four fits beside the six, two together
        ((7.0, 7.0, 4.0, 4.0, 4.0), 4),
        ((9.0, 9.0, 2.0, 2.0, 2.0, 2.0), 3),
        ((9.0, 9.0, 3.0, 3.0, 3.0, 3.0), 4),
        ((8.0, 3.0, 3.0, 3.0, 3.0), 3),
        ((9.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0), 2),  # what is below α fits beside the nine
        ((9.0, 6.0, 2.5, 2.5), 3),  # above 10 − 2.5 alone, 4 GB beside the six
    ],
)
def test_large_items_and_sums_say_how_many_gpus(gigabytes: tuple[float, ...], gpus: int) -> None:
    instance = instance_of(problem(sizes(*gigabytes)))
    assert gpus_needed(instance, everything(instance)) == gpus
    assert gpus_needed(instance, everything(instance)[:0]) == 0


def test_tasks_of_several_gpus_count_on_each() -> None:
    instance = instance_of(problem([*sizes(6.0, 6.0, gpus=2), *sizes(3.0, name="s")]))
    assert gpus_needed(instance, everything(instance)) == 4
    assert gpus_needed(instance, np.array([0, 2])) == 2
    beside = instance_of(problem([*sizes(7.0, 7.0, gpus=2), *sizes(*[3.0] * 5, name="s")]))
    assert gpus_needed(beside, everything(beside)) == 5
    wide = instance_of(problem([*sizes(6.0, gpus=2), *sizes(*[3.0] * 3, name="s", gpus=2)]))
    assert gpus_needed(wide, everything(wide)) == 3
    alone = instance_of(problem(sizes(0.0, gpus=2)))
    assert gpus_needed(alone, everything(alone)) == 2
    filled = instance_of(problem([*sizes(7.0, 7.0, gpus=2), *sizes(4.0, 4.0, 4.0, name="s")]))
    assert gpus_needed(filled, everything(filled)) == 6


def test_every_row_of_capacities_counts() -> None:
    busy = [Task(f"t{k}", 1.0, util_percent=np.array([60.0])) for k in range(4)]
    instance = instance_of(problem(busy, capacity="mean"))
    assert gpus_needed(instance, everything(instance)) == 4
    assert gpus_needed(instance_of(problem(busy)), np.arange(4)) == 1


TWOS = sizes(*[4.0] * 6, *[3.5] * 6, kappa=2.0)
"""45 GB, but two a GPU: six of them, in three servers."""
ODD = [Server((0, 0), 75.0), Server((0,), 50.0)]


@pytest.mark.parametrize(
    ("made", "watts"),
    [
        # each GPU with its dearest resident, in two servers
        (problem([*sizes(6.0, kappa=1.0), *sizes(6.0, 6.0, name="s", kappa=2.0)]), 230 + 200),
        # of three tasks of 4 GB each pair fits: three halves of a GPU, but two in one server
        (problem(sizes(4.0, 4.0, 4.0, kappa=2.0)), 2 * 60 + 100),
        (problem(TWOS), 6 * 60 + 300),
        # four of 6 GB, each beside one of eight of 3 GB; the other four are 4/3 of a GPU
        (
            problem(
                sizes(*[6.0] * 4, *[3.0] * 8, kappa=2.0), servers=[Server((0,) * 8, 100.0)] * 2
            ),
            60 * 16 / 3 + 100,
        ),
        # with servers of two sizes each GPU pays the least share of one
        (
            problem(sizes(4.0, 4.0, 4.0, kappa=2.0), servers=ODD),
            1.5 * 97.5,
        ),
        # 60 and 60 % do not go together, nor both of 40 and 30 % beside one
        (
            problem(
                [
                    Task(f"t{k}", 1.0, kappa=2.0, util_percent=np.array([float(u)]))
                    for k, u in enumerate([60, 60, 40, 30])
                ],
                capacity="mean",
            ),
            2 * 60 + 100,
        ),
    ],
)
def test_the_column_bound_is_what_contents_cost(made: ConsolidationProblem, watts: float) -> None:
    found = column_bound(instance_of(made), [], Limits())
    assert found == pytest.approx(watts, rel=1e-6)
    assert found <= watts


# -- levels --------------------------------------------------------------------------------


def test_levels_are_the_costs_of_gpus_in_millionths_of_a_watt() -> None:
    own = cost_levels(instance_of(problem(STEPS)))
    assert own.quanta == pytest.approx((60_000_000, 90_000_000, 110_000_000), abs=1)
    assert own.of.tolist() == [2, 1, 0, 0]
    assert own.exact
    assert own.above(1).tolist() == [0, 1]
    merged = cost_levels(instance_of(problem(STEPS)), most=2)
    assert not merged.exact
    assert merged.quanta[0] == pytest.approx(60_000_000, abs=1)
    assert len(merged.quanta) == 2
    for k, level in enumerate(merged.of.tolist()):
        assert merged.quanta[level] <= own.quanta[own.of[k]]
    assert cost_levels(instance_of(problem(STEPS)), most=3).exact


def test_gpus_are_counted_level_by_level() -> None:
    instance = instance_of(problem(STEPS))
    own = cost_levels(instance)
    assert level_counts(instance, own) == (3, 2, 1)
    # many small ones below a wide one: no fewer of a lower level than of a higher
    wide = instance_of(problem([Task("w", 1.0, gpus=2, kappa=1.0), Task("s", 1.0, kappa=2.0)]))
    assert level_counts(wide, cost_levels(wide)) == (2, 2)
    closed = closed_form_w(instance, own, (3, 2, 1))
    assert closed == pytest.approx(110 + 90 + 60 + 200, rel=1e-7)
    assert closed <= 460
    assert closed_form_w(instance, own, (4, 2, 1)) == pytest.approx(520, rel=1e-7)
    assert closed_form_w(instance, own, (5, 2, 1)) == pytest.approx(680, rel=1e-7)
    outcome = bound_area(problem(STEPS), limits=Limits(), seed=0)
    assert outcome.bound == pytest.approx(460, rel=1e-7)
    assert outcome.bound <= 460
    assert outcome.termination is Termination.COMPLETED


def test_the_better_of_counts_and_columns_is_proven() -> None:
    """Two of 4 or 3.5 GB a GPU; and no two of 6 GB, nor a third beside two of 4 GB."""
    small, large = sizes(*[4.0] * 3, kappa=1.0), sizes(*[6.0] * 3, name="s", kappa=2.0)
    free = [Server((0, 0), 0.0)] * 8
    for made, watts, by in (
        (problem(TWOS), 660, "linear program over contents"),
        (problem([*small, *large], servers=free), 330, "linear program over contents"),
        (problem(sizes(4.0, 4.0, 4.0, kappa=2.0), servers=ODD), 195, "GPUs counted by level"),
    ):
        outcome = bound_columns(made, limits=Limits(), seed=0)
        assert outcome.bound == pytest.approx(watts, rel=1e-6)
        assert outcome.bound <= watts
        assert str(outcome.bound_by).startswith(by)


def test_the_least_static_power_is_of_the_cheapest_servers() -> None:
    even = instance_of(problem(sizes(1.0)))
    assert [least_static_w(even, n) for n in (0, 1, 2, 3, 4, 5)] == [0, 100, 100, 200, 200, 300]
    odd = instance_of(problem(sizes(1.0), servers=[Server((0, 0), 100.0), Server((0,) * 4, 120.0)]))
    assert [least_static_w(odd, n) for n in (0, 1, 4, 5, 6)] == pytest.approx(
        [0, 30, 120, 170, 220]
    )


def test_no_more_servers_are_looked_at_than_a_placement_could_pay() -> None:
    instance = instance_of(problem(sizes(1.0, kappa=2.0)))
    assert server_limit(instance, 360.0, math.inf, 4) == 8
    assert server_limit(instance, 360.0, 459.9, 4) == 2
    assert server_limit(instance, 360.0, 460.0, 4) == 3
    assert server_limit(instance, 360.0, 5000.0, 4) == 8
    assert server_limit(instance, 360.0, 300.0, 4) == 2
    free = instance_of(problem(sizes(1.0, kappa=2.0), servers=[Server((0, 0), 0.0)] * 8))
    assert server_limit(free, 100.0, 179.0, 2) == 3
    assert server_limit(free, 100.0, 1e4, 2) == 8
    assert server_limit(free, 100.0, 59.0, 6) == 3


# -- energy --------------------------------------------------------------------------------

ROOT = GpuKind(
    memory_gb=10.0, power=PowerLine(10.0, 0.04), f_min_mhz=100.0, f_max_mhz=1000.0, beta=0.5
)


def energy(tasks: list[Task], **more: Any) -> ConsolidationProblem:
    servers = more.pop("servers", [Server((0, 0), 0.0)] * 2)
    return problem(tasks, servers=servers, goal="energy", **{"kinds": (ROOT,), **more})


def first_j(made: ConsolidationProblem) -> list[float]:
    """Bounds of the first prices: by utilisation (contention from 1 on), by memory, by counts."""
    relaxed = relaxation(made, 40)
    return [priced(relaxed, prices.feasible(relaxed))[0] for prices in first_prices(relaxed)]


@pytest.mark.parametrize(
    ("own", "least"),
    [
        ({}, 20 / 0.5),  # P/(f/1000)^½ at 250 MHz
        ({"kappa": 1.25}, (10 + 25.6) / 0.8),  # from 640 MHz on
        ({"beta": 2.0, "power": PowerLine(30.0, 0.01)}, 40),  # at the highest clock
        ({"beta": 0.4}, (10 + 0.04 * 500 / 3) / (1 / 6) ** 0.4),
        ({"power": PowerLine(20.0, 0.0)}, 20),
    ],
)
def test_no_second_of_progress_is_priced_above_the_least_that_it_takes(
    own: dict[str, Any], least: float
) -> None:
    task = Task("a", 10.0, **{"kappa": 20.0, **own}, duration_s=100.0)
    assert 0.85 * least <= first_j(energy([task]))[1] / 100 <= least * (1 + 1e-9)


def test_work_is_shared_by_memory_or_by_what_is_asked() -> None:
    """Samples of 10 s: 20, 60 and, for the 15 s that are left of 35, 90 % of a GPU at 50 W."""
    series = np.array([20.0, 60.0, 90.0])
    task = Task("a", 2.0, gpus=2, kappa=1.0, duration_s=35.0, util_percent=series)
    by_memory, by_asking = 2 * 50 * 35 * 0.2, 2 * 50 * (10 * 0.2 + 10 * 0.6 + 15 * 0.9)
    assert first_j(energy([task], period_s=10.0))[:2] == pytest.approx([by_asking, by_memory])
    assert first_j(energy([task], period_s=10.0, contention=0.9))[0] == pytest.approx(by_memory)
    less = Task("b", 1.0, kappa=1.0, duration_s=14.0, util_percent=series)
    assert first_j(energy([less], period_s=10.0))[0] == pytest.approx(50 * (2 + 2.4))
    both = energy([task, less], period_s=10.0, contention=0.9)
    assert first_j(both)[0] == pytest.approx(by_memory + 50 * 14 * 0.1)
    full = Task("a", 10.0, kappa=1.0, duration_s=100.0)
    served = energy([full], servers=[Server((0, 0), 30.0), Server((0,) * 4, 40.0)])
    assert first_j(served)[1] == pytest.approx(100 * 60)  # with a server's share
    cold = GpuKind("cold", 10.0, PowerLine(5.0, 0.02), f_min_mhz=1000.0, f_max_mhz=1000.0)
    other = energy([full], kinds=(ROOT, cold), servers=[Server((0, 1))])
    assert first_j(other)[1] == pytest.approx(100 * 25)


def test_what_is_there_for_certain_needs_power() -> None:
    """50 W at κ = 1, and 5 W a GPU of its server: two GPUs from 10 to 40 s, three for the gang."""
    rows = [(6.0, 1, 0.0, 40.0), (6.0, 1, 10.0, 50.0), (3.0, 3, 70.0, 10.0)]
    tasks = [Task(f"t{k}", gb, gpus=v, kappa=1.0, submit_s=at, duration_s=lasts)
             for k, (gb, v, at, lasts) in enumerate(rows)]  # fmt: skip
    for waits, joules in ((False, (10 + 2 * 30 + 20 + 3 * 10) * 55), (True, 0.0)):
        made = energy(tasks, servers=[Server((0,) * 4, 20.0)] * 2, waiting=waits)
        assert first_j(made)[-1] == pytest.approx(joules)
