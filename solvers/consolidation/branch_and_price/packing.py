"""From columns to a placement: each column gets a GPU of a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from optgap.solvers.consolidation.column_generation.master import FREE, RestrictedMaster
from optgap.solvers.consolidation.numerics import Column, IntArray, Placement


def pack_columns(
    master: RestrictedMaster, columns: Sequence[tuple[Column, int]]
) -> Placement | None:
    """A placement whose GPUs hold these columns; None where they do not fit or do not cover a task.

    Parameters
    ----------
    columns: one for each GPU, with its server or `FREE`. A task that is covered too often is left
        out of the last ones.
    """
    instance, of = master.instance, master.levels.of
    columns = sorted(columns, key=lambda one: -max(int(of[ell]) for ell in one[0]))
    gpus = master.server_gpus
    used = Counter(server for _, server in columns if server != FREE)
    if any(number > gpus for number in used.values()):
        return None
    free = iter(i * gpus + k for i in range(len(instance.server_w)) for k in range(used[i], gpus))
    own = {server: iter(range(server * gpus, (server + 1) * gpus)) for server in used}
    left = instance.width.copy()
    placement: list[list[int]] = [[] for _ in range(instance.tasks)]
    for column, server in columns:
        gpu = next(free if server == FREE else own[server], None)
        if gpu is None:
            return None
        for ell in column:
            if left[ell]:
                left[ell] -= 1
                placement[ell].append(gpu)
    return None if left.any() else [tuple(sorted(gpus)) for gpus in placement]


def pack_usage(master: RestrictedMaster, usage: IntArray) -> Placement | None:
    """The same for an integer λ of the master's columns."""
    used = np.repeat(np.arange(len(usage)), usage).tolist()
    return pack_columns(master, [(master.columns[j], int(master.column_server[j])) for j in used])
