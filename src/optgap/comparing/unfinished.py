"""Bounds and searches that a limit cut short, for lines about gaps that may be too large."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from optgap.models.jsonio import Fields
from optgap.models.result import Result, Status, Termination
from optgap.render import percent

SEARCH = "search"
CUT = (Termination.INTERRUPTED, Termination.TIME_LIMIT, Termination.WORK_LIMIT)
"""Reasons why a run was cut short, the gravest first."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Bound or search that was cut short.

    Parameters
    ----------
    why: `time_limit`, `work_limit` or `interrupted`.
    share_of_work: share of its budget that was spent; None if it has no budget.
    units: the work that was done.
    limit: the time limit (s) or the budget (units); None for an interrupt.
    kind: ``bound``, or a ``search``, which lowers no gap to the bound.
    accepted_by: the policy whose accepted tasks were to be bounded; "" for all that is asked.
    """

    method: str
    why: Termination
    share_of_work: float | None
    units: float
    limit: float | None
    kind: str = "bound"
    accepted_by: str = ""

    @classmethod
    def of(
        cls, result: Result, units: float, time_limit: float | None, budget: float | None
    ) -> Unfinished | None:
        """Describe a method's unfinished run; return None for a policy, or a run that ended."""
        proven = result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if result.kind == "policy" or proven or result.termination not in CUT:
            return None
        share = min(1.0, units / budget) if budget else None
        limit = {Termination.TIME_LIMIT: time_limit, Termination.WORK_LIMIT: budget}
        kind = SEARCH if result.kind == "offline" and result.bound is None else "bound"
        why = result.termination
        return cls(result.method, why, share, units, limit.get(why), kind)

    def __str__(self) -> str:
        if self.why is Termination.TIME_LIMIT:
            said = f"was stopped by --time-limit {self.limit:g}" if self.limit else "was stopped"
            said += f" after {self.units:.3g} units of work"
            if self.share_of_work is not None:
                said += f", {percent(self.share_of_work, 0)} of its budget"
        elif self.why is Termination.WORK_LIMIT:
            budget = f" ({self.limit:g} units; " if self.limit else " ("
            said = f"was stopped by its work budget{budget}--effort 4 goes on)"
        else:
            said = "was interrupted"
        if self.accepted_by:
            words = "by how much that gap is too large is not known"
            return f"! bound of {self.accepted_by}'s part unfinished: {self.method} {said}; {words}"
        if self.kind == SEARCH:
            said += ": it can lower no gap to the bound"
            return f"! best known unfinished: {self.method} {said}"
        return f"! bound unfinished: {self.method} {said}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {**asdict(self), "why": str(self.why)}

    @classmethod
    def from_json(cls, fields: Fields) -> Unfinished:
        """Read the JSON form; raise InputError that names the field."""
        return cls(
            fields.text("method"),
            Termination(fields.choice("why", list(Termination))),
            fields.known_number("share_of_work"),
            fields.number("units"),
            fields.known_number("limit"),
            fields.text("kind", "bound"),
            fields.text("accepted_by", ""),
        )
