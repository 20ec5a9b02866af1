"""Elastic training: how many GPUs and which clock does each job get, under a power limit?

"The paper" is that of PowerFlow, an energy-aware scheduler for GPU clusters.
"""

from optgap.models.elastic.jobs import JobClass, Jobs, Kind, Overhead, Segment
from optgap.models.elastic.problem import ElasticObjective, ElasticProblem
from optgap.models.elastic.solution import ElasticSolution

__all__ = [
    "ElasticObjective",
    "ElasticProblem",
    "ElasticSolution",
    "JobClass",
    "Jobs",
    "Kind",
    "Overhead",
    "Segment",
]
