"""Solve, bound, run and check: every answer goes through the referee."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem, as_solution
from optgap.heuristics.custom import Overrun
from optgap.models.clock import working_time
from optgap.models.errors import InputError, NoQuote, RefereeError
from optgap.models.limits import NO_MEMORY, Limits, with_unit
from optgap.models.result import (
    SERVES_PART,
    Evaluation,
    Outcome,
    Result,
    Sense,
    Status,
    Termination,
    Violation,
)
from optgap.models.times import Timed
from optgap.parameters import split_call
from optgap.progress import in_notebook
from optgap.registry import Runnable, family
from optgap.registry import method as find_method
from optgap.registry import policy as find_policy
from optgap.render import html_table, number
from optgap.versions import versions
from optgap.watchdog import GRACE_S, attended

TOLERANCE = 1e-6
"""Difference that counts as rounding, relative to the larger of 1 and the value."""


def solve(
    problem: ProblemLike,
    method: str = "auto",
    *,
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    **params: Any,
) -> Result:
    """Solve a problem with one exact, bounding or offline method.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    method
        A name that `methods` lists, with parameters in parentheses if need be. Default ``auto``:
        by the size of the problem.
    time_limit
        Wall-clock seconds after which the method is cut. Default: none.
    effort
        Factor by which budgets of work are multiplied. Default 1.
    seed
        Seed of the random number generator. Default 0.
    limits
        Limits that can be interrupted and report progress, in place of `time_limit` and `effort`.
    **params
        The method's own parameters, such as ``gap=0.01``. `methods` lists them.

    Returns
    -------
    Result
        The solution with the referee's objective, and the bound that the method proved.

    Raises
    ------
    InputError
        For an unknown method or parameter, or a method for another objective.
    RefereeError
        If the method's own claims do not hold.

    Examples
    --------
    >>> import optgap
    >>> problem = optgap.generate("coscheduling", size=4)
    >>> best = optgap.solve(problem)
    >>> best.method, best.status.value, round(best.gap, 6)
    ('oracle', 'optimal', 0.0)
    """
    subject = as_problem(problem)
    runnable = choose_method(subject, method, params)
    return execute(subject, runnable, limits or _limits(time_limit, effort), seed)


def bound(
    problem: ProblemLike,
    method: str = "auto",
    *,
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    **params: Any,
) -> Result:
    """Prove a lower bound on a problem (an upper one if it maximises), without a solution.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    method
        As for `solve`. Default ``auto``: the best bound for the problem's size.
    time_limit
        Wall-clock seconds after which the method is cut. Default: none.
    effort
        Factor by which budgets of work are multiplied. Default 1.
    seed
        Seed of the random number generator. Default 0.
    limits
        Limits that can be interrupted and report progress, in place of `time_limit` and `effort`.
    **params
        The method's own parameters.

    Returns
    -------
    Result
        The proof, with `bound` and `bound_by`; its `solution` is None.

    Raises
    ------
    InputError, RefereeError
        As for `solve`.

    Examples
    --------
    >>> import optgap
    >>> proof = optgap.bound(optgap.generate("coscheduling", size=4), "bound-area")
    >>> proof.status.value, proof.solution
    ('bound_only', None)
    """
    subject = as_problem(problem)
    runnable = choose_method(subject, method, params, bounding=True)
    return execute(subject, runnable, limits or _limits(time_limit, effort), seed, bound_only=True)


def run(
    problem: ProblemLike,
    policy: str | Callable[..., Any],
    *,
    seed: int = 0,
    time_limit: float | None = None,
    effort: float = 1.0,
    limits: Limits | None = None,
    **params: Any,
) -> Result:
    """Run one online policy on a problem.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    policy
        A name that `policies` lists; ``module:attribute`` or ``path/to/file.py:attribute`` of
        your own policy; or the function or class itself.
    seed
        Seed of the random number generator. Default 0.
    time_limit
        Wall-clock seconds after which your own policy is cut. Those of optgap never are.
        Default: none.
    effort
        Factor by which a policy that plans multiplies its budgets of work. Default 1.
    limits
        Limits that can be interrupted and report progress, in place of `time_limit` and `effort`.
    **params
        The policy's own parameters, such as ``alpha=0.1``. `policies` lists them.

    Returns
    -------
    Result
        The policy's solution, with the referee's objective and metrics.

    Raises
    ------
    InputError
        For an unknown policy or parameter, or if your own policy breaks a constraint.
    RefereeError
        If a policy of optgap breaks a constraint.

    Examples
    --------
    >>> import optgap
    >>> problem = optgap.generate("coscheduling", size=4)
    >>> result = optgap.run(problem, "marble")
    >>> result.kind, result.status.value
    ('policy', 'feasible')
    """
    subject = as_problem(problem)
    runnable = choose_policy(subject, policy, params)
    return execute(subject, runnable, limits or _limits(time_limit, effort), seed)


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """Outcome of the referee's check.

    Parameters
    ----------
    family
        Family of the problem.
    violations
        Constraints that the solution breaks.
    objective
        The objective in `unit`; None if a constraint is broken.
    unit, sense
        Unit of the objective, and ``min`` or ``max``.
    serves_all
        Whether the solution does all that the problem asks.
    metrics
        Further numbers of the referee; empty if a constraint is broken.

    Examples
    --------
    >>> problem = optgap.generate("coscheduling", size=4)
    >>> verdict = optgap.check(problem, optgap.run(problem, "marble"))
    >>> verdict.feasible, verdict.violations, round(verdict.objective), verdict.unit
    (True, (), 125993, 'J')
    """

    family: str
    violations: tuple[Violation, ...]
    objective: float | None
    unit: str
    sense: str
    serves_all: bool
    metrics: Mapping[str, float | int]

    @property
    def feasible(self) -> bool:
        """Whether no constraint is broken."""
        return not self.violations

    def __repr__(self) -> str:
        broken = f"{len(self.violations)} violations"
        words = broken if self.violations else f"feasible, {number(self.objective)} {self.unit}"
        return f"<Verdict {self.family}: {words.strip()}>"

    def _repr_html_(self) -> str:
        rows = [(str(violation),) for violation in self.violations]
        known = [(key, number(value)) for key, value in self.metrics.items()]
        header, cells = (("violations",), rows) if rows else (("metric", "value"), known)
        return html_table(header, cells, [repr(self).strip("<>")], (1,))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.check/1``."""
        return {
            "schema": "optgap.check/1",
            "family": self.family,
            "feasible": self.feasible,
            "serves_all": self.serves_all,
            "violations": [asdict(violation) for violation in self.violations],
            "objective": self.objective,
            "unit": self.unit,
            "sense": self.sense,
            "metrics": dict(self.metrics),
        }


