"""The papers' formulations as PuLP problems: by what they are written, and what they amount to.

A formulation names its variables and rows as its paper does. It is one PuLP problem, whether it
is written to a file for another solver, solved here, or shown on the page of formulations.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Sense, Status, Termination
from optgap.models.spec import Parameter

if TYPE_CHECKING:
    from optgap.solvers.backends.linear import LinearModel

MOST_VARIABLES, MOST_TERMS = 1_000_000, 5_000_000
"""Largest numbers of variables and of entries in all rows; PuLP's objects take gigabytes."""
GAP, UNSURE = 1e-7, 5e-7
"""Relative gap at which a solver may stop, and relative error of its proofs that is assumed."""
BACKEND = Parameter(
    "the MILP solver; `optgap --version` shows which are usable", choices=("highs", "cbc")
)
NEAR = 1e-5
"""Relative; what integers that are some up to 1e-6 may put a solver's bound above its solution."""
CONSTANT = "constant"
"""The variable fixed at 1 that carries the constant part of an objective through any file."""


class Stopped(Exception):
    """The time was up, or an interrupt came, while a program was written down."""

    def __init__(self, termination: Termination) -> None:
        super().__init__("stopped while the model was written")
        self.termination = termination

    @property
    def outcome(self) -> Outcome:
        """That there is nothing, and why."""
        return Outcome(None, Status.NO_SOLUTION, self.termination, message=str(self))


