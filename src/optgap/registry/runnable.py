"""Methods and policies with their parameters, by the names that a user gives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module, util
from pathlib import Path
from typing import Any

from optgap.contract import Problem
from optgap.models.errors import InputError, NoQuote, Said, one_of
from optgap.models.spec import Entry
from optgap.parameters import call_text, split_call, typed
from optgap.registry.spec import FamilySpec, keywords
from optgap.registry.table import FAMILIES


@dataclass(frozen=True, slots=True)
class Runnable:
    """Method or policy with its parameters, ready to run on a problem.

    Parameters
    ----------
    entry: entry of the family's table; for a user's own policy the entry of the adapter.
    label: the name as the user gave it, with parameters.
    params: values of the parameters.
    known: all parameters with their defaults.
    own: whether this is a user's own policy, outside this package.
    found: findings about the whole problem, for a method with `Entry.shares`; else None.
    """

    entry: Entry
    label: str
    params: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False
    found: dict[str, Any] | None = field(default=None, compare=False)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Arguments of the function beside the problem, limits and a seed."""
        return self.params if self.found is None else {**self.params, "found": self.found}

    def treats(self, problem: Problem) -> bool:
        """Tell whether the method treats the problem's objective."""
        return not self.entry.goals or problem.objective.described.name in self.entry.goals

    def require_goal(self, problem: Problem, source: str) -> None:
        """Raise InputError when the method does not treat the problem's objective."""
        if not self.treats(problem):
            raise InputError(
                source,
                self.label,
                NoQuote(f"a problem whose objective is {problem.objective.described.name}"),
                one_of(self.entry.goals),
            )


def method(
    spec: FamilySpec, text: str, given: Mapping[str, Any] | None = None, source: str = "--method"
) -> Runnable:
    """Return the method that ``name(key=value, …)`` names; `given` parameters override others.

    Raises
    ------
    InputError: for an unknown name or parameter, or a value of the wrong type.
    """
    return _from_table(spec, spec.methods, text, given, source=source)


def formulation(
    spec: FamilySpec, text: str, given: Mapping[str, Any] | None = None, source: str = "--method"
) -> Runnable:
    """Return the formulation that ``name(key=value, …)`` names; errors are as for `method`."""
    return _from_table(spec, spec.formulations, text, given, source=source)


def policy(
    spec: FamilySpec,
    text: str | Callable[..., Any],
    given: Mapping[str, Any] | None = None,
    source: str = "--policy",
) -> Runnable:
    """Return the policy of this name, or a user's own.

    `text` is the name of a policy of the family, ``module:attribute`` or
    ``path/to/file.py:attribute``; each may have ``(key=value, …)`` behind it. `text` may also be a
    function or class itself.

    Raises
    ------
    InputError: for an unknown name or parameter, a value of the wrong type, or a module that
        cannot be imported.
    """
    if not isinstance(text, str):
        return _own(
            spec, text, getattr(text, "__name__", type(text).__name__), given, source=source
        )
    name, params = split_call(text, source)
    if name in spec.policies:
        return _from_table(spec, spec.policies, text, given, source=source)
    if ":" in name:
        return _own(
            spec, user_object(name, source), name, {**params, **(given or {})}, source=source
        )
    words = f"one of {{}}, or module:attribute{_elsewhere(name, spec)}"
    raise InputError(source, "", name, one_of(spec.policies, words))


def _from_table(
    spec: FamilySpec,
    table: Mapping[str, Entry],
    text: str,
    given: Mapping[str, Any] | None,
    *,
    source: str,
) -> Runnable:
    name, params = split_call(text, source)
    if name not in table:
        words = f"one of {{}} ({spec.name}){_elsewhere(name, spec)}"
        raise InputError(source, "", name, one_of(table, words))
    entry = table[name]
    values = typed({**params, **(given or {})}, entry.params, name, source)
    return Runnable(entry, call_text(name, values), values, entry.params)


def _elsewhere(name: str, own: FamilySpec) -> str:
    """Say where a name exists that was not found: in its own family, or in others."""
    there = [
        (spec, kind)
        for spec in FAMILIES.values()
        for kind, table in (("policy", spec.policies), ("method", spec.methods))
        if name in table
    ]
    nearest = [place for place in there if place[0] is own] or there
    return "".join(f"; {name} is a {kind} of {spec.name}" for spec, kind in nearest)


def _own(
    spec: FamilySpec, target: Any, name: str, given: Mapping[str, Any] | None, *, source: str
) -> Runnable:
    if not callable(target) and not hasattr(target, "place"):
        raise InputError(source, name, target, "a function, or a class with a method place")
    adapter: Entry = spec.heuristics.CUSTOM
    known = keywords(target)
    values = typed(given or {}, known, name, source)
    params = {"policy": target, "policy_params": values}
    return Runnable(adapter, call_text(name, values), params, known, own=True)


def user_object(target: str, source: str) -> Any:
    """Import the object that ``module:attribute`` or ``path/to/file.py:attribute`` names.

    The search for modules begins in the current directory.

    Raises
    ------
    InputError: when the module cannot be imported or has no such attribute.
    """
    place, _, attribute = target.rpartition(":")
    module = _user_module(place, source)
    if not hasattr(module, attribute):
        shown = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
        raise InputError(source, place, attribute, one_of(shown))
    return getattr(module, attribute)


def _said(error: BaseException) -> NoQuote:
    from optgap.heuristics.custom import said  # with numpy, which few commands need this early

    return NoQuote(said(error))


def _user_module(place: str, source: str) -> Any:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        if not place.endswith(".py"):
            return import_module(place)
        path = Path(place)
        if not path.is_file():
            raise InputError(source, place, Said("no such file"), "name a Python file")
        name = f"optgap_user_{path.stem}"
        spec = util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise InputError(source, place, NoQuote("no Python module"), "a Python file")
        module = util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses in the file look their module up
        spec.loader.exec_module(module)
        return module
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # whatever a user's file may raise
        raise InputError(source, place, _said(error), "a module that can be imported") from error
    finally:
        sys.path.remove(here)
