"""Cell of a sweep: a comparison on one instance, made from plain data into plain rows."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from optgap import fitting, heuristics, models, solvers
from optgap.comparing.gaps import compare
from optgap.contract import Problem
from optgap.documents import load_problem
from optgap.making import generate
from optgap.models.errors import InputError, NoQuote
from optgap.models.reading import file_sha256
from optgap.versions import versions

Row = dict[str, Any]
COLUMNS = (
    *("key", "family", "instance", "instance_seed", "method", "kind", "seed", "time_limit"),
    *("status", "termination", "objective", "unit", "sense", "bound", "bound_by", "bound_scope"),
    *("best_bound", "best_known", "gap_to_bound", "gap_to_best", "metrics", "message", "failure"),
    *("optgap", "code", "seconds", "worker"),
)
"""Columns of the table; ``metrics`` is JSON, ``key`` the same for all rows of a cell."""
WALL = ("seconds", "worker")
"""Columns on the worker and its speed; all others are the same for every engine."""
COMPUTING = ("optgap", "numpy", "scipy", "numba", "ortools", "highspy", "pulp", "cvxpy")
"""Packages whose versions may change numbers."""


def digest(document: Any) -> str:
    """Return 128 bits of the SHA-256 of a document in canonical JSON, in hexadecimal."""
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def code() -> str:
    """Return a hash of the sources and packages, which can change numbers as a run's inputs can."""
    total = hashlib.sha256()
    for room in (models, fitting, solvers, heuristics):
        for path in sorted(Path(str(room.__file__)).parent.rglob("*.py")):
            total.update(path.name.encode() + b"\0" + path.read_bytes())
    known = versions()
    return digest([total.hexdigest(), {name: known.get(name) for name in COMPUTING}])


@dataclass(frozen=True, slots=True)
class Cell:
    """Instance with the policies and methods that are compared on it, and their seed.

    Parameters
    ----------
    instance: the instance as tables show it.
    made: preset, all its parameters and seed; or the SHA-256 of a file.
    file: path of that file; "" for a preset.
    policies, methods: names with parameters.
    own: hashes of the sources of users' own policies.
    folder: folder in which the search for these begins.
    time_limit: wall-clock seconds for each single run, or None.
    code: hash of the sources and packages, from `code`.
    """

    family: str
    instance: str
    made: Mapping[str, Any]
    file: str
    policies: tuple[str, ...]
    methods: tuple[str, ...]
    own: tuple[str, ...]
    folder: str
    seed: int
    time_limit: float | None
    code: str

    @property
    def key(self) -> str:
        """Hash of inputs and code; the place of files does not count."""
        places = ("file", "folder", "instance")
        return digest({k: v for k, v in asdict(self).items() if k not in places})


def run_cell(cell: Cell) -> list[Row]:
    """Compare on one instance; an error becomes part of the rows.

    One row with an error stands for all of them where nothing could be compared.
    """
    try:
        found = _compared(cell)
    except Exception as error:
        failure = "input" if isinstance(error, InputError) else "fault"
        words = f"{type(error).__name__}: {error}" if failure == "fault" else str(error)
        told = {"status": "error", "failure": failure, "message": " ".join(words.split())}
        found = [{"method": "", **told}]
    about = {
        "key": cell.key,
        "family": cell.family,
        "instance": cell.instance,
        "instance_seed": cell.made.get("seed"),
        "seed": cell.seed,
        "time_limit": cell.time_limit,
        "optgap": versions()["optgap"],
        "code": cell.code,
        "worker": f"{socket.gethostname()}:{os.getpid()}",
    }
    return [{name: {**row, **about}.get(name) for name in COLUMNS} for row in found]


def _compared(cell: Cell) -> list[Row]:
    if code() != cell.code:
        found = NoQuote(f"optgap {versions()['optgap']} with code {code()}")
        raise InputError(socket.gethostname(), "", found, f"{cell.code}, as at the beginning")
    if cell.own:
        os.chdir(cell.folder)  # a cluster's worker began elsewhere
    table = compare(
        _problem(cell), cell.policies, cell.methods,
        time_limit=cell.time_limit, seed=cell.seed, parts=True,
    )  # fmt: skip
    rows = []
    for row in table.rows:
        told = row.to_json()
        told |= {"best_bound": table.best_bound, "best_known": table.best_known}
        told |= {"message": row.result.message, "failure": row.failure}
        rows.append({**told, "metrics": json.dumps(told["metrics"], sort_keys=True)})
    return rows


def _problem(cell: Cell) -> Problem:
    made = cell.made
    if not cell.file:
        return generate(cell.family, made["preset"], seed=made["seed"], **made["params"])
    if file_sha256(cell.file) != made["sha256"]:
        found = NoQuote("another file than when the sweep began")
        raise InputError(cell.file, "", found, f"SHA-256 {made['sha256']}")
    return load_problem(cell.file)
