"""Every family says what explanations and reports need, and they come out whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from trust.agreement import FUZZ

import optgap
from optgap.explaining import Explanation
from optgap.models.errors import InputError
from optgap.models.regret import Regret
from optgap.plotting.waterfall import explanation_figure
from optgap.registry import FAMILIES
from optgap.reporting import make

SMALL = 6


@cache
def problem(name: str) -> Any:
    """A small problem of a family, from the last of its presets that has a size."""
    sized = [entry.name for entry in FAMILIES[name].presets.values() if "size" in entry.params]
    if not sized:
        pytest.skip(f"{name} has no preset with a size")
    return optgap.generate(name, sized[-1], seed=1, size=SMALL)


def explained(subject: Any, policy: str) -> Explanation:
    return optgap.explain(subject, policy, effort=0.05)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_names_an_exact_per_event_policy_a_judge_and_a_picture(name: str) -> None:
    spec = FAMILIES[name]
    assert spec.per_event in spec.policies


def presets() -> Iterator[tuple[str, str]]:
    """Families with their smallest problem; in a long run with every preset that has a size."""
    for name, spec in FAMILIES.items():
        found = [entry.name for entry in spec.presets.values() if "size" in entry.params]
        yield from ((name, preset) for preset in (found if FUZZ else ["tiny"]))


@pytest.mark.parametrize(("name", "preset"), list(presets()))
def test_no_part_is_negative_and_all_add_up(name: str, preset: str) -> None:
    spec = FAMILIES[name]
    small = dict(spec.tiny) if preset == "tiny" else {"preset": preset, "size": SMALL}
    subject = optgap.generate(name, seed=2, **small)
    policies = list(spec.policies)
    for policy in policies if FUZZ else policies[:: len(policies) - 1]:
        try:
            answer = optgap.explain(subject, policy, effort=0.05)
        except InputError:  # it serves nothing, or treats another objective
            continue
        amounts = [part.amount(answer.sense) for part in answer.parts]
        if None in amounts:
            continue
        assert min(amount or 0.0 for amount in amounts) >= 0, policy
        loss = abs(answer.objective - float(answer.bound or 0))
        assert sum(amount or 0.0 for amount in amounts) == pytest.approx(loss), policy


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_policys_gap_comes_apart_and_is_drawn(name: str) -> None:
    subject = problem(name)
    policy = next(p for p in FAMILIES[name].policies if p != FAMILIES[name].per_event)
    result = optgap.run(subject, policy)
    answer = explained(subject, policy)
    amounts = [part.amount(answer.sense) for part in answer.parts]
    assert all(amount is None or amount >= -1e-9 for amount in amounts)
    if None not in amounts:
        loss = answer.objective - float(answer.bound or 0)
        total = sum(amount or 0.0 for amount in amounts)
        expected = loss if answer.sense == "min" else -loss
        assert total == pytest.approx(expected, abs=1e-6 * abs(answer.objective) + 1e-9)
    for regret in answer.regrets:
        assert isinstance(regret, Regret)
        assert regret.cost >= 0
    assert explanation_figure(answer).axes
    page = make([answer, result])
    assert [len(section.pictures) for section in page.sections] == [1, 1]
