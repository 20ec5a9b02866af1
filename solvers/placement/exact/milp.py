"""The textbook formulation: one binary per task and node, and per task and GPU.

It shares no modelling idea with the counted formulation, which makes it a check on that one
and the yardstick for its speed; nodes, GPUs and tasks that look alike are not told apart from
others, so it is for small problems.

    Σ_n a_kn = 1,  Σ_g y_kng = (GPUs of task k)·a_kn                          (Cond. 3, 4)
    Σ_k cpu_k a_kn ≤ C_n,  Σ_k mem_k a_kn ≤ M_n,  Σ_k milli_k y_kng ≤ 1000·on_ng
    Σ_b z_nb = 1,  Σ_b first_b z_nb ≤ CPU use of n ≤ Σ_b last_b z_nb           (Eq. 1)
    f_nmg ≥ r_ng − 1000·v  for every condition v that class m needs to use GPU g of node n,
        with r_ng = 1000 − load; Σ p_m f_nmg is F of the cluster               (Eq. 4)
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import FloatArray
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder, LinearModel, Solved
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.placement.exact.code import claim
from optgap.solvers.placement.exact.fill import Terms
from optgap.solvers.placement.exact.infeasible import at_most, impossible, together
from optgap.solvers.placement.exact.tables import Counted, cpu_steps

CLOSE = 1e-5
"""Relative distance of objective and bound up to which a solver's word for "optimal" is taken:
its integers are integers up to 1e-6, and 1000 milli-GPU hang on each."""
TOLERANCE = 1e-10
"""HiGHS's own, and what is taken off any back end's bound."""
MOST_NODES = 40
MOST_TASKS = 300


class PlainModel:
    """Builds the formulation; `model` is ready to be solved."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self.watts, self.milli = problem.objective.weights
        self.accepting = problem.objective.goal == "accepted_gpu"
        self.builder = LinearBuilder("max" if self.accepting else "min")
        self.on_node: dict[tuple[int, int], int] = {}
        self.on_gpu: dict[tuple[int, int, int], int] = {}
        self.active: dict[tuple[int, int], int] = {}
        self.used_cpu: dict[int, Terms] = defaultdict(list)
        self.load: dict[tuple[int, int], Terms] = defaultdict(list)
        for k in range(len(problem.tasks)):
            self._task(k)
        for n in range(len(problem.cluster)):
            self._capacities(n)
            if self.watts:
                self._power(n)
            if self.milli:
                self._fragmentation(n)
        self.model: LinearModel = self.builder.build()

    def _task(self, k: int) -> None:
        """Task k on one node, and there on as many GPUs as it asks for."""
        cluster, task = self.problem.cluster, self.problem.tasks.task_class(k)
        gain = float(task.demand_milli) if self.accepting else 0.0
        chosen: Terms = []
        for n in range(len(cluster)):
            if not self.problem.fits_empty(task, cluster.types[int(cluster.type_of[n])]):
                continue
            a = self.builder.variable(upper=1, cost=gain, integer=True)
            self.on_node[k, n] = a
            chosen.append((a, 1.0))
            self.used_cpu[n].append((a, float(task.cpu_milli)))
            if not task.num_gpu:
                continue
            parts: Terms = []
            for g in range(int(cluster.gpus[n])):
                y = self.builder.variable(upper=1, integer=True)
                self.on_gpu[k, n, g] = y
                parts.append((y, 1.0))
                self.load[n, g].append((y, float(task.gpu_milli)))
            self.builder.row([*parts, (a, -float(task.num_gpu))], 0, 0)
        self.builder.row(chosen, 0 if self.accepting else 1, 1)

    def _capacities(self, n: int) -> None:
        cluster, tasks, builder = self.problem.cluster, self.problem.tasks, self.builder
        here = [(k, a) for (k, node), a in self.on_node.items() if node == n]
        builder.row(self.used_cpu[n], upper=float(cluster.cpu_milli[n]))
        builder.row(
            [(a, float(tasks.memory_mib[k])) for k, a in here], upper=float(cluster.memory_mib[n])
        )
        if len(tasks) > TASKS_PER_NODE:
            builder.row([(a, 1.0) for _k, a in here], upper=TASKS_PER_NODE)
        for g in range(int(cluster.gpus[n])):
            on = builder.variable(upper=1, integer=True)
            self.active[n, g] = on
            builder.row([*self.load[n, g], (on, -1000.0)], upper=0)

    def _power(self, n: int) -> None:
        cluster, power, builder = self.problem.cluster, self.problem.power, self.builder
        model = cluster.models[n]
        for g in range(int(cluster.gpus[n])):
            builder.offset += self.watts * power.gpu_idle_w[model]
            delta = power.gpu_full_w[model] - power.gpu_idle_w[model]
            builder.add_cost(self.active[n, g], self.watts * delta)
        steps = cpu_steps(power, int(cluster.cpu_milli[n]))
        chosen = [
            builder.variable(upper=1, cost=self.watts * step.watts, integer=True) for step in steps
        ]
        builder.row([(z, 1.0) for z in chosen], 1, 1)
        last = [(z, -float(step.last)) for z, step in zip(chosen, steps, strict=True)]
        first = [(z, -float(step.first)) for z, step in zip(chosen, steps, strict=True)]
        builder.row([*self.used_cpu[n], *last], upper=0)
        builder.row([*self.used_cpu[n], *first], lower=0)

    def _fragmentation(self, n: int) -> None:
        """F_n(m) of every class: all that is free, less what the class could use."""
        cluster, workload, builder = self.problem.cluster, self.problem.workload, self.builder
        gpus = range(int(cluster.gpus[n]))
        conditions = _Conditions(self, n)
        for m in range(len(workload)):
            cost = self.milli * float(workload.popularity[m])
            spec, wanted = workload.gpu_specs[m], int(workload.num_gpu[m])
            usable = 0 < wanted <= len(gpus) and (not spec or cluster.models[n] in spec.split("|"))
            usable = usable and int(workload.cpu_milli[m]) <= int(cluster.cpu_milli[n])
            for g in gpus:
                if not usable:  # all that is free: 1000 − load
                    builder.offset += cost * 1000
                    for y, milli in self.load[n, g]:
                        builder.add_cost(y, -cost * milli)
                    continue
                f = builder.variable(upper=1000, cost=cost)
                needed = [conditions.cpu(int(workload.cpu_milli[m]))]
                if wanted == 1:
                    needed.append(conditions.fits(g, int(workload.gpu_milli[m])))
                else:
                    needed += [conditions.idle(g), conditions.several(wanted)]
                for v in needed:
                    builder.row([(f, 1.0), *self.load[n, g], (v, 1000.0)], lower=1000)

    def decode(self, values: FloatArray) -> PlacementSolution:
        """The placement behind the columns' values."""
        placed: list[tuple[int, tuple[int, ...]] | None] = [None] * len(self.problem.tasks)
        for (k, n), a in self.on_node.items():
            if values[a] > 0.5:
                gpus = range(int(self.problem.cluster.gpus[n]))
                held = (g for g in gpus if (k, n, g) in self.on_gpu)
                placed[k] = (n, tuple(g for g in held if values[self.on_gpu[k, n, g]] > 0.5))
        return PlacementSolution.of(placed)


