"""Engines of the solvers: each algorithmic idea once, without any family's problem.

column_generation   restricted master, pricing, dual bound, smoothing
best_first          branch and bound: open nodes by their bound
ascent              Lagrangian bounds by supergradient steps
annealing           local search by Metropolis' rule
"""
