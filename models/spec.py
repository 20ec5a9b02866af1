"""How a family announces its methods, policies and presets without importing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from optgap.models.result import Kind


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a parameter of a method, policy or preset means, for those who set it.

    Parameters
    ----------
    meaning: in one line.
    unit: "" for a number without one, a name, or yes and no.
    source: the paper and the place in it; "" where it is this package's own.
    choices: the names that may be given, where they are few.
    """

    meaning: str
    unit: str = ""
    source: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One method, policy or preset: a name, and where its function is when it is needed.

    Methods and policies are functions ``f(problem, *, limits, seed, **params) -> Outcome``;
    presets are functions ``f(*, seed, **params) -> problem``.

    Parameters
    ----------
    name: as users type it.
    target: ``module:function``, imported on first use.
    summary: one line for tables.
    kind: ``exact``, ``bound``, ``offline`` (a solution with hindsight, unproven) or ``policy``.
    params: names and defaults of its own parameters; a default's type is the parameter's type.
    deterministic: False when the seed matters.
    goals: the objectives it can treat; empty for all of its family.
    """

    name: str
    target: str
    summary: str
    kind: Kind = "policy"
    params: Mapping[str, Any] = field(default_factory=dict)
    deterministic: bool = True
    goals: tuple[str, ...] = ()

    def load(self) -> Callable[..., Any]:
        """Import the function."""
        module, _, name = self.target.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function


def entries(*items: Entry) -> dict[str, Entry]:
    """A table of entries by name, in the order given."""
    table = {item.name: item for item in items}
    if len(table) != len(items):
        raise ValueError("two entries share a name")
    return table
