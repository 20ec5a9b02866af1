"""Co-scheduling: which jobs share a node, on how many GPUs each, and when?

"The paper" is that of EcoSched, an online energy-aware co-scheduler for one multi-GPU node.
"""

from optgap.models.coscheduling.problem import (
    Application,
    CoschedulingObjective,
    CoschedulingProblem,
    Mode,
)
from optgap.models.coscheduling.solution import CoschedulingSolution, JobRun

__all__ = [
    "Application",
    "CoschedulingObjective",
    "CoschedulingProblem",
    "CoschedulingSolution",
    "JobRun",
    "Mode",
]
