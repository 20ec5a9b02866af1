"""From what was found to the parts: unproven, the price of being online, that of the heuristic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optgap.api import ahead, close, serves
from optgap.comparing.comparison import ACCEPTED, Comparison
from optgap.explaining.result import Explanation, Part
from optgap.models.errors import InputError, NoQuote, RefereeError
from optgap.models.regret import Regret
from optgap.models.result import Result, Sense, Termination
from optgap.registry import FamilySpec
from optgap.versions import versions


def explanation(
    table: Comparison,
    scope: str,
    own: Result,
    known: Known,
    relaxed: Result | None,
    regrets: tuple[Regret, ...],
    spec: FamilySpec,
    ideal: Ideal | None = None,
) -> Explanation:
    """The policy's gap in parts, from what everyone found.

    Raises
    ------
    RefereeError: when a bound is better than a solution that serves everything.
    """
    objective, per_event = value(own.objective), spec.per_event
    event, trouble = _event(table, per_event)
    if own.method == per_event and event is None:
        event, trouble = objective, ""
    _confront(table, known, own.sense)
    ends = Ends(own.method, per_event, spec.per_event_exact, known.by, known.kind, own.sense)
    part = {"queueing": "nodes", "placement": "migration"}.get(table.family, "")
    steps = ends.to_known(table, known.objective, relaxed, part)
    if event is None:
        steps.append(ends.merged(known.objective, objective, trouble))
    else:
        steps.append(ends.online(known.objective, event, table.best_bound))
        steps += ends.to_policy(event, objective, ideal)
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
        judged=True,
        notes=tuple(_notes(table, scope, own, regrets)),
        seed=own.seed,
        termination=_termination(table, own),
        versions=versions(),
    )


RELAXED = {
    "nodes": ("with GPUs only counted", "on nodes", "nodes"),
    "migration": ("with tasks that move for nothing", "without moves", "not migrating"),
}
"""Of a part between the bound and the best known: what is relaxed, what is not, and its price."""


@dataclass(frozen=True, slots=True)
class Known:
    """The best solution that anyone found for all that is asked in the scope."""

    objective: float
    by: str
    kind: str

    @classmethod
    def of(cls, table: Comparison, sense: Sense, others: Sequence[Result | None]) -> Known:
        """The best of a comparison and of the others, of these the first of equals.

        Raises
        ------
        InputError: when nobody has a solution.
        """
        best: Known | None = None
        for rival in others:
            if rival is not None and (
                best is None or ahead(value(rival.objective), best.objective, sense)
            ):
                best = cls(value(rival.objective), rival.method, rival.kind)
        if table.best_known is None or table.known_by is None:
            if best is None:
                raise InputError("explain", "", NoQuote("no solution"), "one that breaks nothing")
            return best
        if best is not None and ahead(best.objective, table.best_known, sense):
            return best
        # of equals, the method with hindsight: it says more
        return cls(table.best_known, table.known_by, table.row(table.known_by).result.kind)


@dataclass(frozen=True, slots=True)
class Ideal:
    """What the policy comes to where it is spared something.

    Parameters
    ----------
    informed: with exact models of the jobs for nothing; None where it has them.
    unpaid: with models that it learns as ever, learning being free; None where it is.
    spared: the same where restarts are free, and `event_spared` for the policy that solves every
        event exactly; None where they are.
    """

    informed: float | None = None
    unpaid: float | None = None
    spared: float | None = None
    event_spared: float | None = None


@dataclass(frozen=True, slots=True)
class Ends:
    """Who stands at the ends of each part, in words."""

    policy: str
    per_event: str
    exact: bool
    known_by: str
    known_kind: str
    sense: Sense

    def to_known(
        self, table: Comparison, known: float, relaxed: Result | None, part: str
    ) -> list[Part]:
        """From the bound to the best known, by way of the best of the relaxed problem.

        A schedule on nodes is one of counted GPUs, too, and one without moves one with them; and a
        bound may know of nodes, or of tasks that stay: what was found is brought between the two.
        """
        if relaxed is None:
            return [self.unproven(table, known)]
        free, tied, price = RELAXED[part]
        bound, by = table.best_bound, f"{relaxed.method} {free}"
        least = min(value(relaxed.objective), known)
        if bound is not None and bound > least:
            least, by = bound, "the bound itself"
        because = (
            f"{self.known_by} {tied} against {by}: what {price} costs as far as is known, "
            "for neither is proven"
        )
        if least == known < value(relaxed.objective):
            because = f"not known: {by} found nothing better than {self.known_by} {tied}"
            by = self.known_by
        unproven = self.unproven(table, least)
        if bound is not None and not close(bound, least):
            because_bound = f"bound by {table.bound_by}, best known by {by}: either may be off"
            unproven = replace(unproven, because=because_bound)
        return [unproven, Part(part, least, known, because)]

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
        elif ahead(objective, event, self.sense):
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

    def to_policy(self, event: float, objective: float, ideal: Ideal | None) -> list[Part]:
        """From exact per event to the policy: its heuristic, restarts, not knowing the model."""
        if ideal is None:
            return [self.heuristic(event, objective)]
        informed = objective if ideal.informed is None else ideal.informed
        parts, begin = [], event
        if ideal.spared is not None and ideal.event_spared is not None:
            begin = event + ideal.spared - ideal.event_spared
            parts.append(self.heuristic(event, begin))
            because = (
                f"what {self.policy} pays for restarts beyond what {self.per_event} does: both run "
                "with free restarts as well"
            )
            parts.append(Part("restarts", begin, informed, because))
        else:
            parts.append(self.heuristic(event, informed))
        if ideal.informed is not None:
            parts += self.learning(informed, objective, ideal.unpaid)
        return parts

    def learning(self, informed: float, objective: float, unpaid: float | None) -> list[Part]:
        """From exact models to those that the policy learns: deciding on these, and measuring."""
        if unpaid is None:
            because = f"{self.policy} against the same with exact models for nothing"
            return [Part("model", informed, objective, because)]
        because = (
            f"{self.policy} decides on what it has learnt so far, measuring being free, against "
            "the same with exact models"
        )
        measuring = f"{self.policy} against the same where measuring takes neither time nor energy"
        return [
            Part("model", informed, unpaid, because),
            Part("measuring", unpaid, objective, measuring),
        ]

    def merged(self, known: float, objective: float, trouble: str) -> Part:
        return Part("online+heuristic", known, objective, f"not told apart: {trouble}")


def _event(table: Comparison, per_event: str) -> tuple[float | None, str]:
    """The objective of the exact-per-event policy, or why there is none to compare with."""
    if not per_event:
        return None, f"{table.family} names no policy that solves every event exactly"
    row = table.row(per_event)
    if row.result.objective is None:
        return None, f"{per_event} has no result" + _because(row.result.message)
    if not serves(row.result):
        return None, f"{per_event} serves less than this policy"
    return row.result.objective, ""


def _confront(table: Comparison, known: Known, sense: Sense) -> None:
    if table.best_bound is not None and ahead(known.objective, table.best_bound, sense):
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


def _because(message: str) -> str:
    return f": {message}" if message else ""


def value(objective: float | None) -> float:
    """The objective of a result that has one."""
    if objective is None:
        raise ValueError("a result without an objective")
    return objective
