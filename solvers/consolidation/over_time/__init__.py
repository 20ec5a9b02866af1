"""Tasks that come and go: schedules of least energy with hindsight, and bounds on them.

`case` holds a problem as arrays, and `replay_kernels` says what a schedule comes to. `hindsight`
anneals one; `exact` tries every way to share. `bounding` is the bound by prices over time: a
`relaxation` in buckets under a power curve (`envelope`), solved by column generation (`master`).
Where no task moves, `lives` bounds whole lives of GPUs. `energy` is a bound in closed form.
"""
