"""What do nodes add to the bound on waits, by column generation over the schedules of one node?

Nodes are alike, so there is one pricing problem: of the jobs, those whose prices a node earns
most by, and their starts on its GPUs. A job of several whole nodes is a part on each of them that
starts at one time; what is left of it beyond whole nodes is dropped. Times are ticks, rounded down,
which keeps every bound one. Printed beside it, on the same ticks: the linear program of counted
GPUs, its integer optimum, and what `exact` proves with nodes and true times.

    python benchmarks/queueing_node_columns.py [--jobs 12] [--nodes 2] [--load 2] [--seeds 3]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.presets import mixed
from optgap.solvers.queueing import METHODS


class Ticks:
    """The starts that jobs may have, in ticks: one variable each."""

    def __init__(self, problem: QueueingProblem, known_s: float, ticks: int) -> None:
        jobs, self.nodes, self.g = problem.jobs, problem.nodes, problem.gpus_per_node
        last = float(jobs.arrival_s[-1]) + known_s  # nobody in an optimum waits for longer than all
        self.width = last / ticks
        first = np.floor(jobs.arrival_s / self.width).astype(np.int64)
        length = np.floor(jobs.duration_s / self.width).astype(np.int64)
        count = np.floor((jobs.arrival_s + known_s) / self.width).astype(np.int64) - first + 1
        self.job: IntArray = np.repeat(np.arange(len(problem)), count)
        place = np.arange(len(self.job)) - np.repeat(np.cumsum(count) - count, count)
        self.start = first[self.job] + place
        self.length = length[self.job]
        self.parts = np.maximum(1, jobs.gpus // self.g)[self.job]
        self.gpus = jobs.gpus[self.job]
        self.wait: FloatArray = np.maximum(0.0, self.start * self.width - jobs.arrival_s[self.job])
        self.once = coo_matrix((np.ones(len(self.job)), (self.job, np.arange(len(self.job)))))

    def capacity(self, demand: IntArray, most: int) -> LinearConstraint:
        column = np.repeat(np.arange(len(self.job)), self.length)
        place = np.arange(len(column)) - np.repeat(
            np.cumsum(self.length) - self.length, self.length
        )
        row = self.start[column] + place
        use = coo_matrix(
            (demand[column].astype(float), (row, column)), (row.max() + 1, len(demand))
        )
        return LinearConstraint(use.tocsr(), -np.inf, most)

    def counted(self, integral: bool, seconds: float) -> float:
        """The bound of counted GPUs, s."""
        rows = [self.capacity(self.gpus, self.nodes * self.g), LinearConstraint(self.once, 1, 1)]
        found = milp(
            self.wait, integrality=np.full(len(self.job), int(integral)), bounds=Bounds(0, 1),
            constraints=rows, options={"time_limit": seconds},
        )  # fmt: skip
        return float(found.mip_dual_bound if integral else found.fun)


def columns(ticks: Ticks, seconds: float) -> tuple[float, int]:
    """The best Lagrangian bound of node schedules, s, and how many were priced."""
    until = time.monotonic() + seconds
    gang = ticks.parts > 1
    jobs = int(ticks.job.max()) + 1
    single = ~np.isin(np.arange(jobs), ticks.job[gang])
    number = np.flatnonzero(gang)
    demand = np.minimum(ticks.gpus, ticks.g)
    fits = [ticks.capacity(demand, ticks.g), LinearConstraint(ticks.once, 0, 1)]
    late = float(ticks.wait.max()) * jobs
    pool: list[FloatArray] = []
    best = 0.0
    while time.monotonic() < until:
        price, parts, node = _master(ticks, pool, single, number, late)
        gain = price[ticks.job] - ticks.wait
        gain[number] = parts
        found = milp(
            -gain, integrality=np.ones(len(gain)), bounds=Bounds(0, 1), constraints=fits,
            options={"time_limit": max(1.0, until - time.monotonic()), "mip_rel_gap": 1e-3},
        )  # fmt: skip
        if found.x is None:
            break
        value = float(price[single].sum()) + found.mip_dual_bound * ticks.nodes
        for job in np.flatnonzero(~single):
            mine = np.flatnonzero(ticks.job[number] == job)
            costs = ticks.wait[number[mine]] + ticks.parts[number[mine]] * parts[mine]
            value += float(costs.min())
        best = max(best, value)
        pool.append(np.rint(found.x))
        if -found.fun <= node + 1e-3 * late / jobs:
            break
    return best, len(pool)


def _master(
    ticks: Ticks, pool: list[FloatArray], single: FloatArray, number: IntArray, late: float
) -> tuple[FloatArray, FloatArray, float]:
    """Prices of jobs, of the parts of gangs by start, and of a node; solved by duality."""
    # max Σ_single u_j + Σ_gang v_j − N·w  with  a·(u, p) − w ≤ cost of a for each schedule a,
    # v_j ≤ wait_t + parts·p_t, and u, p limited by what leaving a job out would cost.
    jobs, m = len(single), len(number)
    size = jobs + m + 1
    gain = np.concatenate([np.ones(jobs), np.zeros(m), [-ticks.nodes]])
    rows, most = [], []
    for column in pool:
        row = np.zeros(size)
        mine = np.flatnonzero(column)
        alone = mine[single[ticks.job[mine]]]
        row[ticks.job[alone]] = 1.0
        row[jobs : jobs + m] = column[number]
        row[-1] = -1.0
        rows.append(row)
        most.append(float(ticks.wait[alone].sum()))
    for k, column_number in enumerate(number.tolist()):
        row = np.zeros(size)
        row[ticks.job[column_number]] = 1.0
        row[jobs + k] = -float(ticks.parts[column_number])
        rows.append(row)
        most.append(float(ticks.wait[column_number]))
    upper = np.full(size, late)
    lower = np.zeros(size)
    constraints = [LinearConstraint(np.array(rows), -np.inf, most)] if rows else []
    found = milp(-gain, bounds=Bounds(lower, upper), constraints=constraints)
    return found.x[:jobs], found.x[jobs : jobs + m], float(found.x[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--load", type=float, default=2.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ticks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each of the programs")
    options = parser.parse_args()
    print("seed  linear  integer  columns  schedules priced       exact, nodes")
    for seed in range(options.seeds):
        problem = mixed(seed=seed, size=options.jobs, nodes=options.nodes, load=options.load)
        truth = METHODS["exact"].load()(problem, limits=Limits(options.seconds), seed=0)
        jobs = len(problem)
        ticks = Ticks(problem, float(truth.claimed) * jobs, options.ticks)
        linear = ticks.counted(False, options.seconds) / jobs
        integral = ticks.counted(True, options.seconds) / jobs
        began = time.monotonic()
        bound, priced = columns(ticks, options.seconds)
        print(
            f"{seed:4} {linear:7.1f} {integral:8.1f} {bound / jobs:8.1f} {priced:6} in "
            f"{time.monotonic() - began:5.1f} s {truth.bound:10.1f} to {truth.claimed:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
