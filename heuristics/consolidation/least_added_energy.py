"""Least added energy (ours): a policy for tasks whose durations are known or estimated.

S_g are the residents of GPU g. E_g(S) and T_g(S) are the energy and the time until all of S have
ended, simulated from now on at f_max with contention s(U). Task l gets the v GPUs of the least

    Σ_g [E_g(S_g ∪ {l}) − E_g(S_g)] + Σ_i static power of server i · the time it is longer awake,

J. Ties go to the least Σ_g |T_g(S_g) − e_l|, e_l being the task's duration, because a GPU sleeps
sooner if its tasks end together. If all tasks are present at once, the policy equals `opt_nomig`.
A gang is simulated on each of its GPUs as if it had only that GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.consolidation.clocks import highest
from optgap.heuristics.consolidation.engine import Engine
from optgap.heuristics.consolidation.opt_nomig import opt_nomig
from optgap.heuristics.consolidation.parameters import LeastAddedEnergyParams
from optgap.heuristics.consolidation.state import Choice, ConsolidationState, Decide
from optgap.models.compiled import UP_TO, compiled, floats, interpreted
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.consolidation.over_time.loop import Tables

NEAR_S = 1e-9
"""Distance to the end of a sample within which a task has reached the end, s."""
OVERDUE = 1 + 1e-6
"""Factor of its expected duration beyond which a task counts as lasting longer than expected."""
DIGITS = 6
"""Digits of energies and times, relative to the arriving task's own, that decide ties."""


