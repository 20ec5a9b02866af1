"""Every placement of a tiny problem, one after another: the optimum by definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

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


def feasible_solutions(problem: PlacementProblem) -> Iterator[PlacementSolution]:
    """Every solution that the referee accepts, partial ones included."""
    options = [choices(problem, k) for k in range(len(problem.tasks))]
    size = len(options)

    def extend(placements: list[Choice]) -> Iterator[PlacementSolution]:
        k = len(placements)
        solution = PlacementSolution.of([*placements, *([None] * (size - k))])
        if problem.check(solution):
            return
        if k == size:
            yield solution
            return
        for choice in options[k]:
            yield from extend([*placements, choice])

    yield from extend([])


def optimum(problem: PlacementProblem) -> tuple[float, PlacementSolution] | None:
    """The best objective and a solution that has it; None when there is none."""
    minimise = problem.objective.described.sense == "min"
    best: tuple[float, PlacementSolution] | None = None
    for solution in feasible_solutions(problem):
        if minimise and not problem.serves_all(solution):
            continue
        value = problem.evaluate(solution).objective
        if best is None or (value < best[0] if minimise else value > best[0]):
            best = value, solution
    return best


# -- the same, and broken things, as methods ---------------------------------------------


def enumerate_all(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """An exact method."""
    best = optimum(problem)
    if best is None:
        return Outcome(None, Status.INFEASIBLE)
    return Outcome(best[1], Status.OPTIMAL, claimed=best[0], bound=best[0], bound_by="enumeration")


def loose(problem: PlacementProblem, *, limits: Limits, seed: int, scale: float = 0.9) -> Outcome:
    """A bound that is `scale` times the optimum."""
    best = optimum(problem)
    if best is None:
        return Outcome(None, Status.NO_SOLUTION)
    return Outcome(None, Status.BOUND_ONLY, bound=scale * best[0], bound_by="a share")


def nothing(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """A method that proves nothing."""
    return Outcome(None, Status.NO_SOLUTION)


def guess(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """The optimum without its proof."""
    best = optimum(problem)
    return Outcome(None if best is None else best[1], Status.FEASIBLE)


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
    methods = enumerate_all, loose, guess, partial, nothing, liar, broken
    others = {"enumerate": enumerate_all, "narrow": loose, "found": enumerate_all, "none": nothing}
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
