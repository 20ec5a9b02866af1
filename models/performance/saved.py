"""Parameters out of a saved fit (``optgap.fit/1``), for those who only predict."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from optgap.models.errors import InputError, NoQuote, type_of
from optgap.models.jsonio import Fields, finite, load_json
from optgap.models.quantities import warn
from optgap.models.shown import Brief

SCHEMA = "optgap.fit/1"
LEVELS = "device-power"
"""Two levels: what lies between them is no error of theirs."""
FILES = (".csv", ".gz", ".json")
SHOWN = 3
"""Files that one line names."""


@dataclass(frozen=True, repr=False)
class FittedParameters(Brief):
    """A fitted model without its fitting: the name, the settings and the values by group.

    The group of a fit without groups is ``""``.

    Parameters
    ----------
    model, settings: which model, and how it was set.
    groups: parameters by group and name.
    source: the file of the fit, or what stands for it.
    document: the whole ``optgap.fit/1``: errors, ranges, covariances.
    used: what became of it in a problem, in one line; "" where it is in none.
    """

    model: str
    settings: Mapping[str, float | int | str | bool | None]
    groups: Mapping[str, Mapping[str, float]]
    source: str = "model"
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    used: str = ""

    def only(self, source: str = "model") -> Mapping[str, float]:
        """Return the parameters of a fit that has just one group."""
        if len(self.groups) != 1:
            raise InputError(
                source, "field groups", NoQuote(f"{len(self.groups)} groups"), "exactly one"
            )
        return next(iter(self.groups.values()))

    def require(self, serves: Mapping[str, Sequence[str]]) -> None:
        """Raise InputError for another model, a group that lacks a parameter, or no group at all.

        Parameters
        ----------
        serves: the models that will do, and the parameters that are needed of them.
        """
        if self.model not in serves:
            raise InputError(self.source, "field model", self.model, " or ".join(serves))
        if not self.groups:
            raise InputError(self.source, "field groups", NoQuote("none"), "a fitted group")
        for group, params in self.groups.items():
            for name in serves[self.model]:
                if name not in params:
                    where = f"field groups ({group or 'all'}).params"
                    raise InputError(self.source, where, NoQuote(f"no {name}"), f"a {self.model}")

    def _group(self, name: str) -> Mapping[str, Any]:
        found = (item for item in self.document.get("groups", ()) if item.get("group") == name)
        return next(found, {})

    def facts(self, group: str) -> Mapping[str, Any]:
        """Return what prediction needs beyond the parameters."""
        facts: Mapping[str, Any] = self._group(group).get("state", {}).get("facts", {})
        return facts

    def span(self, group: str, name: str) -> tuple[float, float] | None:
        """Return the range of an input among the rows of a group; None where it is not known."""
        values = self._group(group).get("validity", {}).get(name)
        if not isinstance(values, Sequence) or len(values) != 2:
            return None
        return float(values[0]), float(values[1])

    def levels(self, group: str, name: str) -> tuple[float, ...]:
        """Return the values that an input took, ascending; () if too many, or unknown."""
        return tuple(map(float, self._group(group).get("levels", {}).get(name, ())))

    def predictive(self, group: str) -> tuple[str, ...]:
        """Return what draws of a group carry, in words; () for a fit saved before it was told."""
        found = self._group(group).get("state", {}).get("predictive")
        if not isinstance(found, Mapping):
            return ()
        members, over = found.get("members", ()), found.get("over")
        known = {m.get("kin") or m.get("name") for m in members if isinstance(m, Mapping)}
        residual = ["residual"] if found.get("residual", True) else []
        between = [f"between {len(known)} of {over}"] if over is not None else []
        return ("parameters", *residual, *between)

    @property
    def unknown(self) -> str:
        """Reason why nothing can be drawn; "" if something can, or for an older file."""
        for group in self.document.get("groups", ()):
            state, params = group.get("state", {}), group.get("params", {}).values()
            values = [x for row in state.get("covariance", ()) for x in row]
            if "predictive" not in state and any(x is None or x != x for x in values):
                free = sum(1 for item in params if not item.get("fixed"))
                return f"no interval: {group.get('n')} rows for {free} parameters"
        return ""

    @property
    def described(self) -> str:
        """One line: what was fitted, to what, with what error, and what became of it."""
        overall = self.document.get("overall", {})
        parts = [f"{overall['n']} rows"] if overall.get("n") else []
        by = self.document.get("by")
        if by:
            parts.append(f"{len(self.groups)} groups by {by}")
        for key, words in (("mape", "mean error"), ("cv_mape", "held out")):
            if self.model != LEVELS and isinstance(overall.get(key), (int, float)):
                parts.append(f"{words} {100 * overall[key]:.1f} %")
        paths = str(self.document.get("source") or self.source).split(", ")
        names = [os.path.basename(p) if p.endswith(FILES) else p for p in paths]
        origin = ", ".join(names) if len(names) <= SHOWN else f"{names[0]} … ({len(names)} files)"
        text = f"{self.model} fitted to {origin} ({', '.join(parts)})" if parts else self.model
        return f"{text}: {self.used}" if self.used else text

    def using(self, used: str) -> FittedParameters:
        """Return the same, with what became of it."""
        return replace(self, used=used)

    def to_json(self) -> dict[str, Any]:
        """As problems keep it: what became of the fit, and the fit."""
        return {"used": self.used, "fit": dict(self.document)}

    @classmethod
    def from_json(cls, fields: Fields) -> FittedParameters:
        """Read `to_json` back; raises InputError naming the field."""
        inner = fields.object("fit")
        source = inner.text("source", fields.source)
        found = _of(Fields(inner.document, fields.source, inner.prefix))
        return replace(found, source=source, used=fields.text("used", ""))


def read_fit(path: Any) -> FittedParameters:
    """Read the parameters of a fit saved by ``optgap fit … -o``.

    Parameters
    ----------
    path: of the file; or a report of a fit, its JSON form, or parameters read before.

    Raises
    ------
    InputError: for what is not one, or a parameter without a number.
    """
    if isinstance(path, FittedParameters):
        return path
    document, source = path, "model"
    if isinstance(path, (str, os.PathLike)):
        document, source = load_json(path), str(path)
    elif hasattr(path, "to_json"):
        document = finite(path.to_json())
    if not isinstance(document, Mapping):
        found = type_of(document)
        raise InputError("models", "", found, "fits: reports of optgap.fit, or files of them")
    if source == "model":  # in memory: what it was fitted to stands for it
        source = str(document.get("source") or source)
    return _of(Fields(document, source))


def read_fits(models: Any) -> list[FittedParameters]:
    """Return one fit or several, see `read_fit`; none for None."""
    if models is None:
        return []
    several = models if isinstance(models, (list, tuple)) else [models]
    return [read_fit(one) for one in several]


def _of(fields: Fields) -> FittedParameters:
    fields.schema(SCHEMA)
    groups: dict[str, Mapping[str, float]] = {}
    for group in fields.objects("groups"):
        params = group.object("params")
        groups[group.text("group")] = {
            name: params.object(name).number("value", minimum=-float("inf"))
            for name in params.document
        }
    settings = dict(fields.object("settings").document) if "settings" in fields.document else {}
    return FittedParameters(
        fields.text("model"), settings, groups, fields.source, dict(fields.document)
    )


def written(fits: Sequence[FittedParameters]) -> dict[str, Any]:
    """Return what a problem's JSON form has of the fits in it: nothing where there are none."""
    return {"fits": [fit.to_json() for fit in fits]} if fits else {}


def restored(fields: Fields) -> tuple[FittedParameters, ...]:
    """Return the fits in a problem's JSON form."""
    if "fits" not in fields.document:
        return ()
    return tuple(FittedParameters.from_json(item) for item in fields.objects("fits"))


def told(fits: Sequence[FittedParameters]) -> None:
    """Warn in one line each of what a fit had to be bent to."""
    for fit in fits:
        if "off by" in fit.used:
            warn(f"{fit.source}: {fit.model}: {fit.used}")
