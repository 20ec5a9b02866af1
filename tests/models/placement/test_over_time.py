"""Placement over time: tasks that leave, the horizon, and what its referee says of both."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import placement_problems, tasks_of, timed_placement_problems

from optgap.models.errors import InputError
from optgap.models.jsonio import Fields
from optgap.models.placement import (
    Cluster,
    OverTime,
    PlacementObjective,
    PlacementProblem,
    PlacementSolution,
    TargetWorkload,
)
from optgap.models.placement.timeline import timeline

CLUSTER = Cluster.of(["a", "b"], [32_000, 16_000], [1000, 500], [2, 0], ["G2", ""])
WORKLOAD = TargetWorkload.of(
    [1000, 8000, 4000], [500, 1000, 0], [1, 2, 0], ["", "T4", ""], [0.5, 0.3, 0.2]
)
IDLE_W = 2 * 30.0 + 15.0 + 15.0


def problem(
    *times: tuple[float, float],
    horizon_s: float = math.nan,
    goal: str = "energy",
    milli: int = 1000,
) -> PlacementProblem:
    """One task of a GPU for each submission and duration."""
    submit_s, duration_s = zip(*times, strict=True)
    rows = [(1000, 10, 1, milli, "")] * len(times)
    tasks = tasks_of(rows, submit_s=submit_s, duration_s=duration_s)
    wanted: Any = PlacementObjective(goal)  # type: ignore[arg-type]
    rules = OverTime(horizon_s=horizon_s)
    return PlacementProblem.of(CLUSTER, tasks, WORKLOAD, objective=wanted, over_time=rules)


def solution(*places: tuple[int, int, float]) -> PlacementSolution:
    """(node, GPU, start) of each task."""
    node, gpu, start = zip(*places, strict=True)
    return PlacementSolution.of_arrays(
        np.array(node), np.where(np.array(node) >= 0, 1 << np.array(gpu), 0), np.array(start)
    )


def broken(made: PlacementProblem, *places: tuple[int, int, float]) -> list[str]:
    return [violation.constraint for violation in made.check(solution(*places))]


# -- the model ---------------------------------------------------------------------------


@given(placement_problems())
def test_the_file_of_a_problem_without_times_has_none(made: PlacementProblem) -> None:
    document = made.to_json()
    assert "over_time" not in document
    assert not {"submit_s", "duration_s"} & set(document["tasks"])
    assert made.moved(5.0) is made


def test_tasks_come_in_order_of_submission() -> None:
    made = problem((3.0, 1.0), (1.0, 5.0), (1.0, 2.0))
    assert made.tasks.names == ("task-1", "task-2", "task-0")
    assert (made.epoch_s, made.over_time.horizon_s) == (1.0, 5.0)  # type: ignore[union-attr]


def test_what_has_not_ended_at_the_horizon_is_cut_there() -> None:
    made = problem((0.0, math.inf), (1.0, 1.0), (2.0, 9.0), horizon_s=5.0)
    assert made.lasting_s.tolist() == [5.0, 1.0, 3.0]
    assert made.subset([1]).lasting_s.tolist() == [1.0]
    assert made.moved(1.7e9).lasting_s == pytest.approx([5.0, 1.0, 3.0], abs=1e-6)


@pytest.mark.parametrize(
    ("field", "times", "settings"),
    [
        ("tasks.submit_s[1]", [(0.0, 1.0), (7.0, 1.0)], {"horizon_s": 7.0}),
        ("tasks.submit_s[0]", [(math.nan, 1.0)], {}),
        ("tasks.duration_s[0]", [(0.0, 0.0)], {}),
        ("over_time.horizon_s", [(0.0, math.inf)], {}),
        ("over_time.horizon_s", [(0.0, 1.0)], {"horizon_s": -1.0}),
        ("objective.goal", [(0.0, 1.0)], {"goal": "power"}),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    field: str, times: list[tuple[float, float]], settings: dict[str, str]
) -> None:
    with pytest.raises(InputError) as refused:
        problem(*times, **settings)  # type: ignore[arg-type]
    assert refused.value.where == f"field {field}"


def test_goals_over_time_want_times() -> None:
    still = replace(problem((0.0, 1.0)).tasks, duration_s=np.full(1, math.inf))
    with pytest.raises(InputError, match=r"objective\.goal"):
        PlacementProblem.of(CLUSTER, still, objective=PlacementObjective("energy"))


# -- the referee -------------------------------------------------------------------------


def test_rejected_tasks_count_in_what_was_asked() -> None:
    made = problem((0.0, 10.0), (0.0, 30.0), goal="mean_accepted_gpu")
    found = made.evaluate(solution((0, 0, 0.0), (-1, 0, 0.0)))
    assert found.objective == pytest.approx(1000 * 10 / 30)
    assert found.metrics["grar_time"] == pytest.approx(0.25)
    assert found.metrics["grar"] == 0.5
    assert not made.serves_all(solution((0, 0, 0.0), (-1, 0, 0.0)))


@pytest.mark.parametrize(
    ("part", "fields", "said"),
    [
        ("over_time", {"sleep_after_s": 600.0}, "over_time.sleep_after_s: found 600.*nodes stay"),
        ("over_time", {"queue": "fifo"}, "over_time.queue: found 'fifo'.*tasks no longer wait"),
        ("tasks", {"nodes": [2]}, r"tasks.nodes\[0\]: found 2, expected 1: a placement has one"),
    ],
)
def test_a_file_with_what_has_left_is_refused_in_one_line(
    part: str, fields: dict[str, Any], said: str
) -> None:
    document = problem((0, 10)).to_json()
    document[part] |= fields
    with pytest.raises(InputError, match=said):
        PlacementProblem.from_json(Fields(document, "p.json"))
    document[part] |= {"nodes": [1]} if part == "tasks" else {"queue": "reject"}
    document["over_time"].pop("sleep_after_s", None)
    assert len(PlacementProblem.from_json(Fields(document, "p.json")).tasks) == 1


def test_when_tasks_may_start() -> None:
    made = problem((0.0, 10.0))
    for start in (1.0, -1.0, 1e13, math.inf, math.nan):
        assert broken(made, (0, 0, start)) == ["start at submission"]
    assert [v.constraint for v in made.check(PlacementSolution.of([(0, [0])]))] == [
        "a start for every task placed"
    ]


@st.composite
def any_schedules(draw: st.DrawFn) -> tuple[PlacementProblem, PlacementSolution]:
    """A problem over time and placements that need not fit."""
    made = draw(timed_placement_problems())
    node, mask, start = [], [], []
    for k in range(len(made.tasks)):
        n = draw(st.integers(-1, len(made.cluster) - 1))
        gpus, count = int(made.cluster.gpus[n]), int(made.tasks.num_gpu[k])
        chosen = draw(st.permutations(range(gpus)))[:count] if n >= 0 and gpus >= count else None
        node.append(n if chosen is not None else -1)
        mask.append(sum(1 << g for g in chosen or ()))
        start.append(float(made.tasks.submit_s[k]))
    return made, PlacementSolution.of_arrays(np.array(node), np.array(mask), np.array(start))


def moments(
    made: PlacementProblem, placed: PlacementSolution
) -> list[tuple[float, PlacementProblem, PlacementSolution]]:
    """How long what runs stays the same, with it as a problem and solution without times."""
    end = placed.start_s + made.lasting_s
    there = placed.node >= 0
    times = sorted({*placed.start_s[there].tolist(), *end[there].tolist()})
    found = []
    for now, then in pairwise(times):
        middle = (now + then) / 2
        on = np.flatnonzero(there & (placed.start_s < middle) & (middle < end))
        still = replace(
            made,
            tasks=replace(
                made.tasks.take(on.tolist() or [0]),
                submit_s=np.zeros(max(1, len(on))),
                duration_s=np.full(max(1, len(on)), math.inf),
            ),
            objective=made.objective.at_a_moment,
            over_time=None,
        )
        held = (
            PlacementSolution.of_arrays(placed.node[on], placed.gpu_mask[on])
            if on.size
            else PlacementSolution.of([None])
        )
        found.append((then - now, still, held))
    return found


@given(any_schedules())
def test_over_time_is_the_sum_of_its_moments(
    drawn: tuple[PlacementProblem, PlacementSolution],
) -> None:
    made, placed = drawn
    parts = moments(made, placed)
    assert made.over_time is not None
    for violation in made.check(placed):
        assert "start" not in violation.constraint
    assert (not made.check(placed)) == all(not still.check(held) for _, still, held in parts)
    if made.check(placed):
        return
    empty = replace(made, over_time=None).evaluate(PlacementSolution.of([None] * len(made.tasks)))
    found = made.evaluate(placed)
    horizon = made.over_time.horizon_s
    for ours, theirs in (
        ("mean_power_w", "power_w"),
        ("mean_frag_gpu_milli", "frag_gpu_milli"),
        ("mean_used_gpu_milli", "used_gpu_milli"),
    ):
        rest = empty.metrics[theirs]
        beyond = sum(t * (s.evaluate(h).metrics[theirs] - rest) for t, s, h in parts)
        assert found.metrics[ours] == pytest.approx(rest + beyond / horizon, rel=1e-6, abs=1e-3)
    line = timeline(made, placed)
    spans = np.append(np.diff(line.time_s), 0.0)
    energy = empty.metrics["power_w"] * horizon
    energy += float((spans * (line.power_w - empty.metrics["power_w"])).sum())
    assert found.metrics["energy_j"] == pytest.approx(energy, rel=1e-6)
    assert line.running[-1] == line.used_gpu_milli[-1] == 0
