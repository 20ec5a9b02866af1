"""A policy's gap in parts: what is unproven, what being online costs, what the heuristic costs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from optgap.api import choose_method, choose_policy, close, execute, require_time_limit
from optgap.comparison import ACCEPTED, ALL, Comparison
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem
from optgap.gaps import Methods, Policies, compare, policy_names
from optgap.models.errors import InputError, NoQuote, RefereeError
from optgap.models.jsonio import Fields
from optgap.models.limits import Limits, Progress, silent
from optgap.models.regret import Regret
from optgap.models.result import Result, Sense, Termination, relative_gap
from optgap.models.shown import Brief
from optgap.models.spec import imported
from optgap.plotting import delivered
from optgap.registry import FamilySpec, Runnable, family
from optgap.render import Row, html_table, number, percent, text_table
from optgap.versions import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = "optgap.explain/1"
TOP = 10
"""How many of the costliest decisions are shown."""

Name = Literal["unproven", "nodes", "online", "heuristic", "online+heuristic"]
TITLES: Mapping[str, str] = {
    "unproven": "unproven",
    "nodes": "price of nodes",
    "online": "price of being online",
    "heuristic": "price of the heuristic",
    "online+heuristic": "prices of online and heuristic",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One stretch of the way from the bound to the policy.

    Parameters
    ----------
    name: which one.
    start, end: objectives between which it lies, in the problem's unit; None where unknown.
    because: who stands at its two ends, and what that does and does not say.
    """

    name: Name
    start: float | None
    end: float | None
    because: str

    def amount(self, sense: Sense) -> float | None:
        """How much is lost from `start` to `end`, in the problem's unit; negative when gained."""
        if self.start is None or self.end is None:
            return None
        return self.end - self.start if sense == "min" else self.start - self.end


