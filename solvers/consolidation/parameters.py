"""Meanings of the methods' parameters; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter
from optgap.solvers.formulation import BACKEND

PARAMETERS = {
    "backend": BACKEND,
    "big_m": Parameter(
        "(14) with M = f_max as printed; otherwise its tighter form", source="CATS, Eq. 14"
    ),
}
