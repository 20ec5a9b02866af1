"""Several solvers on one model at once: the first proof, or a pair that meets, ends it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from optgap.models.limits import Limits
from optgap.models.result import Sense, Status
from optgap.solvers.backends.linear import Solved

TOLERANCE = 1e-6
"""An objective within this of its bound, relative to its size, is optimal: what the solvers'
own arithmetic is good for."""


class Engine(Protocol):
    """Solves the model it was made for within the limits."""

    def __call__(self, limits: Limits) -> Solved: ...


def meets(found: float | None, bound: float | None, sense: Sense) -> bool:
    """Whether a solution is as good as a bound allows."""
    if found is None or bound is None:
        return False
    excess = found - bound if sense == "min" else bound - found
    return excess <= TOLERANCE * max(1.0, abs(found))


@dataclass
class Race:
    """What is known while the engines run.

    Parameters
    ----------
    sense: of the objective.
    limits: time limit, interrupt and progress of the whole.
    found, bound: the best known before the start.
    """

    sense: Sense
    limits: Limits
    found: float | None = None
    bound: float | None = None
    enough: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, engines: Mapping[str, Engine]) -> dict[str, Solved]:
        """Each engine's answer; those that were overtaken answer with what they had."""
        answers: dict[str, Solved] = {}
        errors: list[BaseException] = []

        def one(name: str, engine: Engine) -> None:
            own = Limits(
                None if self.limits.time_limit is None else self.limits.remaining,
                self.enough,
                self.told,
            )
            try:
                answers[name] = engine(own)
            except BaseException as error:
                errors.append(error)
                self.enough.set()
                return
            if answers[name].status in (Status.OPTIMAL, Status.INFEASIBLE):
                self.enough.set()
            else:
                self.told(name, answers[name].objective, answers[name].bound)

        threads = [threading.Thread(target=one, args=item, daemon=True) for item in engines.items()]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                threads[0 if threads[0].is_alive() else -1].join(0.05)
                if self.limits.stop is not None:
                    self.enough.set()
        except BaseException:
            self.enough.set()
            raise
        if errors:
            raise errors[0]
        return answers

    def told(self, phase: str, found: float | None, bound: float | None) -> None:
        """Take note of an engine's progress, and pass the best of all on."""
        with self.lock:
            self.found = self._better(self.found, found, self.sense == "min")
            self.bound = self._better(self.bound, bound, self.sense == "max")
            found, bound = self.found, self.bound
        if meets(found, bound, self.sense):
            self.enough.set()
        self.limits.progress(phase, found, bound)

    @staticmethod
    def _better(one: float | None, other: float | None, smaller: bool) -> float | None:
        known = [value for value in (one, other) if value is not None]
        if not known:
            return None
        return min(known) if smaller else max(known)


@dataclass(frozen=True, slots=True)
class Named:
    """An engine's answer with the engine's name, for comparing answers."""

    name: str
    solved: Solved


def best_found(answers: Mapping[str, Solved], sense: Sense) -> Named | None:
    """The answer with the best solution."""
    named = [Named(name, s) for name, s in answers.items() if s.objective is not None]
    if not named:
        return None
    sign = 1 if sense == "min" else -1
    return min(named, key=lambda item: sign * (item.solved.objective or 0.0))


def best_bound(answers: Mapping[str, Solved], sense: Sense) -> Named | None:
    """The answer with the best bound."""
    named = [Named(name, s) for name, s in answers.items() if s.bound is not None]
    if not named:
        return None
    sign = -1 if sense == "min" else 1
    return min(named, key=lambda item: sign * (item.solved.bound or 0.0))
