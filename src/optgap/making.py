"""Problems from presets and from tables."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from optgap.api import require_seed
from optgap.contract import Problem
from optgap.models.columns import converted_names, mapped, rewritten, said
from optgap.models.errors import InputError, NoQuote, Said, one_of, type_of
from optgap.models.jsonio import finite, load_json
from optgap.models.performance.saved import SCHEMA as FIT
from optgap.models.performance.saved import FittedParameters, read_fit, read_fits
from optgap.models.quantities import judge, settings_doubted
from optgap.models.reading import Held, held_table, read_text
from optgap.models.spec import Entry
from optgap.models.tables import read_header
from optgap.parameters import split_call, typed
from optgap.registry import FAMILIES, REPEATABLE, FamilySpec, family

MODELS = ("models", "model")
"""Names under which fits are given; either one works in every family."""


def generate(
    family_name: str, preset: str | None = None, *, seed: int = 0, models: Any = (), **params: Any
) -> Problem:
    """Make a problem from a preset.

    Parameters
    ----------
    family_name
        A name that `families` lists.
    preset
        A name that `presets` lists. Default: the family's first.
    seed
        Seed of the random number generator. Default 0.
    models
        Fits that the problem is to rest on: what `fit` returned, or files of fits. The problem
        keeps the fits, and `compare` with `uncertainty` draws from them.
    **params
        The preset's own parameters, such as ``size=20``. `presets` lists them. ``strict=False``
        warns of values that look like another unit, and goes on. With a table among the
        parameters, `generate` does what `problem` does.

    Returns
    -------
    Problem
        The problem, which shows itself in a notebook and has `to_frame`.

    Raises
    ------
    InputError
        For an unknown family, preset or parameter, a value of another type, or a fit that the
        family has no use for.

    Examples
    --------
    >>> import optgap
    >>> problem = optgap.generate("placement", "small", size=6, seed=1)
    >>> problem.name
    'small, 6 tasks, seed 1'
    """
    spec = family(family_name)
    own = {} if preset is None else preset_entry(family_name, preset)[0].params
    if any(name in spec.files and name not in (*own, *MODELS) for name in params):
        if preset is not None:
            raise InputError("generate", "preset", Said("conflicts with tables"), "give only one")
        return problem(family_name, seed=seed, models=models, **params)
    return fitted(from_preset(family_name, preset, params, seed), models, seed)


def fitted(made: Problem, models: Any, seed: int = 0) -> Problem:
    """Return the problem with fits in it, or the problem itself without any.

    Raises
    ------
    InputError: as `generate`.
    """
    fits = read_fits(models)
    if not fits:
        return made
    spec = family(made.family)
    require_served(spec, fits)
    answer: Problem = spec.models.refit(made, fits, seed)
    spec.judge(answer, answer.name, strict=False)
    return answer


def require_served(spec: FamilySpec, fits: Sequence[FittedParameters]) -> None:
    """Raise InputError for a fit that the family has no use for, naming those that have one."""
    for fit in fits:
        if fit.model not in spec.serves:
            able = [name for name, other in FAMILIES.items() if fit.model in other.serves]
            takes = f"for {spec.name} one of {', '.join(spec.serves)}"
            serves = f"{fit.model} serves {', '.join(able)}" if able else "no model of ours"
            raise InputError(fit.source, "models", fit.model, f"{takes}; {serves}")


def from_preset(
    family_name: str, preset: str | None, params: Mapping[str, Any], seed: int
) -> Problem:
    """Make a problem from a preset and parameters; errors are as for `generate`."""
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
    """Return the entry of a preset, and the parameters in parentheses behind its name.

    Raises
    ------
    InputError: for an unknown family or preset.
    """
    presets = family(family_name).presets
    name, given = split_call(preset or next(iter(presets)), "--preset")
    if name not in presets:
        raise InputError("--preset", "", name, one_of(presets))
    return presets[name], given


def problem(
    family_name: str,
    *,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    **tables_and_settings: Any,
) -> Problem:
    """Make a problem from tables of your own.

    ``problem("queueing", jobs="jobs.csv", nodes=8)`` does what
    ``optgap generate queueing --jobs jobs.csv --set nodes=8`` does.

    Parameters
    ----------
    family_name
        A name that `families` lists.
    seed
        Seed of the random number generator. Default 0.
    columns
        Our names for the tables' own, with their unit if it is another:
        ``{"submitted": "arrival_s", "walltime": "duration_s:h"}``. Default: names are ours.
    **tables_and_settings
        Tables are paths, DataFrames or mappings of columns, named as ``optgap generate --help``
        names them (`jobs`, `tasks`, `nodes`, …). `models` are fits: what `fit` returned, paths,
        or their JSON form. Everything else is a setting. ``strict=False`` warns of values that look
        like another unit, and goes on.

    Returns
    -------
    Problem
        The problem. Its `origin` says which columns were renamed or converted.

    Raises
    ------
    InputError
        For an unknown family or setting, or a missing table. An error in a table names the table,
        row, column, what was found and what was expected.

    Examples
    --------
    >>> import optgap
    >>> jobs = {"job": ["a", "b"], "arrival_s": [0, 10], "duration_s": [60, 30], "gpus": [4, 8]}
    >>> problem = optgap.problem("queueing", jobs=jobs, nodes=1, gpus_per_node=8)
    >>> len(problem.to_frame())
    2
    """
    return from_tables(family(family_name), tables_and_settings, seed, columns or {})


def from_tables(
    spec: FamilySpec, given: Mapping[str, Any], seed: int, columns: Mapping[str, str]
) -> Problem:
    """Make a problem from the tables and settings in `given`; errors are as for `problem`."""
    require_seed(seed)
    given = named(spec, given)
    tables = {k: v for k, v in given.items() if k in spec.files and v is not None}
    missing = next((name for name in list(spec.files)[: spec.needed] if name not in tables), None)
    if missing or not tables:
        found = NoQuote(", ".join(given) or "nothing")
        wanted = "; ".join(f"{name} ({columns})" for name, columns in spec.files.items())
        source = f"--{missing}" if missing else f"problem({spec.name!r})"
        raise InputError(source, "", found, f"a table {missing or ''}, of: {wanted}")
    files = {name: _file(spec, name, table) for name, table in tables.items()}
    require_models(spec, files)
    files, notes = with_columns(spec, files, columns)
    settings = {k: v for k, v in given.items() if k not in spec.files}
    made = spec.from_tables(files, settings, seed)
    if not notes:
        return made
    anything: Any = made
    result: Problem = replace(anything, origin="; ".join([anything.origin, *notes]))
    return result


def named(spec: FamilySpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `given` with fits, if any, under the name that the family's tables have for them.

    Raises
    ------
    InputError: for both names at once.
    """
    ours = next(name for name in MODELS if name in spec.files)
    found = {k: v for k, v in given.items() if k not in MODELS}
    fits = [given[name] for name in MODELS if name in given and given[name] not in (None, (), [])]
    if len(fits) > 1:
        raise InputError("models", "", Said("conflicts with model"), "give only one")
    return {**found, ours: fits[0]} if fits else found


