"""A bound from the GPU counts that may run at the same time.

At any instant the GPU counts that run form a pattern q of at most K counts that add up to at most
M. With t_q ≥ 0 the time spent in pattern q and x_ag how many jobs of application a run on g GPUs:

    min  Σ (P_ag − g·P_idle)·T_ag·x_ag + P_idle·M·C
    s.t. Σ_g x_ag = jobs of a;  Σ_q (times g is in q)·t_q ≥ Σ_a T_ag·x_ag for every g;
         C ≥ Σ_q t_q;  C ≥ Σ_g T_ag·x_ag / jobs of a for every a.

Where jobs come over time, applications are told apart by release, and for some releases r the
same rows stand once more for the jobs from r on: C ≥ r + Σ_q t_q(r).

Every schedule gives such x and t; that a job runs without a break, beside particular jobs, is
forgotten. With "≥" the patterns that no further count fits into are enough.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from optgap.models.coscheduling import CoschedulingObjective, CoschedulingProblem
from optgap.models.coscheduling.problem import Goal
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder, LinearModel, Solved
from optgap.solvers.coscheduling.area import bound_area, cost_off_j, energy_j, safe_makespan
from optgap.solvers.coscheduling.product import least_product

MOST_PATTERNS = 3000
TOLERANCE = 1e-10
"""The solver's own, on numbers of about 1: the objective, all jobs of a class, the horizon."""
GAP = 1e-6
"""Relative gap at which the integer program may stop; its proven side is the bound."""
MOST_RELEASES = 12
"""Releases from which on the rows are repeated."""


def patterns(problem: CoschedulingProblem) -> list[tuple[int, ...]] | None:
    """Return every pattern that no further count fits into; None above `MOST_PATTERNS`."""
    counts = sorted({m.gpu_count for a in set(problem.jobs) for m in problem.applications[a].modes})
    found: list[tuple[int, ...]] = []
    stack: list[tuple[tuple[int, ...], int]] = [((), problem.gpus)]
    most = min(problem.numa, len(problem))
    while stack:
        pattern, free = stack.pop()
        if len(pattern) == most or free < counts[0]:
            found.append(pattern)
        else:
            last = pattern[-1] if pattern else problem.gpus
            stack += [((*pattern, g), free - g) for g in counts if g <= min(free, last)]
        # Descending counts may end with free GPUs that only a smaller count could take, and it does
        if len(found) + len(stack) > MOST_PATTERNS:
            return None
    return found


