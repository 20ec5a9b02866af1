"""The grid that a TOML file describes, and the cells that it comes to."""

from __future__ import annotations

import itertools
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any

from optgap.comparing.gaps import method_names, policy_names
from optgap.documents import load_problem
from optgap.making import preset_entry
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields
from optgap.models.reading import file_sha256, read_text
from optgap.parameters import call_text, split_call, typed
from optgap.registry import FamilySpec, family, method, policy
from optgap.sweeping.cells import Cell, code

MOST = 1_000_000
"""Runs in one sweep: more is a slip of the keyboard, or several sweeps."""
TOP = {"name", "seeds", "instance_seeds", "time_limit", "grid"}
GRID = {"family", "presets", "problems", "instance", "policies", "methods", "parameters"}


@dataclass(frozen=True, slots=True)
class Spec:
    """A sweep, expanded: its cells by key, in order, instance by instance."""

    source: str
    name: str
    cells: Mapping[str, Cell]


def load_spec(path: str | os.PathLike[str]) -> Spec:
    """Read a sweep from a TOML file; problem files are looked for beside it.

    Raises
    ------
    InputError: naming the file and the place: for what is no TOML, an unknown key, family,
        preset, policy, method or parameter, a problem file that cannot be read, or a grid
        that comes to nothing.
    """
    text = read_text(path)
    try:
        document = tomllib.loads(text)
    except (RecursionError, ValueError) as error:
        found = "nesting too deep" if isinstance(error, RecursionError) else error
        raise InputError(str(path), "", NoQuote(found), "TOML") from None
    return read_spec(document, str(path), Path(path).parent)


def read_spec(document: Mapping[str, Any], source: str = "sweep", folder: Path = Path()) -> Spec:
    """The same from a dictionary; errors as for `load_spec`."""
    fields = Fields(document, source)
    _refuse_unknown(fields, TOP)
    cells: dict[str, Cell] = {}
    for grid in fields.objects("grid"):
        _refuse_unknown(grid, GRID)
        for cell in _cells(fields, grid, folder):
            cells.setdefault(cell.key, cell)
            if len(cells) > MOST:
                raise InputError(source, "grid", NoQuote(f"more than {MOST} runs"), "fewer")
    if not cells:
        raise InputError(source, "grid", NoQuote("no runs"), "policies or methods to run")
    return Spec(source, fields.text("name", Path(source).stem), cells)


def _refuse_unknown(fields: Fields, known: set[str]) -> None:
    for name in fields.document:
        if name not in known:
            raise fields.fail("", name, one_of(sorted(known)))


def _cells(top: Fields, grid: Fields, folder: Path) -> Iterator[Cell]:
    spec = family(grid.text("family"), f"{grid.source}: family")
    limit = top.number("time_limit", 1e-3) if "time_limit" in top.document else None
    policies, methods, own = _runs(grid, spec)
    for label, made, file, seeds in _instances(top, grid, spec, folder):
        for seed in seeds if policies or methods else ():
            yield Cell(spec.name, label, made, file, policies, methods, own, seed, limit, code())


def _seeds(fields: Fields, name: str) -> list[int]:
    """A number of seeds, from 0 on, or the seeds themselves."""
    if isinstance(fields.document[name], list):
        seeds = fields.integers(name)
    else:
        seeds = list(range(min(fields.integer(name, 1), MOST + 1)))
    if not seeds:
        raise fields.fail(name, NoQuote("nothing"), "at least one seed")
    return list(dict.fromkeys(seeds))


def _instances(
    top: Fields, grid: Fields, spec: FamilySpec, folder: Path
) -> Iterator[tuple[str, Mapping[str, Any], str, Sequence[int]]]:
    """Label, what identifies it and file of every instance, with the seeds of the runs on it."""
    seeds = _seeds(top, "seeds") if "seeds" in top.document else [0]
    own = _seeds(top, "instance_seeds") if "instance_seeds" in top.document else None
    if "problems" in grid.document:
        for refused in ("presets", "instance"):
            if refused in grid.document:
                raise grid.fail(refused, NoQuote("it beside problems"), "one of the two")
        for pattern in _names(grid, "problems"):
            matches = [] if Path(pattern).is_absolute() else sorted(folder.glob(pattern))
            for path in matches or [folder / pattern]:
                found = load_problem(path).family
                if found != spec.name:
                    raise InputError(str(path), "", NoQuote(f"a problem of {found}"), spec.name)
                yield path.name, {"sha256": file_sha256(path)}, str(path.resolve()), seeds
        return
    presets = _names(grid, "presets") if "presets" in grid.document else [next(iter(spec.presets))]
    for text, values in itertools.product(presets, _products(_table(grid, "instance"))):
        entry, given = preset_entry(spec.name, text)
        known = {**entry.params, "strict": True}
        params = typed({**given, **values}, known, entry.name, grid.source)
        label, full = call_text(entry.name, params), {**entry.params, **params}
        for seed in seeds if own is None else own:  # without seeds of their own, the run's
            made = {"preset": entry.name, "params": full, "seed": seed}
            yield label, made, "", [seed] if own is None else seeds


def _runs(grid: Fields, spec: FamilySpec) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Policies and methods with all their parameters, and hashes of users' own policies."""
    table, taken = _table(grid, "parameters"), set[str]()
    found: tuple[dict[str, str], dict[str, str]] = {}, {}
    own = []
    policies = _names(grid, "policies") if "policies" in grid.document else []
    methods = _names(grid, "methods") if "methods" in grid.document else []
    named = [(0, str(name)) for name in policy_names(spec.name, _all(policies))]
    for role, text in [*named, *((1, name) for name in method_names(spec.name, _all(methods)))]:
        shown, given = split_call(text, grid.source)
        place, colon, attribute = shown.rpartition(":")
        file = colon and place.endswith(".py")
        target = f"{Path(place).resolve()}:{attribute}" if file else shown
        if target == "auto":
            found[role][target] = target
            continue
        find = (policy, method)[role]
        known = find(spec, target, None, grid.source)
        if known.own:
            own.append(_source_of(target))
        mine = {key: values for key, values in table.items() if key in known.known}
        taken.update(mine)
        for values in _products(mine):
            label = find(spec, target, {**given, **values}, grid.source).label
            found[role][label.replace(target, shown, 1)] = label
    for key in table:
        if key not in taken:
            expected = "a parameter of a policy or method of this grid"
            raise grid.fail(f"parameters.{key}", NoQuote("it"), expected)
    return *found, tuple(own)


def _all(names: list[str]) -> Any:
    return "all" if names == ["all"] else names


def _source_of(target: str) -> str:
    """A hash of the file that a user's own policy is in."""
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        return file_sha256(place)
    found = util.find_spec(place) if place else None
    known = found is not None and found.origin and Path(found.origin).is_file()
    return file_sha256(str(found.origin)) if found is not None and known else "unknown"


def _names(grid: Fields, key: str) -> list[str]:
    """A text, or a list of texts."""
    value = grid.document[key]
    return [value] if isinstance(value, str) else grid.texts(key)


def _table(grid: Fields, key: str) -> dict[str, list[Any]]:
    """Values by parameter; a single one counts as a list of one."""
    found = grid.object(key).document if key in grid.document else {}
    table = {name: value if isinstance(value, list) else [value] for name, value in found.items()}
    for name, values in table.items():
        if not values:
            raise grid.fail(f"{key}.{name}", NoQuote("nothing"), "at least one value")
    return table


def _products(table: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*table.values()):
        yield dict(zip(table, values, strict=True))