class Program:
    """A PuLP problem in the making, the same for PuLP 3 and 4.

    Parameters
    ----------
    name: what it is called in files.
    sense: ``min`` or ``max``.
    limits: what may end the writing, with `Stopped`.

    Attributes
    ----------
    problem: the `pulp.LpProblem`.
    variables: its variables in the order in which they were made.
    """

    def __init__(self, name: str, sense: Sense = "min", limits: Limits | None = None) -> None:
        import pulp

        self.name, self.limits = name, limits
        self.problem = pulp.LpProblem(name, pulp.LpMinimize if sense == "min" else pulp.LpMaximize)
        self.variables: list[Any] = []
        self.terms = 0
        self._one: Any = None

    def binary(self, name: str) -> Any:
        """Add a variable that is 0 or 1."""
        import pulp

        return self._variable(name, 0, 1, pulp.LpInteger)

    def continuous(self, name: str, lower: float = 0, upper: float | None = None) -> Any:
        """Add a variable from `lower` to `upper`."""
        import pulp

        return self._variable(name, lower, upper, pulp.LpContinuous)

    def _variable(self, name: str, lower: float, upper: float | None, kind: Any) -> Any:
        made = self.problem.add_variable(name, lower, upper, kind)
        self.variables.append(made)
        self._look(len(self.variables), MOST_VARIABLES, "variables")
        return made

    def _look(self, count: int, most: int, what: str) -> None:
        """Raise where the limits or the size end it."""
        if count > most:
            found = NoQuote(f"more than {most:,} {what}")
            raise InputError(self.name, "", found, "a smaller problem, to be written down")
        stop = None if self.limits is None else self.limits.stop
        if stop is not None:
            raise Stopped(stop)

    def fix(self, variable: Any, value: int) -> None:
        """Leave a variable this one value."""
        variable.lowBound = variable.upBound = value

    @property
    def one(self) -> Any:
        """The variable that is 1."""
        if self._one is None:
            self._one = self.continuous(CONSTANT, 1, 1)
        return self._one

    def sum(self, terms: Iterable[Any]) -> Any:
        """Σ of variables and multiples of them, a linear expression also where there are none."""
        import pulp

        return pulp.lpSum(terms)

    def row(self, name: str, constraint: Any) -> None:
        """Add a constraint; one without variables is left out, or keeps everything from holding.

        Raises
        ------
        Stopped: at a limit.
        InputError: for a program that becomes too large.
        """
        size = len(constraint.items())
        if not size:
            value = float(constraint.constant) * int(constraint.sense)
            if value > 0 or not constraint.constant:
                return
            constraint = self.one <= 0
        self.terms += size
        self._look(self.terms, MOST_TERMS, "entries of its rows")
        self.problem += constraint, name

    def objective(self, name: str, expression: Any) -> None:
        """Set the objective; its constant part becomes a multiple of `one`."""
        constant = float(expression.constant)
        if constant:
            expression = expression - constant + constant * self.one
        if not expression.items():  # files need one, and would get a variable of PuLP's own
            expression = expression + self.continuous("nothing", 0, 0)
        self.problem += expression, name

    def sequence(
        self, start: Sequence[Any], length: Sequence[Any], longest: Sequence[float],
        earliest: Sequence[float], *, latest: Sequence[float],
    ) -> dict[tuple[int, int], Any]:  # fmt: skip
        """Binaries o_i_j: job i has ended when job j starts, s_j ≥ s_i + length_i.

        Parameters
        ----------
        length: numbers or expressions; `longest` is the most they can be.
        earliest, latest: between which each start is.
        """
        jobs = range(len(start))
        pairs = [(i, j) for i in jobs for j in jobs if i != j and earliest[i] < latest[j]]
        o = {(i, j): self.binary(f"o_{i}_{j}") for i, j in pairs}
        for i, j in pairs:
            big = max(0.0, latest[i] + longest[i] - earliest[j])
            self.row(f"after_{i}_{j}", start[j] >= start[i] + length[i] - big * (1 - o[i, j]))
            if i < j and (j, i) in o:
                self.row(f"one_way_{i}_{j}", o[i, j] + o[j, i] <= 1)
        return o

    def handed_on(
        self, what: str, held: Sequence[Any], most: Sequence[float], there: float,
        *, o: Mapping[tuple[int, int], Any],
    ) -> None:  # fmt: skip
        """Add rows by which jobs take resources from the free ones or from jobs that have ended.

        No more than `there` is held at any time exactly if every unit of it can be handed from job
        to job: what_i_j of them go from i to j, and what_start_j are free until j starts.

        Parameters
        ----------
        held, most: of each job, an expression and the most it can be.
        """
        jobs = range(len(held))
        f = {(i, j): self.continuous(f"{what}_{i}_{j}") for i, j in o if min(most[i], most[j]) > 0}
        first = [self.continuous(f"{what}_start_{j}", 0, most[j]) for j in jobs]
        for (i, j), flow in f.items():
            self.row(f"{what}_hand_{i}_{j}", flow <= min(most[i], most[j]) * o[i, j])
        for j in jobs:
            come = self.sum(f[i, j] for i in jobs if (i, j) in f)
            go = self.sum(f[j, i] for i in jobs if (j, i) in f)
            self.row(f"{what}_take_{j}", first[j] + come - held[j] == 0)
            self.row(f"{what}_give_{j}", go - held[j] <= 0)
        self.row(f"{what}_there", self.sum(first) <= there)


@dataclass(frozen=True, eq=False)
class Formulation:
    """A program and what its values mean.

    Parameters
    ----------
    program: variables and rows.
    decode: the solution behind whole values by name; raises ValueError for values that mean none.
    """

    program: Program
    decode: Callable[[Mapping[str, float]], Any]

    def __repr__(self) -> str:
        linear = self.linear
        size = f"{linear.variables} variables ({int(linear.integer.sum())} whole)"
        return f"<Formulation {self.program.name}: {size}, {linear.rows} rows>"

    @property
    def model(self) -> Any:
        """The `pulp.LpProblem`."""
        return self.program.problem

    @cached_property
    def linear(self) -> LinearModel:
        """The same as arrays, its variables in the order of `names`."""
        from optgap.solvers.backends.pulp_model import from_pulp

        return from_pulp(self.program.problem, self.program.variables)

    @cached_property
    def names(self) -> dict[str, int]:
        """The place of every variable by its name."""
        return {variable.name: k for k, variable in enumerate(self.program.variables)}

    @cached_property
    def row_names(self) -> list[str]:
        """The names of the rows of `linear`."""
        from optgap.solvers.backends.pulp_model import rows_of

        return [row.name for row in rows_of(self.program.problem)]

    def solution(self, values: Sequence[float]) -> Any:
        """Return the solution behind values in the order of `names`."""
        return self.decode(dict(zip(self.names, values, strict=True)))

    def write(self, path: str | os.PathLike[str], mps: bool = False) -> None:
        """Write an LP or MPS file; integers and the constant part are in both."""
        if not mps:
            self.model.writeLP(os.fspath(path))
            return
        self.model.writeMPS(os.fspath(path), with_objsense=self.linear.sense == "max")
        if self.linear.sense == "max":  # PuLP begins with the sense; CBC wants it behind the name
            lines = Path(path).read_text().splitlines()
            lines[:3] = [lines[2], lines[0], "    MAX"]
            Path(path).write_text("\n".join(lines) + "\n")


