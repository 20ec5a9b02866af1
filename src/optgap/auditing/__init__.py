"""Audit of a real cluster's scheduler: its gap, from the output of the cluster's own tools.

>>> import optgap
>>> audit = optgap.audit("kubernetes", "cluster.json", moves=14)  # doctest: +SKIP
>>> audit.moves(14).to_frame()  # doctest: +SKIP
"""

from optgap.auditing.entry import audit
from optgap.auditing.result import Audit, Covered, MoveList

__all__ = ["Audit", "Covered", "MoveList", "audit"]
