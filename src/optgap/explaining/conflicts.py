"""Search for a smallest group of tasks that cannot all be served.

The group is irreducible: without any one of its tasks the others can be served. There may be other
such groups, and smaller ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from optgap.api import execute, run
from optgap.documents import ProblemLike, as_problem
from optgap.models.errors import InputError, NoQuote, shorten
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.registry import Runnable, family
from optgap.registry import method as find_method
from optgap.render import html_table

MOST = 60
"""Largest number of tasks; the search takes an exact proof for every one of them."""
FITTING = "no capacity alone is short: it is how they fit together"


@dataclass(frozen=True, slots=True, repr=False)
class Conflict:
    """Tasks that cannot all be served together.

    Parameters
    ----------
    tasks
        Numbers of the tasks in the problem, ascending.
    names
        Names of the tasks.
    irreducible
        Whether every proper part was shown to be possible. False if the time ran out before that,
        or there are too many to try, so that some of the tasks may be innocent.
    reason
        What the tasks lack; "" if no capacity alone is short.

    Examples
    --------
    >>> nodes = {"sn": ["n"], "cpu_milli": [64000], "memory_mib": [65536]}
    >>> nodes |= {"gpu": [8], "model": ["T4"]}
    >>> tasks = {"name": ["a", "b"], "num_gpu": 8, "gpu_milli": 1000}
    >>> tasks |= {"cpu_milli": 4000, "memory_mib": 1024}
    >>> optgap.conflict(optgap.problem("placement", nodes=nodes, tasks=tasks)).reason
    'GPUs: 16 GPUs asked for, 8 there, short by 8 GPUs'
    """

    tasks: tuple[int, ...]
    names: tuple[str, ...]
    irreducible: bool
    reason: str = ""

    def __repr__(self) -> str:
        return shorten(NoQuote(f"<Conflict {self}>"), 600)

    def _repr_html_(self) -> str:
        rows = [(str(k), name) for k, name in zip(self.tasks, self.names, strict=True)]
        return html_table(("task", "name"), rows, [str(self)], (0,))

    def __str__(self) -> str:
        return f"{self._who()}; {self.reason or FITTING}"

    def _who(self) -> str:
        if len(self.tasks) > MOST:
            return f"{len(self.tasks):,} tasks cannot all be served"
        shown = ", ".join(f"{k} ({name})" for k, name in zip(self.tasks, self.names, strict=True))
        if len(self.tasks) == 1:
            return f"task {shown} cannot be served even alone"
        if self.irreducible:
            return f"tasks {shown} cannot all be served; without any one of them the others can"
        return f"tasks {shown} cannot all be served; time ran out before the group was smallest"


def conflict(problem: ProblemLike, *, limits: Limits | None = None) -> Conflict | None:
    """Find an irreducible group of tasks that cannot all be served.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    limits
        Limits that can be interrupted and report progress. Default: none.

    Returns
    -------
    Conflict or None
        The tasks, and what they lack; None if there is a solution.

    Raises
    ------
    InputError
        For a family whose tasks cannot be left out, or too many tasks of which a simple reason does
        not single one out.

    Examples
    --------
    >>> import optgap
    >>> print(optgap.conflict(optgap.generate("coscheduling", size=4)))
    None
    """
    return _conflict(as_problem(problem), limits or Limits())


def _conflict(problem: Any, limits: Limits) -> Conflict | None:
    if getattr(problem, "always_possible", ""):
        return None
    if not hasattr(problem, "subset"):
        raise InputError("problem", "", problem.family, "a family whose tasks can be left out")
    hopeless = getattr(problem, "never_fits", ())
    if hopeless:
        return _named(problem, hopeless[:1], True)
    names = problem.subjects
    if len(names) > MOST and problem.why_not(range(len(names))):
        return _named(problem, range(len(names)), False)
    if len(names) > MOST:
        raise InputError("problem", "tasks", len(names), f"at most {MOST} to look for a conflict")
    solver = find_method(family(problem.family), family(problem.family).auto(problem))
    group = list(range(len(names)))
    if _possible(problem, group, solver, limits):
        return None
    if limits.stop:
        return _named(problem, group, False)
    # Deletion: what is not needed for the contradiction goes; what is, stays.
    for task in reversed(range(len(names))):
        rest = [other for other in group if other != task]
        possible = _possible(problem, rest, solver, limits)
        if limits.stop:
            return _named(problem, group, False)
        if not possible:
            group = rest
    return _named(problem, group, True)


def _named(problem: Any, group: Sequence[int], irreducible: bool) -> Conflict:
    chosen = tuple(sorted(int(k) for k in group))
    names = tuple(problem.subjects[k] for k in chosen)
    return Conflict(chosen, names, irreducible, problem.why_not(chosen))


def _possible(problem: Any, group: Sequence[int], solver: Runnable, limits: Limits) -> bool:
    """Tell whether all of `group` can be served; the answer means nothing once limits say stop."""
    if not group:
        return True
    if problem.why_not(group):
        return False
    part = problem.subset(list(group))
    for name in family(problem.family).policies:
        if limits.stop:
            return True
        try:
            found = run(part, name, limits=limits)
        except InputError:  # another objective than it treats
            continue
        if found.solution is not None and part.serves_all(found.solution):
            return True
    result = execute(part, solver, limits, 0)
    if result.status is Status.INFEASIBLE:
        return False
    if result.solution is None and result.termination is Termination.COMPLETED:
        raise InputError(
            solver.label, "", NoQuote("neither a solution nor a proof"), "one of the two"
        )
    return True
