"""Small problems are run by Python, large ones compiled: the same source, the same answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trust.agreement import examples

import optgap
from optgap.models.compiled import Interpreted
from optgap.registry import FAMILIES

ENGINES = {
    "placement": "optgap.heuristics.placement.engine",
    "consolidation": "optgap.heuristics.consolidation.engine",
    "elastic": "optgap.models.elastic.simulation.engine",
    "queueing": "optgap.heuristics.queueing.engine",
}
"""Where it is decided; coscheduling has nothing to compile."""

SMALL: dict[str, list[dict[str, Any]]] = {
    "placement": [{"preset": "small"}],
    "consolidation": [{"size": 12}],
    "elastic": [{"preset": "tiny"}, {"size": 9}],
    "queueing": [{"preset": "small"}, {"size": 25}],
}

FEW: dict[str, dict[str, Any]] = {"replan": {"moves": 10}}
"""Parameters of policies that search at every event: what is searched is the same with less."""


@pytest.mark.parametrize("name", ENGINES)
@examples(2)
@given(seed=st.integers(0, 2**31))
def test_python_and_machine_code_decide_alike(name: str, seed: int) -> None:
    for params in SMALL[name]:
        problem = optgap.generate(name, seed=seed, **params)
        for policy in FAMILIES[name].policies:
            answers = []
            for threshold in (0, 10**9):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(f"{ENGINES[name]}.UP_TO", Interpreted(*[threshold] * 4))
                    patch.setattr("optgap.models.compiled.loaded", lambda *_: False)
                    result = optgap.run(problem, policy, seed=seed, **FEW.get(policy, {}))
                document = result.to_json()
                answers.append((document["objective"], document["solution"]))
            assert answers[0] == answers[1], policy
