"""``explain``: runs the policy, the online policies beside it, and whoever may know better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from optgap.api import (
    ahead,
    choose_policy,
    execute,
    require_effort,
    require_time_limit,
    serves,
)
from optgap.comparing.comparison import ACCEPTED, ALL, Comparison
from optgap.comparing.gaps import Methods, Policies, compare, policy_names
from optgap.comparing.unfinished import CUT
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem, as_solution
from optgap.explaining.logged import logged_result
from optgap.explaining.parts import Ends, Ran, per_event_note
from optgap.explaining.result import Explanation
from optgap.models.errors import InputError, NoQuote, RefereeError
from optgap.models.limits import Limits, Progress, silent
from optgap.models.result import Result, Termination, Violation
from optgap.models.shown import counted
from optgap.progress import in_notebook
from optgap.registry import Runnable, family
from optgap.versions import versions


def explain(
    problem: ProblemLike,
    policy: str | Callable[..., Any] | None = None,
    methods: Methods = "auto",
    *,
    logged: Any = None,
    beside: Policies = "all",
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    progress: Progress = in_notebook,
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
        As for `run`. None for what is `logged`.
    methods
        Methods whose bounds and solutions count, as for `compare`.
    logged
        What somebody did with the problem, explained in place of a policy: a solution, or the path
        of a file with one. It may break constraints, but not those of a queue; a note says so.
    beside
        Online policies that also run. ``()`` for the per-event optimum alone. Default ``all``.
    time_limit
        Wall-clock seconds after which each method, and each own policy, is cut. Default: none.
    effort
        Factor by which all budgets of work are multiplied. Default 1.
    seed
        Seed of the random number generator. Default 0.
    limits
        Limits that can be interrupted and report progress.
    progress
        Function that is told the phase, the incumbent and the bound. Default: none.
    **params
        The policy's own parameters.

    Returns
    -------
    Explanation
        The parts and the decisions, with `to_frame` and `plot`.

    Raises
    ------
    InputError
        For an unknown name or parameter, a policy that serves nothing, and unless there is either a
        policy or a log.
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
    limits = replace(limits or Limits(progress=progress), effort=effort)
    spec = family(problem.family)
    runs = _Runs(time_limit, seed, limits)
    runnable = _policy(problem, policy, logged, params)
    own, broken = _own(problem, runnable, logged, runs)
    if broken and problem.family == "queueing":
        expected = "a schedule that fits: tell the audit of the log more GPUs (--set gpus=N)"
        raise InputError(own.method, "", NoQuote(broken[0]), expected)
    scope, asked = _scope(problem, own)
    names = policy_names(problem.family, beside)
    done = runnable if scope == ALL else None
    per_event_too = [spec.per_event] if spec.per_event and spec.per_event not in names else []
    others, trouble = runs.online(asked, [*names, *per_event_too], done)
    table = compare(
        asked, (), methods, time_limit=time_limit, effort=effort, seed=seed, limits=limits,
        parts=True,
    )  # fmt: skip
    breaks = f"{own.method} breaks {counted(len(broken), 'constraint')}" if broken else ""
    policies = [(own, runnable), *others]
    ends = _ends(table, policies, breaks)
    regrets = tuple(spec.regrets(problem, own.solution))
    per_event = next((r.objective for r, _ in policies if r.method == spec.per_event), None)
    best = ends.best
    notes = [f"{breaks}: it may owe what it gains to them"] if broken else []
    if scope == ACCEPTED:
        notes.append(f"{own.method} serves only part of what is asked: all here is about that part")
    if per_event is not None and best is not None:
        notes.append(per_event_note(spec.per_event, per_event, best, ends, table.unit))
    if not names:
        notes.append(f"beside {own.method} ran {spec.per_event} alone")
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
        per_event_objective=per_event,
        online_by=best.name if best else None,
        online_objective=best.objective if best else None,
        parts=tuple(ends.parts),
        regrets=regrets,
        notes=(*notes, *trouble),
        seed=own.seed,
        termination=next((t for t in CUT if t in stops), table.termination),
        versions=versions(),
    )


@dataclass(frozen=True)
class _Runs:
    """Runs that an explanation rests on: each of them has the time limit for itself."""

    time_limit: float | None
    seed: int
    limits: Limits

    @property
    def interrupted(self) -> bool:
        return self.limits.interrupted.is_set()

    def result(self, problem: Problem, runnable: Runnable, tell: Progress | None = None) -> Result:
        """What a method or policy makes of a problem; `tell` hears how it goes on."""
        self.limits.progress(runnable.label, None, None)
        return execute(problem, runnable, self.limits.each(self.time_limit, tell), self.seed)

    def online(
        self, problem: Problem, names: Sequence[str | Callable[..., Any]], done: Runnable | None
    ) -> tuple[list[tuple[Result, Runnable]], list[str]]:
        """The policies that serve everything, and what went wrong with others.

        `done` has run on the problem already, and is left out.
        """
        found, trouble = [], []
        for name in names:
            runnable = choose_policy(problem, name)
            if self.interrupted or runnable == done or not runnable.treats(problem):
                continue
            try:
                result = self.result(problem, runnable, silent)
            except Exception as error:  # another policy's fault is no reason to say nothing
                trouble.append(f"{runnable.label}: {type(error).__name__}: {error}")
                continue
            if serves(result):
                found.append((result, runnable))
        return found, trouble


def _policy(
    problem: Problem,
    policy: str | Callable[..., Any] | None,
    logged: Any,
    params: Mapping[str, Any],
) -> Runnable | None:
    """The policy that is to be explained; None for a log."""
    if (policy is None) == (logged is None):
        found = NoQuote("nothing" if policy is None else "a log beside it")
        raise InputError("--policy", "", found, "a policy, or what was logged")
    if policy is not None:
        return choose_policy(problem, policy, params)
    if params:
        raise InputError("--set", "", next(iter(params)), "nothing: what was logged has none")
    return None


def _own(
    problem: Problem, runnable: Runnable | None, logged: Any, runs: _Runs
) -> tuple[Result, list[Violation]]:
    """What is to be explained, and the constraints that it breaks: a log may."""
    if runnable is None:
        solution = as_solution(logged, problem)
        broken = problem.check(solution)
        return logged_result(problem, solution, broken), broken
    return runs.result(problem, runnable), []


def _scope(problem: Problem, own: Result) -> tuple[str, Problem]:
    """What the policy is held against: all that was asked, or what it served."""
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


def _ends(
    table: Comparison,
    policies: Sequence[tuple[Result, Runnable | None]],
    broken: str,
) -> Ends:
    """What stands at the ends of the parts.

    Raises
    ------
    InputError: when nobody has a solution that breaks nothing.
    RefereeError: when a bound is better than a solution that serves everything.
    """
    online = [
        Ran(
            result.method, value(result.objective), () if runnable is None else runnable.entry.knows
        )
        for result, runnable in policies
    ]
    fair = online[1:] if broken else online
    sense, known, by = table.sense, table.best_known, table.known_by or ""
    for one in fair:
        if known is None or ahead(one.objective, known, sense):
            by = one.name
        best = min if sense == "min" else max
        known = one.objective if known is None else best(known, one.objective)
    if known is None:
        raise InputError("explain", "", NoQuote("no solution"), "one that breaks nothing")
    bound = table.best_bound
    if bound is not None and ahead(known, bound, sense):
        raise RefereeError(
            f"{table.bound_by} proves {bound!r}, {by} reaches {known!r}: one of them is wrong"
        )
    if bound is not None and (bound > known if sense == "min" else bound < known):
        bound = known  # equal but for rounding
    return Ends(sense, bound, table.bound_by, known, by, online[0], fair, broken)


def value(objective: float | None) -> float:
    """The objective of a result that has one."""
    if objective is None:
        raise ValueError("a result without an objective")
    return objective
