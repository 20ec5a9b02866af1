"""The JSON form of a problem, ``optgap.elastic.problem/1``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.jobs import JobClass, Jobs, Overhead
from optgap.models.errors import NoQuote
from optgap.models.jsonio import TOO_LARGE, Fields
from optgap.models.performance import saved

if TYPE_CHECKING:
    from optgap.models.elastic.problem import ElasticProblem

SCHEMA = "optgap.elastic.problem/1"


def document(problem: ElasticProblem) -> dict[str, Any]:
    """A problem as JSON."""
    jobs = problem.jobs
    return {
        "schema": SCHEMA,
        "family": problem.family,
        "name": problem.name,
        "origin": problem.origin,
        "notes": list(problem.notes),
        "gpus": problem.gpus,
        "gpus_per_node": problem.gpus_per_node,
        "frequencies_mhz": problem.frequencies_mhz.tolist(),
        "eta": problem.eta,
        "p_max_w": problem.p_max_w,
        "idle_w": problem.idle_w,
        "cap": problem.cap,
        "energy_budget_j": problem.energy_budget_j,
        "overhead": {
            "base_s": problem.overhead.base_s,
            "per_doubling_s": problem.overhead.per_doubling_s,
            "forced_s": problem.overhead.forced_s,
        },
        "classes": [
            {
                "model": c.model,
                "batch": c.batch,
                "counts": list(c.counts),
                "time_s": c.time_s.tolist(),
                "power_w": c.power_w.tolist(),
            }
            for c in problem.classes
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
    """What `ElasticProblem.of` takes.

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
        "gpus": fields.integer("gpus", minimum=1),
        "gpus_per_node": fields.integer("gpus_per_node", minimum=1),
        "eta": fields.number("eta"),
        "p_max_w": fields.number("p_max_w"),
        "idle_w": fields.number("idle_w"),
        "cap": fields.text("cap", "power"),
        "energy_budget_j": fields.number("energy_budget_j", default=0.0),
        "overhead": Overhead(
            over.number("base_s"), over.number("per_doubling_s"), over.number("forced_s")
        ),
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
    """(K, F) ``time_s`` and ``power_w``, a row per GPU count.

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
