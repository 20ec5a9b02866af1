"""``explain``: runs the policy, those that it is held against, and whoever may know better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from optgap.api import ahead, choose_method, choose_policy, execute, require_time_limit, serves
from optgap.comparing.certainty import price_of_certainty, require
from optgap.comparing.comparison import ACCEPTED, ALL, Comparison
from optgap.comparing.gaps import Methods, Policies, compare, policy_names
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem, as_solution
from optgap.explaining.logged import logged_result
from optgap.explaining.parts import Ideal, Known, explanation, value
from optgap.explaining.result import Explanation
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits, Progress, silent
from optgap.models.regret import Regret
from optgap.models.result import Result, Termination, Violation
from optgap.registry import FamilySpec, Runnable, family
from optgap.render import number, percent


def explain(
    problem: ProblemLike,
    policy: str | Callable[..., Any] | None = None,
    methods: Methods = "auto",
    *,
    logged: Any = None,
    beside: Policies = "all",
    certainty: Sequence[float] = (),
    time_limit: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    progress: Progress = silent,
    **params: Any,
) -> Explanation:
    """Take a policy's gap apart.

    From the best proven bound to the policy's objective there are three steps: to the best
    solution known (*unproven*), on to the policy that solves every event exactly with what is
    known by then (the *price of being online*), and on to the policy itself (the *price of the
    heuristic*, negative when it beats that policy). Where jobs are placed on nodes but could be
    counted, the first step has two parts: to the best solution known where GPUs are only counted,
    and on to the best on nodes (the *price of nodes*); where tasks stay on their nodes and leave,
    the best where they may move stands between the two (the *price of not migrating*). Where
    restarts cost time, or a policy has to learn its jobs' models (`elastic`), what these cost is
    told apart from the heuristic: what it is not to know them, and what it is to measure. A policy
    that turns some of the demand down is explained on the part that it served.

    Parameters
    ----------
    problem: it, or the path of a file with one.
    policy: as for `run`; None for what is `logged`.
    logged: what somebody did with the problem, explained in place of a policy: a solution, or
        the path of a file with one. It may break constraints: a note says so, and it is then not
        taken for the best known.
    methods: whose bounds and solutions count, as for `compare`.
    beside: further policies, any of which may know a better solution; ``()`` for none.
    certainty: confidences with which a limit of fitted powers is to be kept (`elastic`): what they
        cost at the moment at which another kW would save most.
    time_limit: wall-clock seconds for each single run of a method or policy.
    params: the policy's own parameters.

    Raises
    ------
    InputError: for an unknown name or parameter, for a policy that serves nothing, and unless
        there is either a policy or a log.
    RefereeError: when a bound is better than a solution that serves everything.
    """
    problem = as_problem(problem)
    require_time_limit(time_limit)
    if certainty:
        require(problem, certainty)  # before any work
    limits = limits or Limits(progress=progress)
    spec = family(problem.family)
    runs = _Runs(time_limit, seed, limits)
    runnable = _policy(problem, policy, logged, params)
    own, broken = _own(problem, runnable, logged, runs)
    scope, asked = _scope(problem, own)
    names = [spec.per_event]
    table = compare(
        asked, names, methods, time_limit=time_limit, seed=seed, limits=limits, parts=True
    )
    others = [name for name in policy_names(problem.family, beside) if name not in names]
    whole = runnable if scope == ALL else None
    rival, trouble = _rival(asked, others, whole, runs)
    regrets = _regrets(problem, own)
    placed, relaxed = _with_hindsight(asked, spec, table, runs)
    known = Known.of(table, own.sense, [None if broken else own, rival, placed])
    ideal = _ideal(problem, spec, whole, runs) if whole else None
    found = explanation(table, scope, own, known, relaxed, regrets, spec, ideal)
    told = [f"{own.method} breaks {len(broken)} constraints: it may owe what it gains to them"]
    worth: Any = spec.worth(problem, own.solution)
    priced = [] if worth is None else [str(worth)]
    moves = _worth_of_moves(asked, spec, found, limits.each(time_limit), seed)
    notes = (*found.notes, *priced, *moves, *(told if broken else ()), *trouble)
    certain = None
    if certainty and not limits.interrupted.is_set():
        certain = price_of_certainty(
            problem, worth.dearest_s, schedule=own.solution, confidences=certainty, seed=seed
        )
    return replace(found, notes=notes, certainty=certain)


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


def _policy(
    problem: Problem,
    policy: str | Callable[..., Any] | None,
    logged: Any,
    params: Mapping[str, Any],
) -> Runnable | None:
    """The policy that is to be explained; None for a log."""
    if (policy is None) == (logged is None):
        found = NoQuote("nothing" if policy is None else "a log beside it")
        raise InputError("--policy", "", found, "a policy, or what was logged (--log FILE)")
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


def _rival(
    problem: Problem, names: Sequence[str | Callable[..., Any]], done: Runnable | None, runs: _Runs
) -> tuple[Result | None, list[str]]:
    """The best of these policies that serves everything, and what went wrong with others.

    `done` has run on the problem already, and is left out.
    """
    best: Result | None = None
    trouble = []
    for name in names:
        runnable = choose_policy(problem, name)
        if runs.interrupted or runnable == done or not runnable.treats(problem):
            continue
        try:
            result = runs.result(problem, runnable, silent)
        except Exception as error:  # another policy's fault is no reason to say nothing
            trouble.append(f"{runnable.label}: {type(error).__name__}: {error}")
            continue
        if result.objective is None or not serves(result):
            continue
        if best is None or ahead(result.objective, value(best.objective), result.sense):
            best = result
    return best, trouble


def _ideal(problem: Problem, spec: FamilySpec, runnable: Runnable, runs: _Runs) -> Ideal | None:
    """The policy with exact models, with learning them for nothing, and where restarts are free.

    None where nothing is spared.
    """

    def objective(subject: Problem, policy: Runnable) -> float | None:
        if runs.interrupted:
            return None
        result = runs.result(subject, policy)
        return result.objective if serves(result) else None

    def changed(params: Mapping[str, Any]) -> Runnable:
        known = {key: value for key, value in params.items() if key in runnable.known}
        return replace(runnable, params={**runnable.params, **known})

    def differs(policy: Runnable) -> bool:
        return {**runnable.known, **runnable.params} != {**runnable.known, **policy.params}

    informed, unpaid = map(changed, spec.learning)
    other = differs(informed)
    knows = objective(problem, informed) if other else None
    learns = objective(problem, unpaid) if other and differs(unpaid) else None
    free = spec.spared(problem)
    if free is None or (other and knows is None):
        return None if knows is None else Ideal(knows, learns)
    per_event = choose_policy(free, spec.per_event)
    spared = objective(free, informed)
    same = informed == per_event
    return Ideal(knows, learns, spared, spared if same else objective(free, per_event))


def _with_hindsight(
    problem: Problem, spec: FamilySpec, table: Comparison, runs: _Runs
) -> tuple[Result | None, Result | None]:
    """What the family's search with hindsight finds, and what on the relaxed problem.

    None for a family, or a problem, that has none; and where nothing is found.
    """
    relaxed = spec.relaxed(problem)
    names = [entry.name for entry in spec.methods.values() if entry.kind == "offline"]
    runnables = [choose_method(problem, name) for name in names]
    fitting = [runnable for runnable in runnables if runnable.treats(problem)]
    if relaxed is None or not fitting:
        return None, None
    known = [row.result for row in table.rows if row.result.method == fitting[0].label]
    found: list[Result | None] = list(known[:1])
    for subject in (relaxed,) if known else (problem, relaxed):
        found.append(None if runs.interrupted else runs.result(subject, fitting[0]))
    placed, other = (r if r is None or r.objective is not None else None for r in found)
    return placed, other


def _worth_of_moves(
    problem: Problem, spec: FamilySpec, found: Explanation, limits: Limits, seed: int
) -> list[str]:
    """What moves could save at most where tasks must stay, by the bounds with and without them."""
    free = spec.freed(problem)
    if free is None or limits.interrupted.is_set():
        return []
    limits.progress("bound with moves", None, None)
    runnable = choose_method(free, bounding=True)
    least = execute(free, runnable, limits, seed, bound_only=True).bound
    if least is None or found.bound is None or not found.best_known:
        return []
    saved = max(0.0, found.best_known - least)
    text = (
        f"moves for nothing could save {number(saved)} {found.unit} at most, "
        f"{percent(saved / abs(found.best_known))} of the best known: {number(least)} are needed "
        f"even with them ({runnable.label}), {number(max(found.bound, least))} without"
    )
    return [text]


def _scope(problem: Problem, own: Result) -> tuple[str, Problem]:
    """What the policy is held against: all that was asked, or what it served."""
    if own.solution is None or own.objective is None:
        found = NoQuote(own.message or str(own.status))
        raise InputError("--policy", own.method, found, "a policy that finds a solution")
    if serves(own):
        return ALL, problem
    try:
        return ACCEPTED, problem.restrict(own.solution)
    except InputError as error:
        stopped = own.termination is not Termination.COMPLETED
        found = NoQuote("nothing served" + (f" ({own.termination})" if stopped else ""))
        raise InputError("--policy", own.method, found, "a policy that serves some") from error


def _regrets(problem: Problem, own: Result) -> tuple[Regret, ...]:
    judge = family(problem.family).regrets
    return tuple(sorted(judge(problem, own.solution), key=lambda regret: regret.time))