def check(problem: ProblemLike, solution: Any) -> Verdict:
    """Have the referee check a solution, whoever made it.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    solution
        The solution, a result with one, its JSON form, or the path of a file with one.

    Returns
    -------
    Verdict
        Violated constraints, or the objective and metrics if there are none.

    Raises
    ------
    InputError
        For an object that is no problem, or no solution of the problem.

    Examples
    --------
    >>> import optgap
    >>> problem = optgap.generate("coscheduling", size=4)
    >>> optgap.check(problem, optgap.run(problem, "marble")).feasible
    True
    """
    problem = as_problem(problem)
    solution = as_solution(solution, problem)
    goal = problem.objective.described
    violations = tuple(problem.check(solution))
    evaluation = None if violations else problem.evaluate(solution)
    return Verdict(
        problem.family,
        violations,
        evaluation.objective if evaluation else None,
        goal.unit,
        goal.sense,
        not violations and problem.serves_all(solution),
        dict(evaluation.metrics) if evaluation else {},
    )


# -- from names to what runs -------------------------------------------------------------


def choose_method(
    problem: Problem,
    text: str = "auto",
    params: Mapping[str, Any] | None = None,
    *,
    bounding: bool = False,
    source: str = "--method",
) -> Runnable:
    """Return the method that `text` names; ``auto`` goes by the size of the problem.

    With `bounding`, ``auto`` picks the method with the best bound rather than one that also
    looks for a solution.

    Raises
    ------
    InputError: for an unknown method or parameter, or a value of the wrong type.
    """
    spec = family(problem.family)
    name, given = split_call(text, source)
    if name == "auto":
        name = spec.auto_bound(problem) if bounding else spec.auto(problem)
    return find_method(spec, name, {**given, **(params or {})}, source)


def choose_policy(
    problem: Problem,
    policy: str | Callable[..., Any],
    params: Mapping[str, Any] | None = None,
    source: str = "--policy",
) -> Runnable:
    """Return the policy of this name, or a user's own.

    Raises
    ------
    InputError: for an unknown policy or parameter, or a value of the wrong type.
    """
    return find_policy(family(problem.family), policy, params, source)


# -- from what a method claims to what is true -------------------------------------------


