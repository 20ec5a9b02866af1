"""Parameters out of a saved fit (``optgap.fit/1``), for those who only predict."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, load_json

SCHEMA = "optgap.fit/1"


@dataclass(frozen=True)
class FittedParameters:
    """A fitted model without its fitting: the name, the settings and the values by group.

    The group of a fit without groups is ``""``.
    """

    model: str
    settings: Mapping[str, float | int | str | bool | None]
    groups: Mapping[str, Mapping[str, float]]

    def only(self, source: str = "model") -> Mapping[str, float]:
        """The parameters of a fit that has just one group."""
        if len(self.groups) != 1:
            raise InputError(
                source, "field groups", NoQuote(f"{len(self.groups)} groups"), "exactly one"
            )
        return next(iter(self.groups.values()))


def read_fit(path: str | os.PathLike[str]) -> FittedParameters:
    """Read the parameters of a fit saved by ``optgap fit … -o``.

    Raises
    ------
    InputError: for a file that is not one, or a parameter without a number.
    """
    fields = Fields(load_json(path), str(path))
    fields.schema(SCHEMA)
    groups: dict[str, Mapping[str, float]] = {}
    for group in fields.objects("groups"):
        params = group.object("params")
        groups[group.text("group")] = {
            name: params.object(name).number("value", minimum=-float("inf"))
            for name in params.document
        }
    settings = dict(fields.object("settings").document) if "settings" in fields.document else {}
    return FittedParameters(fields.text("model"), settings, groups)
