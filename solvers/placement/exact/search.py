"""Exact placement of small clusters, and the bound from pooled nodes.

1. A greedy placement.
2. *Pooling*: nodes of one type taken together (``counted.py``). That program is small, whatever the
   number of nodes, and has no symmetry. It gives up two things only: that a task and what shares a
   node with it must really be on one node, and that CPU packages and free CPU are a node's own. Its
   optimum is a bound, and on most problems one that can be reached.
3. *Placing*: the same formulation with one unit per node, by HiGHS, which ends when a solution
   meets the best bound of all.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace

from optgap.models.errors import RefereeError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import FloatArray
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import Solved
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.placement.aggregate import Contents
from optgap.solvers.placement.exact.counted import CountedModel, Unit
from optgap.solvers.placement.exact.infeasible import at_most, hopeless, together
from optgap.solvers.placement.exact.tables import Counted, is_share
from optgap.solvers.placement.nodes import Node, expand, inserted
from optgap.solvers.placement.nodes import counted as contents_of

TOLERANCE = 1e-9
"""HiGHS's own, and what is taken off its bounds for it."""
POOLING_SHARE = 0.4
"""Share of the work that is left for the bound from pooled nodes."""
POOLED_TO = 1e-4
"""Relative gap to which the pooled problem is solved where its bound is all that is asked for."""
CLOSE = 1e-6
"""An objective within this of its bound, relative to its size, is optimal: what the solvers'
own arithmetic is good for."""
MOST_NODES = 200
MOST_TASKS = 2000
"""Beyond this the node-by-node model has millions of columns, and nothing would come of it."""


