"""Meanings of the methods' parameters; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter
from optgap.solvers.formulation import BACKEND

PARAMETERS = {
    "backend": BACKEND,
    "workers": Parameter("threads of CP-SAT; results repeat with one only", "threads"),
}
