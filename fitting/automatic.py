"""``optgap fit --auto``: every model that the columns allow, ranked by held-out error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.fitting import ESTIMATORS, make_estimator
from optgap.fitting.devices import NAME as DEVICES
from optgap.fitting.groups import HeldOut, cross_validate
from optgap.fitting.profile import Profile
from optgap.fitting.splits import Split
from optgap.models.errors import InputError
from optgap.models.performance.throughput import SYNC_NAMES

VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "powerflow-throughput": [
        {"sync": sync, **io} for sync in SYNC_NAMES for io in ({}, {"io": "none"})
    ],
    "batch-power": ({"form": "saturating"}, {"form": "paper"}),
}
"""Settings worth trying, by model; the model alone where it is not listed."""


@dataclass(frozen=True)
class Candidate:
    """A model with settings, and its held-out error or the reason why it has none."""

    model: str
    settings: Mapping[str, Any]
    response: str
    held_out: HeldOut | None
    reason: str = ""

    @property
    def title(self) -> str:
        """The model with its settings."""
        inside = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.model}({inside})" if inside else self.model


def rank(
    table: Profile, by: str | None, split: Split, models: Sequence[str] | None = None
) -> list[Candidate]:
    """Candidates by held-out MAPE; those that do not apply come last.

    ``device-power`` is none: two levels are no curve to rank.

    Errors of models of different responses stand side by side, but say little about one another.
    """
    found: list[Candidate] = []
    for name in models or (known for known in ESTIMATORS if known != DEVICES):
        for settings in VARIANTS.get(name, ({},)):
            estimator = make_estimator(name, **settings)
            try:
                held = cross_validate(estimator, table, by, split)
                found.append(Candidate(name, settings, estimator.response, held))
            except InputError as error:
                reason = str(error)
                found.append(Candidate(name, settings, estimator.response, None, reason))
    return sorted(found, key=lambda item: item.held_out.mape if item.held_out else np.inf)
