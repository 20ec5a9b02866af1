"""Proven optima of small clusters.

`search` is the method `exact`: a greedy start, a bound from pooled nodes (`pooled`), then HiGHS on
the formulation with counted nodes (`counted`, on `tables`; GPUs are filled by `fill`).
`infeasible` proves that not all can be placed.
"""
