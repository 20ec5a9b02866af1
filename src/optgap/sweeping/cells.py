"""One cell of a sweep, a comparison on one instance: from plain data to plain rows."""

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
"""The columns of the table; ``metrics`` is JSON, ``key`` the same for all rows of a cell."""
WALL = ("seconds", "worker")
"""Columns that say where and how fast: all others are the same for every engine."""
COMPUTING = ("optgap", "numpy", "scipy", "numba", "ortools", "highspy", "pulp", "cvxpy")
"""Packages on whose versions numbers may depend."""


def digest(document: Any) -> str:
    """128 bits of the SHA-256 of a document in canonical JSON, in hexadecimal."""
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def code() -> str:
    """A hash of all that can change a number beside a run's inputs: sources and packages."""
    total = hashlib.sha256()
    for room in (models, fitting, solvers, heuristics):
        for path in sorted(Path(str(room.__file__)).parent.rglob("*.py")):
            total.update(path.name.encode() + b"\0" + path.read_bytes())
    known = versions()
    return digest([total.hexdigest(), {name: known.get(name) for name in COMPUTING}])


@dataclass(frozen=True, slots=True)
class Cell:
    """One instance, the policies and methods that are compared on it, and their seed.

    Parameters
    ----------
    instance: the instance as tables show it.
    made: preset, all its parameters and seed; or the SHA-256 of a file.
    file: where that file is; "" for a preset.
    policies, methods: how they are called, by how tables call them: a user's own policy by the
        full path of its file, as workers may live elsewhere.
    own: hashes of the sources of users' own policies.
    time_limit: wall-clock seconds for each single run, or None.
    code: what the runs depend on beside their inputs.
    """

    family: str
    instance: str
    made: Mapping[str, Any]
    file: str
    policies: Mapping[str, str]
    methods: Mapping[str, str]
    own: tuple[str, ...]
    seed: int
    time_limit: float | None
    code: str

    @property
    def key(self) -> str:
        """The same for the same inputs and code, different otherwise; where files lie is none."""
        inputs = {**asdict(self), "policies": list(self.policies), "methods": list(self.methods)}
        return digest({k: v for k, v in inputs.items() if k not in ("file", "instance")})

    @property
    def head(self) -> Row:
        """The part of every row that is known before the runs."""
        return {
            **dict.fromkeys(COLUMNS),
            "key": self.key,
            "family": self.family,
            "instance": self.instance,
            "instance_seed": self.made.get("seed"),
            "method": "",
            "seed": self.seed,
            "time_limit": self.time_limit,
            "optgap": versions()["optgap"],
            "code": self.code,
            "worker": f"{socket.gethostname()}:{os.getpid()}",
        }

    def failed(self, error: Exception) -> list[Row]:
        """The row that stands for all of them where nothing could be compared."""
        failure = "input" if isinstance(error, InputError) else "fault"
        words = f"{type(error).__name__}: {error}" if failure == "fault" else str(error)
        return [
            {**self.head, "status": "error", "failure": failure, "message": " ".join(words.split())}
        ]


def run_cell(cell: Cell) -> list[Row]:
    """Compare on one instance; what goes wrong is part of the rows."""
    try:
        if code() != cell.code:
            found = NoQuote(f"optgap {versions()['optgap']} with code {code()}")
            raise InputError(socket.gethostname(), "", found, f"{cell.code}, as at the beginning")
        table = compare(
            _problem(cell), list(cell.policies.values()), list(cell.methods.values()),
            time_limit=cell.time_limit, seed=cell.seed, parts=True,
        )  # fmt: skip
    except Exception as error:
        return cell.failed(error)
    shown = {text: name for name, text in {**cell.policies, **cell.methods}.items()}
    rows = []
    for row in table.rows:
        document = row.to_json()
        rows.append({
            **cell.head,
            **{name: value for name, value in document.items() if name in COLUMNS},
            "method": shown.get(row.result.method, row.result.method),
            "best_bound": table.best_bound,
            "best_known": table.best_known,
            "metrics": json.dumps(document["metrics"], sort_keys=True),
            "message": row.result.message,
            "failure": row.failure,
        })  # fmt: skip
    return rows


def _problem(cell: Cell) -> Problem:
    made = cell.made
    if not cell.file:
        return generate(cell.family, made["preset"], seed=made["seed"], **made["params"])
    if file_sha256(cell.file) != made["sha256"]:
        found = NoQuote("another file than when the sweep began")
        raise InputError(cell.file, "", found, f"SHA-256 {made['sha256']}")
    return load_problem(cell.file)
