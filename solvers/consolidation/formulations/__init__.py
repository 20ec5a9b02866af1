"""Models for general solvers, and brute force.

`printed` is Eq. 6-14 as printed, `compact` a strengthened model on CP-SAT, and `exhaustive` tries
every placement of a tiny problem, which the tests compare all other methods with.
"""
