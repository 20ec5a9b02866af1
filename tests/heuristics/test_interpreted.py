"""Small problems are run by Python, large ones compiled: the same source, the same answers."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optgap
from optgap.registry import FAMILIES

THRESHOLDS = {
    "placement": ("optgap.heuristics.placement.engine", "INTERPRETED_CELLS"),
    "consolidation": ("optgap.heuristics.consolidation.selection", "INTERPRETED_CELLS"),
    "elastic": ("optgap.heuristics.elastic.engine", "INTERPRETED_JOBS"),
    "queueing": ("optgap.heuristics.queueing.engine", "INTERPRETED_JOBS"),
}
"""Where it is decided up to which size; coscheduling has nothing to compile."""

SMALL: dict[str, list[dict[str, Any]]] = {
    "placement": [{"preset": "small"}],
    "consolidation": [{"size": 12}],
    "elastic": [{"preset": "tiny"}, {"size": 12}],
    "queueing": [{"preset": "small"}, {"size": 60}],
}


@pytest.mark.parametrize("name", THRESHOLDS)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**31))
def test_python_and_machine_code_decide_alike(name: str, seed: int) -> None:
    module, constant = THRESHOLDS[name]
    for params in SMALL[name]:
        problem = optgap.generate(name, seed=seed, **params)
        for policy in FAMILIES[name].policies:
            answers = []
            for threshold in (0, 10**9):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(importlib.import_module(module), constant, threshold)
                    result = optgap.run(problem, policy, seed=seed)
                document = result.to_json()
                answers.append((document["objective"], document["solution"]))
            assert answers[0] == answers[1], policy
