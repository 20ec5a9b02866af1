"""Run methods and policies on one problem, and measure how far each is from optimal."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from optgap.api import (
    ahead,
    choose_method,
    choose_policy,
    execute,
    refereed,
    require_effort,
    require_time_limit,
    serves,
)
from optgap.comparing.comparison import (
    ACCEPTED,
    ALL,
    CUT,
    NOT_RUN,
    Comparison,
    ComparisonRow,
    ComparisonSet,
    Failure,
    Unfinished,
)
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem
from optgap.making import generate, preset_entry
from optgap.models.errors import InputError, RefereeError, one_of, type_of
from optgap.models.limits import Amount, Limits, Progress
from optgap.models.result import Outcome, Result, Status, Termination, relative_gap
from optgap.parameters import call_text, split_call, split_list, typed
from optgap.processes import side_by_side
from optgap.progress import in_notebook
from optgap.registry import Runnable, family
from optgap.registry import method as find_method
from optgap.registry import policy as find_policy

Policies = str | Callable[..., Any] | Sequence[str | Callable[..., Any]]
Methods = str | Sequence[str]
EXACT_UNITS = 60.0
"""Budget of an exact method beside others, units of work at effort 1."""


def compare(
    problem: ProblemLike,
    policies: Policies = "all",
    methods: Methods = "auto",
    *,
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    parts: bool = False,
) -> Comparison:
    """Measure every gap at the fitted values; `optgap.compare` has the parameters and errors.

    Policies run before methods, so that an interrupt leaves objectives. A policy that rejects part
    of the demand is held against a bound that the same methods prove for what it accepted,
    ``problem.restrict(solution)``. Once a method has proven that no solution serves everything, no
    other method runs, and no part is bounded unless `parts` asks for it. Exact methods have a
    budget of `EXACT_UNITS`; others count what they do themselves.
    """
    problem = as_problem(problem)
    require_time_limit(time_limit)
    require_effort(effort)
    limits = limits or Limits(progress=in_notebook)
    bench = _Bench(time_limit, seed, replace(limits, effort=effort))
    names = method_names(problem.family, methods)
    provers = [choose_method(problem, name, source="--methods") for name in names]
    wanted = policy_names(problem.family, policies)
    own = [choose_policy(problem, policy, source="--policies") for policy in wanted]
    full = _Scope(problem, ALL)
    # a user's own come last: one that does not return keeps no other from running
    turns = sorted(range(len(own)), key=lambda k: own[k].own)
    made = {k: bench.run(problem, own[k]) for k in turns}
    ran = [made[k] for k in range(len(own))]
    bench.known = _best(problem, ran)
    lines: list[_Line] = []
    for runnable in provers:
        lines.append(bench.run(problem, runnable, full))
        bench.hopeless = not parts and any(x.result.status is Status.INFEASIBLE for x in lines)
    bench.known = None
    lines += ran
    accepted: dict[str, _Scope] = {}
    for line in lines:
        # a schedule that leaves something out is about a part of the problem, whoever made it
        if line.scope is None or (line.result.solution is not None and not serves(line.result)):
            line.scope = _scope_of(line.result, full, accepted)
        if bench.hopeless and line.scope is not full:
            line.scope = None
    if bench.hopeless:
        accepted = {}
    for part in accepted.values():
        of = next(line.result.method for line in lines if line.scope is part)
        for runnable in _provers(part.problem, names):
            proof = bench.run(part.problem, runnable, part, of)
            part.add(proof.result)
    for line in lines:
        if line.scope is not None:
            line.scope.add(line.result)
    for scope in (full, *accepted.values()):
        scope.confront()
    return _comparison(problem, full, lines, bench)


def sweep(
    family_name: str,
    parameter: str,
    values: Iterable[Any],
    *,
    preset: str | None = None,
    policies: Policies = "all",
    methods: Methods = "auto",
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    parts: bool = False,
    processes: int | None = 1,
    **params: Any,
) -> ComparisonSet:
    """Compare on a preset made anew for each value of one of its parameters.

    Parameters
    ----------
    family_name
        A name that `families` lists.
    parameter
        A parameter of the preset.
    values
        Its values.
    preset
        A name that `presets` lists. Default: the family's first.
    policies
        ``all``, names separated by commas, or a sequence of names and of your own functions.
    methods
        ``auto`` (by the problem's size), ``all``, or names as for `policies`.
    time_limit
        Wall-clock seconds after which each method, and each own policy, is cut. Default: none.
    effort
        Factor by which all budgets of work are multiplied. Default 1.
    seed
        Seed of the random number generator. Default 0.
    limits
        Limits that can be interrupted and report progress. Default: show progress in a notebook.
    parts
        Whether to bound the part that each policy accepts where no solution serves everything.
        Default False.
    processes
        Number of values at a time, each in a process of its own, to which functions as policies
        cannot be sent. None: one for each core. Default 1.
    **params
        Other parameters of the preset.

    Returns
    -------
    ComparisonSet
        A comparison for each value, with `to_frame` and `plot`.

    Raises
    ------
    InputError
        As for `compare` and `generate`, before anything runs.

    Examples
    --------
    >>> import optgap
    >>> gaps = optgap.sweep("coscheduling", "size", [3, 4], policies="marble")
    >>> gaps.to_frame()["gap_to_bound"].unstack(0).shape
    (2, 2)
    """
    limits = limits or Limits(progress=in_notebook)
    entry = preset_entry(family_name, preset)[0]
    if not isinstance(values, Iterable):
        raise InputError("values", "", type_of(values), "a sequence of values")
    wanted = [typed({parameter: v}, entry.params, entry.name, "--sweep")[parameter] for v in values]
    problems = [
        generate(family_name, preset, seed=seed, **{**params, parameter: value}) for value in wanted
    ]
    asked = {"policies": policies, "methods": methods, "time_limit": time_limit}
    asked |= {"effort": effort, "seed": seed, "parts": parts}
    works = [
        partial(_compared, problem, asked, f"{parameter}={value}")
        for value, problem in zip(wanted, problems, strict=True)
    ]
    found = dict(side_by_side(works, limits, processes=processes))
    for outcome in found.values():
        if outcome.error is not None:
            raise outcome.error
    done = {k: made for k, one in sorted(found.items()) if (made := one.answer) is not None}
    return ComparisonSet(parameter, tuple(wanted[k] for k in done), tuple(done.values()))


def _compared(problem: Problem, asked: Mapping[str, Any], label: str, limits: Limits) -> Comparison:
    """Compare at one value of a sweep."""
    return compare(problem, limits=limits.part(label), **asked)


def method_names(family_name: str, methods: Methods) -> list[str]:
    """Return the methods that a text such as ``auto``, ``all`` or ``a,b(key=1)`` stands for.

    Raises
    ------
    InputError: for a text that is no list of names.
    """
    if methods == "all":
        return list(family(family_name).methods)
    return split_list(methods, "--methods") if isinstance(methods, str) else _listed(methods)


def policy_names(family_name: str, policies: Policies) -> list[str | Callable[..., Any]]:
    """Return the policies that a text stands for; functions stay as they are."""
    if policies == "all":
        return list(family(family_name).policies)
    if isinstance(policies, str):
        return list(split_list(policies, "--policies"))
    return [policies] if callable(policies) else _listed(policies)


def _listed(names: Any) -> list[Any]:
    """Return a list of names or functions as it is given.

    Raises
    ------
    InputError: for an argument that is no list.
    """
    if not isinstance(names, Iterable):
        found = type_of(names)
        raise InputError("policies, methods", "", found, "names, with commas or in a list")
    return list(names)


def chosen(
    family_name: str,
    policies: str,
    methods: str,
    given: Mapping[str, str],
    *,
    beside: Iterable[str] = (),
) -> tuple[list[str], list[str]]:
    """Return policies and methods by name, each with those `given` parameters that it has.

    `beside` are further parameters, for the suggestion when an unknown one is close to them.

    Raises
    ------
    InputError: for an unknown name, or a parameter that none of them has.
    """
    spec = family(family_name)
    taken: set[str] = set()
    there = set(beside)

    def dressed(text: str, find: Callable[..., Runnable], source: str) -> str:
        name, own = split_call(text, source)
        if name == "auto" or not given:
            return text
        known = find(spec, text, None, source).known
        there.update(known)
        extra = {key: value for key, value in given.items() if key in known}
        taken.update(extra)
        return call_text(name, {**extra, **own})

    wanted = policy_names(family_name, policies)
    own = [dressed(str(name), find_policy, "--policies") for name in wanted]
    exact = [dressed(one, find_method, "--methods") for one in method_names(family_name, methods)]
    for key in given:
        if key not in taken:
            words = "a parameter of the preset, or of a policy or method named here"
            raise InputError("--set", "", key, one_of(sorted(there), words))
    return own, exact


# -- one run, and what it is measured against --------------------------------------------


@dataclass
class _Line:
    """Unfinished row of the table."""

    result: Result
    scope: _Scope | None
    failure: Failure = ""


@dataclass
class _Scope:
    """Results that can be compared with one another, because they serve the same demand."""

    problem: Problem
    label: str
    bounds: list[Result] = field(default_factory=list)
    known: list[Result] = field(default_factory=list)
    infeasible: list[Result] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)

    def served_by(self, result: Result) -> bool:
        """Tell whether a result of this scope serves all of the scope's demand."""
        return self.label == ACCEPTED or serves(result)

    def add(self, result: Result) -> None:
        """Add a result of this scope."""
        if result.bound is not None and result.bound_by is not None:
            self.bounds.append(result)
        if result.objective is not None and self.served_by(result):
            self.known.append(result)
        if result.status is Status.INFEASIBLE:
            self.infeasible.append(result)
        if result.status is Status.ERROR:
            self.trouble.append(f"{result.method}: {result.message}")

    @property
    def sign(self) -> int:
        return 1 if self.problem.objective.described.sense == "min" else -1

    @property
    def best_bound(self) -> Result | None:
        return max(self.bounds, key=lambda r: self.sign * _value(r.bound), default=None)

    @property
    def best_known(self) -> Result | None:
        return min(self.known, key=lambda r: self.sign * _value(r.objective), default=None)

    def confront(self) -> None:
        """Raise RefereeError if a bound and a solution contradict one another."""
        bound, known = self.best_bound, self.best_known
        if known is None:
            return
        if self.infeasible:
            raise RefereeError(
                f"{self.infeasible[0].method} proves that there is no solution, "
                f"{known.method} has one"
            )
        if bound is None:
            return
        if ahead(_value(known.objective), _value(bound.bound), known.sense):
            raise RefereeError(
                f"{bound.method} proves {bound.bound!r}, {known.method} reaches "
                f"{known.objective!r}: one of them is wrong"
            )


def _value(number: float | None) -> float:
    if number is None:
        raise ValueError("a result without the number it was chosen for")
    return number


def _provers(problem: Problem, names: Iterable[str]) -> list[Runnable]:
    """Return the methods for a part of the problem, without those that search for solutions.

    The family's best bound replaces a method that mainly looks for solutions, because a part is
    bounded for the one policy that served it.
    """
    chosen = [choose_method(problem, name) for name in names]
    wanted = [
        choose_method(problem, bounding=True) if r.entry.kind == "offline" else r for r in chosen
    ]
    return list({runnable.label: runnable for runnable in wanted}.values())


def _scope_of(result: Result, full: _Scope, parts: dict[str, _Scope]) -> _Scope | None:
    """Return the scope of a result's demand; None for a policy's run that was cut."""
    cut = result.termination in (Termination.TIME_LIMIT, Termination.INTERRUPTED)
    if cut and result.kind == "policy":
        return None
    if result.solution is None or serves(result):
        return full if result.solution is not None else None
    try:
        part = full.problem.restrict(result.solution)
    except InputError:  # nothing served at all: no problem is left
        return None
    key = hashlib.sha256(json.dumps(part.to_json()).encode()).hexdigest()
    return parts.setdefault(key, _Scope(part, ACCEPTED))


class _Bench:
    """Bench that runs methods and policies in turn; the failure of one does not stop the others.

    Attributes
    ----------
    known: best objective of the policies, which progress shows beside a method's bound.
    units: work of each method and policy, by label.
    """

    def __init__(self, time_limit: float | None, seed: int, limits: Limits) -> None:
        self.time_limit = time_limit
        self.seed = seed
        self.limits = limits
        self.terminations: set[Termination] = set()
        self.unfinished: list[Unfinished] = []
        self.hopeless = False
        self.known: float | None = None
        self.units: dict[str, float] = defaultdict(float)
        self.found: dict[str, Any] = {}

    def run(
        self, problem: Problem, runnable: Runnable, scope: _Scope | None = None, part: str = ""
    ) -> _Line:
        """Run on the whole problem, or on the part that the policy `part` accepted."""
        unit = problem.objective.described.unit

        def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
            named = phase if phase.startswith(runnable.label) else f"{runnable.label}: {phase}"
            known = None if self.known is None else Amount(self.known, unit)
            self.limits.progress(named, known if incumbent is None else incumbent, bound)

        failure: Failure = ""
        if runnable.entry.shares:  # the parts that policies accept are bounded with it
            runnable = replace(runnable, found=self.found)
        self.limits.progress(runnable.label, None, None)
        try:
            if self.hopeless:
                result = self.empty(problem, runnable, NOT_RUN, Termination.COMPLETED)
            elif self.limits.interrupted.is_set():
                result = self.empty(problem, runnable, "not started", Termination.INTERRUPTED)
            else:
                result = self.executed(problem, runnable, tell, part)
        except InputError as error:
            treats = runnable.treats(problem)
            failure = "input" if treats else "objective"
            result = self.empty(problem, runnable, str(error))
        except Exception as error:
            failure = "fault"
            result = self.empty(problem, runnable, f"{type(error).__name__}: {error}")
        self.terminations.add(result.termination)
        return _Line(result, scope, failure)

    def executed(self, problem: Problem, runnable: Runnable, tell: Progress, part: str) -> Result:
        """Run within the budget, take a note of a cut, and return the result."""
        exact = runnable.entry.kind == "exact"
        budget = EXACT_UNITS * self.limits.effort if exact else None
        limits = self.limits.each(self.time_limit, tell, budget)
        result = execute(problem, runnable, limits, self.seed)
        self.units[part or runnable.label] += limits.spent
        cut = Unfinished.of(result, limits.spent, self.time_limit, budget)
        if cut is not None:
            self.unfinished.append(replace(cut, accepted_by=part))
        return result

    def empty(
        self,
        problem: Problem,
        runnable: Runnable,
        message: str,
        termination: Termination = Termination.ERROR,
    ) -> Result:
        """Return a result for a run without one."""
        failed = termination is Termination.ERROR
        status = Status.ERROR if failed else Status.NO_SOLUTION
        outcome = Outcome(None, status, termination, message=" ".join(message.split()))
        return refereed(problem, runnable, outcome, 0.0, seed=self.seed)


def _comparison(
    problem: Problem, full: _Scope, lines: Sequence[_Line], bench: _Bench
) -> Comparison:
    stopped = next((t for t in CUT if t in bench.terminations), Termination.COMPLETED)
    bound, known = full.best_bound, full.best_known
    goal = problem.objective.described
    return Comparison(
        family=problem.family,
        problem_name=problem.name,
        problem_summary=problem.summary,
        unit=goal.unit,
        sense=goal.sense,
        best_bound=bound.bound if bound else None,
        bound_by=bound.bound_by if bound else None,
        best_known=known.objective if known else None,
        known_by=known.method if known else None,
        rows=tuple(replace(_row(x), units=bench.units[x.result.method]) for x in lines),
        termination=stopped,
        unfinished=tuple(bench.unfinished),
    )


def _best(problem: Problem, lines: Iterable[_Line]) -> float | None:
    """Return the best objective among the solutions that serve everything."""
    best = min if problem.objective.described.sense == "min" else max
    found = [x.result.objective for x in lines if serves(x.result)]
    return best([value for value in found if value is not None], default=None)


def _row(line: _Line) -> ComparisonRow:
    result, scope = line.result, line.scope
    if scope is None:
        return ComparisonRow(result, failure=line.failure)
    bound, known = scope.best_bound, scope.best_known
    objective = result.objective if scope.served_by(result) else None
    gap = relative_gap(objective, bound.bound) if bound else None
    unproven = result.kind in ("policy", "offline") and result.bound is None
    if unproven and bound is not None and gap is not None:
        result = replace(result, bound=bound.bound, bound_by=bound.bound_by)
    if scope.label == ACCEPTED and bound is None:
        note = "; ".join(["no bound for the part that it serves", *scope.trouble])
        result = replace(result, message="; ".join(filter(None, (result.message, note))))
    # the only one to have served just this part is no yardstick for itself
    alone = scope.label == ACCEPTED and len(scope.known) == 1
    return ComparisonRow(
        result,
        bound_scope=scope.label if gap is not None else None,
        gap_to_bound=gap,
        gap_to_best=relative_gap(objective, known.objective) if known and not alone else None,
        failure=line.failure,
    )