class _Conditions:
    """Binaries of one node that may be 1 only where a condition holds, each made once."""

    def __init__(self, plain: PlainModel, n: int) -> None:
        self.plain = plain
        self.n = n
        self.made: dict[tuple[str, int, int], int] = {}

    def _make(self, key: tuple[str, int, int], terms: Terms, factor: float, most: float) -> int:
        """A binary v with Σ terms + factor·v ≤ most."""
        if key not in self.made:
            v = self.plain.builder.variable(upper=1, integer=True)
            self.plain.builder.row([*terms, (v, factor)], upper=most)
            self.made[key] = v
        return self.made[key]

    def cpu(self, need: int) -> int:
        """`need` milli-vCPU are free."""
        capacity = float(self.plain.problem.cluster.cpu_milli[self.n])
        return self._make(("cpu", need, 0), self.plain.used_cpu[self.n], float(need), capacity)

    def fits(self, g: int, milli: int) -> int:
        """GPU g has `milli` free."""
        return self._make(("fits", g, milli), self.plain.load[self.n, g], float(milli), 1000.0)

    def idle(self, g: int) -> int:
        """GPU g is idle."""
        return self._make(("idle", g, 0), [(self.plain.active[self.n, g], 1.0)], 1.0, 1.0)

    def several(self, wanted: int) -> int:
        """`wanted` GPUs of the node are idle."""
        gpus = int(self.plain.problem.cluster.gpus[self.n])
        busy = [(self.plain.active[self.n, g], 1.0) for g in range(gpus)]
        return self._make(("several", wanted, 0), busy, float(wanted), float(gpus))


def milp(
    problem: PlacementProblem, *, limits: Limits, seed: int, backend: str = "highs"
) -> Outcome:
    """The best placement by the textbook formulation.

    Parameters
    ----------
    backend: ``highs``, ``cbc`` or ``scipy``.

    Raises
    ------
    InputError: for a back end that is unknown, unusable or wants integers, or for more than
        `MOST_NODES` nodes or `MOST_TASKS` tasks.
    """
    at_most(problem, "milp", MOST_NODES, MOST_TASKS)
    accepting = problem.objective.goal == "accepted_gpu"
    reason = "" if accepting else impossible(problem)
    if reason:
        return Outcome(None, Status.INFEASIBLE, bound_by="capacities", message=reason)
    plain = PlainModel(problem)
    solved = solve(plain.model, backend=backend, limits=limits, seed=seed, tolerance=TOLERANCE)
    if solved.bound is not None:
        slack = solver_slack(plain.model, TOLERANCE)
        bound = solved.bound + slack if accepting else max(0.0, solved.bound - slack)
        solved = replace(solved, bound=bound)
    by = f"textbook formulation, {solved.solver}"
    info: dict[str, float | int | str] = {
        "variables": plain.model.variables,
        "rows": plain.model.rows,
    }
    if solved.status is Status.INFEASIBLE:
        return Outcome(None, solved.status, bound_by=by, info=info, message=together(by))
    if solved.values is None or solved.objective is None:
        return Outcome(
            None,
            solved.status,
            solved.termination,
            bound=solved.bound,
            bound_by=by if solved.bound is not None else None,
            info=info,
            message=solved.message,
        )
    info["model_objective"] = solved.objective
    return _outcome(problem, plain.decode(solved.values), solved, by, info)


def _outcome(
    problem: PlacementProblem,
    solution: PlacementSolution,
    solved: Solved,
    by: str,
    info: dict[str, float | int | str],
) -> Outcome:
    claimed = claim(Counted(problem), solution)
    status, bound = solved.status, solved.bound
    if bound is not None:
        sign = 1.0 if problem.objective.described.sense == "min" else -1.0
        far = sign * (claimed - bound) > CLOSE * max(1.0, math.fabs(claimed))
        if status is Status.OPTIMAL and far:
            status = Status.FEASIBLE
        bound = sign * min(sign * bound, sign * claimed)
    return Outcome(
        solution,
        status,
        Termination.COMPLETED if status is Status.OPTIMAL else solved.termination,
        claimed,
        bound,
        by if bound is not None else None,
        info,
        solved.message,
    )
