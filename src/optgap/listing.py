"""Families, policies, methods and presets as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.models.errors import InputError, one_of
from optgap.registry import FAMILIES, FamilySpec, Role, family

if TYPE_CHECKING:
    import pandas as pd

    from optgap.models.spec import Entry

ROLES: tuple[Role, ...] = ("policies", "methods", "presets", "formulations")


def families() -> pd.DataFrame:
    """List the problem families.

    Returns
    -------
    pandas.DataFrame
        Indexed by name, with the `question` that a family asks, and the names of its
        `policies`, `methods` and `presets` as text.

    Examples
    --------
    >>> import optgap
    >>> list(optgap.families().index)
    ['placement', 'consolidation', 'coscheduling', 'queueing', 'elastic']
    >>> optgap.families().loc["coscheduling", "presets"]
    'synthetic, measured, stream'
    """
    import pandas as pd

    rows = {
        spec.name: {
            "question": spec.question,
            **{role: ", ".join(getattr(spec, role)) for role in ROLES[:3]},
        }
        for spec in FAMILIES.values()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("name")


def policies(family: str, name: str | None = None) -> pd.DataFrame:
    """List the online policies of a family, or the parameters of one of them.

    Parameters
    ----------
    family
        A name that `families` lists.
    name
        A policy. Default: all of them.

    Returns
    -------
    pandas.DataFrame
        Indexed by name, with a `summary` and the `parameters` with their defaults, as
        ``name(alpha=0.1)`` sets them. For one policy: indexed by parameter, with `default`,
        `meaning`, `unit`, `source` (a place in a paper) and `choices`.

    Raises
    ------
    InputError
        For an unknown family or policy.

    Examples
    --------
    >>> import optgap
    >>> optgap.policies("placement").loc["pwr+fgd", "parameters"]
    'alpha=0.1, score=implemented'
    >>> optgap.policies("placement", "pwr+fgd").loc["alpha", "default"]
    0.1
    """
    return _frame(family, "policies", name)


def methods(family: str, name: str | None = None) -> pd.DataFrame:
    """List the exact, bounding and offline methods of a family, or the parameters of one of them.

    Parameters
    ----------
    family
        A name that `families` lists.
    name
        A method. Default: all of them.

    Returns
    -------
    pandas.DataFrame
        As `policies`, with the `kind`: ``exact``, ``bound`` or ``offline``.

    Raises
    ------
    InputError
        For an unknown family or method.

    Examples
    --------
    >>> import optgap
    >>> optgap.methods("coscheduling").loc["bound-area", "kind"]
    'bound'
    """
    return _frame(family, "methods", name)


def presets(family: str, name: str | None = None) -> pd.DataFrame:
    """List the ready-made problems of a family, or the parameters of one of them.

    Parameters
    ----------
    family
        A name that `families` lists.
    name
        A preset. Default: all of them.

    Returns
    -------
    pandas.DataFrame
        As `policies`; the parameters are those that `generate` takes.

    Raises
    ------
    InputError
        For an unknown family or preset.

    Examples
    --------
    >>> import optgap
    >>> list(optgap.presets("queueing").index)
    ['mixed', 'measured', 'small']
    """
    return _frame(family, "presets", name)


def _frame(family_name: str, role: Role, name: str | None) -> pd.DataFrame:
    import pandas as pd

    spec = family(family_name)
    table = getattr(spec, role)
    if name is not None:
        if name not in table:
            raise InputError("name", "", name, one_of(table))
        rows = {row["name"]: row for row in parameters(spec, role, table[name])}
        columns = ["default", "meaning", "unit", "source", "choices"]
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=["name", *columns])
        return frame[columns].rename_axis("parameter")
    found = {entry.name: _row(entry, role) for entry in table.values()}
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("name")


def _row(entry: Entry, role: Role) -> dict[str, str]:
    kind = {"kind": entry.kind} if role == "methods" else {}
    return {"summary": entry.summary, **kind, "parameters": settings(entry)}


def settings(entry: Entry) -> str:
    """Return the parameters of an entry with their defaults, as in ``name(key=value, …)``."""
    return ", ".join(f"{name}={shown(value)}" for name, value in entry.params.items())


def shown(default: object) -> str:
    """Return a default as a person types it; "-" for none."""
    if isinstance(default, bool):
        return str(default).lower()
    return "-" if default in (None, "") else str(default)


def parameters(spec: FamilySpec, role: Role, entry: Entry) -> list[dict[str, object]]:
    """Return a record for each parameter of an entry, as in the JSON of `optgap families`."""
    return [
        {
            "name": name,
            "default": entry.params[name],
            "unit": parameter.unit,
            "meaning": parameter.meaning,
            "source": parameter.source,
            "choices": list(parameter.choices),
        }
        for name, parameter in spec.explained(role, entry).items()
    ]
