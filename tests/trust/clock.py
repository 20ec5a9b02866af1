"""One problem by another clock, and schedules with a fault: on plain documents alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from optgap.models.jsonio import Fields
from optgap.registry import FAMILIES

EPOCH_S = 1.7e9
"""What the clock of a log of 2023 shows."""
FAR_S = 1e9
"""By how much a job of another age comes later than the others."""
SAME_S = 3e-6
"""Times by two clocks: each is rounded to a quarter of a microsecond, and what comes of it, too."""
FAULTS = ("earlier", "longer", "shorter")

ARRIVALS = ("submit_s", "arrival_s", "release_s")
Document = dict[str, Any]
Row = tuple[tuple[Any, ...], tuple[float, ...]]
"""What happens, and when."""


def problem_of(document: Document) -> Any:
    return FAMILIES[document["family"]].models.problem.from_json(Fields(document, "problem"))


def solution_of(document: Document, problem: Any) -> Any:
    return FAMILIES[problem.family].models.solution.from_json(Fields(document, "solution"), problem)


def arrivals(document: Document) -> list[float]:
    """When the jobs of a problem come, s."""
    if document["family"] == "consolidation":
        return [task["submit_s"] for task in document["tasks"]]
    if document["family"] == "coscheduling":
        return list(document.get("release_s") or [0.0] * len(document["jobs"]))
    return list(document["jobs"]["arrival_s" if document["family"] == "queueing" else "submit_s"])


def changed(
    value: Any, change: Callable[[float], float], names: Sequence[str], inside: bool = False
) -> Any:
    """A document with every number below one of these names as `change` has it."""
    if isinstance(value, dict):
        return {k: changed(v, change, names, inside or k in names) for k, v in value.items()}
    if isinstance(value, list):
        return [changed(item, change, names, inside) for item in value]
    return change(value) if inside and isinstance(value, int | float) else value


def later(problem: Any, by_s: float) -> Any:
    """The same problem by a clock that shows so much more."""
    document = problem.to_json()
    if problem.family == "coscheduling":
        document["release_s"] = arrivals(document)
    return problem_of(changed(document, lambda time_s: time_s + by_s, ARRIVALS))


def with_a_far_job(problem: Any) -> Any:
    """The same problem and, long after all the others, the first job once more."""
    document = copy.deepcopy(problem.to_json())
    far = max(arrivals(document)) + FAR_S
    if problem.family == "consolidation":
        document["tasks"].append({**document["tasks"][0], "name": "far", "submit_s": far})
    elif problem.family == "coscheduling":
        document["release_s"] = [*arrivals(document), far]
        document["jobs"].append(document["jobs"][0])
    else:
        queueing = problem.family == "queueing"
        new = {"arrival_s" if queueing else "submit_s": far, "job" if queueing else "name": "far"}
        for name, column in document["jobs"].items():
            column.append(new.get(name, column[0]))
    return problem_of(document)


def rows(problem: Any, solution: Any) -> list[Row]:
    """A schedule as what happens and when, in an order that does not hang on the last digit."""
    document = solution.to_json(problem)
    found: list[Row] = []
    if problem.family == "elastic":
        parts = document["segments"]
        places = [*document["places"], []]
        for k, (start, end) in enumerate(zip(parts["start_s"], parts["end_s"], strict=True)):
            what = tuple(parts[name][k] for name in ("job", "kind", "gpus", "frequency_mhz"))
            if end - start > SAME_S:
                found.append(((*what, tuple(places[parts["place"][k]])), (start, end)))
    elif problem.family == "consolidation":
        for a in document["assignments"]:
            found.append((("task", a["task"], str(a["gpus"])), (a["start_s"],)))
        for c in document["frequencies_mhz"]:
            found.append((("clock", str(c["gpu"]), c["mhz"]), (c["time_s"],)))
    else:
        held = "nodes" if problem.family == "queueing" else "gpu_index"
        for run in document["schedule"]:
            found.append(((str(run["job"]), str(run[held])), (run["start_s"], run["end_s"])))
    return sorted(found, key=lambda row: (str(row[0][:2]), row[1]))


def same_schedule(one: list[Row], other: list[Row], by_s: float) -> None:
    """Raise unless the same happens, so much later."""
    assert [what for what, _ in one] == [what for what, _ in other]
    for (what, before), (_, after) in zip(one, other, strict=True):
        assert after == pytest.approx([time + by_s for time in before], rel=0, abs=SAME_S), what


def parts(problem: Any, solution: Any) -> int:
    """How many runs `faulty` can put a fault into."""
    document = solution.to_json(problem)
    if problem.family == "elastic":
        return len(document["segments"]["job"])
    return len(document["assignments" if problem.family == "consolidation" else "schedule"])


def faulty(problem: Any, solution: Any, fault: str, k: int, by_s: float) -> Any:
    """The schedule with run number k beginning or ending wrong, by so many seconds."""
    document = copy.deepcopy(solution.to_json(problem))
    early = by_s if fault == "earlier" else 0.0
    end = {"earlier": -by_s, "longer": by_s, "shorter": -by_s}[fault]
    if problem.family == "elastic":
        document["segments"]["start_s"][k] -= early
        document["segments"]["end_s"][k] += end
    elif problem.family == "consolidation":
        document["assignments"][k]["start_s"] -= by_s
    else:
        document["schedule"][k]["start_s"] -= early
        document["schedule"][k]["end_s"] += end
    return solution_of(document, problem)


def broken(problem: Any, solution: Any) -> list[str]:
    """The constraints that a schedule breaks, at one time or several."""
    return sorted({violation.constraint for violation in problem.check(solution)})
