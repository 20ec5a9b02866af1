"""EcoSched and its comparators once more: every feasible action is listed and scored.

Shares no code with the package and reads only a problem's own data. Where the paper is silent
(docs/errata.md): one action per event, never the empty one while another is feasible, Ê over all
GPU counts, ties to more GPUs, then more jobs, then the first in the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

from optgap.models.coscheduling import CoschedulingProblem

Action = list[tuple[int, int]]


@dataclass
class State:
    """What is known at a scheduling event."""

    problem: CoschedulingProblem
    waiting: list[int]
    running: list[int]
    free: int

    def modes(self, job: int) -> dict[int, tuple[float, float]]:
        """GPU count → (T in s, P in W of all its GPUs)."""
        app = self.problem.applications[self.problem.jobs[job]]
        return {m.gpu_count: (m.runtime_s, m.gpu_count * m.power_per_gpu_w) for m in app.modes}


def schedule(
    problem: CoschedulingProblem, choose: Callable[[State], Action]
) -> list[tuple[int, int, float]]:
    """(job, GPU count, start) of every job, asked at time 0 and whenever one has come or ended."""
    releases = problem.releases or [0.0] * len(problem.jobs)
    coming = sorted(range(len(problem.jobs)), key=lambda j: (releases[j], j))
    state = State(problem, [], [], problem.gpus)
    ends: dict[int, tuple[float, int]] = {}
    runs = []
    while coming or state.waiting:
        now = min([end for end, _ in ends.values()] + [releases[j] for j in coming[:1]])
        for job in [j for j, (end, _) in ends.items() if end <= now + 1e-6]:
            state.free += ends.pop(job)[1]
            state.running.remove(job)
        while coming and releases[coming[0]] <= now + 1e-6:
            state.waiting = sorted([*state.waiting, coming.pop(0)])
        if state.waiting and state.free and len(state.running) < problem.numa:
            for job, g in choose(state):
                runs.append((job, g, now))
                ends[job] = (now + state.modes(job)[g][0], g)
                state.waiting.remove(job)
                state.running.append(job)
                state.free -= g
    return runs


def ecosched(tau: float, weight: float, kept_only: bool = False) -> Callable[[State], Action]:
    """Phase I with the true run times, then Phase II."""

    def phase_one(state: State, job: int) -> dict[int, float]:
        """Ê^norm − 1 of the GPU counts that τ keeps."""
        modes = state.modes(job)
        fastest = min(t for t, _ in modes.values())
        t_norm = {g: t / fastest for g, (t, _) in modes.items()}
        e_hat = {g: p * t_norm[g] for g, (_, p) in modes.items()}
        kept = [g for g in modes if t_norm[g] <= 1 + tau + 1e-9]
        best = min(e_hat[g] for g in (kept if kept_only else modes))
        return {g: e_hat[g] / best - 1 for g in kept}

    def choose(state: State) -> Action:
        regret = {job: phase_one(state, job) for job in state.waiting}
        places = state.problem.numa - len(state.running)
        scored = []
        for size in range(1, places + 1):
            for jobs in combinations(state.waiting, size):
                for counts in product(*(sorted(regret[j]) for j in jobs)):
                    used = sum(counts)
                    if used > state.free:
                        continue
                    action = list(zip(jobs, counts, strict=True))
                    r = sum(regret[j][g] for j, g in action) / size  # R(a)
                    i = (state.free - used) / state.problem.gpus  # I(a)
                    scored.append((round(r + weight * i, 10), -used, -size, action))  # Eq. 1-2
        return min(scored)[3] if scored else []

    return choose


def fastest(state: State, job: int) -> int:
    modes = state.modes(job)
    return min(modes, key=lambda g: (modes[g][0], g))


def marble(state: State) -> Action:
    """Each job on its fastest count; the queue is scanned once and what fits starts."""
    action: Action = []
    free, places = state.free, state.problem.numa - len(state.running)
    for job in state.waiting:
        g = fastest(state, job)
        if g <= free and places > 0:
            action.append((job, g))
            free, places = free - g, places - 1
    return action


def sequential_max_gpu(state: State) -> Action:
    """One job at a time on all GPUs that it can use."""
    job = state.waiting[0]
    return [] if state.running else [(job, max(state.modes(job)))]


def sequential_optimal_gpu(state: State) -> Action:
    """One job at a time on its fastest count."""
    job = state.waiting[0]
    return [] if state.running else [(job, fastest(state, job))]
