"""Proven optima of small clusters.

`search` is the method `exact`: a greedy start, a bound from pooled nodes (`pooled`, moved
on to a value that the objective can take by `lattice`), then HiGHS on the formulation with counted
nodes (`counted`, on `tables`; GPUs are filled by `fill`, and solutions read by `code`).
`infeasible` proves that not all can be placed.
"""
