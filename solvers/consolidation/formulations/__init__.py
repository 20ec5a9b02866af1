"""Formulations that a general solver takes as they are, and the enumeration that checks all.

`printed` is Eq. 6-14 as printed, `compact` the strengthened model on CP-SAT, and `exhaustive` tries
every placement of a tiny problem.
"""