def with_columns(
    spec: FamilySpec, files: Mapping[str, Any], columns: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the tables with columns renamed and converted, and a line on each changed table.

    Columns in our name but another unit (``duration_h`` for ``duration_s``) need no entry in
    `columns`. A name such as ``nodes.cores`` is that of a column of this table alone.

    Raises
    ------
    InputError: for a name that no table of the family has, or a column that no given table has.
    """
    tables = {n: t for n, t in files.items() if _is_table(t) and n not in MODELS}
    ours = {name: columns_in(spec.files[name]) for name in tables}
    of_one = [c for c in columns if str(c).partition(".")[0] in tables]
    rest = {c: columns[c] for c in columns if c not in of_one} if of_one else columns
    wanted = mapped(rest, [c for names in ours.values() for c in names])
    result, missing = dict(files), set(wanted)
    notes: list[str] = []
    for name, table in tables.items():
        header = read_header(table)
        own = {t: w for t, w in wanted.items() if t in header and w.name in ours[name]}
        missing -= own.keys()
        told = {c.partition(".")[2]: columns[c] for c in of_one if c.startswith(f"{name}.")}
        own = mapped({**{t: columns[t] for t in own}, **told}, ours[name])
        missing |= own.keys() - set(header)
        own |= converted_names(header, ours[name], {w.name for w in own.values()})
        if own:
            source = str(table)
            result[name] = Held(source, rewritten(read_text(table), own, source), _first_row(table))
            notes.append(said(own))
    if missing:
        headers = [column for table in tables.values() for column in read_header(table)]
        raise InputError("columns", "", sorted(missing)[0], one_of(headers))
    return result, notes


def _first_row(table: Any) -> int:
    return table.first_row if isinstance(table, Held) else 2


def _is_table(table: Any) -> bool:
    """Tell whether a file is a table of cells rather than JSON or an archive's log."""
    if not isinstance(table, (str, os.PathLike)):
        return False
    name = str(table).removesuffix(".gz")
    return isinstance(table, Held) or name.endswith(".csv")


def columns_in(text: str) -> list[str]:
    """Return the column names in a text such as ``job,arrival_s[,type]``."""
    return re.findall(r"\w+", text.partition(";")[0])


def require_models(spec: FamilySpec, files: Mapping[str, Any]) -> None:
    """Raise InputError for fits that the family has no use for, before any table is read."""
    for name in MODELS:
        given = files.get(name, [])
        several = list(given) if isinstance(given, (list, tuple)) else [given]
        require_served(spec, [fit for fit in map(_as_fit, several) if fit is not None])


def _as_fit(item: Any) -> FittedParameters | None:
    """Return a fit, or None for another document."""
    if isinstance(item, (str, os.PathLike)):
        try:
            document = load_json(item)
        except InputError:
            return None
        return read_fit(item) if document.get("schema") == FIT else None
    return read_fit(item)


def _file(spec: FamilySpec, name: str, table: Any) -> Any:
    """Return a path or an object in place of one; a list of them if there may be several."""
    if REPEATABLE not in spec.files[name]:
        return _held(name, table, spec.files[name])
    several = list(table) if isinstance(table, (list, tuple)) else [table]
    return [_held(name, one, spec.files[name]) for one in several]


def _held(name: str, table: Any, columns: str) -> str | os.PathLike[str] | FittedParameters:
    if isinstance(table, (str, os.PathLike)):
        return table
    if hasattr(table, "to_csv") or (isinstance(table, Mapping) and "schema" not in table):
        return held_table(name, table)
    if isinstance(table, FittedParameters):
        return table
    if hasattr(table, "to_json") or isinstance(table, Mapping):
        document = finite(table if isinstance(table, Mapping) else table.to_json())
        return (
            read_fit(document)
            if document.get("schema") == FIT
            else Held(name, json.dumps(document))
        )
    found = type_of(table)
    raise InputError(name, "", found, f"a path, or a table: {columns}")
