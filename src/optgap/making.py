"""Problems from presets and from tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from optgap.api import require_seed
from optgap.contract import Problem
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import finite
from optgap.models.quantities import judge, settings_doubted
from optgap.models.reading import Held
from optgap.models.spec import Entry
from optgap.parameters import split_call, typed
from optgap.registry import REPEATABLE, FamilySpec, family


def generate(
    family_name: str, preset: str | None = None, *, seed: int = 0, **params: Any
) -> Problem:
    """A ready-made problem; the family's first preset unless `preset` names another.

    With tables among the parameters it is `problem`, as on the command line. ``strict=False``
    goes on with settings that look like another unit, with a warning.

    Raises
    ------
    InputError: for an unknown family, preset or parameter, or a value of the wrong type.
    """
    spec = family(family_name)
    own = {} if preset is None else preset_entry(family_name, preset)[0].params
    if any(name in spec.files and name not in own for name in params):
        if preset is not None:
            raise InputError("generate", "preset", NoQuote("it beside tables"), "one or the other")
        return problem(family_name, seed=seed, **params)
    return from_preset(family_name, preset, params, seed)


def from_preset(
    family_name: str, preset: str | None, params: Mapping[str, Any], seed: int
) -> Problem:
    """A ready-made problem with parameters of whatever name; errors as for `generate`."""
    require_seed(seed)
    entry, given = preset_entry(family_name, preset)
    wanted = {"strict": True, **given, **params}
    strict = typed({"strict": wanted.pop("strict")}, {"strict": True}, entry.name, "--set")
    values = typed(wanted, entry.params, entry.name, "--set")
    if strict["strict"]:
        judge(settings_doubted(values), "--set", True)
    made: Problem = entry.load()(seed=seed, **values)
    if not strict["strict"]:
        family(family_name).judge(made, made.name, False)
    return made


def preset_entry(family_name: str, preset: str | None) -> tuple[Entry, dict[str, str]]:
    """The row of a preset, and the parameters that stand in parentheses behind its name.

    Raises
    ------
    InputError: for an unknown family or preset.
    """
    presets = family(family_name).presets
    name, given = split_call(preset or next(iter(presets)), "--preset")
    if name not in presets:
        raise InputError("--preset", "", name, one_of(presets))
    return presets[name], given


def problem(family_name: str, *, seed: int = 0, **tables_and_settings: Any) -> Problem:
    """A problem from tables of your own, with the names that the command line's options have.

    ``problem("queueing", jobs="jobs.csv", nodes=8)`` is
    ``optgap generate queueing --jobs jobs.csv --set nodes=8``.

    Parameters
    ----------
    tables_and_settings: tables are paths, DataFrames or mappings of columns (a named index
        counts as a column; messages number their rows from 0), saved fits paths, reports or
        their JSON form; everything else is a setting. ``strict=False`` goes on with values that
        look like another unit (kW for W), with a warning.

    Raises
    ------
    InputError: for an unknown family or setting, a table that is missing, or what tables hold:
        naming file (or table), row, column, what was found and what was expected.
    """
    require_seed(seed)
    spec = family(family_name)
    given = {k: v for k, v in tables_and_settings.items() if k in spec.files and v is not None}
    missing = next((name for name in list(spec.files)[: spec.needed] if name not in given), None)
    if missing or not given:
        found = NoQuote(", ".join(tables_and_settings) or "nothing")
        wanted = "; ".join(f"{name} ({columns})" for name, columns in spec.files.items())
        expected = f"a table {missing}" if missing else "a table"
        raise InputError(f"problem({family_name!r})", "", found, f"{expected}, of: {wanted}")
    files = {name: _file(spec, name, table) for name, table in given.items()}
    settings = {k: v for k, v in tables_and_settings.items() if k not in spec.files}
    return spec.from_tables(files, settings, seed)


def _file(spec: FamilySpec, name: str, table: Any) -> Any:
    """What stands for a table where a path could; a list of them where there may be several."""
    if REPEATABLE not in spec.files[name]:
        return _held(name, table, spec.files[name])
    several = list(table) if isinstance(table, (list, tuple)) else [table]
    return [_held(name, one, spec.files[name]) for one in several]


def _held(name: str, table: Any, columns: str) -> str | os.PathLike[str]:
    if isinstance(table, (str, os.PathLike)):
        return table
    if isinstance(table, Mapping) and "schema" not in table:
        import pandas as pd

        try:
            table = pd.DataFrame(table)
        except ValueError as error:
            raise InputError(name, "", NoQuote(error), "columns of one length") from None
    if hasattr(table, "to_csv"):  # a DataFrame
        named = any(part is not None for part in table.index.names)
        frame = table.reset_index() if named else table
        # a column of integers with gaps has become one of floats
        return Held(name, frame.convert_dtypes().to_csv(index=False))
    if hasattr(table, "to_json") or isinstance(table, Mapping):
        document = table if isinstance(table, Mapping) else table.to_json()
        return Held(name, json.dumps(finite(document)))
    found = NoQuote(f"a {type(table).__name__}")
    raise InputError(name, "", found, f"a path, or a table: {columns}")
