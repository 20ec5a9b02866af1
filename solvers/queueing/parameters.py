"""Meanings of the methods' parameters; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter
from optgap.solvers.formulation import BACKEND

RESERVE_AFTER_S = 600.0
"""The wait after which a job of a whole node or more books nodes, by default, s."""

PARAMETERS = {
    "backend": BACKEND,
    "workers": Parameter("threads of CP-SAT; results repeat with one only", "threads"),
    "moves": Parameter("lists that are tried per start"),
    "offline.moves": Parameter("lists that are tried per start; 0 for up to two million"),
    "starts": Parameter("independent searches, side by side; the best of them counts"),
    "jobs": Parameter("arrivals of a period at most", "jobs"),
    "rounds": Parameter("programs per period, each finer than the one before", "programs"),
    "steps": Parameter("subgradient steps of a round; fewer with many jobs"),
}
