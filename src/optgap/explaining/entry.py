"""``explain``, which runs the policy, every other online policy, and the methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optgap.api import ahead, choose_policy, execute, require_effort, require_time_limit, serves
from optgap.comparing.comparison import ACCEPTED, ALL, CUT, Comparison
from optgap.comparing.gaps import Methods, compare
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem
from optgap.explaining.parts import Ends, Ran
from optgap.explaining.result import Explanation
from optgap.models.errors import InputError, NoQuote, RefereeError
from optgap.models.limits import Limits, silent
from optgap.models.result import Result, Termination
from optgap.progress import in_notebook
from optgap.registry import Runnable, family
from optgap.versions import versions


def explain(
    problem: ProblemLike,
    policy: str | Callable[..., Any],
    methods: Methods = "auto",
    *,
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    **params: Any,
) -> Explanation:
    """Split a policy's gap into parts, and name its costliest decisions.

    There are three parts from the best proven bound to the policy's objective: to the best known
    solution (*unproven*), to the best online policy that ran (the *price of being online*, at most:
    a better online policy may exist), and to the policy itself (the *price of the heuristic*). A
    policy that rejects tasks is explained on those that it accepted.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    policy
        As for `run`.
    methods
        Methods whose bounds and solutions count, as for `compare`.
    time_limit
        Wall-clock seconds after which each method, and each own policy, is cut. Default: none.
    effort
        Factor by which all budgets of work are multiplied. Default 1.
    seed
        Seed of the random number generator. Default 0.
    limits
        Limits that can be interrupted and report progress. Default: show progress in a notebook.
    **params
        The policy's own parameters.

    Returns
    -------
    Explanation
        The parts and the decisions, with `to_frame` and `plot`.

    Raises
    ------
    InputError
        For an unknown name or parameter, or a policy that serves nothing.
    RefereeError
        If a bound is better than a solution that serves everything.

    Examples
    --------
    >>> import optgap
    >>> why = optgap.explain(optgap.generate("coscheduling", size=4), "marble")
    >>> [part.name for part in why.parts]
    ['unproven', 'online', 'heuristic']
    """
    problem = as_problem(problem)
    require_time_limit(time_limit)
    require_effort(effort)
    limits = replace(limits or Limits(progress=in_notebook), effort=effort)
    spec = family(problem.family)
    runnable = choose_policy(problem, policy, params)
    limits.progress(runnable.label, None, None)
    own = execute(problem, runnable, limits.each(time_limit), seed)
    scope, asked = _scope(problem, own)
    done = runnable if scope == ALL else None
    others, trouble = _others(asked, done, limits, time_limit, seed=seed)
    table = compare(
        asked, (), methods, time_limit=time_limit, effort=effort, seed=seed, limits=limits,
        parts=True,
    )  # fmt: skip
    ends = _ends(table, Ran.of(own, runnable), [Ran.of(*pair) for pair in others])
    regrets = tuple(spec.regrets(problem, own.solution))
    objectives = {result.method: result.objective for result, _ in [*others, (own, runnable)]}
    best = ends.best
    notes = []
    if scope == ACCEPTED:
        notes.append(f"{own.method} serves only part of what is asked: all here is about that part")
    notes += [*table.announced(), *table.notes()]
    if any(regret.cost > 0 for regret in regrets):
        notes.append(
            "a decision's cost is what it added there and then, everything before it as the "
            "policy left it: costs do not add up to the price of the heuristic"
        )
    stops = (table.termination, own.termination, *(r.termination for r, _ in others))
    return Explanation(
        family=table.family,
        problem_name=table.problem_name,
        problem_summary=table.problem_summary,
        unit=table.unit,
        sense=table.sense,
        policy=own.method,
        per_event=spec.per_event,
        scope=scope,
        objective=ends.own.objective,
        bound=ends.bound,
        bound_by=ends.bound_by,
        best_known=ends.known,
        known_by=ends.known_by,
        per_event_objective=objectives.get(spec.per_event),
        online_by=best.name if best else None,
        online_objective=best.objective if best else None,
        parts=tuple(ends.parts),
        regrets=regrets,
        notes=(*notes, *trouble),
        seed=own.seed,
        termination=next((t for t in CUT if t in stops), table.termination),
        versions=versions(),
    )


def _others(
    problem: Problem, done: Runnable | None, limits: Limits, time_limit: float | None, *, seed: int
) -> tuple[list[tuple[Result, Runnable]], list[str]]:
    """Run the family's policies except `done`, which has run; return those that serve everything.

    Also return a line about each that failed: another policy's fault is no reason to say nothing.
    """
    found, trouble = [], []
    for name in family(problem.family).policies:
        runnable = choose_policy(problem, name)
        if limits.interrupted.is_set() or runnable == done or not runnable.treats(problem):
            continue
        limits.progress(runnable.label, None, None)
        try:
            result = execute(problem, runnable, limits.each(time_limit, silent), seed)
        except Exception as error:
            trouble.append(f"{runnable.label}: {type(error).__name__}: {error}")
            continue
        if serves(result):
            found.append((result, runnable))
    return found, trouble


def _scope(problem: Problem, own: Result) -> tuple[str, Problem]:
    """Return the scope of the explanation, and the problem that it is about.

    The scope is all that was asked, or the part that the policy served.
    """
    if own.solution is None or own.objective is None:
        found = NoQuote(own.message or str(own.status))
        raise InputError("--policy", own.method, found, "a policy that finds a solution")
    if serves(own):
        return ALL, problem
    if own.termination is not Termination.COMPLETED:
        found = NoQuote(f"a run that was cut ({own.termination})")
        raise InputError("--policy", own.method, found, "a policy that ends")
    try:
        return ACCEPTED, problem.restrict(own.solution)
    except InputError as error:
        found = NoQuote("nothing served")
        raise InputError("--policy", own.method, found, "a policy that serves some") from error


def _ends(table: Comparison, own: Ran, others: list[Ran]) -> Ends:
    """Return the objectives at the ends of the parts.

    Raises
    ------
    RefereeError: when a bound is better than a solution that serves everything.
    """
    online = [own, *others]
    sense, known, by = table.sense, table.best_known, table.known_by or ""
    if known is None:
        known, by = own.objective, own.name
    for one in online:
        if ahead(one.objective, known, sense):
            by = one.name
        known = min(known, one.objective) if sense == "min" else max(known, one.objective)
    bound = table.best_bound
    if bound is not None and ahead(known, bound, sense):
        raise RefereeError(
            f"{table.bound_by} proves {bound!r}, {by} reaches {known!r}: one of them is wrong"
        )
    if bound is not None and (bound > known if sense == "min" else bound < known):
        bound = known  # equal but for rounding
    return Ends(sense, bound, table.bound_by, known, by, own, online)
