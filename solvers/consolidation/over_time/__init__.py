"""Tasks that come and go: schedules of least energy with hindsight, and bounds on them.

`case` holds a problem as arrays. `hindsight` packs tasks by many rules, anew at each event where
they may move; `repack_kernels` says what a schedule comes to. `bounding` is the bound
by prices over time: a `relaxation` in buckets under a power curve (`envelope`), solved by column
generation (`master`). `energy` is a bound in closed form.
"""
