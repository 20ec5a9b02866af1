"""The grid that a TOML file describes, and the cells that it comes to."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

from optgap.comparing.gaps import method_names, policy_names
from optgap.documents import load_problem
from optgap.making import preset_entry
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields
from optgap.models.reading import file_sha256
from optgap.parameters import call_text, split_call, typed
from optgap.registry import FamilySpec, Runnable, family
from optgap.registry import method as find_method
from optgap.registry import policy as find_policy
from optgap.sweeping.cell import Cell, Instance, Role
from optgap.sweeping.fingerprint import code
from optgap.tomlio import load_toml

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


@dataclass(frozen=True, slots=True)
class _Grid:
    """One ``[[grid]]`` table with what it inherits from the top of the file."""

    fields: Fields
    folder: Path
    seeds: Sequence[int]
    instance_seeds: Sequence[int] | None
    time_limit: float | None

    @property
    def source(self) -> str:
        return self.fields.source


def load_spec(path: str | os.PathLike[str]) -> Spec:
    """Read a sweep from a TOML file; problem files are looked for beside it.

    Raises
    ------
    InputError: naming the file and the place: for what is no TOML, an unknown key, family,
        preset, policy, method or parameter, a problem file that cannot be read, or a grid
        that comes to nothing.
    """
    return read_spec(load_toml(path), str(path), Path(path).parent)


def read_spec(document: Mapping[str, Any], source: str = "sweep", folder: Path = Path()) -> Spec:
    """The same from a dictionary; errors as for `load_spec`."""
    fields = Fields(document, source)
    _refuse_unknown(fields, TOP)
    limit = fields.number("time_limit", 1e-3) if "time_limit" in document else None
    seeds = _seeds(fields, "seeds") if "seeds" in document else [0]
    own = _seeds(fields, "instance_seeds") if "instance_seeds" in document else None
    cells: dict[str, Cell] = {}
    for grid in fields.objects("grid"):
        _refuse_unknown(grid, GRID)
        for cell in _cells(_Grid(grid, folder, seeds, own, limit)):
            cells.setdefault(cell.key, cell)
            if len(cells) > MOST:
                raise InputError(source, "grid", NoQuote(f"more than {MOST} runs"), "fewer")
    if not cells:
        raise InputError(source, "grid", NoQuote("no runs"), "policies or methods to run")
    name = fields.text("name", Path(source).stem)
    return Spec(source, name, cells)


def _refuse_unknown(fields: Fields, known: set[str]) -> None:
    for name in fields.document:
        if name not in known:
            raise fields.fail("", name, one_of(sorted(known)))


def _seeds(fields: Fields, name: str) -> list[int]:
    """A number of seeds, from 0 on, or the seeds themselves."""
    if isinstance(fields.document[name], list):
        seeds = fields.integers(name)
    else:
        seeds = list(range(min(fields.integer(name, 1), MOST + 1)))
    if not seeds:
        raise fields.fail(name, NoQuote("nothing"), "at least one seed")
    return list(dict.fromkeys(seeds))


def _cells(grid: _Grid) -> Iterator[Cell]:
    spec = family(grid.fields.text("family"), f"{grid.source}: family")
    runs = _runs(grid, spec)
    version = code(spec.name)
    for instance, seeds in _instances(grid, spec):
        for seed in seeds:
            for role, target, runnable in runs:
                own = _own_source(target, grid.source) if runnable.own else ""
                params = runnable.params["policy_params"] if runnable.own else runnable.params
                yield Cell(
                    instance,
                    role,
                    target,
                    runnable.label,
                    dict(params),
                    dict(runnable.known),
                    own,
                    seed,
                    grid.time_limit,
                    version,
                )


# -- instances ---------------------------------------------------------------------------


def _instances(grid: _Grid, spec: FamilySpec) -> Iterator[tuple[Instance, Sequence[int]]]:
    """Every instance, with the seeds of the runs on it."""
    document = grid.fields.document
    if "problems" in document:
        for refused in ("presets", "instance"):
            if refused in document:
                raise grid.fields.fail(refused, NoQuote("it beside problems"), "one of the two")
        for instance in _files(grid, spec):
            yield instance, grid.seeds
        return
    presets = _names(grid, "presets") if "presets" in document else [next(iter(spec.presets))]
    for text in presets:
        entry, given = preset_entry(spec.name, text)
        for values in _products(_table(grid, "instance")):
            known = {**entry.params, "strict": True}
            params = typed({**given, **values}, known, entry.name, grid.source)
            label = call_text(entry.name, params)
            full = {**entry.params, **params}
            if grid.instance_seeds is None:  # drawn with the seed that the run has, too
                for seed in grid.seeds:
                    yield Instance(spec.name, label, entry.name, full, seed), [seed]
            else:
                for seed in grid.instance_seeds:
                    yield Instance(spec.name, label, entry.name, full, seed), grid.seeds


def _files(grid: _Grid, spec: FamilySpec) -> Iterator[Instance]:
    for pattern in _names(grid, "problems"):
        matches = sorted(grid.folder.glob(pattern)) if _is_pattern(pattern) else []
        matches = matches or [grid.folder / pattern]
        for path in matches:
            problem = load_problem(path)
            if problem.family != spec.name:
                raise InputError(
                    str(path), "", NoQuote(f"a problem of {problem.family}"), spec.name
                )
            place = str(path.resolve())
            yield Instance(spec.name, path.name, file=place, sha256=file_sha256(path))


def _is_pattern(text: str) -> bool:
    return bool(set("*?[") & set(text)) and not Path(text).is_absolute()


# -- what runs on them -------------------------------------------------------------------


def _runs(grid: _Grid, spec: FamilySpec) -> list[tuple[Role, str, Runnable]]:
    """Every policy and method with every combination of the parameters that it has."""
    table = _table(grid, "parameters")
    runs: list[tuple[Role, str, Runnable]] = []
    taken: set[str] = set()
    for role, name in _named(grid, spec):
        shown, own = split_call(name, grid.source)
        target = _absolute(shown)
        if target == "auto":
            runs.append((role, target, Runnable(next(iter(spec.methods.values())), target)))
            continue
        find = find_policy if role == "policy" else find_method
        known = find(spec, target, None, grid.source).known
        mine = {key: values for key, values in table.items() if key in known}
        taken.update(mine)
        if "workers" in known:  # the cells are what runs side by side
            own.setdefault("workers", "1")
        for values in _products(mine):
            runnable = find(spec, target, {**own, **values}, grid.source)
            label = runnable.label.replace(target, shown, 1)  # no folder of this machine
            runs.append((role, target, replace(runnable, label=label)))
    for key in table:
        if key not in taken:
            expected = "a parameter of a policy or method of this grid"
            raise grid.fields.fail(f"parameters.{key}", NoQuote("it"), expected)
    return runs


def _named(grid: _Grid, spec: FamilySpec) -> list[tuple[Role, str]]:
    document = grid.fields.document
    policies = _names(grid, "policies") if "policies" in document else []
    methods = _names(grid, "methods") if "methods" in document else []
    if policies == ["all"]:
        policies = [str(name) for name in policy_names(spec.name, "all")]
    if methods == ["all"]:
        methods = method_names(spec.name, "all")
    return [("policy", name) for name in policies] + [("method", name) for name in methods]


def _absolute(target: str) -> str:
    """A user's own policy in a file by its full path: workers may live elsewhere."""
    place, colon, attribute = target.rpartition(":")
    return f"{Path(place).resolve()}:{attribute}" if colon and place.endswith(".py") else target


@cache
def _own_source(target: str, source: str) -> str:
    """A hash of the file that a user's own policy is in."""
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        return file_sha256(place)
    found = util.find_spec(place) if place else None
    if found is None or not found.origin or not Path(found.origin).is_file():
        return "unknown"
    return file_sha256(found.origin)


# -- lists and products ------------------------------------------------------------------


def _names(grid: _Grid, key: str) -> list[str]:
    """A text, or a list of texts."""
    value = grid.fields.document[key]
    return [value] if isinstance(value, str) else grid.fields.texts(key)


def _table(grid: _Grid, key: str) -> dict[str, list[Any]]:
    """Values by parameter; a single one counts as a list of one."""
    if key not in grid.fields.document:
        return {}
    table = {}
    for name, value in grid.fields.object(key).document.items():
        table[name] = value if isinstance(value, list) else [value]
        if not table[name]:
            raise grid.fields.fail(f"{key}.{name}", NoQuote("nothing"), "at least one value")
    return table


def _products(table: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*table.values()):
        yield dict(zip(table, values, strict=True))
