"""Linear models to PuLP problems and back, the same for PuLP 3 (Python 3.11) and 4 (3.12 on).

`add_variable`, the comparison operators and `writeMPS` exist in both. What `solve` returns,
how a solver says why it stopped and how ``maximise`` reaches it do not agree, so a problem is
only written here and its solution read by the back end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from optgap.models.limits import Limits
from optgap.solvers.backends.linear import LinearBuilder, LinearModel

LOOK_EVERY = 100
"""Rows between two looks at the clock."""


def to_pulp(model: LinearModel, limits: Limits | None = None) -> Any:
    """Return the PuLP problem that minimises cᵀx (−cᵀx to maximise), without the offset.

    Variable j is called ``x{j}``. A row with two different limits becomes two. None when
    `limits` ended it on the way.
    """
    import pulp

    sign = 1.0 if model.sense == "min" else -1.0
    problem = pulp.LpProblem("optgap", pulp.LpMinimize)
    variables = [
        problem.add_variable(
            f"x{j}",
            _limit(model.lower[j]),
            _limit(model.upper[j]),
            _kind(bool(model.integer[j])),
        )
        for j in range(model.variables)
    ]
    problem += pulp.lpSum(
        sign * float(c) * v for v, c in zip(variables, model.cost, strict=True) if c
    )
    for i in range(model.rows):
        if limits is not None and i % LOOK_EVERY == 0 and limits.stop is not None:
            return None
        entries = range(int(model.starts[i]), int(model.starts[i + 1]))
        if not entries:
            continue
        total = pulp.lpSum(float(model.values[k]) * variables[model.columns[k]] for k in entries)
        low, high = float(model.row_lower[i]), float(model.row_upper[i])
        if low == high:
            problem += total == low
            continue
        if math.isfinite(high):
            problem += total <= high
        if math.isfinite(low):
            problem += total >= low
    return problem


def rows_of(problem: Any) -> list[Any]:
    """Return the constraints of a PuLP problem, in the order in which they were added."""
    listed = problem.constraints  # a method in PuLP 4, a mapping in 3
    return list(listed() if callable(listed) else listed.values())


def from_pulp(problem: Any, variables: Sequence[Any]) -> LinearModel:
    """Return the arrays of a PuLP problem, with `variables` in this order and rows as added."""
    import pulp

    builder = LinearBuilder("min" if problem.sense == pulp.LpMinimize else "max")
    place = {}
    for variable in variables:
        low, high = variable.lowBound, variable.upBound
        place[variable.name] = builder.variable(
            -math.inf if low is None else float(low),
            math.inf if high is None else float(high),
            integer=variable.cat == pulp.LpInteger,
        )
    builder.offset = float(problem.objective.constant)
    for variable, value in problem.objective.items():
        builder.add_cost(place[variable.name], float(value))
    for row in rows_of(problem):
        limit, sense = -float(row.constant), int(row.sense)
        builder.row(
            [(place[variable.name], float(value)) for variable, value in row.items()],
            limit if sense >= 0 else -math.inf,
            limit if sense <= 0 else math.inf,
        )
    return builder.build()


def _kind(whole: bool) -> Any:
    """PuLP 4 types what PuLP 3 has as a string."""
    import pulp

    return pulp.LpInteger if whole else pulp.LpContinuous


def _limit(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
