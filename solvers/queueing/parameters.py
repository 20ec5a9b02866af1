"""Meanings of the methods' parameters; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter
from optgap.solvers.formulation import BACKEND

RESERVE_AFTER_S = 600.0
"""The wait after which a job of a whole node or more books nodes, by default, s."""

PARAMETERS = {
    "backend": BACKEND,
    "moves": Parameter("lists that are tried per start"),
    "offline.moves": Parameter("lists that are tried per start; 0 for up to two million"),
    "rounds": Parameter("programs per period, each finer than the one before", "programs"),
    "steps": Parameter("subgradient steps of a round; fewer with many jobs"),
}
