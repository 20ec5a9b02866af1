"""Description of a family, which imports its parts on first use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from optgap.contract import Problem, ProblemClass, SolutionClass
from optgap.models.csvout import csv_text
from optgap.models.quantities import doubted, judge, settings_doubted
from optgap.models.spec import Entry, Parameter, meanings
from optgap.parameters import typed

if TYPE_CHECKING:
    from optgap.models.regret import Regret

Role = Literal["policies", "methods", "presets", "formulations"]
REPEATABLE = "repeatable"
"""Word in the text about a file that may be given several times."""


@dataclass(frozen=True, slots=True)
class Models:
    """Parts of a family's models that the registry uses.

    Parameters
    ----------
    problem, solution: classes of problems and solutions.
    tables: function that makes a problem from CSV files, ``f(**files, seed, **params)``.
    presets: ready-made problems, by name.
    refit: function that puts fits into a problem, ``f(problem, fits, seed=0)``.
    serves: names of the fitted models that `refit` takes.
    """

    problem: ProblemClass
    solution: SolutionClass
    tables: Callable[..., Any]
    presets: Mapping[str, Entry]
    refit: Callable[..., Any]
    serves: Iterable[str]


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """Problem family: its name, the tables that it reads and writes, and its parts.

    Each family is an entry of `table`, and `room` finds its parts.

    Parameters
    ----------
    name: the family's name, the same in every folder.
    question: the decision and the objective, in one line.
    files: the CSV files that `Models.tables` takes and their columns, required files first.
    needed: number of required `files`.
    tables_out: the tables that `export` writes about a solution, by option, and their columns.
    per_event: the policy that optimises every event by itself with the knowledge of that time.
    tiny: parameters of `generate` for a problem that every method solves in a moment.
    overview: methods in the comparison of all families.
    """

    name: str
    question: str
    files: Mapping[str, str]
    tables_out: Mapping[str, str]
    per_event: str
    tiny: Mapping[str, Any]
    needed: int = 0
    overview: str = "auto"

    def room(self, *path: str) -> Any:
        """Import a module of this family that has the same name in each."""
        role, *below = path
        return import_module(".".join(["optgap", role, self.name, *below]))

    @property
    def models(self) -> Models:
        """Classes of problems and solutions, and the functions that make them."""
        package, presets = self.room("models"), self.room("models", "presets")
        fits, named = self.room("models", "fits"), self.name.capitalize()
        return Models(
            getattr(package, f"{named}Problem"),
            getattr(package, f"{named}Solution"),
            presets.from_csv,
            presets.PRESETS,
            fits.refit,
            fits.SERVES,
        )

    @property
    def solvers(self) -> Any:
        """Package of exact methods and bounds: METHODS, FORMULATIONS, auto, auto_bound."""
        from optgap.solvers import consolidation, coscheduling, elastic, placement, queueing

        return _named(self.name, consolidation, coscheduling, elastic, placement, queueing)

    @property
    def heuristics(self) -> Any:
        """Package of online policies: POLICIES, and CUSTOM, which runs a user's own."""
        from optgap.heuristics import consolidation, coscheduling, elastic, placement, queueing

        return _named(self.name, consolidation, coscheduling, elastic, placement, queueing)

    def export(self, name: str, problem: Any, solution: Any) -> str:
        """Return one of `tables_out` as CSV text; the solution has a method for each."""
        return csv_text(*getattr(solution, name)(problem))

    def regrets(self, problem: Any, solution: Any) -> list[Regret]:
        """Return the cost of each of a solution's decisions, in time order.

        The family's own function counts time from the problem's first event.
        """
        from optgap.models.times import from_first_event  # imports NumPy

        found: list[Regret] = self.room("heuristics", "regret").regrets(
            *from_first_event(problem, solution)
        )
        moved = [replace(regret, time=regret.time + problem.epoch_s) for regret in found]
        return sorted(moved, key=lambda regret: regret.time)

    def from_tables(self, files: Mapping[str, Any], given: Mapping[str, Any], seed: int) -> Problem:
        """Make a problem from CSV files, or objects in their place, and parameters, maybe as text.

        The parameter ``strict``, by default true, refuses values that look like another unit.

        Raises
        ------
        InputError: for an unknown parameter, or bad cells in the files.
        """
        function = self.models.tables
        values = typed(given, keywords(function, skip=("seed", *self.files)), "CSV files", "--set")
        strict = values.get("strict", True)
        if strict:  # before they make nonsense of everything else
            judge(settings_doubted(values), "--set", True)
        problem: Problem = function(**files, seed=seed, **values)
        self.judge(problem, problem.name, strict)
        return problem

    def judge(self, problem: Problem, source: str, strict: bool) -> None:
        """Refuse values that look like another unit, or without `strict` warn in one line.

        Raises
        ------
        InputError: with `strict`, for an implausible value.
        """
        judge(doubted(problem), source, strict)

    @property
    def serves(self) -> tuple[str, ...]:
        """Names of the fitted models that the family's problems take."""
        return tuple(self.models.serves)

    @property
    def methods(self) -> Mapping[str, Entry]:
        """Exact methods and bounds, by name."""
        table: Mapping[str, Entry] = self.solvers.METHODS
        return table

    @property
    def formulations(self) -> Mapping[str, Entry]:
        """Formulations that `optgap export` writes, by name; the first is the default."""
        table: Mapping[str, Entry] = self.solvers.FORMULATIONS
        return table

    @property
    def policies(self) -> Mapping[str, Entry]:
        """Online policies, by name."""
        table: Mapping[str, Entry] = self.heuristics.POLICIES
        return table

    @property
    def presets(self) -> Mapping[str, Entry]:
        """Ready-made problems, by name; the first is the default."""
        return self.models.presets

    def explained(self, role: Role, entry: Entry) -> dict[str, Parameter]:
        """Return the meaning of each parameter of an entry in the table `role`."""
        if entry.options is not None or not entry.params:
            return meanings(entry.options) if entry.options else {}
        folder = {"policies": "heuristics", "presets": "models"}.get(role, "solvers")
        known: Mapping[str, Parameter] = self.room(folder, "parameters").PARAMETERS
        return {name: known.get(f"{entry.name}.{name}") or known[name] for name in entry.params}

    def auto(self, problem: Problem) -> str:
        """Return the name of the method for a problem of this size."""
        return str(self.solvers.auto(problem))

    def auto_bound(self, problem: Problem) -> str:
        """Return the name of the bound for a problem of this size."""
        return str(self.solvers.auto_bound(problem))


def _named(family: str, *rooms: ModuleType) -> ModuleType:
    """Return the package of one family among those of all."""
    return next(room for room in rooms if room.__name__.endswith(f".{family}"))


def keywords(target: Any, skip: Sequence[str] = ()) -> dict[str, Any]:
    """Return the parameters of a function that have a default, with the defaults."""
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):  # an object with a method place, or compiled code
        return {}
    return {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not inspect.Parameter.empty and name not in skip
    }
