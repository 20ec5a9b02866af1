"""What a family is, and where its parts are: nothing is imported before it is asked for."""

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
"""In the text about a file that may be given several times."""


@dataclass(frozen=True, slots=True)
class Models:
    """What a family's models offer the registry.

    Parameters
    ----------
    problem, solution: the classes.
    tables: makes a problem from CSV files, ``f(**files, seed, **params)``.
    presets: ready-made problems, by name.
    refit: puts fits into a problem, ``f(problem, fits, seed=0)``.
    serves: the fitted models that `refit` takes.
    """

    problem: ProblemClass
    solution: SolutionClass
    tables: Callable[..., Any]
    presets: Mapping[str, Entry]
    refit: Callable[..., Any]
    serves: Iterable[str]


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """One problem family: what it is called, what it reads and writes, and where its parts are.

    Each family is an entry of `table`, and has its parts where `room` finds them.

    Parameters
    ----------
    name: the family's name, the same in every folder.
    question: what is decided and what is optimised, in one line.
    files: the CSV files that `Models.tables` takes and their columns; those that must be given
        first.
    needed: how many of `files` must be given.
    tables_out: what `export` writes about a solution, by the option that asks for it, and its
        columns.
    per_event: the policy that decides every event by itself, as well as it can with what is known
        by then.
    tiny: parameters of `generate` for a problem on which everything is done in a moment.
    overview: the methods of the comparison of all families.
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
        """Problems, solutions, and how they are made."""
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
        """The package of exact methods and bounds: METHODS, FORMULATIONS, auto, auto_bound."""
        from optgap.solvers import consolidation, coscheduling, elastic, placement, queueing

        return _named(self.name, consolidation, coscheduling, elastic, placement, queueing)

    @property
    def heuristics(self) -> Any:
        """The package of online policies: POLICIES, and CUSTOM, which runs a user's own."""
        from optgap.heuristics import consolidation, coscheduling, elastic, placement, queueing

        return _named(self.name, consolidation, coscheduling, elastic, placement, queueing)

    def export(self, name: str, problem: Any, solution: Any) -> str:
        """One of `tables_out` as CSV text: the solution has a method for each."""
        return csv_text(*getattr(solution, name)(problem))

    def regrets(self, problem: Any, solution: Any) -> list[Regret]:
        """What each of a solution's decisions cost, in time order.

        Judges count time from the problem's first event.
        """
        from optgap.models.times import from_first_event  # imports NumPy

        found: list[Regret] = self.room("heuristics", "regret").regrets(
            *from_first_event(problem, solution)
        )
        moved = [replace(regret, time=regret.time + problem.epoch_s) for regret in found]
        return sorted(moved, key=lambda regret: regret.time)

    def from_tables(self, files: Mapping[str, Any], given: Mapping[str, Any], seed: int) -> Problem:
        """A problem from CSV files, or what stands for them, and parameters, which may be text.

        The parameter ``strict``, true without it, refuses what looks like another unit.

        Raises
        ------
        InputError: for an unknown parameter, or what the files hold.
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
        """Refuse what looks like another unit, or without `strict` warn of it in one line.

        Raises
        ------
        InputError: with `strict`, for a value that is not believed.
        """
        judge(doubted(problem), source, strict)

    @property
    def serves(self) -> tuple[str, ...]:
        """The fitted models that its problems take."""
        return tuple(self.models.serves)

    @property
    def methods(self) -> Mapping[str, Entry]:
        """Exact methods and bounds, by name."""
        table: Mapping[str, Entry] = self.solvers.METHODS
        return table

    @property
    def formulations(self) -> Mapping[str, Entry]:
        """What `optgap export` writes, by name; the first is the default."""
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
        """What each parameter of an entry means; `role` is the table that the entry is in."""
        if entry.options is not None or not entry.params:
            return meanings(entry.options) if entry.options else {}
        folder = {"policies": "heuristics", "presets": "models"}.get(role, "solvers")
        known: Mapping[str, Parameter] = self.room(folder, "parameters").PARAMETERS
        return {name: known.get(f"{entry.name}.{name}") or known[name] for name in entry.params}

    def auto(self, problem: Problem) -> str:
        """The method for a problem of this size."""
        return str(self.solvers.auto(problem))

    def auto_bound(self, problem: Problem) -> str:
        """The bound for a problem of this size."""
        return str(self.solvers.auto_bound(problem))


def _named(family: str, *rooms: ModuleType) -> ModuleType:
    """The package of a family, of those of all families."""
    return next(room for room in rooms if room.__name__.endswith(f".{family}"))


def keywords(target: Any, skip: Sequence[str] = ()) -> dict[str, Any]:
    """The parameters that have a default, with it."""
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):  # an object with a method place, or compiled code
        return {}
    return {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not inspect.Parameter.empty and name not in skip
    }
