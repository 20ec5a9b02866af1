"""The textbook formulation as a PuLP problem: a binary per task and node, and per task and GPU.

It shares no modelling idea with the counted formulation, which makes it a check on that one
and the yardstick for its speed; nodes, GPUs and tasks that look alike are not told apart from
others, so it is for small problems. With all tasks but one where they are, it is one decision of
PWR+FGD.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.solvers.formulation import Formulation, Program, chosen
from optgap.solvers.placement.exact.tables import cpu_steps


def formulation(
    problem: PlacementProblem,
    *,
    limits: Limits | None = None,
    placed: PlacementSolution | None = None,
) -> Formulation:
    """PWR+FGD: x_i_n (task i on node n), y_i_n_h (on its GPU h), on_n_h (GPU h in use).

    Parameters
    ----------
    placed: tasks that it places stay where it has them; where it leaves out one task alone, the
        program is one decision.

    Raises
    ------
    InputError: for a problem too large to write down, or a `placed` that breaks a constraint.
    Stopped: at a limit.
    """
    if placed is not None and (violations := problem.check(placed)):
        raise InputError("placed", "", NoQuote(violations[0]), "a placement that is feasible")
    made = program(problem, limits)
    if placed is not None:
        for (i, n), x in made.x.items():
            if placed.node[i] >= 0:
                made.m.fix(x, int(placed.node[i] == n))
        for (i, n, h), y in made.y.items():
            if placed.node[i] >= 0:
                made.m.fix(y, int(placed.node[i] == n and h in placed.gpus(i)))

    return Formulation(made.m, made.placement)


@dataclass(frozen=True, slots=True)
class Placing:
    """The program, its variables x_in, y_inh and on_nh, and what they add up to.

    Attributes
    ----------
    cpu, load: Σ_i c_i x_in of each node, Σ_i g_i y_inh of each GPU.
    """

    problem: PlacementProblem
    m: Program
    x: dict[tuple[int, int], Any]
    y: dict[tuple[int, int, int], Any]
    on: dict[tuple[int, int], Any]
    cpu: dict[int, Any]
    load: dict[tuple[int, int], Any]

    def placement(self, values: Mapping[str, float]) -> PlacementSolution:
        """Return the placement behind whole values by name."""
        where: list[tuple[int, list[int]] | None] = [None] * len(self.problem.tasks)
        for i, n in chosen(values, self.x):
            where[i] = (n, [])
        for i, n, h in chosen(values, self.y):
            if (node := where[i]) is not None and node[0] == n:
                node[1].append(h)
        return PlacementSolution.of(where)


def program(problem: PlacementProblem, limits: Limits | None) -> Placing:
    """Return the whole program: capacities, and the goal that the problem has."""
    accepting = problem.objective.goal == "accepted_gpu"
    m = Program("placement", "max" if accepting else "min", limits)
    cluster, tasks = problem.cluster, problem.tasks
    suits = [
        (i, n)
        for i in range(len(tasks))
        for n in range(len(cluster))
        if cluster.types[int(cluster.type_of[n])].takes(tasks.task_class(i))
    ]
    gpus = {n: range(int(cluster.gpus[n])) for n in range(len(cluster))}
    here: dict[int, list[int]] = {n: [] for n in gpus}
    for i, n in suits:
        here[n].append(i)
    c, memory = tasks.cpu_milli.tolist(), tasks.memory_mib.tolist()
    k, g = tasks.num_gpu.tolist(), tasks.gpu_milli.tolist()

    x = {(i, n): m.binary(f"x_{i}_{n}") for i, n in suits}
    y = {(i, n, h): m.binary(f"y_{i}_{n}_{h}") for i, n in suits if k[i] for h in gpus[n]}
    on = {(n, h): m.binary(f"on_{n}_{h}") for n in gpus for h in gpus[n]}
    cpu = {n: m.sum(c[i] * x[i, n] for i in here[n]) for n in gpus}
    load = {(n, h): m.sum(g[i] * y[i, n, h] for i in here[n] if k[i]) for n, h in on}
    made = Placing(problem, m, x, y, on, cpu, load)

    for i in range(len(tasks)):
        nodes = m.sum(x[i, n] for n in gpus if (i, n) in x)
        m.row(f"placed_{i}", nodes <= 1 if accepting else nodes == 1)
    for i, n in suits:
        if k[i]:
            m.row(f"gpus_{i}_{n}", m.sum(y[i, n, h] for h in gpus[n]) == k[i] * x[i, n])
    for n in gpus:
        m.row(f"cpu_{n}", cpu[n] <= int(cluster.cpu_milli[n]))
        used = m.sum(memory[i] * x[i, n] for i in here[n])
        m.row(f"memory_{n}", used <= int(cluster.memory_mib[n]))
        if len(here[n]) > TASKS_PER_NODE:
            m.row(f"tasks_{n}", m.sum(x[i, n] for i in here[n]) <= TASKS_PER_NODE)
        for h in gpus[n]:
            m.row(f"gpu_{n}_{h}", load[n, h] <= 1000 * on[n, h])

    if accepting:
        demand = tasks.demand_milli.tolist()
        m.objective("accepted_gpu", m.sum(demand[i] * x[i, n] for i, n in suits))
    else:
        a, b = problem.objective.weights  # α of a watt, (1 - α) w of a milli-GPU
        P = m.sum(power(made, n) for n in gpus) if a else m.sum([])
        F = m.sum(fragmentation(made, n) for n in gpus) if b else m.sum([])
        m.objective("objective_5", a * P + b * F)
    return made


def power(made: Placing, n: int) -> Any:
    """P of a node, Eq. 1-2: a staircase in its CPU use, and idle or full power of its GPUs."""
    m, model, watts = made.m, made.problem.cluster.models[n], made.problem.power
    steps = list(enumerate(cpu_steps(watts, int(made.problem.cluster.cpu_milli[n]))))
    gpus = range(int(made.problem.cluster.gpus[n]))
    idle, full = watts.gpu_idle_w.get(model, 0.0), watts.gpu_full_w.get(model, 0.0)

    z = [m.binary(f"z_{n}_{b}") for b, _ in steps]
    m.row(f"step_1_{n}", m.sum(z) == 1)
    m.row(f"step_last_1_{n}", made.cpu[n] <= m.sum(step.last * z[b] for b, step in steps))
    m.row(f"step_first_1_{n}", made.cpu[n] >= m.sum(step.first * z[b] for b, step in steps))
    P_cpu = m.sum(step.watts * z[b] for b, step in steps)
    P_gpu = m.sum(idle + (full - idle) * made.on[n, h] for h in gpus)
    return P_cpu + P_gpu


def fragmentation(made: Placing, n: int) -> Any:
    """Σ_m q_m F_n(m), Eq. 4: what is free on each GPU, less what the class could use of it."""
    m, cluster, M = made.m, made.problem.cluster, made.problem.workload
    gpus, capacity = range(int(cluster.gpus[n])), int(cluster.cpu_milli[n])
    conditions: dict[str, Any] = {}
    parts = []

    def only_if(name: str, need: int, left: Any) -> Any:
        """Return a binary that may be 1 only where so much is left, made once."""
        if name not in conditions:
            v = conditions[name] = m.binary(name)
            m.row(f"if_{name}", need * v <= left)
        return conditions[name]

    for c in range(len(M)):
        k, cpu, milli = int(M.num_gpu[c]), int(M.cpu_milli[c]), int(M.gpu_milli[c])
        suits = not M.gpu_specs[c] or cluster.models[n] in M.gpu_specs[c].split("|")
        for h in gpus:
            free = 1000 - made.load[n, h]
            if not (suits and 0 < k <= len(gpus) and cpu <= capacity):
                parts.append(float(M.popularity[c]) * free)
                continue
            needed = [only_if(f"cpu_{n}_{cpu}", cpu, capacity - made.cpu[n])]
            if k == 1:
                needed.append(only_if(f"fits_{n}_{h}_{milli}", milli, free))
            else:
                idle = m.sum(1 - made.on[n, other] for other in gpus)
                needed.append(only_if(f"idle_{n}_{h}", 1, 1 - made.on[n, h]))
                needed.append(only_if(f"several_{n}_{k}", k, idle))
            F = m.continuous(f"F_{n}_{c}_{h}", 0, 1000)
            for v in needed:
                m.row(f"fragment_4_{n}_{c}_{h}_{v.name}", free - 1000 * v <= F)
            parts.append(float(M.popularity[c]) * F)
    return m.sum(parts)