def exact(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the best placement, proven.

    The minimising objectives place every task; a proof is good to one part in a million.

    Raises
    ------
    InputError: for more than `MOST_NODES` nodes or `MOST_TASKS` tasks.
    """
    at_most(problem, "an exact method", MOST_NODES, MOST_TASKS)
    return hopeless(problem) or ExactSearch(Counted(problem), limits, seed).run()


def bound_pooled(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return a bound from pooled nodes; any size."""
    lost = hopeless(problem)
    if lost is not None:
        return lost
    model = pooled_model(Counted(problem))
    solved = solve_counted(model, limits, seed, gap=POOLED_TO)
    by = f"pooled nodes, {solved.solver}"
    info = {"variables": model.model.variables, "rows": model.model.rows}
    if solved.status is Status.INFEASIBLE:
        return Outcome(None, Status.INFEASIBLE, bound_by=by, info=info, message=together(by))
    known = solved.bound is not None
    return Outcome(
        None,
        Status.BOUND_ONLY if known else Status.NO_SOLUTION,
        solved.termination,
        bound=solved.bound,
        bound_by=by if known else None,
        info=info,
        message=solved.message,
    )


def pooled_model(counted: Counted) -> CountedModel:
    """Return one unit per node type."""
    members: dict[int, list[int]] = defaultdict(list)
    for n, t in enumerate(counted.problem.cluster.type_of.tolist()):
        members[t].append(n)
    return CountedModel(counted, [Unit(t, tuple(nodes)) for t, nodes in sorted(members.items())])


def placing_model(counted: Counted) -> CountedModel:
    """Return one unit per node, nodes of a type together."""
    types = counted.problem.cluster.type_of.tolist()
    order = sorted(range(len(types)), key=lambda n: (types[n], n))
    return CountedModel(counted, [Unit(types[n], (n,)) for n in order])


def solve_counted(
    model: CountedModel, limits: Limits, seed: int, *, gap: float = 0.0, target: float | None = None
) -> Solved:
    """Solve a counted model by HiGHS; its bound is valid."""
    solved = solve(
        model.model,
        backend="highs",
        limits=limits,
        seed=seed,
        gap=gap,
        target=target,
        tolerance=TOLERANCE,
    )
    return replace(solved, bound=None if solved.bound is None else valid_bound(model, solved.bound))


def valid_bound(model: CountedModel, bound: float) -> float:
    """Return a solver's bound, less its tolerance; demand is a whole number of milli-GPU."""
    if model.counted.accepting:
        return float(int(bound + 1e-6 * max(1.0, abs(bound))))
    return bound - solver_slack(model.model, TOLERANCE)


def greedy(counted: Counted) -> PlacementSolution | None:
    """Place each task where the objective grows least, the largest first; None without room."""
    nodes = inserted(counted, [], counted.accepting)
    return None if nodes is None else expand(counted, nodes)


def objective_of(counted: Counted, solution: PlacementSolution) -> float:
    """Return the objective of a placement by the costs of its nodes' contents."""
    if counted.accepting:
        return float(counted.problem.tasks.demand_milli[solution.node >= 0].sum())
    costs = [counted.cost(t, contents) for t, contents in contents_of(counted, solution)]
    return math.fsum([counted.base, *costs])


def decode(model: CountedModel, values: FloatArray) -> PlacementSolution:
    """Return the placement behind the columns' values, where every unit is a single node."""
    nodes: list[Node] = []
    for unit, columns in zip(model.units, model.columns, strict=True):
        of_size: dict[int, list[int]] = defaultdict(list)
        gpus: list[tuple[int, ...]] = []
        multi: list[int] = []
        lone: list[int] = []
        for c, column in columns.tasks.items():
            task, here = model.counted.classes[c], [c] * round(values[column])
            if is_share(task):
                of_size[task.gpu_milli] += here
            elif task.num_gpu == 1:
                gpus += [(c,) for c in here]
            else:
                (multi if task.num_gpu else lone).extend(here)
        for room in columns.filling.take(values) if columns.filling is not None else []:
            gpus.append(tuple(of_size[milli].pop() for milli in room if of_size[milli]))
        contents = Contents(tuple(filter(None, gpus)), tuple(multi), tuple(lone))
        nodes.append((unit.type_index, contents))
    return expand(model.counted, nodes)


@dataclass
class ExactSearch:
    """One exact solve: the best placement and the best bound so far, and what proved that."""

    counted: Counted
    limits: Limits
    seed: int
    found: PlacementSolution | None = None
    claimed: float | None = None
    bound: float | None = None
    bound_by: str | None = None
    ended: Termination = Termination.COMPLETED
    message: str = ""
    info: dict[str, float | int | str] = field(default_factory=dict)

    @property
    def sign(self) -> int:
        """Factor that turns values into ones to be minimised."""
        return -1 if self.counted.accepting else 1

    @property
    def proven(self) -> bool:
        """Whether the placement is as good as the bound allows."""
        if self.claimed is None or self.bound is None:
            return False
        return self.sign * (self.claimed - self.bound) <= CLOSE * max(1.0, abs(self.claimed))

    def run(self) -> Outcome:
        """Greedy, pooling, placing."""
        self._offer(greedy(self.counted))
        self.limits.progress("greedy", self.claimed, self.bound)
        # with a type for every node, pooling is the same model as placing
        pools = len(self.counted.types) < len(self.counted.problem.cluster)
        for step in (self.pool, self.place) if pools else (self.place,):
            if self.limits.stop is not None or self.proven:
                break
            denied_by = step()
            if denied_by and self.found is not None:  # its tables know nothing of the solver
                raise RefereeError(f"{denied_by} calls a problem infeasible that is not")
            if denied_by:
                info, words = self.info, together(denied_by)
                return Outcome(
                    None, Status.INFEASIBLE, bound_by=denied_by, info=info, message=words
                )
        return self._outcome()

    def pool(self) -> str:
        """Bound by pooled nodes; return what denies that there is a placement, or ""."""
        share = self.limits.within(POOLING_SHARE * self.limits.remaining)
        return self._solve("pooled nodes", pooled_model(self.counted), share)[1]

    def place(self) -> str:
        """Search node by node; return what denies that there is a placement, or ""."""
        model, target = placing_model(self.counted), self.bound
        if target is not None:
            target += self.sign * CLOSE / 2 * max(1.0, abs(target))
        solved, denied_by = self._solve("node by node", model, self.limits, target)
        self.info["variables"], self.ended = model.model.variables, solved.termination
        if solved.status is Status.ERROR:
            self.message = f"{solved.solver}: {solved.message}"
        if solved.values is not None:
            self._offer(decode(model, solved.values))
        return denied_by

    def _solve(
        self, phase: str, model: CountedModel, limits: Limits, target: float | None = None
    ) -> tuple[Solved, str]:
        """Solve a model and keep its bound if that is the best."""

        def tell(_phase: str, found: float | None, proven: float | None) -> None:
            self.limits.progress(phase, found or self.claimed, self._better(proven))

        solved = solve_counted(model, limits.telling(tell), self.seed, target=target)
        by = f"{phase}, {solved.solver}"
        if solved.status is Status.INFEASIBLE:
            return solved, by
        if solved.bound is not None and self._better(solved.bound) != self.bound:
            self.bound, self.bound_by = solved.bound, by
        return solved, ""

    def _offer(self, solution: PlacementSolution | None) -> None:
        """Keep a placement if it is the best so far."""
        if solution is None:
            return
        value = objective_of(self.counted, solution)
        if self.claimed is None or self.sign * value < self.sign * self.claimed:
            self.found, self.claimed = solution, value

    def _better(self, bound: float | None) -> float | None:
        """Return the better of this bound and the one that is known."""
        known = [value for value in (self.bound, bound) if value is not None]
        return max(known, key=lambda value: self.sign * value, default=None)

    def _outcome(self) -> Outcome:
        status, ended, bound = Status.OPTIMAL, Termination.COMPLETED, self.bound
        if not self.proven:
            ended = self.limits.stop or self.ended
            status = Status.FEASIBLE
            if self.found is None:
                status = Status.NO_SOLUTION if bound is None else Status.BOUND_ONLY
        elif self.claimed is not None and bound is not None:
            # a bound past the solution it proves is rounding
            bound = self.sign * min(self.sign * bound, self.sign * self.claimed)
        return Outcome(
            self.found, status, ended, self.claimed, bound, self.bound_by, self.info, self.message
        )