def execute(
    problem: Problem, runnable: Runnable, limits: Limits, seed: int, *, bound_only: bool = False
) -> Result:
    """Run a method or policy, and have the referee check its answer.

    With `bound_only`, the referee checks a solution, too, which is then left out. Only an
    interrupt cuts a policy of the package, no limit. If a limit cut anything inside, the result
    says so.

    Methods and policies, and the referee with them, count time from the problem's first event; the
    solution is moved back to the problem's own clock, and checked once more. Users' policies see
    the problem's own clock.
    """
    require_seed(seed)
    runnable.require_goal(problem, "--policy" if runnable.entry.kind == "policy" else "--method")
    if not isinstance(problem, Timed) or not problem.epoch_s:
        return _executed(problem, problem, runnable, limits, seed=seed, bound_only=bound_only)
    moved = problem.moved(-problem.epoch_s)
    result = _executed(moved, problem, runnable, limits, seed=seed, bound_only=bound_only)
    if result.solution is None:
        return replace(result, problem=problem)
    solution = result.solution.moved(problem.epoch_s)
    _accepted(problem, runnable, solution)
    return replace(result, problem=problem, solution=solution)


def _executed(
    problem: Problem,
    shown: Problem,
    runnable: Runnable,
    limits: Limits,
    *,
    seed: int,
    bound_only: bool,
) -> Result:
    """Do the work of `execute`, by the times of `problem`; a user's policy sees `shown`."""
    limits = limits.telling(with_unit(limits.progress, problem.objective.described.unit))
    limits.progress(runnable.label, None, None)
    given, limits = limits, limits.within(math.inf)  # with a meter of its own
    if runnable.entry.kind == "policy" and not runnable.own:
        limits = limits.each(None)
    function = runnable.entry.load()
    started = working_time()
    try:
        if runnable.own:
            how = {"limits": limits, "seed": seed, "shown": shown, **runnable.params}
            outcome = _watched(partial(function, problem, **how), limits)
        else:
            outcome = function(problem, limits=limits, seed=seed, **runnable.arguments)
    except (InputError, RefereeError):
        raise
    except MemoryError:
        outcome = Outcome(None, Status.ERROR, Termination.ERROR, message=NO_MEMORY)
    except Exception as error:
        if not runnable.own:
            raise
        found = NoQuote(f"{type(error).__name__}: {error}")
        raise InputError(runnable.label, "", found, "a policy that runs") from error
    if limits.whole is None:
        given.spend(limits.spent)
    result = refereed(problem, runnable, outcome, working_time() - started, seed=seed)
    proven = result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    if limits.cut and result.termination is Termination.COMPLETED and not proven:
        result = replace(result, termination=limits.cut)
    result = replace(result, repeatable=_repeatable(runnable, result))
    if not bound_only or result.status is Status.INFEASIBLE:
        return result
    return replace(
        result,
        status=Status.NO_SOLUTION if result.bound is None else Status.BOUND_ONLY,
        objective=None,
        solution=None,
        metrics=dict(outcome.info),
    )


def _repeatable(runnable: Runnable, result: Result) -> bool:
    """Tell whether another run, on any number of cores, gives the same result."""
    if runnable.own or result.termination in (Termination.TIME_LIMIT, Termination.INTERRUPTED):
        return False
    alone = runnable.params.get("workers", 1) in (0, 1)
    return alone or result.status in (Status.OPTIMAL, Status.INFEASIBLE)


def _watched(policy: Callable[[], Outcome], limits: Limits) -> Outcome:
    """Run a user's own policy, and return its outcome, or one that says that it did not end."""
    try:
        return attended(policy, limits)
    except Overrun:
        stop = limits.stop or Termination.INTERRUPTED
        words = {Termination.TIME_LIMIT: "its time limit"}.get(stop, "the interrupt")
        message = f"ended, as it did not return within {GRACE_S:g} s of {words}"
        message += "; what it had decided until then is lost"
        return Outcome(None, Status.NO_SOLUTION, stop, message=message)


def refereed(
    problem: Problem, runnable: Runnable, outcome: Outcome, seconds: float, *, seed: int
) -> Result:
    """Have the referee check an outcome, and return the result.

    Raises
    ------
    RefereeError: for a solution that breaks a constraint, a claimed objective that is not the
        referee's, a bound better than a solution that does everything asked for, or a
        solution together with a proof that there is none.
    InputError: when a user's own policy breaks a constraint.
    """
    goal = problem.objective.described
    evaluation = None
    status, proof, message = outcome.status, _finite(outcome.bound), outcome.message
    if outcome.solution is not None:
        evaluation = _evaluated(problem, runnable, outcome)
        status, proof, note = _confronted(problem, runnable, outcome, evaluation)
        message = "; ".join(filter(None, (message, note)))
    elif status in (Status.OPTIMAL, Status.FEASIBLE):
        raise RefereeError(f"{runnable.label}: says {status} and returns no solution")
    elif runnable.entry.kind == "policy" and outcome.termination is Termination.COMPLETED:
        message = message or "serves nothing"
    if status is Status.BOUND_ONLY and proof is None:
        status = Status.NO_SOLUTION
    metrics: dict[str, float | int | str] = dict(evaluation.metrics) if evaluation else {}
    for key, value in outcome.info.items():
        metrics.setdefault(key, value)  # a method's own numbers never replace the referee's
    return Result(
        family=problem.family,
        method=runnable.label,
        kind=runnable.entry.kind,
        status=status,
        termination=outcome.termination,
        objective=evaluation.objective if evaluation else None,
        unit=goal.unit,
        sense=goal.sense,
        bound=proof,
        bound_by=(outcome.bound_by or runnable.label) if proof is not None else None,
        seconds=seconds,
        seed=seed,
        versions=versions(),
        metrics=metrics,
        solution=outcome.solution,
        message=message,
        problem=problem,
    )


