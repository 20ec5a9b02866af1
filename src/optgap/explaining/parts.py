"""Parts of a gap: unproven, the price of being online, and the price of the heuristic.

With B the best bound, K the best known solution, O the best online policy that ran and P the policy
that is explained, B ≤ K ≤ O ≤ P (if the objective is minimised), so that no part is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optgap.api import close
from optgap.explaining.result import Part
from optgap.models.result import Result, Sense
from optgap.registry import Runnable
from optgap.render import percent


@dataclass(frozen=True, slots=True)
class Ran:
    """Policy that served all of the scope; `knows` is the field of its `Entry`."""

    name: str
    objective: float
    knows: tuple[str, ...] = ()

    @classmethod
    def of(cls, result: Result, runnable: Runnable) -> Ran:
        """Return the outcome of a run whose result has an objective."""
        assert result.objective is not None
        return cls(result.method, result.objective, runnable.entry.knows)


@dataclass(frozen=True, slots=True)
class Ends:
    """Objectives between which the parts lie, and the names behind them.

    Parameters
    ----------
    online: the policies that served all of the scope, the explained one among them.
    """

    sense: Sense
    bound: float | None
    bound_by: str | None
    known: float
    known_by: str
    own: Ran
    online: Sequence[Ran]

    @property
    def best(self) -> Ran | None:
        """Best online policy; None if the explained one alone serves all of the scope."""
        if len(self.online) < 2:
            return None
        sign = 1 if self.sense == "min" else -1
        return min(self.online, key=lambda one: sign * one.objective)

    @property
    def parts(self) -> list[Part]:
        """Parts in their order from the bound to the policy."""
        best, own = self.best, self.own
        if best is None:
            because = f"not told apart: no other online policy serves what {own.name} does"
            return [self._unproven(), Part("online+heuristic", self.known, own.objective, because)]
        because = f"{own.name} against {best.name}"
        if close(best.objective, own.objective):
            because = f"nothing: {own.name} is the best online policy that ran"
        return [
            self._unproven(),
            Part("online", self.known, best.objective, self._online(best)),
            Part("heuristic", best.objective, own.objective, because),
        ]

    def _unproven(self) -> Part:
        bound = self.bound
        if bound is None:
            because = "no bound is proven: nothing says how much better one could do"
        elif close(bound, self.known):
            because = f"nothing: {self.known_by} is proven optimal"
        else:
            because = f"bound by {self.bound_by}, best known by {self.known_by}: either may be off"
        return Part("unproven", bound, self.known, because)

    def _online(self, best: Ran) -> str:
        if close(self.known, best.objective):
            words = f"nothing: {best.name} reaches the best known online"
        else:
            alike = [
                p.name for p in self.online if p != best and close(p.objective, best.objective)
            ]
            beside = f" (with {', '.join(alike)})" if alike else ""
            words = f"at most: {best.name} is the best of {len(self.online)} online policies that "
            words += f"ran{beside}; a better one would make this less"
        if self.bound and not close(self.bound, self.known):
            open_share = percent(abs(self.known - self.bound) / abs(self.bound))
            words += f"; between these and the bound lie {open_share}, part of it may be online's"
        told = [what for what in best.knows if what not in self.own.knows]
        if told and best.name != self.own.name:
            words += f"; {best.name} knows {' and '.join(told)}, {self.own.name} does not"
        return words
