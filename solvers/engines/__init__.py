"""Engines of the solvers: each algorithmic idea once, without any family's problem."""
