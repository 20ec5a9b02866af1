"""One run of a sweep: from plain data to a plain row, in whatever process."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

from optgap.api import choose_method, choose_policy, execute, serves
from optgap.comparing.comparison import ACCEPTED, ALL
from optgap.contract import Problem
from optgap.documents import load_problem
from optgap.making import generate
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.reading import file_sha256
from optgap.models.result import Result, Status
from optgap.registry import Runnable
from optgap.sweeping.fingerprint import code, digest
from optgap.versions import versions

Role = Literal["policy", "method"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Instance:
    """A problem by how it is made: from a preset, or from a file with a known hash.

    `params` are all parameters of the preset, defaults included: a default that changes
    makes another instance.
    """

    family: str
    label: str
    preset: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    file: str = ""
    sha256: str = ""

    @property
    def inputs(self) -> dict[str, Any]:
        """What identifies it; where a file lies does not."""
        if self.file:
            return {"family": self.family, "sha256": self.sha256}
        return {
            "family": self.family,
            "preset": self.preset,
            "params": dict(self.params),
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: an instance, a policy or method with its parameters, and a seed.

    Parameters
    ----------
    target: name of the policy or method, or where a user's own is.
    label: the same with the parameters that were given, as tables show it.
    params: the parameters that are handed over.
    known: all parameters, defaults included.
    own: a hash of a user's own policy's source; "" for one of the package.
    time_limit: wall-clock seconds, or None.
    code: what the run depends on beside its inputs, see `fingerprint.code`.
    """

    instance: Instance
    role: Role
    target: str
    label: str
    params: Mapping[str, Any]
    known: Mapping[str, Any]
    own: str
    seed: int
    time_limit: float | None
    code: str

    @property
    def key(self) -> str:
        """The same for the same inputs and version, different otherwise."""
        return digest(
            {
                "instance": self.instance.inputs,
                "role": self.role,
                # where a user's own policy lies does not matter, what it says does
                "target": self.own + self.target.rpartition(":")[2] if self.own else self.target,
                "params": {**self.known, **self.params},
                "seed": self.seed,
                "time_limit": self.time_limit,
                "code": self.code,
            }
        )

    @property
    def head(self) -> Row:
        """The part of the row that is known before the run."""
        return {
            "key": self.key,
            "family": self.instance.family,
            "instance": self.instance.label,
            "instance_params": json.dumps(dict(self.instance.params), default=str),
            "instance_seed": self.instance.seed,
            "method": self.label,
            "kind": self.role,
            "params": json.dumps({**self.known, **self.params}, default=str),
            "seed": self.seed,
            "time_limit": self.time_limit,
            "optgap": versions()["optgap"],
            "code": self.code,
        }


def run_cell(cell: Cell) -> Row:
    """Run one cell; what goes wrong is part of the row."""
    row = cell.head
    row["started"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    row["worker"] = f"{socket.gethostname()}:{os.getpid()}"
    began = time.perf_counter()
    try:
        _require_same_code(cell)
        problem, identity = _problem(_Key(cell.instance))
        row["problem"] = identity
        runnable = _runnable(cell, problem)
        try:
            runnable.require_goal(problem, "sweep")
        except InputError as error:
            return row | failed(str(error), "objective", time.perf_counter() - began)
        result = execute(problem, runnable, Limits(cell.time_limit), cell.seed)
        return row | _measured(problem, result, cell)
    except Exception as error:
        kind = "input" if isinstance(error, InputError) else "fault"
        text = str(error) if kind == "input" else f"{type(error).__name__}: {error}"
        return row | failed(text, kind, time.perf_counter() - began)


def failed(text: str, kind: str, seconds: float = 0.0) -> Row:
    """The part of the row that says what went wrong."""
    return {
        "status": str(Status.ERROR),
        "termination": "error",
        "error": " ".join(text.split()),
        "failure": kind,
        "seconds": seconds,
    }


def _require_same_code(cell: Cell) -> None:
    here = code(cell.instance.family)
    if here != cell.code:
        found = NoQuote(f"optgap {versions()['optgap']} with code {here}")
        raise InputError(socket.gethostname(), "", found, f"{cell.code}, as where the sweep began")


def _runnable(cell: Cell, problem: Problem) -> Runnable:
    if cell.role == "policy":
        return choose_policy(problem, cell.target, cell.params)
    return _one_worker(problem, choose_method(problem, cell.target, cell.params))


def _one_worker(problem: Problem, chosen: Runnable) -> Runnable:
    """The same on one core, where the grid does not say otherwise: cells run side by side."""
    if "workers" not in chosen.known or "workers" in chosen.params:
        return chosen
    return choose_method(problem, chosen.entry.name, {**chosen.params, "workers": 1})


def _measured(problem: Problem, result: Result, cell: Cell) -> Row:
    """The referee's numbers; for one who turned something down, a bound for the rest."""
    full = serves(result)
    scope, bound, bound_by = ALL, result.bound, result.bound_by
    if result.solution is not None and not full:
        scope = ACCEPTED
        bound, bound_by = _bound_for_part(problem, result, cell)
    solution = result.solution
    metrics, info = _apart(problem, result)
    return {
        "method": result.method if cell.target == "auto" else cell.label,
        "kind": result.kind,
        "status": str(result.status),
        "termination": str(result.termination),
        "objective": result.objective,
        "unit": result.unit,
        "sense": result.sense,
        "serves_all": full,
        "bound": bound,
        "bound_by": bound_by,
        "bound_scope": scope if bound is not None else None,
        "metrics": json.dumps(metrics, sort_keys=True, default=float),
        "info": json.dumps(info, sort_keys=True, default=float),
        "solution": digest(solution.to_json(problem)) if solution is not None else None,
        "message": result.message,
        "error": "",
        "failure": "",
        "seconds": result.seconds,
    }


def _apart(problem: Problem, result: Result) -> tuple[Row, Row]:
    """What the referee measured, and what a method says of its own work.

    Solvers that race one another do not say the same twice; the referee does.
    """
    metrics = dict(result.metrics)
    if result.kind == "policy":
        return metrics, {}
    measured = problem.evaluate(result.solution).metrics if result.solution is not None else {}
    info = {key: value for key, value in metrics.items() if key not in measured}
    return {key: metrics[key] for key in measured}, info


def _bound_for_part(
    problem: Problem, result: Result, cell: Cell
) -> tuple[float | None, str | None]:
    try:
        part = problem.restrict(result.solution)
    except InputError:  # nothing served at all: no problem is left
        return None, None
    chosen = _one_worker(part, choose_method(part, bounding=True))
    proof = execute(part, chosen, Limits(cell.time_limit), cell.seed, bound_only=True)
    return proof.bound, proof.bound_by


class _Key:
    """An instance that can be looked up in a cache."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.text = digest(instance.inputs)

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.text == self.text


@lru_cache(maxsize=2)  # cells of one instance follow one another
def _problem(key: _Key) -> tuple[Problem, str]:
    """The problem, and a hash of it: equal for all rows that may be held against one another."""
    instance = key.instance
    if instance.file:
        problem = load_problem(instance.file)
        _require_hash(instance)
    else:
        problem = generate(instance.family, instance.preset, seed=instance.seed, **instance.params)
    return problem, digest(problem.to_json())


def _require_hash(instance: Instance) -> None:
    if file_sha256(instance.file) != instance.sha256:
        found = NoQuote("another file than when the sweep began")
        raise InputError(instance.file, "", found, f"SHA-256 {instance.sha256}")
