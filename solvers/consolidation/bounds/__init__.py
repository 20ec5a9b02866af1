"""Proven bounds, each valid by itself: docs/consolidation-bounds.md has the proofs.

`martello_toth` is a lower bound on the GPUs that a set of tasks needs, `level_counts` takes it for
every cost level and adds up the power, `energy` integrates power over time.
"""
