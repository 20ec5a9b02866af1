"""What every family's problem offers, whatever it is about."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from optgap.models.jsonio import Fields
from optgap.models.result import Evaluation, Objective, Violation


class Goal(Protocol):
    """What a problem optimises."""

    @property
    def described(self) -> Objective:
        """Name, unit and sense."""


class Problem(Protocol):
    """A problem and its referee: immutable plain data with a JSON form."""

    family: ClassVar[str]

    @property
    def name(self) -> str:
        """How tables call it."""

    @property
    def summary(self) -> str:
        """One line: sizes and objective."""

    @property
    def objective(self) -> Goal:
        """What to optimise."""

    def check(self, solution: Any) -> list[Violation]:
        """Every broken constraint."""

    def evaluate(self, solution: Any) -> Evaluation:
        """Objective and metrics, recomputed from scratch."""

    def serves_all(self, solution: Any) -> bool:
        """Whether `solution` does everything the problem asks for."""

    def restrict(self, solution: Any) -> Problem:
        """The same problem with only what `solution` serves."""

    def to_json(self) -> dict[str, Any]:
        """JSON form."""


class ProblemClass(Protocol):
    """How a problem is read back."""

    def from_json(self, fields: Fields) -> Problem:
        """Read the JSON form; raises InputError naming the field."""


class SolutionClass(Protocol):
    """How a solution is read back."""

    def from_json(self, fields: Fields, problem: Any) -> Any:
        """Read the JSON form of a solution of `problem`; raises InputError naming the field."""
