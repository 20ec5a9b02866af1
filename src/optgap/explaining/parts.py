"""From what ran to the parts of a gap: unproven, the prices of being online and of the heuristic.

With B the best bound, K the best known solution, O the best online policy that ran and P the policy
that is explained, B ≤ K ≤ O ≤ P (if the objective is minimised), so that no part is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optgap.api import ahead, close
from optgap.explaining.result import Part
from optgap.models.result import Sense
from optgap.render import number, percent


@dataclass(frozen=True, slots=True)
class Ran:
    """A policy that served all of the scope.

    Parameters
    ----------
    moves, knows: as its `Entry` has them.
    """

    name: str
    objective: float
    moves: bool = False
    knows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Learnt:
    """The objective of a policy with exact models of the jobs for nothing.

    Parameters
    ----------
    unpaid: its objective with models that it learns as ever, learning being free; None where it is.
    """

    informed: float
    unpaid: float | None = None


@dataclass(frozen=True, slots=True)
class Ends:
    """The objectives between which the parts lie, and whose they are.

    Parameters
    ----------
    online: the policies that served all of the scope, the explained one among them.
    relaxed: the best objective, and whose it is, where GPUs are only counted; None where they are.
    """

    sense: Sense
    bound: float | None
    bound_by: str | None
    known: float
    known_by: str
    own: Ran
    online: Sequence[Ran]
    relaxed: tuple[float, str] | None = None
    learnt: Learnt | None = None
    trouble: str = ""

    @property
    def best(self) -> Ran | None:
        """The best online policy; None where nothing is there to tell the two prices apart."""
        return None if self.trouble or len(self.online) < 2 else self._best_of(self.online)

    @property
    def parts(self) -> list[Part]:
        """From the bound to the policy."""
        best, own = self.best, self.own
        if best is None:
            why = self.trouble or f"no other online policy that ran serves what {own.name} does"
            because = f"not told apart: {why}"
            return [*self._to_known(), Part("online+heuristic", self.known, own.objective, because)]
        parts = [*self._to_known(), Part("online", self.known, best.objective, self._online(best))]
        alike = [one for one in self.online if own.moves or not one.moves]
        reference = self._best_of(alike)
        if ahead(best.objective, reference.objective, self.sense):
            because = (
                f"{best.name} may move tasks that run; {reference.name} is the best of "
                f"{len(alike)} that may not{self._beside(reference, alike)}"
            )
            parts.append(Part("moving", best.objective, reference.objective, because))
        return parts + self._to_policy(reference)

    def _best_of(self, policies: Sequence[Ran]) -> Ran:
        sign = 1 if self.sense == "min" else -1
        return min(policies, key=lambda one: sign * one.objective)

    def _beside(self, best: Ran, policies: Sequence[Ran]) -> str:
        """Who is as good."""
        equal = [p.name for p in policies if p != best and close(p.objective, best.objective)]
        return f" (with {', '.join(equal)})" if equal else ""

    def _to_known(self) -> list[Part]:
        """From the bound to the best known, by way of the best where GPUs are only counted.

        A schedule on nodes is one of counted GPUs, too, and a bound may know of nodes: what was
        found is brought between the two.
        """
        bound, known, by = self.bound, self.known, self.known_by
        if self.relaxed is None:
            return [self._unproven(known, by)]
        least, who = self.relaxed
        if least >= known:
            because = f"not known: {who} found nothing better with GPUs only counted"
            return [self._unproven(known, by), Part("nodes", known, known, because)]
        if bound is not None and bound > least:
            least, who = bound, "the bound"
        because = f"{by} on nodes against {who} with GPUs only counted; neither is proven"
        return [self._unproven(least, who), Part("nodes", least, known, because)]

    def _unproven(self, known: float, by: str) -> Part:
        bound = self.bound
        if bound is None:
            because = "no bound is proven: nothing says how much better one could do"
        elif close(bound, self.known):
            because = f"nothing: {self.known_by} is proven optimal"
        else:
            because = f"bound by {self.bound_by}, best known by {by}: either may be off"
        return Part("unproven", bound, known, because)

    def _online(self, best: Ran) -> str:
        if close(self.known, best.objective):
            words = f"nothing: {best.name} reaches the best known online"
        else:
            words = f"at most: {best.name} is the best of {len(self.online)} online policies that "
            words += f"ran{self._beside(best, self.online)}; a better one would make this less"
        if self.bound and not close(self.bound, self.known):
            open_share = percent(abs(self.known - self.bound) / abs(self.bound))
            words += f"; between these and the bound lie {open_share}, part of it may be online's"
        told = [what for what in best.knows if what not in self.own.knows]
        if told and best.name != self.own.name:
            words += f"; {best.name} knows {' and '.join(told)}, {self.own.name} does not"
        return words

    def _to_policy(self, reference: Ran) -> list[Part]:
        """From the best of its kind to the policy: its heuristic, and what learning costs it."""
        own, begin, end = self.own, reference.objective, self.own.objective
        learnt = self.learnt
        informed = end if learnt is None else min(end, max(begin, learnt.informed))
        if close(begin, informed):
            kind = "" if own.moves or not any(p.moves for p in self.online) else " without moves"
            because = f"nothing: {own.name} is the best online policy{kind} that ran"
            if not close(begin, end):
                because = f"nothing: with exact models {own.name} is as good as {reference.name}"
        else:
            because = f"{own.name} against {reference.name}"
        parts = [Part("heuristic", begin, informed, because)]
        if learnt is None:
            return parts
        unpaid = end if learnt.unpaid is None else min(end, max(informed, learnt.unpaid))
        because = f"{own.name} decides on what it has learnt so far, not on exact models"
        parts.append(Part("model", informed, unpaid, because))
        if learnt.unpaid is not None:
            because = f"{own.name} against the same where measuring takes neither time nor energy"
            parts.append(Part("measuring", unpaid, end, because))
        return parts


def per_event_note(
    name: str, exact: bool, objective: float, best: Ran, ends: Ends, unit: str
) -> str:
    """How good it is to solve every event exactly, or as well as is possible."""
    how = "solving every event exactly" if exact else "planning every event anew"
    words = f"{how} ({name}) comes to {number(objective)} {unit}"
    if close(objective, best.objective):
        return words + ("" if name == best.name else f", as {best.name} does")
    more = "more" if ends.sense == "min" else "less"
    return f"{words}: {number(abs(objective - best.objective))} {more} than {best.name}"
