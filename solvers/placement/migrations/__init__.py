"""The best placement that at most K migrations reach, with a proven bound, for every K.

Power only: groups of tasks leave greedily (`greedy`), the offline placement is laid over what is
there (`target`), and small clusters are solved exactly (`exact`). Bounds are those of departures
(`bound`), of node patterns with everything free to move, and of the integer program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementSolution
from optgap.models.placement.migrations import MigrationProblem, Move
from optgap.models.result import Termination
from optgap.solvers.formulation import Stopped
from optgap.solvers.placement.migrations.bound import ROUNDING, DepartureBound
from optgap.solvers.placement.migrations.exact import MigrationModel
from optgap.solvers.placement.migrations.greedy import Descent
from optgap.solvers.placement.migrations.state import NOTHING, State
from optgap.solvers.placement.migrations.target import (
    Part,
    free_part,
    in_order,
    laid_over,
    without_load,
)

MOST_STEPS = 10
"""Steps per task after which a descent ends; each saves power, so that it is far from ever met."""


EXACT_NODES, EXACT_TASKS = 40, 120
"""The integer program is solved up to these sizes."""
EXACT_UNITS = 10.0
"""Work for it, for each number of migrations."""
ROUNDS = 10
"""Neighbourhoods that the offline placement re-solves."""
TOLERANCE = 4e-3
"""How far its bound may be from that of the linear program, relatively."""
PATTERN_SHARE = 0.7
"""Of a budget of work, for the offline placement and its bound."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """At most `most` migrations: the power reached (W), a proven bound (W), and the moves.

    `path_w` is the power now and after each move, W.
    """

    most: int
    power_w: float
    bound_w: float
    moves: tuple[Move, ...]
    bound_by: str
    path_w: tuple[float, ...]


@dataclass(frozen=True)
class MigrationCurve:
    """What migrations save, by how many there may be.

    Parameters
    ----------
    points: by ascending `most`; the last is for any number of migrations.
    solution: the placement that the last one's moves lead to.
    termination: why the work stopped.
    """

    points: tuple[CurvePoint, ...]
    solution: PlacementSolution
    termination: Termination

    def at(self, most: int) -> CurvePoint:
        """The best point that needs no more migrations than this."""
        return max((p for p in self.points if p.most <= most), key=lambda p: p.most)


@dataclass
class _Work:
    """What is known so far: lists of moves, with the power (W) before the first and after each."""

    migration: MigrationProblem
    limits: Limits
    seed: int
    paths: list[tuple[list[Move], list[float]]] = field(default_factory=list)
    followed: list[list[Move]] = field(default_factory=list)

    @cached_property
    def now_w(self) -> float:
        """Power of the current placement, W."""
        return float(self.migration.evaluate(self.migration.current).objective)

    @cached_property
    def start(self) -> State:
        """The cluster before any move; to be copied."""
        return State(self.migration)

    def add(self, moves: Sequence[Move]) -> None:
        """Keep a list of moves, each of which fits."""
        state = self.start.copy()
        power = self.now_w
        watts = [power]
        for move in moves:
            touched = {move.from_node, move.to_node}
            power -= sum(state.power(n) for n in touched)
            state.move(move)
            power += sum(state.power(n) for n in touched)
            watts.append(power)
        self.paths.append((list(moves), watts))

    def best(self, most: int | None) -> tuple[list[Move], list[float]]:
        """The list that ends with the least power within so many moves; None for any number."""
        chosen: tuple[list[Move], list[float]] = ([], self.paths[0][1][:1])
        for moves, watts in self.paths:
            within = watts if most is None else watts[: most + 1]
            stop = int(np.argmin(within))
            if within[stop] < chosen[1][-1] - NOTHING:
                chosen = (moves[:stop], watts[: stop + 1])
        return chosen

    def point(
        self, most: int, any_number: bool, bound: float, by: str
    ) -> tuple[CurvePoint, PlacementSolution]:
        """The point of the curve and where it ends, with the referee's own power.

        The first steps that it shares with moves that were followed need no second look.

        Raises
        ------
        RefereeError: when a step does not fit, or leads to another power than it should.
        """
        moves, watts = self.best(None if any_number else most)
        checked = max((_shared(moves, known) for known in self.followed), default=0)
        final, broken = self.migration.follow(moves, checked)
        self.followed.append(moves)
        broken = broken or self.migration.check(final, len(moves))
        power = self.migration.evaluate(final).objective
        if broken or abs(power - watts[-1]) > 1e-6 * max(1.0, power):
            what = str(broken[0]) if broken else f"{watts[-1]!r} W, the referee finds {power!r}"
            raise RefereeError(f"moves to at most {most}: {what}")
        if bound > power + 1e-6 * max(1.0, power):
            raise RefereeError(
                f"the bound {bound!r} is above the {power!r} W that {most} moves reach"
            )
        point = CurvePoint(most, power, min(bound, power), tuple(moves), by, tuple(watts))
        return point, final


def _shared(moves: Sequence[Move], known: Sequence[Move]) -> int:
    """How many first moves two lists share."""
    pairs = enumerate(zip(moves, known, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(moves), len(known)))


def curve(
    migration: MigrationProblem,
    *,
    limits: Limits,
    seed: int = 0,
    wanted: Iterable[int] = (),
) -> MigrationCurve:
    """The saving by number of migrations: 0, 1, 2, 5, 10, … and the `wanted`, up to any number.

    Raises
    ------
    InputError: for another objective than power, or CPU power as printed in Eq. 1, which can
        fall when a task arrives.
    """
    problem = migration.problem
    if problem.objective.goal != "power":
        raise InputError("problem", "field objective.goal", problem.objective.goal, "'power'")
    if problem.power.cpu_rule != "packages":
        raise InputError("problem", "field power.cpu_rule", problem.power.cpu_rule, "'packages'")
    work = _Work(migration, limits, seed)
    every = Descent.of(migration)
    every.run(MOST_STEPS * len(problem.tasks), limits)
    work.add(every.moves)
    free_bound, by = _patterns(work)
    small = _small(work)
    most = max(len(work.best(None)[0]), int(migration.movable.sum()) if small else 0, 1)
    grid = _grid(most, wanted)
    for k in grid[1:-1]:
        descent = _on_the_way(work, every, k)
        if descent is not None:
            descent.run(k, limits)
            work.add(descent.moves)
    exact = _exact(work, grid) if small else {}
    departures = DepartureBound(migration)
    found: list[tuple[CurvePoint, PlacementSolution]] = []
    for k in reversed(grid):
        bounds = [
            (departures.at(k), "departures, node by node"),
            (free_bound + migration.fixed_w, by),
            (exact.get(k, -np.inf) + migration.fixed_w, "integer program (HiGHS)"),
        ]
        found.append(work.point(k, k == grid[-1], *max(bounds)))
    points = tuple(point for point, _final in reversed(found))
    return MigrationCurve(points, found[0][1], limits.stop or Termination.COMPLETED)


def _on_the_way(work: _Work, every: Descent, most: int) -> Descent | None:
    """A descent that begins part of the way to the offline placement; None without a way.

    The farther on the way, the fewer moves a descent finds: `most` are to be enough for both.
    """
    way = max((moves for moves, _ in work.paths), key=len)
    left = len(every.moves)
    if not left < most < len(way):
        return None
    begun = round((most - left) * len(way) / (len(way) - left))
    return Descent.of(work.migration, way[:begun])


def _small(work: _Work) -> bool:
    problem = work.migration.problem
    return len(problem.cluster) <= EXACT_NODES and len(problem.tasks) <= EXACT_TASKS


def _grid(most: int, wanted: Iterable[int]) -> list[int]:
    """0, 1, 2, 5, 10, … below the most, the wanted ones, and the most."""
    steps = {0, most, *(k for k in wanted if 0 <= k <= most)}
    scale = 1
    while scale <= most:
        steps |= {f * scale for f in (1, 2, 5) if f * scale < most}
        scale *= 10
    return sorted(steps)


def _patterns(work: _Work) -> tuple[float, str]:
    """The bound with everything but load free to move; the offline placement becomes a path."""
    from optgap.solvers.placement.patterns import bound_patterns, patterns

    migration = work.migration
    part, whole = free_part(migration), without_load(migration)
    seed, left = work.seed, work.limits.remaining
    bounded = None
    if whole is not None and not (part and len(part.nodes) == len(whole[0].nodes)):
        share = work.limits.within(PATTERN_SHARE / 2 * left)
        bounded = bound_patterns(
            whole[0].problem, limits=share, seed=seed, tolerance=TOLERANCE, start=whole[0].here
        )
    if part is not None:
        share = work.limits.within(PATTERN_SHARE * left)
        found = patterns(
            part.problem, limits=share, seed=seed, tolerance=TOLERANCE, rounds=ROUNDS,
            start=part.here,
        )  # fmt: skip
        bounded = found if bounded is None else bounded
        if found.solution is not None and (found.solution.node >= 0).all():
            _lay(work, part, found.solution)
    if whole is None or bounded is None or bounded.bound is None:
        return -np.inf, ""
    return bounded.bound + whole[1] - ROUNDING * abs(bounded.bound), bounded.bound_by or ""


def _lay(work: _Work, part: Part, found: PlacementSolution) -> None:
    """Make a path of an offline placement of a part, and descend from its end."""
    migration = work.migration
    near = laid_over(part, found)
    node, mask = migration.current.node.copy(), migration.current.gpu_mask.copy()
    node[part.tasks] = part.nodes[near.node]
    mask[part.tasks] = near.gpu_mask
    target = PlacementSolution.of_arrays(node, mask)
    if migration.check(target):  # more tasks on a node than it may run
        return
    way = in_order(migration, target, work.limits)
    descent = Descent.of(migration, way)
    descent.run(len(way) + MOST_STEPS * len(part.tasks), work.limits)
    work.add(descent.moves)


def _exact(work: _Work, grid: Sequence[int]) -> dict[int, float]:
    """Bounds by number of migrations; the placements become paths where an order is found."""
    bounds: dict[int, float] = {}
    try:
        model = MigrationModel(work.migration, work.limits)
    except Stopped:
        return bounds
    for most in grid:
        if work.limits.stop:
            break
        solution, bound = model.solve(
            most, work.limits.within(EXACT_UNITS * work.limits.effort), work.seed
        )
        if bound is not None:
            bounds[most] = bound
        if solution is not None and not work.migration.check(solution, most):
            work.add(in_order(work.migration, solution, work.limits))
    return bounds
