"""Rules for the clocks of GPUs: always f_max, or as low as every resident's κ allows."""

from __future__ import annotations

from optgap.heuristics.consolidation.state import ConsolidationState


def highest(state: ConsolidationState, gpu: int, present: float) -> float:
    """Return f_max, always."""
    return state.problem.kinds[int(state.problem.gpu_kind[gpu])].f_max_mhz


def lowest(state: ConsolidationState, gpu: int, present: float) -> float:
    """Return the lowest clock that keeps every resident's κ (14')."""
    floors = state.problem.floors_mhz[int(state.problem.gpu_kind[gpu])]
    return max(floors[ell] for ell in state.residents(gpu))