@dataclass(frozen=True, repr=False)
class Explanation(Brief):
    """Why a policy is as far from the bound as it is.

    Parameters
    ----------
    policy, per_event: the policy, and the one that solves every event exactly with what is
        known by then ("" where the family has none).
    scope: ``all``, or ``accepted`` when the policy turned some of the demand down: everything
        here is then about the part that it served.
    objective: the policy's, in `unit`.
    bound, bound_by: the best proven bound, and who proved it.
    best_known, known_by: the best solution found by anyone.
    per_event_objective: None where that policy has no result for all of the scope.
    parts: from the bound to the policy; their amounts add up to |objective − bound|.
    regrets: every decision that was judged, in time order.
    judged: whether decisions were judged at all: not every family can.
    notes: what a reader must know to read the numbers.
    """

    family: str
    problem_name: str
    problem_summary: str
    unit: str
    sense: Sense
    policy: str
    per_event: str
    scope: str
    objective: float
    bound: float | None
    bound_by: str | None
    best_known: float | None
    known_by: str | None
    per_event_objective: float | None
    parts: tuple[Part, ...]
    regrets: tuple[Regret, ...]
    judged: bool
    notes: tuple[str, ...]
    seed: int | None
    termination: Termination
    versions: Mapping[str, str]

    @property
    def gap(self) -> float | None:
        """|objective − bound| / |bound|."""
        return relative_gap(self.objective, self.bound)

    @property
    def costly(self) -> tuple[Regret, ...]:
        """The decisions that cost something, in time order."""
        return tuple(regret for regret in self.regrets if regret.cost > 0)

    def top(self, count: int = TOP) -> tuple[Regret, ...]:
        """The decisions that cost most, in time order."""
        by_cost = sorted(self.costly, key=lambda regret: -regret.cost)[:count]
        return tuple(regret for regret in self.costly if any(regret is r for r in by_cost))

    def part(self, name: str) -> Part:
        """The part of this name; raises KeyError when there is none."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(name)

    # -- forms ----------------------------------------------------------------------------

    def to_json(self, top: int = TOP) -> dict[str, Any]:
        """JSON form, ``optgap.explain/1``, with the `top` costliest decisions."""
        return {
            "schema": SCHEMA,
            "family": self.family,
            "problem": {"name": self.problem_name, "summary": self.problem_summary},
            "unit": self.unit,
            "sense": self.sense,
            "policy": self.policy,
            "per_event": self.per_event,
            "scope": self.scope,
            "objective": self.objective,
            "bound": self.bound,
            "bound_by": self.bound_by,
            "best_known": self.best_known,
            "known_by": self.known_by,
            "per_event_objective": self.per_event_objective,
            "gap": self.gap,
            "parts": [
                {
                    "name": part.name,
                    "start": part.start,
                    "end": part.end,
                    "amount": part.amount(self.sense),
                    "of_bound": self.of_bound(part),
                    "because": part.because,
                }
                for part in self.parts
            ],
            "decisions": {
                "judged": len(self.regrets) if self.judged else None,
                "costly": len(self.costly),
                "cost": sum(regret.cost for regret in self.costly),
                "top": [
                    {
                        "time": regret.time,
                        "subject": regret.subject,
                        "chosen": regret.chosen,
                        "better": regret.better,
                        "cost": regret.cost,
                    }
                    for regret in self.top(top)
                ],
            },
            "notes": list(self.notes),
            "seed": self.seed,
            "termination": str(self.termination),
            "versions": dict(self.versions),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> Explanation:
        """Read the JSON form; of the decisions, those that it holds.

        Raises
        ------
        InputError: naming the field that is missing or not what it should be.
        """
        fields.schema(SCHEMA)
        problem, decisions = fields.object("problem"), fields.object("decisions")
        known = decisions.document.get("judged") is not None
        return cls(
            fields.text("family"),
            problem.text("name"),
            problem.text("summary"),
            fields.text("unit"),
            fields.choice("sense", get_args(Sense)),  # type: ignore[arg-type]  # checked
            fields.text("policy"),
            fields.text("per_event"),
            fields.choice("scope", (ALL, ACCEPTED)),
            fields.number("objective", minimum=-float("inf")),
            _optional(fields, "bound"),
            _text(fields, "bound_by"),
            _optional(fields, "best_known"),
            _text(fields, "known_by"),
            _optional(fields, "per_event_objective"),
            tuple(
                Part(
                    part.choice("name", get_args(Name)),  # type: ignore[arg-type]  # checked
                    _optional(part, "start"),
                    _optional(part, "end"),
                    part.text("because"),
                )
                for part in fields.objects("parts")
            ),
            tuple(
                Regret(
                    item.number("time", minimum=-float("inf")),
                    item.text("subject"),
                    item.text("chosen"),
                    item.text("better"),
                    item.number("cost"),
                )
                for item in decisions.objects("top")
            ),
            known,
            tuple(fields.texts("notes")),
            fields.integer("seed") if fields.document.get("seed") is not None else None,
            Termination(fields.choice("termination", list(Termination))),
            dict(fields.object("versions").document),
        )

    def head(self) -> list[str]:
        """Problem, policy and bound, one line each."""
        part = " (the part it served)" if self.scope == ACCEPTED else ""
        gap = "" if self.gap is None else f", {percent(self.gap)} from the bound"
        bound = "no bound is proven"
        if self.bound is not None:
            bound = f"bound {number(self.bound)} {self.unit}, by {self.bound_by}"
        return [
            f"{self.problem_name}: {self.problem_summary}",
            f"{self.policy}{part}: {number(self.objective)} {self.unit}{gap}",
            bound,
        ]

    def table(self) -> tuple[Row, list[Row], tuple[int, ...]]:
        """The parts: header, rows and right-aligned columns, as text."""
        header = ("", "from", "to", self.unit, "of the bound")
        rows: list[Row] = [
            (
                TITLES[part.name],
                number(part.start),
                number(part.end),
                _signed(part.amount(self.sense)),
                percent(self.of_bound(part)),
            )
            for part in self.parts
        ]
        rows.append(
            (
                "gap",
                number(self.bound),
                number(self.objective),
                _signed(_loss(self.bound, self.objective, self.sense)),
                percent(self.gap),
            )
        )
        return header, rows, (1, 2, 3, 4)

    def reasons(self) -> list[str]:
        """One line per part: who stands at its two ends, and what that says."""
        return [f"{TITLES[part.name]}: {part.because}" for part in self.parts]

    def decisions(self, top: int = TOP) -> tuple[Row, list[Row], tuple[int, ...]]:
        """The decisions that cost most, in time order, as text."""
        header = ("when", "about", "chosen", "better", f"cost ({self.unit})")
        rows: list[Row] = [
            (f"{r.time:,.10g}", r.subject, r.chosen, r.better, number(r.cost))
            for r in self.top(top)
        ]
        return header, rows, (0, 4)

    def about_decisions(self, top: int = TOP) -> str:
        """One line: how many decisions were judged, and how many of them cost something."""
        if not self.judged:
            return f"decisions: {self.family} does not judge single decisions"
        costly = len(self.costly)
        if not costly:
            return "decisions: none cost anything when it was taken; whatever is lost shows later"
        line = f"decisions: {costly:,} cost something when they were taken"
        if costly > top:
            line += f"; the {top} that cost most, in time order:"
        return line

    def __str__(self) -> str:
        parts = ["\n".join(self.head()), text_table(*self.table())]
        parts += ["\n".join(self.reasons()), self.about_decisions()]
        if self.costly:
            parts.append(text_table(*self.decisions()))
        if self.notes:
            parts.append("\n".join(self.notes))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        header, rows, right = self.table()
        html = html_table(header, rows, self.head(), right)
        if self.costly:
            header, rows, right = self.decisions()
            html += html_table(header, rows, [self.about_decisions()], right)
        return html

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The parts of the gap as a figure; written to `path` (.png, .svg or .pdf), too.

        Raises
        ------
        InputError: for another ending, or a place that cannot be written to.
        """
        waterfall: Any = import_module("optgap.waterfall")  # which is drawn from this
        return delivered(waterfall.explanation_figure(self), path)

    def of_bound(self, part: Part) -> float | None:
        """What a part loses, as a share of the bound."""
        amount = part.amount(self.sense)
        if amount is None or not self.bound:
            return None
        return amount / abs(self.bound)


