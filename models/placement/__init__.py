"""Placement: which node and which GPU does each arriving task get?

Equation numbers are those of F. Lettich et al., "Power- and Fragmentation-aware Online
Scheduling for GPU Datacenters", CCGrid 2025 (arXiv 2412.17484), unless "FGD" is named: then
Q. Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
"""

from optgap.models.placement.cluster import Cluster
from optgap.models.placement.objective import PlacementObjective
from optgap.models.placement.over_time import OverTime
from optgap.models.placement.power import CpuProfile, PowerModel
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.solution import PlacementSolution
from optgap.models.placement.tasks import TargetWorkload, Tasks

__all__ = [
    "Cluster",
    "CpuProfile",
    "OverTime",
    "PlacementObjective",
    "PlacementProblem",
    "PlacementSolution",
    "PowerModel",
    "TargetWorkload",
    "Tasks",
]
