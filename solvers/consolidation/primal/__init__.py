"""Primal heuristics: where incumbents come from. Nothing here is part of a proof.

`construction` and `annealing` work on any instance. The others are `PrimalHeuristic`s, which
`portfolio` chooses and the tree is given: `diving` fixes columns of the linear program,
`server_diving` assigns tasks to servers by its solution first, `gang_layout` anneals where tasks of
several GPUs go and solves the rest, `pairwise_exchange` looks for placements with given counts,
and `lns` solves the tasks of a few servers anew. `counts` chooses counts to aim at; `gpu_state` is
what the compiled loops of construction and annealing share.
"""