Class = tuple[int, float]
"""(application, release in s after the first) of jobs that are alike."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """The integer program, and where x and C are in it.

    Parameters
    ----------
    model: as above, with `x` and `makespan` as columns.
    x: column by (application, release) and GPU count.
    horizon_s: the unit of time: no optimal schedule need be longer.
    unit: of the objective, J or s.
    off: what the solver's tolerance may add to its bound, in units: that on reduced costs, for
        as many modes as there are jobs, for C, and for the time in all patterns of each release.
    """

    model: LinearModel
    x: dict[tuple[Class, int], int]
    makespan: int
    horizon_s: float
    unit: float
    off: float


def classes(problem: CoschedulingProblem) -> list[Class]:
    """Return the class of each job."""
    return [(a, problem.delay_s(job)) for job, a in enumerate(problem.jobs)]


def one_by_one(problem: CoschedulingProblem) -> float:
    """Return the objective of a schedule: jobs in sequence, each on its fastest mode, its cheapest,
    or the one that is cheapest with the idle node; the best of the three."""
    idle = problem.idle_w * problem.gpus
    latest = max(problem.delay_s(job) for job in range(len(problem)))
    rules = (
        lambda mode: mode.runtime_s,
        problem.cost_j,
        lambda mode: problem.cost_j(mode) + idle * mode.runtime_s,
    )
    values = []
    for rule in rules:
        modes = [min(problem.application(job).modes, key=rule) for job in range(len(problem))]
        makespan = math.fsum([latest, *(m.runtime_s for m in modes)])
        values.append(problem.value(energy_j(problem, modes, makespan), makespan))
    return min(values)


def relaxation(
    problem: CoschedulingProblem,
    found: list[tuple[int, ...]],
    goal: Goal,
) -> Relaxation:
    """Return the program for least energy or makespan (`goal`), in units near 1."""
    builder = LinearBuilder()
    energy = goal == "energy"
    longest = (max(m.runtime_s for m in problem.applications[a].modes) for a in problem.jobs)
    latest = max(problem.delay_s(job) for job in range(len(problem)))
    horizon = math.fsum([latest, *longest])
    unit = one_by_one(replace(problem, objective=CoschedulingObjective(goal)))
    idle = problem.idle_w * problem.gpus if energy else 1.0
    makespan = builder.variable(safe_makespan(problem) / horizon, math.inf, idle * horizon / unit)
    total = Counter(classes(problem))
    x: dict[tuple[Class, int], int] = {}
    for kind, jobs in total.items():
        modes = problem.applications[kind[0]].modes
        for mode in modes:
            cost = (problem.cost_j(mode) - cost_off_j(problem, mode)) / unit if energy else 0.0
            x[kind, mode.gpu_count] = builder.variable(0, jobs, cost, integer=True)
        builder.row([(x[kind, m.gpu_count], 1.0) for m in modes], jobs, jobs)
        mean = [(x[kind, m.gpu_count], -m.runtime_s / horizon / jobs) for m in modes]
        builder.row([(makespan, 1.0), *mean], lower=kind[1] / horizon * (1 - 1e-12))
    releases = _some_releases(problem)
    for release in releases:
        work: dict[int, list[tuple[int, float]]] = {}
        for (kind, g), column in x.items():
            took = problem.applications[kind[0]].mode(g)
            if kind[1] >= release and took is not None:
                work.setdefault(g, []).append((column, -took.runtime_s / horizon))
        _rows(builder, found, work, makespan, release=release / horizon * (1 - 1e-12))
    off = TOLERANCE * (len(problem) + 1 + len(releases))
    return Relaxation(builder.build(), x, makespan, horizon, unit, off)


def _rows(
    builder: LinearBuilder,
    found: list[tuple[int, ...]],
    work: dict[int, list[tuple[int, float]]],
    makespan: int,
    *,
    release: float,
) -> None:
    """Time in each pattern from `release` on, enough for the `work` on every GPU count."""
    times = [builder.variable() for _ in found]
    for g, terms in work.items():
        held = [(t, float(q.count(g))) for t, q in zip(times, found, strict=True) if g in q]
        builder.row([*held, *terms], lower=0)
    builder.row([(makespan, 1.0), *((t, -1.0) for t in times)], lower=release)


def _some_releases(problem: CoschedulingProblem) -> list[float]:
    """Return 0 and at most `MOST_RELEASES` other releases, evenly spread."""
    delays = map(problem.delay_s, range(len(problem)))
    later = sorted({delay for delay in delays if delay > 0})
    step = max(1, math.ceil(len(later) / MOST_RELEASES))
    return [0.0, *later[::step]]


@dataclass(frozen=True, slots=True)
class Proof:
    """Bound of the program, and the GPU counts of its solution.

    Parameters
    ----------
    bound: on the problem's objective.
    counts: one GPU count per job, or None when no point was found.
    solver: who solved it.
    termination: why it stopped.
    makespan_s: C of the point found, or None.
    """

    bound: float
    counts: list[int] | None
    solver: str
    termination: Termination
    makespan_s: float | None = None


def prove(
    problem: CoschedulingProblem,
    found: list[tuple[int, ...]],
    limits: Limits,
    seed: int = 0,
) -> Proof | None:
    """Solve the program for the problem's objective; None when time is up before any bound.

    Also None where the solver's bound is above what a schedule has: its numbers are then too far
    apart for it.
    """
    goal = problem.objective.goal
    if goal == "edp":
        return _product(problem, found, limits, seed)
    program = relaxation(problem, found, goal)
    answer = solve(
        program.model, backend="highs", limits=limits, gap=GAP, seed=seed, tolerance=TOLERANCE
    )
    if answer.bound is None or answer.bound - program.off > 1:
        return None
    bound = (answer.bound - program.off) * program.unit * (1 - 1e-12)
    makespan = None
    if answer.values is not None:
        makespan = float(answer.values[program.makespan]) * program.horizon_s
    counts = _counts(problem, program, answer)
    return Proof(bound, counts, answer.solver, answer.termination, makespan)


def _product(
    problem: CoschedulingProblem,
    found: list[tuple[int, ...]],
    limits: Limits,
    seed: int,
) -> Proof | None:
    """Energy times makespan, from the same program at several prices of time."""
    best: tuple[float, Proof] | None = None

    def solved(part: CoschedulingProblem) -> tuple[float, float, float] | None:
        nonlocal best
        proof = prove(part, found, limits, seed)
        if proof is None or proof.counts is None or proof.makespan_s is None:
            return None
        energy = _energy(part, proof)
        real = _energy(problem, proof) * proof.makespan_s
        if best is None or real < best[0]:
            best = (real, proof)
        return proof.bound, energy, proof.makespan_s

    bound = least_product(problem, limits, solved)
    if bound is None or best is None:
        return None
    termination = limits.stop or Termination.COMPLETED
    return Proof(bound, best[1].counts, best[1].solver, termination)


def _energy(problem: CoschedulingProblem, proof: Proof) -> float:
    """E of the point that a program found, J."""
    counts, makespan = proof.counts or [], proof.makespan_s or 0.0
    modes = [problem.application(job).mode(g) for job, g in enumerate(counts)]
    cost = math.fsum(problem.cost_j(mode) for mode in modes if mode is not None)
    return cost + problem.idle_w * problem.gpus * makespan


def _counts(problem: CoschedulingProblem, program: Relaxation, answer: Solved) -> list[int] | None:
    if answer.values is None:
        return None
    left = {key: round(float(answer.values[column])) for key, column in program.x.items()}
    counts = []
    for kind in classes(problem):
        g = next(
            (
                m.gpu_count
                for m in problem.applications[kind[0]].modes
                if left[kind, m.gpu_count] > 0
            ),
            None,
        )
        if g is None:
            return None
        left[kind, g] -= 1
        counts.append(g)
    return counts


def bound_patterns(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the bound above; for energy times makespan by prices of time (``product.py``).

    Raises
    ------
    InputError: for more than `MOST_PATTERNS` patterns.
    """
    found = patterns(problem)
    if found is None:
        shown = NoQuote(f"more than {MOST_PATTERNS} patterns")
        raise InputError("bound-patterns", "", shown, "fewer GPUs or domains; or bound-area")
    area = bound_area(problem, limits=limits, seed=seed)
    proof = prove(problem, found, limits, seed)
    termination = limits.stop or Termination.COMPLETED if proof is None else proof.termination
    if proof is None or proof.bound <= (area.bound or 0.0):
        return replace(area, termination=termination, info={"patterns": len(found)})
    return Outcome(
        None,
        Status.BOUND_ONLY,
        termination,
        bound=proof.bound,
        bound_by=f"patterns of GPU counts, {proof.solver}",
        info={"patterns": len(found)},
    )
