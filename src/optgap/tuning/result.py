"""What came of it: the setting before and after, on training instances and on others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optgap.comparing.comparison import PART
from optgap.models.result import Termination
from optgap.models.shown import Brief
from optgap.parameters import call_text
from optgap.render import Answer, Row, Table, percent
from optgap.tuning.ranges import Range

SCHEMA = "optgap.tune/1"


@dataclass(frozen=True, slots=True)
class Scores:
    """Gaps of one setting on a set of instances; None where there is no bound to hold against.

    `turned_down` counts instances of which the policy served only a part: their gap is to a
    bound for that part.
    """

    gaps: tuple[float | None, ...]
    turned_down: int = 0

    @property
    def mean(self) -> float:
        """Mean gap; infinite when there is none."""
        known = [gap for gap in self.gaps if gap is not None]
        return sum(known) / len(known) if len(known) == len(self.gaps) and known else math.inf


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting that was tried, and its mean gap on the training instances."""

    setting: Mapping[str, Any]
    gap: float


@dataclass(frozen=True, repr=False)
class Tuned(Brief, Answer):
    """The best setting on the training instances, and what it is worth elsewhere."""

    family: str
    policy: str
    fixed: Mapping[str, Any]
    preset: str
    search: str
    space: tuple[Range, ...]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    train_seeds: tuple[int, ...]
    test_seeds: tuple[int, ...]
    train: tuple[Scores, Scores]
    test: tuple[Scores, Scores]
    trials: tuple[Trial, ...] = field(repr=False)
    termination: Termination = Termination.COMPLETED

    @property
    def holds(self) -> bool:
        """Whether the new setting is better on instances that had no part in the choice."""
        return self.test[1].mean < self.test[0].mean

    @property
    def call(self) -> str:
        """The policy with its new setting, as a command takes it."""
        return self._call(self.after)

    def _call(self, setting: Mapping[str, Any]) -> str:
        return call_text(self.policy, {**self.fixed, **setting})

    def verdict(self) -> str:
        """One line: what to make of it."""
        if dict(self.before) == dict(self.after):
            return "nothing better than the defaults was found"
        if not self.holds:
            return f"{self.call} is no better on held-out instances: keep the defaults"
        return f"{self.call} is better on held-out instances, too"

    def table(self) -> Table:
        """Mean gap before and after, on both sets."""
        rows: list[Row] = []
        for name, seeds, (before, after) in (
            ("training", self.train_seeds, self.train),
            ("held out", self.test_seeds, self.test),
        ):
            better = sum(
                a is not None and b is not None and a < b
                for a, b in zip(after.gaps, before.gaps, strict=True)
            )
            rows.append(
                (name, str(len(seeds)), _shown(before), _shown(after), f"{better} of {len(seeds)}")
            )
        names = [self._call(setting) for setting in (self.before, self.after)]
        return ("gap to bound", "instances", *names, "better on"), rows, (1, 2, 3, 4)

    def notes(self) -> list[str]:
        """The verdict."""
        return [self.verdict()]

    def to_json(self) -> dict[str, Any]:
        """JSON form, ``optgap.tune/1``."""

        def of(seeds: tuple[int, ...], pair: tuple[Scores, Scores]) -> dict[str, Any]:
            return {
                "seeds": list(seeds),
                "before": {"mean_gap": pair[0].mean, "gaps": list(pair[0].gaps)},
                "after": {"mean_gap": pair[1].mean, "gaps": list(pair[1].gaps)},
            }

        return {
            "schema": SCHEMA,
            "family": self.family,
            "policy": self.policy,
            "fixed": dict(self.fixed),
            "preset": self.preset,
            "search": self.search,
            "space": {item.name: str(item) for item in self.space},
            "before": dict(self.before),
            "after": dict(self.after),
            "holds": self.holds,
            "train": of(self.train_seeds, self.train),
            "test": of(self.test_seeds, self.test),
            "trials": [{"setting": dict(t.setting), "mean_gap": t.gap} for t in self.trials],
            "termination": str(self.termination),
        }


def _shown(scores: Scores) -> str:
    part = f" ({PART} of {scores.turned_down})" if scores.turned_down else ""
    return (percent(scores.mean) if math.isfinite(scores.mean) else "none") + part
