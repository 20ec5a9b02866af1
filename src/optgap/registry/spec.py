"""What a family is, and where its parts are: nothing is imported before it is asked for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from optgap.contract import Problem, ProblemClass, SolutionClass
from optgap.models.quantities import judge, settings_doubted
from optgap.models.spec import Entry, Parameter, imported, meanings
from optgap.parameters import typed

Role = Literal["policies", "methods", "presets", "formulations"]
REPEATABLE = "repeatable"
"""In the text about a file that may be given several times."""


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """One problem family, as ``module:attribute`` texts.

    Parameters
    ----------
    name: the family's name, the same in every folder.
    question: what is decided and what is optimised, in one line.
    problem, solution: the classes.
    tables: a function that makes a problem from CSV files, ``f(**files, seed, **params)``.
    files: the CSV files that `tables` takes and their columns; those that must be given first.
    needed: how many of `files` must be given.
    tables_out: what can be written about a solution: functions ``f(problem, solution) -> CSV
        text`` by the option that asks for them, and their columns.
    drawn: of `tables_out`, those that can be drawn instead: functions ``f(problem, solution) ->
        matplotlib Figure``.
    view: a function that draws a solution, ``f(problem, solution, by) -> matplotlib Figure``;
        `by` is who made it, for the title.
    bound_curve: a function ``f(problem, solution, limits=…)`` for what is proven of a solution at
        every moment of it, which `view` draws as ``curve=``, where problems are over time.
    exact: the exact methods that policies ask at their events, by policy.
    per_event: the policy that solves every event exactly with what is known by then, or, where
        `per_event_exact` is false, as well as it can.
    relaxed: a part of the way from the bound to the best known, and what that part is the price
        of: ``f(problem)``, the problem where it is none; None where it is none already.
    freed: ``f(problem)``, the problem where tasks that run move for nothing; None where they may
        already. What its bound leaves open is what moves could be worth at most.
    spared: ``f(problem)``, the problem with free restarts; None where they are.
    informed: parameters with which policies that have them know their jobs' models for nothing.
    unpaid: parameters with which these learn the models as ever, and learning costs nothing.
    regrets: a function that judges a solution's decisions one by one, ``f(problem, solution) ->
        list of Regret``.
    worth: a function that says what resources were worth at a solution's decisions,
        ``f(problem, solution)``, in a sentence as text.
    refit: a function that puts fits into a problem, ``f(problem, fits, seed=0)``; `SERVES` beside
        it names the models that it takes.
    doubts: a function that names what looks like another unit, ``f(problem) -> list of Doubt``.
    tiny: parameters of `generate` for a problem on which everything is done in a moment.
    overview: the methods of the comparison of all families: ones whose work does not hang on
        the clock, so that every run shows the same numbers, the first one, too.
    """

    name: str
    question: str
    problem: str
    solution: str
    tables: str
    files: Mapping[str, str] = field(default_factory=dict)
    needed: int = 0
    tables_out: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    drawn: Mapping[str, str] = field(default_factory=dict)
    view: str = ""
    bound_curve: str = ""
    exact: Mapping[str, str] = field(default_factory=dict)
    per_event: str = ""
    per_event_exact: bool = True
    relaxed: tuple[str, str] | None = None
    freed: str = ""
    spared: str = ""
    informed: Mapping[str, Any] = field(default_factory=dict)
    unpaid: Mapping[str, Any] = field(default_factory=dict)
    regrets: str = ""
    worth: str = ""
    refit: str = ""
    doubts: str = ""
    tiny: Mapping[str, Any] = field(default_factory=dict)
    overview: str = "auto"

    def from_tables(self, files: Mapping[str, Any], given: Mapping[str, Any], seed: int) -> Problem:
        """A problem from CSV files, or what stands for them, and parameters, which may be text.

        The parameter ``strict``, true without it, refuses what looks like another unit.

        Raises
        ------
        InputError: for an unknown parameter, or what the files hold.
        """
        function = imported(self.tables)
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
        if self.doubts:
            judge(imported(self.doubts)(problem), source, strict)

    @property
    def serves(self) -> tuple[str, ...]:
        """The fitted models that its problems take."""
        return tuple(imported(f"{self.refit.partition(':')[0]}:SERVES"))

    def export(self, name: str, problem: Problem, solution: Any) -> str:
        """One of `tables_out` for a solution, as CSV text."""
        text: str = imported(self.tables_out[name][0])(problem, solution)
        return text

    @property
    def problem_class(self) -> ProblemClass:
        cls: ProblemClass = imported(self.problem)
        return cls

    @property
    def solution_class(self) -> SolutionClass:
        cls: SolutionClass = imported(self.solution)
        return cls

    @property
    def methods(self) -> Mapping[str, Entry]:
        """Exact methods and bounds, by name."""
        table: Mapping[str, Entry] = imported(f"optgap.solvers.{self.name}:METHODS")
        return table

    @property
    def formulations(self) -> Mapping[str, Entry]:
        """What `optgap export` writes, by name; the first is the default."""
        table: Mapping[str, Entry] = imported(f"optgap.solvers.{self.name}:FORMULATIONS")
        return table

    @property
    def policies(self) -> Mapping[str, Entry]:
        """Online policies, by name."""
        table: Mapping[str, Entry] = imported(f"optgap.heuristics.{self.name}:POLICIES")
        asking = {name: replace(table[name], exact=exact) for name, exact in self.exact.items()}
        return {**table, **asking}

    @property
    def presets(self) -> Mapping[str, Entry]:
        """Ready-made problems, by name; the first is the default."""
        table: Mapping[str, Entry] = imported(f"optgap.models.{self.name}.presets:PRESETS")
        return table

    def explained(self, role: Role, entry: Entry) -> dict[str, Parameter]:
        """What each parameter of an entry means; `role` is the table that the entry is in."""
        if entry.options is not None or not entry.params:
            return meanings(entry.options) if entry.options else {}
        folder = {"policies": "heuristics", "presets": "models"}.get(role, "solvers")
        known: Mapping[str, Parameter]
        known = imported(f"optgap.{folder}.{self.name}.parameters:PARAMETERS")
        return {name: known.get(f"{entry.name}.{name}") or known[name] for name in entry.params}

    def auto(self, problem: Problem) -> str:
        """The method for a problem of this size."""
        return str(imported(f"optgap.solvers.{self.name}:auto")(problem))

    def auto_bound(self, problem: Problem) -> str:
        """The bound for a problem of this size."""
        return str(imported(f"optgap.solvers.{self.name}:auto_bound")(problem))


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
