"""Node value (ours): PWR that also counts the value of the capacity that a node has left.

PWR takes the least ΔP, so ranks decide among the many nodes of equal ΔP.
Here a move costs ΔP − [W(after) − W(before)], where W(u, j, r) is the worth in W of a node
with u of CPU, j idle GPUs and r of one GPU left, as `values` computes it from the target workload;
ties go to the lowest rank. With ``q=1, rent_w=0`` W is nothing, and this is PWR unrounded.

``fragment_w`` adds the watts that a GPU's worth of fragmentation F_n(M) costs: a little of it
breaks ties towards nodes that keep GPUs usable, for the time when the cluster is full.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.placement.engine import simulate
from optgap.heuristics.placement.parameters import NodeValueParams
from optgap.heuristics.placement.rule import VALUE, Rule
from optgap.heuristics.placement.values import Grid, NodeWorth, worth_of_nodes
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen


def node_value(problem: PlacementProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run node value; `given` is as in `NodeValueParams`.

    Raises
    ------
    InputError: for a number out of its range.
    """
    options = chosen(NodeValueParams, given, "policy node-value", "parameter ")
    values = NodeWorth.empty(problem, Grid())
    per_milli = options.fragment_w / 1000
    rule = Rule(VALUE, gpu=VALUE, watt_weight=1.0, fragment_weight=per_milli, values=values)
    worth_of_nodes(problem, options, values)
    return simulate(problem, rule, limits=limits, seed=seed, label="node-value")
