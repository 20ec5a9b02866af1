"""Branch-and-price on counts of GPUs by level, then on the servers of tasks of several GPUs.

`node` and `branching` hold the nodes and the branching rules, `tree` the best-first search.
`feasibility` decides whether integer counts are feasible, with the integer program of `set_cover`;
`packing` turns columns into a placement. `heuristic` is the interface of a primal heuristic.
"""
