"""Tables of a family's methods, policies and presets, which import nothing.

A function beside each table imports the entries' functions. Nothing calls it before an entry is
loaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from inspect import signature
from typing import Any, TypeVar

from optgap.models.errors import InputError, one_of
from optgap.models.result import Kind

Options = TypeVar("Options")
Functions = Callable[[], Mapping[str, Callable[..., Any]]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """Meaning of a parameter of a method, policy or preset.

    Parameters
    ----------
    meaning: a phrase of one line.
    unit: "" for a number without one, a name, or yes and no.
    source: the paper and the place in it; "" where it is this package's own.
    choices: the accepted names, if they are few.
    within: the least and the largest accepted number, if numbers are limited.
    """

    meaning: str
    unit: str = ""
    source: str = ""
    choices: tuple[str, ...] = ()
    within: tuple[float, float] | None = None


def parameter(
    default: Any,
    meaning: str,
    unit: str = "",
    source: str = "",
    choices: tuple[str, ...] = (),
    within: tuple[float, float] | None = None,
) -> Any:
    """Return a field of a dataclass of options, with default and meaning, a `Parameter`."""
    means = Parameter(meaning, unit, source, choices, within)
    return field(default=default, metadata={"means": means})


def meanings(options: type) -> dict[str, Parameter]:
    """Return the meaning of each option."""
    return {f.name: f.metadata["means"] for f in fields(options)}


def chosen(
    options: type[Options], given: Mapping[str, Any], owner: str, where: str = ""
) -> Options:
    """Return the options with the given values.

    Raises
    ------
    InputError: by `owner`, `where` before the name, for what is none of an option's choices, nor
        its default, and for a number out of its range.
    """
    made = options(**given)
    for name, meaning in meanings(options).items():
        value, default = getattr(made, name), getattr(options, name)
        if meaning.choices and value not in (default, *meaning.choices):
            raise InputError(owner, f"{where}{name}", value, one_of(meaning.choices))
        if meaning.within is not None:
            low, high = meaning.within
            if not low <= value <= high:
                expected = f"{low:g} to {high:g}" if high < math.inf else f"at least {low:g}"
                raise InputError(owner, f"{where}{name}", value, expected)
    return made


@dataclass(frozen=True, slots=True)
class Entry:
    """Method, policy or preset: a name, and the place of its function.

    Methods and policies are functions ``f(problem, *, limits, seed, **params) -> Outcome``;
    presets are functions ``f(*, seed, **params) -> problem``.

    Parameters
    ----------
    name: the name that users type.
    summary: one line for tables.
    kind: ``exact``, ``bound``, ``offline`` (knows the whole problem, unproven) or ``policy``.
    params: names and defaults of its own parameters; a default's type is the parameter's type.
    seeded: whether the seed matters.
    goals: the objectives it can treat; empty for all of its family.
    options: a dataclass of `parameter` fields, which then gives `params`.
    shares: whether the function takes `found`, a dictionary in which it leaves what it found out
        and finds it again when it runs on a part of the same problem.
    knows: information of the policy beyond that of every policy of its family.
    functions: imports the functions of a table, by name; `entries` sets it.
    """

    name: str
    summary: str
    kind: Kind = "policy"
    params: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False
    goals: tuple[str, ...] = ()
    options: type | None = None
    shares: bool = False
    knows: tuple[str, ...] = ()
    functions: Functions = dict

    def __post_init__(self) -> None:
        if self.options is not None:
            defaults = {f.name: f.default for f in fields(self.options)}
            object.__setattr__(self, "params", defaults)

    @property
    def repeatable(self) -> bool:
        """Whether results are the same on any number of cores, with default parameters."""
        return self.params.get("workers", 1) in (0, 1)

    def load(self) -> Callable[..., Any]:
        """Import the function."""
        return self.functions()[self.name]


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters that a function has defaults for, with these, in its own order."""
    known = signature(function).parameters.values()
    return {one.name: one.default for one in known if one.default is not one.empty}


def imported(target: str) -> Any:
    """Import the object that ``module:attribute`` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def entries(functions: Functions, *items: Entry) -> dict[str, Entry]:
    """Return a table of entries by name, in the given order; `functions` imports for them."""
    table = {item.name: replace(item, functions=functions) for item in items}
    if len(table) != len(items):
        raise ValueError("two entries share a name")
    return table
