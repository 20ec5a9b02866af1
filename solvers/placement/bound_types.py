"""The quick bound: an LP over node types and task classes, no patterns.

For power only. It lets tasks split, and CPU and GPUs mix freely over the nodes of a type, so
it is loose; but it takes a second and shares no code with the pattern bound.
"""

from __future__ import annotations

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.cluster import NodeType
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers import backends
from optgap.solvers.backends.linear import LinearBuilder
from optgap.solvers.backends.safe import safe_bound
from optgap.solvers.placement.aggregate import Aggregate

BOUND_BY = "linear program over node types and task classes"


def bound_types(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """A proven lower bound on power for placing every task.

    Per node type: x_c ≥ 0 tasks of class c (only where one fits a node), y active GPUs,
    s active CPU packages;

        y ≥ Σ demand/1000,  y ≥ Σ tasks that need more than half a GPU,  s ≥ Σ CPU / package,
        CPU, memory and GPUs within the type's capacity,  Σ over types x_c = demand,

    and power ≥ idle power + Σ (full − idle)·y + (full − idle of a package)·s.
    """
    aggregate = Aggregate(problem)
    builder = LinearBuilder(offset=aggregate.base)
    served: list[list[tuple[int, float]]] = [[] for _ in aggregate.classes]
    for t, node in enumerate(aggregate.types):
        _add_type(aggregate, builder, t, node, served)
    for c, terms in enumerate(served):
        if not terms:
            message = f"a task of {aggregate.classes[c]} fits no node even when empty"
            return Outcome(None, Status.INFEASIBLE, message=message)
        demand = float(aggregate.demand[c])
        builder.row(terms, demand, demand)
    model = builder.build()
    solved = backends.solve(model, backend="highs", limits=limits)
    if solved.status is Status.INFEASIBLE:
        message = "the cluster's totals of CPU, memory and GPUs do not suffice"
        return Outcome(None, Status.INFEASIBLE, message=message)
    if solved.duals is None:
        return Outcome(None, Status.NO_SOLUTION, solved.termination)
    bound = safe_bound(model, solved.duals)
    return Outcome(
        None, Status.BOUND_ONLY, limits.stop or Termination.COMPLETED, None, bound, BOUND_BY
    )


def _add_type(
    aggregate: Aggregate,
    builder: LinearBuilder,
    t: int,
    node: NodeType,
    served: list[list[tuple[int, float]]],
) -> None:
    """Variables and rows of one node type; its x_c are noted in `served`."""
    power = aggregate.problem.power
    nodes = float(aggregate.count[t])
    here = [c for c in range(len(aggregate.classes)) if aggregate.fits_type[t][c]]
    tasks = {c: builder.variable(0.0, float(aggregate.demand[c])) for c in here}
    for c, x in tasks.items():
        served[c].append((x, 1.0))
    gpus = builder.variable(0.0, nodes * node.gpus)
    # an idle node with part of a core to its name counts a package as active already
    busy = 0 if power.cpu_rule == "eq1" else power.active_packages(node.cpu_milli, node.cpu_milli)
    step = power.cpu.full_w - power.cpu.idle_w
    packages = builder.variable(
        nodes * busy, nodes * (busy + node.cpu_milli / power.cpu.vcpu_milli)
    )
    builder.offset -= step * nodes * busy
    builder.add_cost(gpus, float(aggregate.gpu_cost[t]))
    builder.add_cost(packages, step)
    classes = aggregate.classes
    cpu = [(tasks[c], float(classes[c].cpu_milli)) for c in here]
    memory = [(tasks[c], float(classes[c].memory_mib)) for c in here]
    share = [(tasks[c], classes[c].demand_milli / 1000) for c in here]
    alone = [(tasks[c], float(classes[c].num_gpu)) for c in here if 2 * classes[c].gpu_milli > 1000]
    builder.row(cpu, upper=nodes * node.cpu_milli)
    builder.row(memory, upper=nodes * node.memory_mib)
    builder.row([*share, (gpus, -1.0)], upper=0.0)
    builder.row([*alone, (gpus, -1.0)], upper=0.0)
    builder.row([*cpu, (packages, -float(power.cpu.vcpu_milli))], upper=0.0)
