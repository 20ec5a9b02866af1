"""Methods of placement whose answers are known, and broken ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from slow_placement import exhaustive

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.result import Outcome, Status
from optgap.models.spec import Entry, entries

Choice = tuple[int, tuple[int, ...]] | None


def choices(problem: PlacementProblem, k: int) -> list[Choice]:
    """Everything that may be done with task `k`, were it alone; last of all: nothing."""
    task = problem.tasks.task_class(k)
    found: list[Choice] = []
    for n in range(len(problem.cluster)):
        for gpus in combinations(range(int(problem.cluster.gpus[n])), task.num_gpu):
            placements: list[Choice] = [None] * len(problem.tasks)
            placements[k] = (n, gpus)
            if not problem.check(PlacementSolution.of(placements)):
                found.append((n, gpus))
    return [*found, None]


def optimum(problem: PlacementProblem) -> tuple[float, PlacementSolution] | None:
    """The best objective and a solution that has it; None when there is none."""
    best = exhaustive(problem)
    return None if best.claimed is None else (best.claimed, best.solution)


def loose(problem: PlacementProblem, *, limits: Limits, seed: int, scale: float = 0.9) -> Outcome:
    """A bound that is `scale` times the optimum."""
    best = exhaustive(problem).claimed
    if best is None:
        return Outcome(None, Status.NO_SOLUTION)
    return Outcome(None, Status.BOUND_ONLY, bound=scale * best, bound_by="a share")


def guess(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """The optimum without its proof."""
    return Outcome(exhaustive(problem).solution, Status.FEASIBLE)


def nothing(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """A method that proves nothing."""
    return Outcome(None, Status.NO_SOLUTION)


def partial(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """A solution that places nothing."""
    return Outcome(PlacementSolution.of([None] * len(problem.tasks)), Status.FEASIBLE)


def liar(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """A method that says there is no solution."""
    return Outcome(None, Status.INFEASIBLE)


def broken(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """A method that raises."""
    raise ZeroDivisionError("on purpose")


def _functions() -> dict[str, Callable[..., Outcome]]:
    methods = loose, guess, partial, nothing, liar, broken
    others = {"enumerate": exhaustive, "narrow": loose, "found": exhaustive, "none": nothing}
    return {**{method.__name__: method for method in methods}, **others}


METHODS = entries(
    _functions,
    Entry("enumerate", "every placement", kind="exact"),
    Entry("loose", "a share", kind="bound", params={"scale": 0.9}),
    Entry("narrow", "", kind="bound", goals=("fragmentation",)),
    Entry("found", "", kind="offline"),
    Entry("guess", "", kind="exact"),
    Entry("partial", "", kind="offline"),
    Entry("none", "", kind="bound"),
    Entry("liar", "", kind="exact"),
    Entry("broken", "", kind="exact"),
)
