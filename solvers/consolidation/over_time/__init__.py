"""Tasks that come and go: schedules of least energy with hindsight, and bounds on them.

`case` holds a problem as arrays. `hindsight` packs tasks by many rules (`packing_kernels`), anew at
each event where they may move; `repacking` says what a schedule comes to, on the `loop` that
policies run on. `bounding` is the bound by prices over time: a `relaxation` in buckets under a
power curve (`envelope`), solved by column generation (`master`, `pricing_kernels`).
"""
