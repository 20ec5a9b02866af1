"""Proven optima of small clusters.

`search` is the method `exact`: a bound from pooled nodes (`pooled`, in whole numbers `integers`),
a greedy start (`start`), then HiGHS on the formulation with counted nodes (`counted`, on
`tables`; GPUs are filled by `fill`, and solutions read by `code`). `infeasible` proves that not all
can be placed. `milp` is the textbook formulation.
"""
