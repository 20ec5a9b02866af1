"""Tasks that come and go: schedules of least energy with hindsight, and bounds on them.

`case` holds a problem as arrays; `replay_kernels` says what a schedule comes to; `hindsight` anneals
one; `bounding` is the bound by prices over time; `exact` tries every way to share.
"""
