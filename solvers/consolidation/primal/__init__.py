"""Primal heuristics: where incumbents come from. None of this is part of a proof.

`construction` and `annealing` work on any instance. `pairwise_exchange` looks for placements with
given counts of GPUs by level, `diving` follows the linear program in smaller and smaller problems,
`server_diving` follows it into servers, `gang_layout` places tasks of several GPUs first, and `lns`
places the tasks of a few servers anew: these are `PrimalHeuristic`s, which `portfolio` chooses and
the tree is given.
"""