def explain(
    problem: ProblemLike,
    policy: str | Callable[..., Any],
    methods: Methods = "auto",
    *,
    beside: Policies = "all",
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
    and on to the best on nodes (the *price of nodes*). A policy that turns some of the demand down
    is explained on the part that it served.

    Parameters
    ----------
    problem: it, or the path of a file with one.
    policy: as for `run`.
    methods: whose bounds and solutions count, as for `compare`.
    beside: further policies, any of which may know a better solution; ``()`` for none.
    time_limit: wall-clock seconds for each single run of a method or policy.
    params: the policy's own parameters.

    Raises
    ------
    InputError: for an unknown name or parameter, and for a policy that serves nothing.
    RefereeError: when a bound is better than a solution that serves everything.
    """
    problem = as_problem(problem)
    require_time_limit(time_limit)
    limits = limits or Limits(progress=progress)
    spec = family(problem.family)
    runnable = choose_policy(problem, policy, params)
    limits.progress(runnable.label, None, None)
    own = execute(problem, runnable, limits.each(time_limit), seed)
    scope, asked = _scope(problem, runnable, own)
    names = [spec.per_event] if spec.per_event else []
    table = compare(
        asked, names, methods, time_limit=time_limit, seed=seed, limits=limits, parts=True
    )
    others = [name for name in policy_names(problem.family, beside) if name not in names]
    rival, trouble = _rival(asked, others, time_limit, seed, limits)
    regrets = _regrets(problem, own) if spec.regrets else ()
    placed, counted = _with_hindsight(asked, spec, time_limit, seed, limits)
    known = _Known.of(table, own, rival, placed)
    found = _explanation(table, scope, own, known, counted, regrets, spec)
    return replace(found, notes=(*found.notes, *trouble))


def _rival(
    problem: Problem,
    names: Sequence[str | Callable[..., Any]],
    time_limit: float | None,
    seed: int,
    limits: Limits,
) -> tuple[Result | None, list[str]]:
    """The best of these policies that serves everything, and what went wrong with others."""
    best: Result | None = None
    trouble = []
    for name in names:
        runnable = choose_policy(problem, name)
        if limits.interrupted.is_set() or not runnable.treats(problem):
            continue
        limits.progress(runnable.label, None, None)
        try:
            result = execute(problem, runnable, limits.each(time_limit, silent), seed)
        except Exception as error:  # another policy's fault is no reason to say nothing
            trouble.append(f"{runnable.label}: {type(error).__name__}: {error}")
            continue
        if result.objective is None or not (result.sense == "max" or _complete(result)):
            continue
        if best is None or _ahead(result.objective, _value(best.objective), result.sense):
            best = result
    return best, trouble


def _with_hindsight(
    problem: Problem, spec: FamilySpec, time_limit: float | None, seed: int, limits: Limits
) -> tuple[Result | None, Result | None]:
    """What the family's search with hindsight finds, and what where only GPUs are counted.

    None for a family, or a problem, in which nodes are no matter; and where nothing is found.
    """
    counted = imported(spec.counted)(problem) if spec.counted else None
    names = [entry.name for entry in spec.methods.values() if entry.kind == "offline"]
    if counted is None or not names:
        return None, None
    found: list[Result | None] = []
    for subject in (problem, counted):
        if limits.interrupted.is_set():
            found.append(None)
            continue
        limits.progress(names[0], None, None)
        runnable = choose_method(subject, names[0])
        result = execute(subject, runnable, limits.each(time_limit), seed)
        found.append(result if result.objective is not None else None)
    return found[0], found[1]


@dataclass(frozen=True, slots=True)
class _Known:
    """The best solution that anyone found for all that is asked in the scope."""

    objective: float
    by: str
    kind: str

    @classmethod
    def of(cls, table: Comparison, own: Result, *others: Result | None) -> _Known:
        """The best of a comparison, the policy itself, and the best of the others."""
        best = cls(_value(own.objective), own.method, own.kind)
        for rival in others:
            if rival is not None and _ahead(_value(rival.objective), best.objective, own.sense):
                best = cls(_value(rival.objective), rival.method, rival.kind)
        if table.best_known is None or table.known_by is None:
            return best
        if _ahead(best.objective, table.best_known, own.sense):
            return best
        # of equals, the method with hindsight: it says more
        return cls(table.best_known, table.known_by, table.row(table.known_by).result.kind)


def _scope(problem: Problem, runnable: Runnable, own: Result) -> tuple[str, Problem]:
    """What the policy is held against: all that was asked, or what it served."""
    if own.solution is None or own.objective is None:
        found = NoQuote(own.message or str(own.status))
        raise InputError("--policy", runnable.label, found, "a policy that finds a solution")
    if own.sense == "max" or problem.serves_all(own.solution):
        return ALL, problem
    try:
        return ACCEPTED, problem.restrict(own.solution)
    except InputError as error:
        stopped = own.termination is not Termination.COMPLETED
        found = NoQuote("nothing served" + (f" ({own.termination})" if stopped else ""))
        raise InputError("--policy", runnable.label, found, "a policy that serves some") from error


def _regrets(problem: Problem, own: Result) -> tuple[Regret, ...]:
    judge = imported(family(problem.family).regrets)
    return tuple(sorted(judge(problem, own.solution), key=lambda regret: regret.time))


def _explanation(
    table: Comparison,
    scope: str,
    own: Result,
    known: _Known,
    counted: Result | None,
    regrets: tuple[Regret, ...],
    spec: FamilySpec,
) -> Explanation:
    objective, per_event = _value(own.objective), spec.per_event
    event, trouble = _event(table, per_event)
    if own.method == per_event and event is None:
        event, trouble = objective, ""
    _confront(table, known, own.sense)
    ends = _Ends(own.method, per_event, spec.per_event_exact, known.by, known.kind, own.sense)
    steps = ends.to_known(table, known.objective, counted)
    if event is None:
        steps.append(ends.merged(known.objective, objective, trouble))
    else:
        steps.append(ends.online(known.objective, event, table.best_bound))
        steps.append(ends.heuristic(event, objective))
    return Explanation(
        family=table.family,
        problem_name=table.problem_name,
        problem_summary=table.problem_summary,
        unit=table.unit,
        sense=table.sense,
        policy=own.method,
        per_event=per_event,
        scope=scope,
        objective=objective,
        bound=table.best_bound,
        bound_by=table.bound_by,
        best_known=known.objective,
        known_by=known.by,
        per_event_objective=event,
        parts=tuple(steps),
        regrets=regrets,
        judged=bool(spec.regrets),
        notes=tuple(_notes(table, scope, own, regrets)),
        seed=own.seed,
        termination=_termination(table, own),
        versions=versions(),
    )


@dataclass(frozen=True, slots=True)
class _Ends:
    """Who stands at the ends of each part, in words."""

    policy: str
    per_event: str
    exact: bool
    known_by: str
    known_kind: str
    sense: Sense

    def to_known(self, table: Comparison, known: float, counted: Result | None) -> list[Part]:
        """From the bound to the best known, by way of the best where GPUs are only counted.

        A schedule on nodes is one of counted GPUs, too, and a bound may know of nodes: what was
        found is brought between the two.
        """
        if counted is None:
            return [self.unproven(table, known)]
        bound, by = table.best_bound, f"{counted.method} with GPUs only counted"
        least = min(_value(counted.objective), known)
        if bound is not None and bound > least:
            least, by = bound, "the bound itself"
        because = (
            f"{self.known_by} on nodes against {by}: what nodes cost as far as is known, "
            "for neither is proven"
        )
        unproven = self.unproven(table, least)
        if bound is not None and not close(bound, least):
            because_bound = f"bound by {table.bound_by}, best known by {by}: either may be off"
            unproven = replace(unproven, because=because_bound)
        return [unproven, Part("nodes", least, known, because)]

    def unproven(self, table: Comparison, known: float) -> Part:
        bound = table.best_bound
        if bound is None:
            because = "no bound is proven: nothing says how much better one could do"
        elif close(bound, known):
            because = f"nothing: {self.known_by} is proven optimal"
        else:
            because = f"bound by {table.bound_by}, best known by {self.known_by}: either may be off"
        return Part("unproven", bound, known, because)

    def online(self, known: float, event: float, bound: float | None) -> Part:
        proven = bound is not None and close(bound, known)
        if self.known_by == self.per_event or close(known, event):
            because = f"nothing that ran knows better than {self.per_event}"
            if not proven:
                because += "; what hindsight is worth hides in the unproven part"
        elif self.known_kind == "policy":
            because = f"best known is {self.known_by}, online itself: with hindsight, perhaps more"
        else:
            because = f"{self.known_by} knows what is to come, {self.per_event} does not"
            if not proven:
                because += "; at least this much, more if the unproven part is not the bound's"
        return Part("online", known, event, because)

    def heuristic(self, event: float, objective: float) -> Part:
        if close(event, objective):
            because = f"nothing: as good as {self.per_event}"
        elif _ahead(objective, event, self.sense):
            because = f"a gain: {self.policy} does better than planning every event anew"
            if self.exact:
                because = (
                    f"a gain: the best answer to each event alone ({self.per_event}) is not the "
                    f"best for those to come, and {self.policy} earns some of that back"
                )
        else:
            how = "solves each event exactly" if self.exact else "plans every event anew"
            because = f"{self.policy} against {self.per_event}, which {how}"
        return Part("heuristic", event, objective, because)

    def merged(self, known: float, objective: float, trouble: str) -> Part:
        return Part("online+heuristic", known, objective, f"not told apart: {trouble}")


def _event(table: Comparison, per_event: str) -> tuple[float | None, str]:
    """The objective of the exact-per-event policy, or why there is none to compare with."""
    if not per_event:
        return None, f"{table.family} names no policy that solves every event exactly"
    row = table.row(per_event)
    if row.result.objective is None:
        return None, f"{per_event} has no result" + _because(row.result.message)
    if row.result.sense == "min" and not _complete(row.result):
        return None, f"{per_event} serves less than this policy"
    return row.result.objective, ""


def _complete(result: Result) -> bool:
    problem: Any = result.problem
    return result.solution is not None and bool(problem.serves_all(result.solution))


def _because(message: str) -> str:
    return f": {message}" if message else ""


def _ahead(a: float, b: float, sense: Sense) -> bool:
    """Whether `a` is better than `b`, rounding apart."""
    return not close(a, b) and (a < b if sense == "min" else a > b)


def _confront(table: Comparison, known: _Known, sense: Sense) -> None:
    if table.best_bound is not None and _ahead(known.objective, table.best_bound, sense):
        raise RefereeError(
            f"{table.bound_by} proves {table.best_bound!r}, {known.by} reaches "
            f"{known.objective!r}: one of them is wrong"
        )


def _termination(table: Comparison, own: Result) -> Termination:
    for result in (table.termination, own.termination):
        if result is not Termination.COMPLETED:
            return result
    return Termination.COMPLETED


def _notes(table: Comparison, scope: str, own: Result, regrets: Sequence[Regret]) -> list[str]:
    notes = []
    if scope == ACCEPTED:
        notes.append(
            f"{own.method} serves only part of what is asked: bound, best known and "
            "exact-per-event are for that part alone"
        )
    notes += [note for note in table.notes() if note]
    if any(regret.cost > 0 for regret in regrets):
        notes.append(
            "a decision's cost is what it added there and then, everything before it as the "
            "policy left it: costs do not add up to the price of the heuristic"
        )
    return notes


def _loss(start: float | None, end: float | None, sense: Sense) -> float | None:
    return Part("unproven", start, end, "").amount(sense)


def _signed(amount: float | None) -> str:
    if amount is None:
        return ""
    text = number(abs(amount))
    if not any("1" <= digit <= "9" for digit in text):
        return "0"
    return ("+" if amount > 0 else "-") + text


def _value(objective: float | None) -> float:
    if objective is None:
        raise ValueError("a result without an objective")
    return objective


def _optional(fields: Fields, name: str) -> float | None:
    if fields.document.get(name) is None:
        return None
    return fields.number(name, minimum=-float("inf"))


def _text(fields: Fields, name: str) -> str | None:
    return fields.text(name) if fields.document.get(name) is not None else None
