"""Every family says what explanations and reports need, and they come out whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trust.agreement import FUZZ

import optgap
from optgap.models.errors import InputError
from optgap.models.regret import Regret
from optgap.plotting.waterfall import explanation_figure
from optgap.registry import FAMILIES
from optgap.reporting import make

SMALL = 6


def presets() -> Iterator[tuple[str, str]]:
    """Families with their smallest problem; in a long run with every preset that has a size."""
    for name, spec in FAMILIES.items():
        found = [entry.name for entry in spec.presets.values() if "size" in entry.params]
        yield from ((name, preset) for preset in (found if FUZZ else ["tiny"]))


@pytest.mark.parametrize(("name", "preset"), list(presets()))
def test_no_part_of_a_gap_is_negative_and_all_add_up_and_are_drawn(name: str, preset: str) -> None:
    spec = FAMILIES[name]
    assert spec.per_event in spec.policies
    small = dict(spec.tiny) if preset == "tiny" else {"preset": preset, "size": SMALL}
    subject = optgap.generate(name, seed=2, **small)
    policies = list(spec.policies)
    pages = 0
    for policy in policies if FUZZ else policies[:: len(policies) - 1]:
        try:
            answer = optgap.explain(subject, policy, effort=0.05)
        except InputError:  # it serves nothing, or treats another objective
            continue
        assert all(isinstance(regret, Regret) and regret.cost >= 0 for regret in answer.regrets)
        assert explanation_figure(answer).axes
        page = make([answer, optgap.run(subject, policy)])
        assert [len(section.pictures) for section in page.sections] == [1, 1]
        pages += 1
        amounts = [part.amount(answer.sense) for part in answer.parts]
        if None in amounts:
            continue
        assert min(amount or 0.0 for amount in amounts) >= 0, policy
        loss = abs(answer.objective - float(answer.bound or 0))
        assert sum(amount or 0.0 for amount in amounts) == pytest.approx(loss), policy
    assert pages
