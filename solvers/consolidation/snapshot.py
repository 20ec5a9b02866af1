"""The optimum at one event: tasks that are present, some of which run already."""

from __future__ import annotations

from collections.abc import Sequence

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.consolidation.exact import Exact, exact
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.primal.construction import complete


def solve(
    problem: ConsolidationProblem,
    stay: Sequence[tuple[int, ...] | None] | None,
    limits: Limits,
    seed: int,
) -> Outcome:
    """The placement of least power; what runs may move, and costs nothing when it does.

    Parameters
    ----------
    stay: the GPUs of each task where it runs, None for a newcomer: where the search begins. Without
        it, `exact` with all its threads.
    """
    if stay is None:
        return exact(problem, limits=limits, seed=seed)
    instance = instance_of(problem)
    run = Exact(instance, limits, seed, workers=2)
    given = complete(instance, stay)
    if given is not None:
        run.incumbent.offer_flat(given)
    return run.run()
