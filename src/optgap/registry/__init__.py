"""Registry of the families: `table` lists them, and `spec` finds their parts.

>>> from optgap.registry import family, policy
>>> policy(family("placement"), "pwr+fgd(alpha=0.2)").label
'pwr+fgd(alpha=0.2)'
"""

from optgap.registry.runnable import Runnable, formulation, method, policy, user_object
from optgap.registry.spec import REPEATABLE, FamilySpec, Role
from optgap.registry.table import FAMILIES, families, family, file_options

__all__ = [
    "FAMILIES",
    "REPEATABLE",
    "FamilySpec",
    "Role",
    "Runnable",
    "families",
    "family",
    "file_options",
    "formulation",
    "method",
    "policy",
    "user_object",
]
