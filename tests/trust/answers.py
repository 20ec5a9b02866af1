"""Every policy's solution, and every method's objective and bound, on one small problem.

Policies answer to the byte; of solvers only the optimum is theirs to promise, since equally good
solutions may be found in any order.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import optgap
from optgap.models.errors import InputError
from optgap.models.result import Status
from optgap.registry import FAMILIES

SMALL = {name: dict(spec.tiny) for name, spec in FAMILIES.items()} | {"coscheduling": {"size": 4}}
"""Problems on which every exact method is done in a moment: of five jobs `intervals` proves nothing
within the work that it spends."""


def fingerprint(problem: Any, solution: Any) -> str:
    """A solution in few letters."""
    text = json.dumps(solution.to_json(problem), sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def answers(family: str, backwards: bool) -> dict[str, Any]:
    """By the name of policy or method."""
    problem = optgap.generate(family, seed=3, **SMALL.get(family, {}))
    found: dict[str, Any] = {}
    names = [*FAMILIES[family].policies, *FAMILIES[family].methods]
    for name in reversed(names) if backwards else names:
        if name in FAMILIES[family].policies:
            result = optgap.run(problem, name, seed=5)
            found[name] = [result.objective, fingerprint(problem, result.solution)]
            continue
        try:
            result = optgap.solve(problem, name)
        except InputError as error:  # too large for it, or another objective
            found[name] = str(error)
            continue
        if result.status is Status.OPTIMAL and result.objective is not None:
            found[name] = [float(f"{result.objective:.6g}"), float(f"{result.bound:.6g}")]
    return found


def everything(backwards: bool = False) -> dict[str, Any]:
    """By family."""
    families = reversed(FAMILIES) if backwards else iter(FAMILIES)
    return {family: answers(family, backwards) for family in families}


if __name__ == "__main__":
    print(json.dumps(everything(backwards=True)))
