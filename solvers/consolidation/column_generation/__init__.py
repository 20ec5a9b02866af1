"""Column generation: a column is a set of tasks that may share a GPU.

`space` holds what a node of the tree restricts, `master` the restricted linear program, `pricing`
the search for columns of negative reduced cost (its inner loops are in `kernels`), `generation` the
loop of both, `dual_bound` the lower bound that dual values prove, `enumeration` the list of every
column whose reduced cost is within the gap, and `relaxations` the bounds for which no tree is
grown.
"""
