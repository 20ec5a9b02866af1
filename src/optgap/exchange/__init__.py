"""Export of formulations to other solvers, and reader of their solutions."""
