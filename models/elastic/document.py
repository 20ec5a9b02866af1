"""The JSON form of a problem, ``optgap.elastic.problem/1``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.jobs import JobClass, Jobs, Overhead
from optgap.models.errors import NoQuote
from optgap.models.jsonio import TOO_LARGE, Fields, plain
from optgap.models.performance import saved

if TYPE_CHECKING:
    from optgap.models.elastic.problem import ElasticProblem

SCHEMA = "optgap.elastic.problem/1"
OVERHEAD = ("base_s", "per_doubling_s", "forced_s")


def document(problem: ElasticProblem) -> dict[str, Any]:
    """Return a problem as JSON."""
    jobs = problem.jobs
    return {
        "schema": SCHEMA,
        **plain(problem, "family", "name", "origin", "notes", "gpus", "gpus_per_node"),
        **plain(problem, "frequencies_mhz", "eta", "p_max_w", "idle_w", "cap"),
        "energy_budget_j": 0.0,  # no longer in use, but part of the form
        "overhead": plain(problem.overhead, *OVERHEAD),
        "classes": [
            plain(c, "model", "batch", "counts", "time_s", "power_w") for c in problem.classes
        ],
        "jobs": {
            "name": list(jobs.names),
            "submit_s": jobs.submit_s.tolist(),
            "class": jobs.of_class.tolist(),
            "iterations": jobs.iterations.tolist(),
            "gpus": jobs.requested.tolist(),
        },
        **saved.written(problem.fits),
    }


def arguments(fields: Fields) -> dict[str, Any]:
    """Return what `ElasticProblem.of` takes.

    Raises
    ------
    InputError: naming the field that is missing or not what it should be.
    """
    fields.schema(SCHEMA)
    clocks = fields.numbers("frequencies_mhz")
    classes = [_class_from_json(item, len(clocks)) for item in fields.objects("classes")]
    item = fields.object("jobs")
    names = tuple(item.texts("name"))
    columns: dict[str, list[Any]] = {
        "submit_s": item.numbers("submit_s"),
        "class": item.integers("class"),
        "iterations": item.numbers("iterations"),
        "gpus": item.integers("gpus"),
    }
    for key, values in columns.items():
        if len(values) != len(names):
            raise item.fail(key, NoQuote(f"{len(values)} entries"), f"{len(names)}, as in name")
    over = fields.object("overhead")
    return {
        "classes": classes,
        "jobs": Jobs(
            names,
            np.array(columns["submit_s"], dtype=np.float64),
            np.array(columns["class"], dtype=np.int64),
            np.array(columns["iterations"], dtype=np.float64),
            np.array(columns["gpus"], dtype=np.int64),
        ),
        "frequencies_mhz": clocks,
        **{name: fields.integer(name, minimum=1) for name in ("gpus", "gpus_per_node")},
        **{name: fields.number(name) for name in ("eta", "p_max_w", "idle_w")},
        "cap": fields.text("cap", "power"),
        "overhead": Overhead(*map(over.number, OVERHEAD)),
        "name": fields.text("name", "elastic"),
        "origin": fields.text("origin", ""),
        "notes": fields.texts("notes") if "notes" in fields.document else (),
        "source": fields.source,
    }


def _class_from_json(item: Fields, clocks: int) -> JobClass:
    counts = item.integers("counts", minimum=1)
    tables = by_count(item, len(counts), clocks)
    return JobClass(item.text("model"), item.integer("batch", minimum=1), tuple(counts), *tables)


def by_count(item: Fields, counts: int, clocks: int) -> tuple[Floats, Floats]:
    """Return (K, F) ``time_s`` and ``power_w``, a row per GPU count.

    Raises
    ------
    InputError: for other rows, and cells that are no numbers.
    """
    tables = []
    for name in ("time_s", "power_w"):
        rows = item.array(name)
        if len(rows) != counts or any(
            not isinstance(row, list)
            or len(row) != clocks
            or any(type(x) not in (int, float) or abs(x) >= TOO_LARGE for x in row)
            for row in rows
        ):
            raise item.fail(name, NoQuote("other rows"), f"{counts} rows of {clocks} numbers")
        tables.append(np.array(rows, dtype=np.float64).reshape(counts, clocks))
    return tables[0], tables[1]
