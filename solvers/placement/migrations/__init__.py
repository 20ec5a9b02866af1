"""Best placement that at most K migrations reach, with a proven bound, for every K.

The objective is power. Groups of tasks leave greedily (`greedy`), and the offline placement is
matched to the present one (`target`). The better of two bounds counts: that of node patterns with
everything but load free to move, for any K, and that of K departures. Small clusters are solved
exactly for each K (`bounds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementSolution
from optgap.models.placement.migrations import MigrationProblem, Move
from optgap.models.result import Termination
from optgap.solvers.placement.migrations.bounds import exact, saved_w
from optgap.solvers.placement.migrations.greedy import Descent
from optgap.solvers.placement.migrations.state import NOTHING, State
from optgap.solvers.placement.migrations.target import (
    free_nodes,
    in_order,
    laid_over,
    without_load,
)

EXACT_NODES, EXACT_TASKS = 40, 120
"""Largest sizes at which the integer program is solved."""
ROUNDS = 10
"""Number of neighbourhoods that the offline placement re-solves."""
TOLERANCE = 4e-3
"""Relative tolerance between the offline placement's bound and the linear program's."""
PATTERN_SHARE = 0.7
"""Share of a budget of work for the offline placement and its bound."""
ROUNDING = 1e-9
"""Relative margin that is subtracted from a bound for rounding errors of sums."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Result for at most `most` migrations: power (W), a proven bound (W), and the moves.

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
    """Saving by number of migrations.

    Parameters
    ----------
    migration: the problem.
    points: results by ascending `most`; the last is for any number of migrations.
    solution: placement after the moves of the last point.
    termination: reason why the work stopped.
    """

    migration: MigrationProblem
    points: tuple[CurvePoint, ...]
    solution: PlacementSolution
    termination: Termination

    def at(self, most: int) -> CurvePoint:
        """Return the best point that needs at most `most` migrations."""
        return max((p for p in self.points if p.most <= most), key=lambda p: p.most)


@dataclass
class _Work:
    """Lists of moves found so far, with the power (W) before the first move and after each."""

    migration: MigrationProblem
    limits: Limits
    seed: int
    paths: list[tuple[list[Move], list[float]]] = field(default_factory=list)

    def add(self, moves: Sequence[Move], checked: int = 0) -> None:
        """Store a list of moves, of which the first `checked` are known to fit.

        Raises
        ------
        RefereeError: if a move does not fit.
        """
        _end, broken = self.migration.follow(moves, checked)
        if broken:
            raise RefereeError(f"a plan of {len(moves)} moves: {broken[0]}")
        state, watts = State(self.migration), [self._power([])]
        for move in moves:
            touched = {move.from_node, move.to_node}
            before = sum(state.power(n) for n in touched)
            state.move(move)
            watts.append(watts[-1] - before + sum(state.power(n) for n in touched))
        self.paths.append((list(moves), watts))

    def _power(self, moves: Sequence[Move]) -> float:
        end, _ = self.migration.follow(moves, len(moves))
        return float(self.migration.evaluate(end).objective)

    def best(self, most: int | None = None) -> tuple[list[Move], list[float]]:
        """Return the list of least final power within `most` moves; None for any number."""
        chosen: tuple[list[Move], list[float]] = ([], self.paths[0][1][:1])
        for moves, watts in self.paths:
            within = watts if most is None else watts[: most + 1]
            stop = int(np.argmin(within))
            if within[stop] < chosen[1][-1] - NOTHING:
                chosen = (moves[:stop], watts[: stop + 1])
        return chosen

    def point(self, most: int, any_number: bool, bound: float, by: str) -> CurvePoint:
        """Return the point of the curve, with the referee's own power.

        Raises
        ------
        RefereeError: if this power differs from that of the moves, or is below the bound.
        """
        moves, watts = self.best(None if any_number else most)
        power = self._power(moves)
        slack = 1e-6 * max(1.0, power)
        if abs(power - watts[-1]) > slack or bound > power + slack:
            told = f"{watts[-1]!r} W and the bound {bound!r}, the referee finds {power!r}"
            raise RefereeError(f"moves to at most {most}: {told}")
        return CurvePoint(most, power, min(bound, power), tuple(moves), by, tuple(watts))


