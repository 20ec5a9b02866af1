"""Primal heuristics: where incumbents come from. None of this is part of a proof.

`construction` and `annealing` work on any instance. `overload_repair` looks for placements with
given counts of GPUs by level, `diving` follows the linear program, `gang_layout` places tasks of
several
GPUs first, and `lns` destroys a part of the incumbent: with `overload_repair` these four are
`PrimalHeuristic`s that the tree is given.
"""
