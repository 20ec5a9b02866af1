"""Protocol of every family's problem."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from optgap.models.jsonio import Fields
from optgap.models.result import Evaluation, Objective, Violation


class Goal(Protocol):
    """Objective of a problem."""

    @property
    def described(self) -> Objective:
        """Name, unit and sense of the objective."""


class Problem(Protocol):
    """A problem and its referee: immutable plain data with a JSON form.

    Examples
    --------
    >>> problem = optgap.generate("coscheduling", size=4)
    >>> schedule = optgap.run(problem, "marble").solution
    >>> problem.check(schedule), problem.serves_all(schedule), len(problem.to_frame()) > 0
    ([], True, True)
    >>> round(problem.evaluate(schedule).objective), problem.objective.described.unit
    (125993, 'J')
    """

    family: ClassVar[str]

    @property
    def name(self) -> str:
        """Name of the problem in tables."""

    @property
    def summary(self) -> str:
        """Sizes and objective of the problem, in one line."""

    @property
    def objective(self) -> Goal:
        """Objective, with its name, unit and sense."""

    def check(self, solution: Any) -> list[Violation]:
        """Return every constraint that a solution breaks."""

    def evaluate(self, solution: Any) -> Evaluation:
        """Return objective and metrics of a solution, recomputed from scratch."""

    def serves_all(self, solution: Any) -> bool:
        """Tell whether `solution` serves everything that the problem asks for."""

    def restrict(self, solution: Any) -> Problem:
        """Return the problem reduced to the tasks or jobs that `solution` serves."""

    def to_frame(self) -> Any:
        """Return a DataFrame of the tasks or jobs."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""


class ProblemClass(Protocol):
    """Reader of a family's problems."""

    def from_json(self, fields: Fields) -> Problem:
        """Read the JSON form; raise InputError that names the field."""


class SolutionClass(Protocol):
    """Reader of a family's solutions."""

    def from_json(self, fields: Fields, problem: Any) -> Any:
        """Read the JSON form of a solution of `problem`; raise InputError that names the field."""
