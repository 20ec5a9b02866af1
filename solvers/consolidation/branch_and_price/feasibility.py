"""Whether integer counts are feasible: whether a placement has at most these counts.

With counts bounded by a vector (N, Z), the gap between the linear program's bound and the power of
the vector is small. Columns whose reduced cost is above that gap are in no such placement; of the
others there are often a few hundred. An integer program over them finds a placement, or proves that
there is none.

The limit on power is given as an artificial column that covers all tasks at exactly that power, and
as the start solution: a solver that prunes by its incumbent proves infeasibility in a fraction of
the time that the same limit takes as a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.limits import Limits, silent
from optgap.models.result import Status
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder
from optgap.solvers.consolidation.column_generation.generation import (
    ColumnGeneration,
    enumerate_columns,
)
from optgap.solvers.consolidation.column_generation.master import (
    EXCLUDED,
    FREE,
    RestrictedMaster,
    servers_of,
)
from optgap.solvers.consolidation.numerics import (
    SLACK_W,
    Column,
    CountBox,
    Counts,
    IntArray,
    Placement,
)

MOST_COLUMNS = 500_000
"""Columns that are enumerated at most, whatever the tree's patience: a limit on memory."""


@dataclass(frozen=True)
class Verdict:
    """The answer to whether counts are feasible.

    Parameters
    ----------
    infeasible: proven that there is no placement. placement: one that was found, or None.
    """

    infeasible: bool
    placement: Placement | None = None


OPEN = Verdict(infeasible=False)


def solve_cover(
    master: RestrictedMaster,
    columns: Sequence[Column],
    box: CountBox,
    watts: float,
    *,
    limits: Limits,
    assignment: IntArray | None = None,
) -> Verdict:
    """Return min Σ c_S·λ_S + P·Z with every task covered and counts in a box, λ and Z integer.

    Parameters
    ----------
    columns: the columns that may be used.
    watts: only covers below this power are looked for, and the first that is found is taken.
    assignment: of tasks to servers; adds a row W ≥ Σ λ_S for each server.
    """
    servers = np.full(len(columns), FREE)
    if assignment is not None:
        servers = servers_of(columns, assignment, master.servers)
    width, gpu_w, builder = master.instance.width, np.cumsum(master.steps), LinearBuilder()
    covering: list[list[int]] = [[] for _ in width]
    at_level: list[list[int]] = [[] for _ in gpu_w]
    inside: list[list[int]] = [[] for _ in range(master.servers)]
    for column, server in zip(columns, servers.tolist(), strict=True):
        tasks = list(column)
        top = int(master.levels.of[tasks].max())
        most = 0.0 if server == EXCLUDED else float(width[tasks].min())
        used = builder.variable(upper=most, cost=float(gpu_w[top]), integer=True)
        for row in (*(covering[ell] for ell in tasks), *at_level[: top + 1]):
            row.append(used)
        if server >= 0:
            inside[server].append(used)
    least, most = float(box.low[-1]), float(box.high[-1])
    awake = builder.variable(upper=most, cost=master.static_w, integer=True)
    known = builder.variable(upper=1.0, cost=watts, integer=True)
    for v, row in zip(width.tolist(), covering, strict=True):
        builder.row([*((j, 1.0) for j in row), (known, float(v))], lower=float(v))
    for row, low, high in zip(at_level, box.low, box.high, strict=False):
        builder.row([*((j, 1.0) for j in row), (known, float(low))], float(low), float(high))
    gpus = float(master.server_gpus)
    builder.row([*((j, 1.0) for j in at_level[0]), (awake, -gpus)], upper=0.0)
    for row in inside:
        if row:
            builder.row([(j, 1.0) for j in row], upper=gpus)
    builder.row([(awake, 1.0), (known, least)], least, most)
    model = builder.build()
    solved = solve(
        model,
        backend="highs",
        limits=limits.telling(silent),
        seed=0,
        gap=0.0,
        start=np.append(np.zeros(model.variables - 1), 1.0),
        target=watts - 1e-6,
    )
    if solved.values is None or solved.values[-1]:
        return Verdict(solved.status is Status.OPTIMAL)
    usage = np.rint(solved.values[: len(columns)]).astype(int)
    places = list(zip(columns, servers.tolist(), strict=True))
    chosen = [places[j] for j in np.repeat(np.arange(len(columns)), usage).tolist()]
    return Verdict(False, pack_columns(master, chosen))


class CountFeasibility:
    """Decides on one vector of counts after another, and remembers those that are infeasible.

    Parameters
    ----------
    generation: column generation of the instance; its box and assignment are replaced.
    low: proven lower bounds on the counts.
    """

    def __init__(self, generation: ColumnGeneration, low: Counts) -> None:
        self.generation, self.low = generation, low
        self.proven_infeasible: list[Counts] = []

    def dominating(self, counts: Counts) -> Counts | None:
        """Return a vector proven infeasible that is no smaller: `counts` are infeasible, too."""
        for other in self.proven_infeasible:
            if all(a <= b for a, b in zip(counts, other, strict=True)):
                return other
        return None

    def decide(
        self,
        counts: Counts,
        cutoff: float,
        limits: Limits,
        *,
        most_columns: int,
        effort: float = 1.0,
        assignment: IntArray | None = None,
    ) -> Verdict:
        """Look for a placement below `cutoff` W with at most these counts.

        Parameters
        ----------
        assignment: of all tasks of several GPUs to servers: the verdict then holds under this
            assignment alone. Without one a task's GPUs may be in any servers.
        most_columns: columns beyond which nothing is decided. effort: factor on that number, and on
            the time of the search.
        """
        master = self.generation.master
        # a fixed count has no useful dual, so it is bounded from above alone; counted servers may
        # sleep
        least = (a if a < b else 0 for a, b in zip(self.low[:-1], counts, strict=False))
        master.set_box(CountBox((*least, counts[-1]), counts))
        master.set_servers()
        asleep = master.static_w * (counts[-1] - self.low[-1])  # of servers that may sleep
        watts = min(cutoff + asleep, master.watts(counts)) + SLACK_W
        relaxed = self.generation.solve(limits, stop_bound=watts + SLACK_W, certified=True)
        if relaxed.bound > watts:
            self.proven_infeasible.append(counts)
            return Verdict(infeasible=True)
        most = int(min(effort * most_columns, MOST_COLUMNS))
        columns = enumerate_columns(
            self.generation, relaxed.duals, watts, most, limits=limits, effort=effort
        )
        if not columns:
            return OPEN
        box = CountBox.up_to(counts)
        verdict = solve_cover(master, columns, box, watts, limits=limits, assignment=assignment)
        if verdict.infeasible and assignment is None:
            self.proven_infeasible.append(counts)
        return verdict


def pack_columns(
    master: RestrictedMaster, columns: Sequence[tuple[Column, int]]
) -> Placement | None:
    """Return a placement whose GPUs hold these columns; None if they do not fit or miss a task.

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
    """Return the same for an integer λ of the master's columns."""
    used = np.repeat(np.arange(len(usage)), usage).tolist()
    return pack_columns(master, [(master.columns[j], int(master.column_server[j])) for j in used])