def least_added_energy(
    problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """Choose the least added energy, at f_max.

    `given` is as in `LeastAddedEnergyParams`.

    Raises
    ------
    InputError: for an option out of its range.
    """
    options = chosen(LeastAddedEnergyParams, given, "least_added_energy")
    if problem.objective.goal == "power":
        return opt_nomig(problem, limits=limits, seed=seed)
    lasting = floats([task.duration_s for task in problem.tasks])
    if options.duration_error:
        rng = np.random.default_rng(seed)
        lasting = lasting * rng.lognormal(0.0, options.duration_error, len(lasting))
    decide = least_added(problem, lasting, options.u_max)
    samples = sum(task.util_percent.size for task in problem.tasks)
    with interpreted(samples * len(problem.places) <= UP_TO.consolidation_cells):
        return Engine(problem, decide, highest, limits).run()


def least_added(problem: ConsolidationProblem, lasting: FloatArray, u_max: float) -> Decide:
    """Return the rule for expected durations `lasting`, (L,) s; a `u_max` of 0 sets no cap."""
    watts = floats(
        [
            [problem.line(ell, k).watts(kind.f_max_mhz) for ell in range(len(problem))]
            for k, kind in enumerate(problem.kinds)
        ]
    )

    def decide(state: ConsolidationState, task: int) -> Choice:
        room = state.fits(task)
        if u_max:
            room &= state.mean_micro + problem.mean_micro[task] <= round(u_max * 1e6)
        found = scored(state.tables, watts, problem.gpu_kind, room, state.time_s, task, lasting)
        return least(state, task, *found, own_s=float(lasting[task]))

    return decide


def least(
    state: ConsolidationState,
    task: int,
    added: FloatArray,
    rest: FloatArray,
    end: FloatArray,
    *,
    own_s: float,
) -> Choice:
    """Choose the GPUs for a task by `scored`; each GPU of a spread gang may wake its own server."""
    problem = state.problem
    v = problem.tasks[task].gpus
    static = np.array([server.static_w for server in problem.servers])
    awake_s = np.maximum.reduceat(rest, state.first_gpu[:-1])
    server = problem.gpu_server
    longer = static[server] * np.maximum(0.0, end - awake_s[server])
    kind = int(problem.gpu_kind[0])
    scale = max(own_s * problem.watts(kind, [task], problem.kinds[kind].f_max_mhz), 1e-9)
    total = np.round((added + longer) / scale, DIGITS)
    apart = np.round(np.abs(rest - own_s) / own_s, DIGITS)
    order = np.lexsort((apart, total))
    order = order[np.isfinite(total[order])]
    if v == 1 or problem.rules.gang == "free":
        return tuple(order[:v].tolist()) if len(order) >= v else None
    best: tuple[float, float, int] | None = None
    best_gpus: Choice = None
    for i in np.unique(server[order]).tolist():
        own = order[server[order] == i][:v]
        if len(own) < v:
            continue
        joules = float(added[own].sum() + longer[own].max())
        key = (round(joules / scale, DIGITS), round(float(apart[own].sum()), DIGITS), i)
        if best is None or key < best:
            best, best_gpus = key, tuple(own.tolist())
    return best_gpus


@compiled
def scored(
    tables: Tables,
    watts: FloatArray,
    gpu_kind: IntArray,
    room: np.ndarray,
    now: float,
    task: int,
    lasting: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the added energy of `task`, J, infinite without room, and ends before and after, (G,).

    Parameters
    ----------
    watts: (K, L) power at f_max by kind and task, W.
    """
    gpus = len(room)
    added, rest, end = np.full(gpus, np.inf), np.zeros(gpus), np.zeros(gpus)
    alone = np.full((len(watts), 2), -1.0)  # an empty GPU's J and s, by kind
    for g in range(gpus):
        own = tables.held[g, : tables.many[g]]
        before = 0.0
        if len(own):
            before, rest[g] = played(tables, watts, gpu_kind[g], own, now, lasting)
        if not room[g]:
            continue
        if len(own):
            both = np.append(own, task)
            joules, end[g] = played(tables, watts, gpu_kind[g], both, now, lasting)
        else:
            kind = gpu_kind[g]
            if alone[kind, 0] < 0:
                only = np.full(1, task)
                alone[kind] = played(tables, watts, kind, only, now, lasting)
            joules, end[g] = alone[kind, 0], alone[kind, 1]
        added[g] = joules - before
    return added, rest, end


@compiled
def played(
    tables: Tables,
    watts: FloatArray,
    kind: int,
    tasks: IntArray,
    now: float,
    lasting: FloatArray,
) -> tuple[float, float]:
    """Return energy (J) and time (s) until all `tasks` end on a GPU."""
    present = len(tasks)
    who, at, done = tasks.copy(), tables.at[tasks], np.zeros(present)
    whole = lasting[tasks]
    for m in range(present):
        task = who[m]
        if tables.due[task] < np.inf:  # it runs
            done[m] = tables.progress[task] + (now - tables.since[task]) * tables.rate[task]
        while done[m] > whole[m] * OVERDUE:  # twice as long as thought
            whole[m] *= 2.0
    joules, clock = 0.0, 0.0
    while present:
        total, draw, soon = 0.0, 0.0, np.inf
        for m in range(present):
            total += tables.series[tables.offset[who[m]] + at[m]]
            soon = min(soon, reach(tables, who[m], at[m], whole[m]) - done[m])
            draw = max(draw, watts[kind, who[m]])
        soon = max(0.0, soon)
        slow = 1.0 if total <= 100.0 else (total / 100.0) ** tables.exponent
        taken = soon * slow
        joules, clock = joules + draw * taken, clock + taken
        left = 0
        for m in range(present):
            task, point = who[m], reach(tables, who[m], at[m], whole[m])
            progress, sample = done[m] + soon, at[m]
            if point - progress <= NEAR_S:
                if point >= whole[m]:
                    continue
                progress, sample = point, sample + 1
            who[left], at[left], done[left], whole[left] = task, sample, progress, whole[m]
            left += 1
        present = left
    return joules, clock


@compiled
def reach(tables: Tables, task: int, sample: int, whole: float) -> float:
    """Return the progress at the end of a sample, or of the task if that is sooner, s."""
    if sample < tables.length[task] - 1:
        return float(min(whole, (sample + 1) * tables.period))
    return float(whole)
