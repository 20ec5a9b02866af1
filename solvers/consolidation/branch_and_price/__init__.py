"""Branch-and-price on counts of GPUs by level, then on the servers of tasks of several GPUs.

`node` and `branching` hold the nodes and the rules by which they are split, `tree` the best-first
search, `feasibility` decides whether whole counts can be realised (by the integer programs of
`set_cover`), `packing` puts columns onto GPUs of servers, and `heuristic` says what the tree asks
of a primal heuristic.
"""
