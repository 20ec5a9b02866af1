"""Column generation over what one GPU may hold: the restricted master, its pricing and its bound.

`master` holds the restricted linear program, `pricing` finds the columns of least reduced cost,
`generation` is the loop of both, `dual_bound` says what duals prove, and `enumeration` lists every
column that a placement for less than a given power can use.
"""