def _accepted(problem: Problem, runnable: Runnable, solution: Any) -> None:
    """Raise an error if the referee finds a broken constraint."""
    violations = problem.check(solution)
    if violations:
        first, more = violations[0], len(violations) - 1
        tail = f" (and {more} more)" if more else ""
        if runnable.own:
            raise InputError(
                runnable.label,
                first.where,
                NoQuote(f"{first.constraint}: {first.found}{tail}"),
                f"at most {first.limit}",
            )
        raise RefereeError(f"{runnable.label} returned a solution with {first}{tail}")


def _evaluated(problem: Problem, runnable: Runnable, outcome: Outcome) -> Evaluation:
    _accepted(problem, runnable, outcome.solution)
    evaluation = problem.evaluate(outcome.solution)
    claimed = outcome.claimed
    if claimed is not None and not close(claimed, evaluation.objective):
        raise RefereeError(
            f"{runnable.label} claims an objective of {claimed!r}, "
            f"the referee finds {evaluation.objective!r}"
        )
    return evaluation


def _confronted(
    problem: Problem, runnable: Runnable, outcome: Outcome, evaluation: Evaluation
) -> tuple[Status, float | None, str]:
    """Compare objective and bound, and return the status, the bound and a note."""
    if outcome.status is Status.INFEASIBLE:
        raise RefereeError(f"{runnable.label}: says infeasible and returns a solution")
    objective, proof = evaluation.objective, _finite(outcome.bound)
    goal = problem.objective.described
    if goal.sense == "min" and not problem.serves_all(outcome.solution):
        # The bound holds for solutions that do everything asked for: this one may be below it.
        return Status.FEASIBLE, None, SERVES_PART
    if proof is not None:
        ahead = proof - objective if goal.sense == "min" else objective - proof
        if ahead > 0 and not close(proof, objective):
            raise RefereeError(
                f"{runnable.label}: the bound {proof!r} is better than the solution {objective!r}"
            )
        if ahead > 0:  # equal but for rounding
            proof = objective
    proven = proof is not None and close(proof, objective)
    if outcome.status is Status.OPTIMAL and not proven:
        shown = "no bound" if proof is None else f"the bound {proof:g}"
        return Status.FEASIBLE, proof, f"not counted as optimal: {shown} proves less"
    if outcome.status is Status.OPTIMAL:
        return Status.OPTIMAL, proof, ""
    return Status.FEASIBLE, proof, ""


def serves(result: Result) -> bool:
    """Tell whether a solution serves all that is asked; one of a maximisation always does."""
    problem: Any = result.problem
    if result.solution is None:
        return False
    return result.sense == "max" or bool(problem.serves_all(result.solution))


def close(a: float, b: float) -> bool:
    """Tell whether two numbers are equal up to `TOLERANCE`."""
    return math.isfinite(a) and abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def ahead(a: float, b: float, sense: Sense) -> bool:
    """Tell whether `a` is better than `b` by more than rounding."""
    return not close(a, b) and (a < b if sense == "min" else a > b)


def _limits(time_limit: float | None, effort: float) -> Limits:
    require_time_limit(time_limit)
    require_effort(effort)
    return Limits(time_limit, progress=in_notebook, effort=effort)


def require_effort(effort: float) -> None:
    """Raise InputError for a factor that cannot multiply a budget."""
    known = isinstance(effort, (int, float)) and not isinstance(effort, bool)
    if not (known and 0 < effort < math.inf):
        raise InputError("effort", "", effort, "a positive number")


def require_time_limit(seconds: float | None) -> None:
    """Raise InputError for a time limit that is no positive, finite number."""
    known = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if seconds is not None and not (known and 0 < seconds < math.inf):
        raise InputError("time_limit", "", seconds, "a positive number of seconds")


def require_seed(seed: int) -> None:
    """Raise InputError for a seed that `numpy.random.default_rng` would refuse."""
    whole = not isinstance(seed, bool) and hasattr(seed, "__index__")  # numpy's integers, too
    if not whole or seed < 0:
        raise InputError("seed", "", seed, "an integer of at least 0")


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