def chosen(values: Mapping[str, float], variables: Mapping[Any, Any]) -> list[Any]:
    """Return the keys of the binaries that are 1."""
    return [key for key, variable in variables.items() if values[variable.name] > 0.5]


def earliest_starts(
    release: Sequence[float], length: Sequence[float], after: Iterable[tuple[int, int]]
) -> list[float]:
    """Return each job's start if it waits only for its release and for the jobs before it, s.

    Files have few digits and solvers have tolerances, but the order of jobs is exact.

    Raises
    ------
    ValueError: for jobs that wait for one another.
    """
    from graphlib import CycleError, TopologicalSorter

    before: dict[int, list[int]] = {j: [] for j in range(len(release))}
    for i, j in after:
        before[j].append(i)
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise ValueError(f"jobs {error.args[1]} wait for one another") from None
    start = list(release)
    for j in order:
        start[j] = max([release[j], *(start[i] + length[i] for i in before[j])])
    return start


def solved(
    problem: Any,
    make: Callable[..., Formulation],
    *,
    limits: Limits,
    seed: int,
    backend: str,
    tolerance: float = 0.0,
) -> Outcome:
    """Solve a formulation by a general MILP solver: the reference for fast methods.

    The referee checks and values the solver's solution.

    Parameters
    ----------
    make: function that writes the formulation of `problem`; it is called with ``limits``.
    tolerance: tolerance for the solver, by which alone its bound is lowered; 0 for the solver's
        own, whose bounds are lowered by `UNSURE`.

    Raises
    ------
    InputError: as `make`, and for a back end that is unknown, unusable or wants integers.
    """
    from optgap.solvers.backends import solve
    from optgap.solvers.backends.safe import solver_slack

    try:
        written = make(problem, limits=limits)
    except Stopped as stopped:
        return stopped.outcome
    linear = written.linear
    gap = 0.0 if tolerance else GAP
    found = solve(linear, backend=backend, limits=limits, seed=seed, gap=gap, tolerance=tolerance)
    sign = 1.0 if linear.sense == "min" else -1.0
    bound = found.bound
    if bound is not None:
        bound -= sign * (solver_slack(linear, tolerance) if tolerance else UNSURE * abs(bound))
    by = f"formulation {written.program.name}, {found.solver}"
    info = {"variables": linear.variables, "rows": linear.rows}
    outcome = Outcome(
        None, found.status, found.termination, None, bound, by, info, found.message
    )  # fmt: skip
    if found.status is Status.INFEASIBLE:
        return replace(outcome, message=f"no solution exists (proven by {by})")
    if found.values is None:
        return outcome
    solution = written.solution(found.values.tolist())
    if problem.check(solution):  # within the solver's tolerance, beyond ours
        status = Status.NO_SOLUTION if bound is None else Status.BOUND_ONLY
        message = f"what {found.solver} found breaks a constraint by its tolerance"
        return replace(outcome, status=status, message=message)
    value = float(problem.evaluate(solution).objective)
    if bound is not None and 0 < sign * (bound - value) <= NEAR * max(1.0, abs(value)):
        bound = value
    return replace(outcome, solution=solution, claimed=value, bound=bound, message="")
