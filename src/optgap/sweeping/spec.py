"""The grid that a TOML file describes, and the cells that it comes to."""

from __future__ import annotations

import itertools
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optgap.comparing.gaps import method_names, policy_names
from optgap.documents import load_problem
from optgap.making import preset_entry
from optgap.models.errors import InputError, NoQuote, Said, one_of
from optgap.models.jsonio import Fields
from optgap.models.reading import file_sha256, read_text
from optgap.parameters import call_text, typed
from optgap.registry import FamilySpec, family, method, policy
from optgap.sweeping.cells import Cell, code

MOST = 1_000_000
"""Runs in one sweep: more is a slip of the keyboard, or several sweeps."""
TOP = {"seeds", "instance_seeds", "time_limit", "grid"}
Names = tuple[str, ...]
GRID = {"family", "presets", "problems", "instance", "policies", "methods", "parameters"}


@dataclass(frozen=True, slots=True)
class Spec:
    """A sweep, expanded: its cells by key, in order, instance by instance."""

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
    return Spec(cells)


def _refuse_unknown(fields: Fields, known: set[str]) -> None:
    for name in fields.document:
        if name not in known:
            raise fields.fail("", name, one_of(sorted(known)))


def _cells(top: Fields, grid: Fields, folder: Path) -> Iterator[Cell]:
    spec = family(grid.text("family"), f"{grid.source}: family")
    limit = top.number("time_limit", 1e-3) if "time_limit" in top.document else None
    runs = _runs(grid, spec)
    find = _files if "problems" in grid.document else _made
    for instance, seeds in find(top, grid, spec, folder):
        for seed in seeds if any(runs) else ():
            yield Cell(spec.name, *instance, *runs, os.getcwd(), seed, limit, code())


def _seeds(top: Fields, name: str) -> Sequence[int]:
    """A number of seeds, from 0 on, or the seeds themselves; 0 without any."""
    if not isinstance(top.document.get(name), list):
        return range(top.integer(name, 1, 1))
    if seeds := top.integers(name):
        return seeds
    raise top.fail(name, NoQuote("nothing"), "at least one seed")


Instance = tuple[str, Mapping[str, Any], str]
"""Label, what identifies it, and file."""


def _files(
    top: Fields, grid: Fields, spec: FamilySpec, folder: Path
) -> Iterator[tuple[Instance, Sequence[int]]]:
    """Problem files, with the seeds of the runs on each."""
    for refused in ("presets", "instance"):
        if refused in grid.document:
            raise grid.fail(refused, Said("conflicts with problems"), "give only one")
    for pattern in grid.texts("problems"):
        matches = [] if Path(pattern).is_absolute() else sorted(folder.glob(pattern))
        for path in matches or [folder / pattern]:
            found = load_problem(path).family
            if found != spec.name:
                raise InputError(str(path), "", NoQuote(f"a problem of {found}"), spec.name)
            made = {"sha256": file_sha256(path)}
            yield (path.name, made, str(path.resolve())), _seeds(top, "seeds")


def _made(
    top: Fields, grid: Fields, spec: FamilySpec, folder: Path
) -> Iterator[tuple[Instance, Sequence[int]]]:
    """The same for presets: their seeds are the runs', unless they have some of their own."""
    own = "instance_seeds" in top.document
    seeds = _seeds(top, "seeds")
    presets = grid.texts("presets") if "presets" in grid.document else [next(iter(spec.presets))]
    for text, values in itertools.product(presets, _products(_table(grid, "instance"))):
        entry, given = preset_entry(spec.name, text)
        known = {**entry.params, "strict": True}
        params = typed({**given, **values}, known, entry.name, grid.source)
        label, full = call_text(entry.name, params), {**entry.params, **params}
        for seed in _seeds(top, "instance_seeds") if own else seeds:
            made = {"preset": entry.name, "params": full, "seed": seed}
            yield (label, made, ""), seeds if own else [seed]


def _runs(grid: Fields, spec: FamilySpec) -> tuple[Names, Names, Names]:
    """Policies and methods with all their parameters, and hashes of users' own policies."""
    table, taken, own = _table(grid, "parameters"), set[str](), list[str]()
    runs: list[Names] = []
    ways: Any = (("policies", policy_names, policy), ("methods", method_names, method))
    for role, names, find in ways:
        labels: list[str] = []
        listed = grid.document.get(role, [])
        for text in names(spec.name, listed if listed in ("all", []) else grid.texts(role)):
            if text == "auto":
                labels.append(text)
                continue
            known = find(spec, text, None, grid.source)
            if known.own:
                own.append(_source_of(known.params["policy"]))
            mine = {key: values for key, values in table.items() if key in known.known}
            taken.update(mine)
            labels += [find(spec, text, one, grid.source).label for one in _products(mine)]
        runs.append(tuple(dict.fromkeys(labels)))
    for key in table:
        if key not in taken:
            unknown = Said("no policy or method of this grid has it")
            raise grid.fail(f"parameters.{key}", unknown, "leave it out")
    return runs[0], runs[1], tuple(own)


def _source_of(own: Any) -> str:
    """A hash of the file that a user's own policy is in."""
    file = getattr(sys.modules.get(getattr(own, "__module__", "")), "__file__", None)
    return file_sha256(file) if file else "unknown"


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
