"""Proven optima of small clusters.

`search` has the method `exact`: a greedy start, a bound from pooled nodes, then HiGHS on the
formulation with counted nodes (`counted`, on `tables`; GPUs are filled by `fill`).
`infeasible` proves that not all can be placed.
"""