def curve(
    migration: MigrationProblem,
    *,
    limits: Limits,
    seed: int = 0,
    wanted: Iterable[int] = (),
) -> MigrationCurve:
    """Return the saving by number of migrations: 0, 1, 2, 5, 10, …, the `wanted`, and any number.

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
    descent = Descent(migration)
    descent.run(limits)
    work.add(descent.moves)
    by_patterns = _patterns(work)
    small = len(problem.cluster) <= EXACT_NODES and len(problem.tasks) <= EXACT_TASKS
    most = max(len(work.best()[0]), int(migration.movable.sum()) if small else 0, 1)
    grid = _grid(most, wanted)
    way = max((moves for moves, _ in work.paths), key=len)
    for k in grid:
        if len(descent.moves) < k < len(way):
            # begin on the way to the offline placement: the farther, the fewer moves save the rest
            left = len(descent.moves)
            begun = round((k - left) * len(way) / (len(way) - left))
            between = Descent(migration, way[:begun])
            between.run(limits, k)
            work.add(between.moves, begun)
    now, saved = work.paths[0][1][0], saved_w(State(migration)) * (1 + ROUNDING)
    least = (now - saved).tolist()
    gone = {k: (least[min(k, len(least) - 1)], "departures, node by node") for k in grid}
    known = _exact(work, grid[1:]) if small else {}
    known[0] = now, "no migration"
    points = tuple(
        work.point(k, k == most, *max(by_patterns, gone[k], known.get(k, gone[k]))) for k in grid
    )
    end, _ = migration.follow(points[-1].moves, len(points[-1].moves))
    return MigrationCurve(migration, points, end, limits.stop or Termination.COMPLETED)


def _grid(most: int, wanted: Iterable[int]) -> list[int]:
    """Return 0, 1, 2, 5, 10, … below `most`, the wanted numbers, and `most`."""
    steps = {f * 10**digits for digits in range(len(str(most))) for f in (1, 2, 5)}
    return sorted({0, most, *(k for k in (*steps, *wanted) if 0 <= k < most)})


def _patterns(work: _Work) -> tuple[float, str]:
    """Return the bound if all but load may move; store moves towards the offline placement.

    The placement is that of the nodes on which any equal tasks may be exchanged.
    """
    from optgap.solvers.placement.patterns import bound_patterns, patterns

    migration, limits, free = work.migration, work.limits, free_nodes(work.migration)
    every = np.arange(len(migration.problem.cluster))
    part, whole = (without_load(migration, nodes) for nodes in (free, every))
    if whole is None:
        return -np.inf, ""
    asked: dict[str, Any] = {"seed": work.seed, "tolerance": TOLERANCE}
    share = PATTERN_SHARE * limits.remaining
    bounded = None
    if part is None or len(free) < len(every):
        half = limits.within(share / 2)
        bounded = bound_patterns(whole.problem, limits=half, start=whole.here, **asked)
    if part is not None:
        found = patterns(
            part.problem, limits=limits.within(share), rounds=ROUNDS, start=part.here, **asked
        )
        bounded = bounded or found
        if found.solution is not None and (found.solution.node >= 0).all():
            near = laid_over(part, found.solution)
            node, mask = migration.current.node.copy(), migration.current.gpu_mask.copy()
            node[part.tasks], mask[part.tasks] = free[near.node], near.gpu_mask
            way = in_order(migration, PlacementSolution.of_arrays(node, mask), limits)
            descent = Descent(migration, way)
            descent.run(limits)
            work.add(descent.moves)
    if bounded is None or bounded.bound is None:
        return -np.inf, ""
    bound = bounded.bound + whole.load_w - ROUNDING * abs(bounded.bound)
    return bound + migration.fixed_w, bounded.bound_by or ""


def _exact(work: _Work, grid: Sequence[int]) -> dict[int, tuple[float, str]]:
    """Return exact bounds by number of migrations; store the moves if an order is found."""
    bounds: dict[int, tuple[float, str]] = {}
    migration, limits = work.migration, work.limits
    for most, solution, bound in exact(migration, grid, limits, work.seed):
        if bound is not None:
            bounds[most] = bound + migration.fixed_w, "integer program (HiGHS)"
        if solution is not None and not migration.check(solution, most):
            work.add(in_order(migration, solution, limits))
    return bounds
