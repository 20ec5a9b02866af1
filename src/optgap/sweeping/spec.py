"""Grid in a TOML file, and the comparisons that it describes."""

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
"""Largest number of runs in one sweep; more would be a typing error, or several sweeps."""
TOP = {"seeds", "time_limit", "grid"}
GRID = {"family", "presets", "problems", "instance", "policies", "methods", "parameters"}
Instance = tuple[str, Mapping[str, Any], str]
"""Label of an instance, its identity beside the seed, and its file."""


@dataclass(frozen=True, slots=True)
class Spec:
    """Expanded sweep, with its cells by key, instance by instance."""

    cells: Mapping[str, Cell]


def load_spec(path: str | os.PathLike[str]) -> Spec:
    """Read a sweep from a TOML file; paths of problem files are relative to its folder.

    Raises
    ------
    InputError: for a file that is no TOML, an unknown key, family, preset, policy, method or
        parameter, a problem file that cannot be read, or a grid without any run. The error names
        the file and the place.
    """
    text = read_text(path)
    try:
        document = tomllib.loads(text)
    except (RecursionError, ValueError) as error:
        found = "nesting too deep" if isinstance(error, RecursionError) else error
        raise InputError(str(path), "", NoQuote(found), "TOML") from None
    return read_spec(document, str(path), Path(path).parent)


def read_spec(document: Mapping[str, Any], source: str = "sweep", folder: Path = Path()) -> Spec:
    """Read a sweep from a dictionary; errors are as for `load_spec`."""
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
    policies, methods, own = _runs(grid, spec)
    instances = (_files if "problems" in grid.document else _made)(grid, spec, folder)
    for (label, about, file), seed in itertools.product(instances, _seeds(top)):
        made = {**about, "seed": seed} if not file else about
        if policies or methods:
            yield Cell(
                spec.name, label, made, file, policies, methods, own, os.getcwd(), seed, limit,
                code(),
            )  # fmt: skip


def _seeds(top: Fields) -> Sequence[int]:
    """Return the seeds: a number of seeds from 0 on, a list of seeds, or 0 alone."""
    if not isinstance(top.document.get("seeds"), list):
        return range(top.integer("seeds", 1, 1))
    if seeds := top.integers("seeds"):
        return seeds
    raise top.fail("seeds", NoQuote("nothing"), "at least one seed")


def _files(grid: Fields, spec: FamilySpec, folder: Path) -> Iterator[Instance]:
    """Yield problem files as instances."""
    for refused in ("presets", "instance"):
        if refused in grid.document:
            raise grid.fail(refused, Said("conflicts with problems"), "give only one")
    for pattern in grid.texts("problems"):
        matches = [] if Path(pattern).is_absolute() else sorted(folder.glob(pattern))
        for path in matches or [folder / pattern]:
            found = load_problem(path).family
            if found != spec.name:
                raise InputError(str(path), "", NoQuote(f"a problem of {found}"), spec.name)
            yield path.name, {"sha256": file_sha256(path)}, str(path.resolve())


def _made(grid: Fields, spec: FamilySpec, folder: Path) -> Iterator[Instance]:
    """Yield presets with every combination of the values of their parameters."""
    presets = grid.texts("presets") if "presets" in grid.document else [next(iter(spec.presets))]
    for text, values in itertools.product(presets, _products(_table(grid, "instance"))):
        entry, given = preset_entry(spec.name, text)
        known = {**entry.params, "strict": True}
        params = typed({**given, **values}, known, entry.name, grid.source)
        full = {**entry.params, **params}
        yield call_text(entry.name, params), {"preset": entry.name, "params": full}, ""


def _runs(grid: Fields, spec: FamilySpec) -> tuple[tuple[str, ...], tuple[str, ...], Any]:
    """Return policies and methods with their parameters, and hashes of users' own policies."""
    table, taken, own = _table(grid, "parameters"), set[str](), list[str]()
    runs: list[tuple[str, ...]] = []
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
                module = sys.modules[known.params["policy"].__module__]
                own.append(file_sha256(str(module.__file__)))
            mine = {key: values for key, values in table.items() if key in known.known}
            taken.update(mine)
            labels += [find(spec, text, one, grid.source).label for one in _products(mine)]
        runs.append(tuple(dict.fromkeys(labels)))
    for key in table:
        if key not in taken:
            unknown = Said("no policy or method of this grid has it")
            raise grid.fail(f"parameters.{key}", unknown, "leave it out")
    return runs[0], runs[1], tuple(own)


def _table(grid: Fields, key: str) -> dict[str, list[Any]]:
    """Return the values by parameter; a single value counts as a list of one."""
    found = grid.object(key).document if key in grid.document else {}
    table = {name: value if isinstance(value, list) else [value] for name, value in found.items()}
    for name, values in table.items():
        if not values:
            raise grid.fail(f"{key}.{name}", NoQuote("nothing"), "at least one value")
    return table


def _products(table: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*table.values()):
        yield dict(zip(table, values, strict=True))
