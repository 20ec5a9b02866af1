"""The formulation as printed, Eq. 6-14, with its gaps filled: the reference, not the method."""

from __future__ import annotations

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import FloatArray, LinearBuilder, LinearModel
from optgap.solvers.consolidation.instance import instance_of

MOST_LITERALS = 200_000
GAP, UNSURE = 1e-7, 5e-7
"""How far from the optimum a solver may stop, and how far its proofs are trusted; relative."""


class Printed:
    """Variables x_lij, y_ij, z_i, f_ij and o_li in that order, and the rows by equation."""

    def __init__(self, problem: ConsolidationProblem, big_m: bool, limits: Limits) -> None:
        self.problem, self.big_m = problem, big_m
        self.stopped: Termination | None = None
        self.builder = LinearBuilder()
        b, gpus, tasks = self.builder, range(len(problem.places)), range(len(problem))
        self.x = {(ell, g): b.variable(upper=1, integer=True) for ell in tasks for g in gpus}
        self.y = [b.variable(upper=1, integer=True, cost=self._line(g).static_w) for g in gpus]
        self.z = [b.variable(upper=1, integer=True, cost=s.static_w) for s in problem.servers]
        self.f = [b.variable(cost=self._line(g).slope_w_per_mhz) for g in gpus]
        for ell in tasks:
            self._placed(ell)
        for g in gpus:
            self.stopped = self.stopped or limits.stop
            if self.stopped is not None:
                return  # half a model is none
            self._held(g)
            self._clock(g)
        for i in range(len(problem.servers)):
            own = [self.y[g] for g in gpus if problem.places[g][0] == i]
            b.row([(self.z[i], 1.0), *((y, -1.0) for y in own)], upper=0)  # (11)

    def _kind(self, g: int) -> int:
        return int(self.problem.gpu_kind[g])

    def _line(self, g: int):  # type: ignore[no-untyped-def]
        return self.problem.kinds[self._kind(g)].power

    def _placed(self, ell: int) -> None:
        """(7), and one server for all GPUs of a task where the rules say so."""
        problem, b, v = self.problem, self.builder, self.problem.tasks[ell].gpus
        gpus = range(len(problem.places))
        b.row([(self.x[ell, g], 1.0) for g in gpus], v, v)
        if problem.rules.gang == "server" and v > 1:
            inside = [b.variable(upper=1, integer=True) for _ in problem.servers]
            b.row([(o, 1.0) for o in inside], 1, 1)
            for i, o in enumerate(inside):
                own = [(self.x[ell, g], 1.0) for g in gpus if problem.places[g][0] == i]
                b.row([*own, (o, -float(v))], 0, 0)

    def _held(self, g: int) -> None:
        """(8)-(10), and the capacity rows."""
        problem, b = self.problem, self.builder
        memory = problem.kinds[self._kind(g)].memory_gb
        tasks = range(len(problem))
        b.row(
            [
                *((self.x[ell, g], problem.tasks[ell].memory_gb) for ell in tasks),
                (self.y[g], -memory),
            ],
            upper=0,
        )
        for ell in tasks:
            b.row([(self.x[ell, g], 1.0), (self.y[g], -1.0)], upper=0)
        b.row([(self.y[g], 1.0), (self.z[problem.places[g][0]], -1.0)], upper=0)
        for row in problem.rows:
            terms = [(self.x[ell, g], float(row[ell]) / problem.limit_micro) for ell in tasks]
            b.row([*terms, (self.y[g], -1.0)], upper=0)

    def _clock(self, g: int) -> None:
        """(13) and (14); with discrete clocks one of them is chosen."""
        problem, b = self.problem, self.builder
        kind = problem.kinds[self._kind(g)]
        b.row([(self.f[g], 1.0), (self.y[g], -kind.f_min_mhz)], lower=0)
        b.row([(self.f[g], 1.0), (self.y[g], -kind.f_max_mhz)], upper=0)
        for ell in range(len(problem)):
            least = problem.floors_mhz[self._kind(g)][ell]
            big = kind.f_max_mhz if self.big_m else least
            b.row([(self.f[g], 1.0), (self.x[ell, g], -big)], lower=least - big)
        if kind.frequencies_mhz:
            steps = [b.variable(upper=1, integer=True) for _ in kind.frequencies_mhz]
            b.row([*((s, 1.0) for s in steps), (self.y[g], -1.0)], 0, 0)
            clocks = [(s, -f) for s, f in zip(steps, kind.frequencies_mhz, strict=True)]
            b.row([(self.f[g], 1.0), *clocks], 0, 0)

    def model(self) -> LinearModel:
        """The arrays."""
        return self.builder.build()

    def places(self, values: FloatArray) -> list[tuple[int, ...]]:
        """GPUs by task."""
        gpus = range(len(self.problem.places))
        return [
            tuple(g for g in gpus if values[self.x[ell, g]] > 0.5)
            for ell in range(len(self.problem))
        ]


def printed(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    backend: str = "highs",
    big_m: bool = True,
) -> Outcome:
    """Eq. 6-14 on a MILP solver; the paper used PuLP with CBC and a tolerance of 1e-6.

    Gap and tolerance together are less than that, or the optimum would not count as proven.

    Parameters
    ----------
    backend: ``highs``, ``cbc``, ``scip`` or ``scipy``.
    big_m: (14) with M = f_max as printed; else (14'), equal at x = 1 and tighter at x = 0.

    Raises
    ------
    InputError: for a problem too large to write down, or tasks with power lines of their own.
    """
    if len(problem) * len(problem.places) > MOST_LITERALS:
        found = NoQuote(f"{len(problem)} tasks on {len(problem.places)} GPUs")
        raise InputError("printed", "tasks", found, f"at most {MOST_LITERALS} pairs")
    if any(task.power is not None for task in problem.tasks):
        found = NoQuote("tasks with power lines of their own")
        raise InputError("printed", "tasks", found, "power that depends on the GPU alone")
    formulation = Printed(problem, big_m, limits)
    if formulation.stopped is not None:
        message = "stopped while the model was written"
        return Outcome(None, Status.NO_SOLUTION, formulation.stopped, message=message)
    solved = solve(formulation.model(), backend=backend, limits=limits, gap=GAP, seed=seed)
    info = {"variables": formulation.model().variables, "rows": formulation.model().rows}
    if solved.values is None:
        return Outcome(
            None,
            solved.status,
            solved.termination,
            bound=_below(solved.bound),
            bound_by=solved.solver or None,
            info=info,
            message=solved.message,
        )
    instance = instance_of(problem)
    places = formulation.places(solved.values)
    solution = instance.solution(places)
    if problem.check(solution):  # within the solver's tolerance, beyond ours
        status = Status.NO_SOLUTION if solved.bound is None else Status.BOUND_ONLY
        message = f"{solved.solver} overfills a GPU by its tolerance"
        return Outcome(None, status, solved.termination, bound=_below(solved.bound),
                       bound_by=solved.solver, info=info, message=message)  # fmt: skip
    return Outcome(
        solution,
        solved.status,
        solved.termination,
        claimed=instance.total(places),
        bound=_below(solved.bound),
        bound_by=solved.solver,
        info=info,
    )


def _below(bound: float | None) -> float | None:
    """The solver proves up to its tolerance."""
    return None if bound is None else float(np.nextafter(bound * (1 - UNSURE), -np.inf))
