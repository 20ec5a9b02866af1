"""Consolidation: which tasks share which GPUs, at which clock, for the least power?

"The paper" is CATS, correlation-aware task scheduling for GPU power (ICS 2026).
"""

from optgap.models.consolidation.cluster import GpuKind, PowerLine, Server
from optgap.models.consolidation.problem import ConsolidationObjective, ConsolidationProblem
from optgap.models.consolidation.solution import Assignment, Clock, ConsolidationSolution
from optgap.models.consolidation.tasks import Task

__all__ = [
    "Assignment",
    "Clock",
    "ConsolidationObjective",
    "ConsolidationProblem",
    "ConsolidationSolution",
    "GpuKind",
    "PowerLine",
    "Server",
    "Task",
]
