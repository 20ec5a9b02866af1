"""CATS, Algorithm 4 (frequency adaptation).

Every τ the algorithm sets the clock f of each active GPU; κ_r is the delay that resident r bears:

    e_r^pred / e_r = (f_max / f)^β,   e_r^max / e_r = κ_r
    one e^pred > e^max            f ← min(f_max, f + Δf)
    all e^pred < 0.95·e^max       f ← max(f_min, f − Δf)
    otherwise                     f stays

Algorithm 3 (periodic sleep) needs no code of its own: a GPU without residents sleeps, and so does
a server whose GPUs all sleep, from the moment that its last task ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from optgap.heuristics.consolidation.clocks import lowest
from optgap.heuristics.consolidation.state import ClockRule, ConsolidationState
from optgap.models.consolidation.cluster import EQUAL_MHZ, GpuKind
from optgap.models.errors import InputError

MARGIN = 0.95
"""Share of κ that Algorithm 4 uses at most; it keeps 5 % in reserve."""
MOST_STEPS = 20_000


def adaptation(delta_mhz: float) -> ClockRule:
    """Return Algorithm 4 with steps of `delta_mhz`; the clock jumps to where the steps end.

    If the steps end in a cycle, the clock is the lowest of the cycle that keeps every κ.

    Raises
    ------
    InputError: for a step that is not positive.
    """
    if not 0 < delta_mhz <= 1e5:
        raise InputError("policy", "delta_mhz", delta_mhz, "a step in MHz above 0")

    def rule(state: ConsolidationState, gpu: int, present: float) -> float:
        problem = state.problem
        kind = problem.kinds[int(problem.gpu_kind[gpu])]
        bounds = []
        for ell in state.residents(gpu):
            beta = problem.tasks[ell].beta
            bounds.append((problem.tasks[ell].kappa, kind.beta if beta is None else beta))
        steps = stepped(kind, present, bounds, delta_mhz)
        return max(steps[-1], lowest(state, gpu, present))

    return rule


def stepped(
    kind: GpuKind, present: float, bounds: Sequence[tuple[float, float]], delta_mhz: float
) -> list[float]:
    """Return the frequencies that Algorithm 4 goes through from `present` until it rests.

    Parameters
    ----------
    bounds: pairs (κ, β), one for each resident.
    """
    path = [present]
    seen = {present}
    while len(path) < MOST_STEPS:
        mhz = path[-1]
        if _violated(kind, mhz, bounds):
            after = min(kind.f_max_mhz, kind.up_mhz(mhz + delta_mhz))
        elif all(_stretch(kind, mhz, b) < MARGIN * k for k, b in bounds):
            after = max(kind.f_min_mhz, _down(kind, mhz, delta_mhz))
        else:
            return path
        if after == mhz:
            return path
        if after in seen:
            cycle = path[path.index(after) :]
            safe = [f for f in cycle if not _violated(kind, f, bounds)]
            return [*path, min(safe) if safe else kind.f_max_mhz]
        path.append(after)
        seen.add(after)
    return path


def _stretch(kind: GpuKind, mhz: float, beta: float) -> float:
    return float((kind.f_max_mhz / mhz) ** beta)


def _violated(kind: GpuKind, mhz: float, bounds: Sequence[tuple[float, float]]) -> bool:
    return any(_stretch(kind, mhz, b) > k * (1 + 1e-12) for k, b in bounds)


def _down(kind: GpuKind, mhz: float, delta_mhz: float) -> float:
    """Go one step down; with discrete frequencies at least to the next one."""
    wanted = kind.up_mhz(mhz - delta_mhz)
    if wanted < mhz - EQUAL_MHZ:
        return wanted
    below = [f for f in kind.frequencies_mhz if f < mhz - EQUAL_MHZ]
    return below[-1] if below else mhz
