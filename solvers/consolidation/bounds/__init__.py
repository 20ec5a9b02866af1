"""Proven bounds, each valid by itself: docs/consolidation-bounds.md has the proofs.

`martello_toth` counts GPUs for a set of tasks, `level_counts` does so for every level of cost and
adds up the power, `server_assignment` spreads the counts over servers, `energy` integrates over
time.
"""
