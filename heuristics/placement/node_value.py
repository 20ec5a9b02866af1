"""Node value (ours): PWR that also counts what a placement leaves of a node.

PWR takes the least ΔP and leaves it to the ranks which of many nodes that cost nothing more is
taken. Here a move costs ΔP − [W(after) − W(before)], where W(u, j, r) is the worth in W of a node
with u of CPU, j idle GPUs and r of one GPU left, as `values` computes it from the target workload;
ties go to the lowest rank. With ``q=1, rent_w=0`` W is nothing, and this is PWR unrounded.

``fragment_w`` adds the watts that a GPU's worth of fragmentation F_n(M) costs: a little of it
breaks ties towards nodes that keep GPUs usable, for the time when the cluster is full.

``workload=seen`` computes W from the latest arrivals, again and again; the first ones meet no W.
The fragments are those of the target workload, as FGD's are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optgap.heuristics.placement.parameters import NodeValueParams
from optgap.heuristics.placement.rule import VALUE, Rule, simulate
from optgap.heuristics.placement.values import Grid, NodeValues, worth_of_nodes
from optgap.models.compiled import compiled
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.tasks import TargetWorkload
from optgap.models.result import Outcome
from optgap.models.spec import chosen


@dataclass(frozen=True)
class Seen:
    """From which arrivals ``workload=seen`` computes W, and when.

    Parameters
    ----------
    first: arrivals before the first time; from then on when they have doubled, but at latest
    every: so many arrivals later.
    window: the latest arrivals that count.
    """

    first: int = 50
    every: int = 500
    window: int = 2000


SEEN = Seen()


def node_value(problem: PlacementProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Node value; `given` as in `NodeValueParams`.

    Raises
    ------
    InputError: for an unknown `workload`, or a number out of its range.
    """
    options = chosen(NodeValueParams, given, "policy node-value", "parameter ")
    values = NodeValues.empty(problem, Grid())
    rule = Rule.of(VALUE, gpu=VALUE, watts=1.0, fragments=options.fragment_w / 1000, values=values)

    def renew(come: int) -> int:
        if come:
            recent = problem.tasks.take(range(max(0, come - SEEN.window), come))
            worth_of_nodes(problem, TargetWorkload.from_tasks(recent), options, values)
        return min(max(SEEN.first, 2 * come), come + SEEN.every)

    seen = options.workload == "seen"
    if not seen:
        worth_of_nodes(problem, problem.workload, options, values)
    return simulate(
        problem, rule, limits=limits, seed=seed, label="node-value", renew=renew if seen else None
    )


@compiled
def value_of_rest(
    values: NodeValues, n: int, gpu_free: IntArray, cpu_left: int, moved: int, old: int, new: int
) -> float:
    """W of what is left of node `n`, `moved` of its GPUs going from `old` to `new` milli-GPU."""
    idle = 0
    largest = 0
    for free in gpu_free:
        if moved > 0 and free == old:
            moved -= 1
            free = new
        if free == 1000:
            idle += 1
        elif free > largest:
            largest = free
    u, r = cpu_left // values.cpu_milli, largest // values.share_milli
    return float(values.table[values.type_of[n], u, idle, r])
