"""Queueing: which waiting gang job starts next on a cluster of GPU nodes?

"The paper" is A. Mamirov, "Reducing Fragmentation and Starvation in GPU Clusters through Dynamic
Multi-Objective Scheduling", which has HPS, PBS and SBS.
"""

from optgap.models.queueing.jobs import Jobs
from optgap.models.queueing.problem import QueueingObjective, QueueingProblem
from optgap.models.queueing.solution import QueueingSolution

__all__ = ["Jobs", "QueueingObjective", "QueueingProblem", "QueueingSolution"]
