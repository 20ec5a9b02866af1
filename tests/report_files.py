"""Result files of every kind, small and hostile, for the tests of the report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from conftest import two_nodes_problem

import optgap
from optgap.comparing.overview import Overview
from optgap.explaining import explain
from optgap.models.jsonio import dump_json

HOSTILE = "<script>window.pwned=1</script><img src=x onerror=window.pwned=2>\"'&$\\frac{$--></svg>"


def rows(count: int) -> list[dict[str, Any]]:
    """Rows as a sweep writes them; synthetic."""
    return [
        {
            "key": f"{k:064x}",
            "family": ("placement", "queueing")[k % 2],
            "instance": f"small(size={k % 13})",
            "method": ("fgd", "pwr", "hps")[k % 3],
            "seed": k,
            "objective": 1000.0 + (k * 7919) % 1000 + 0.25,
            "unit": "W",
            "gap_to_bound": None if k % 11 == 0 else ((k * 7919) % 1000) / 1000,
            "seconds": 0.001 * k,
            "error": "ValueError: no" if k % 50 == 3 else None,
            "metrics": "{}",
        }
        for k in range(count)
    ]


def write(folder: Path, name: str = "two nodes") -> list[str]:
    """One file of each schema about a tiny problem of this name; returns their paths."""
    problem = replace(two_nodes_problem(extra=1), name=name)
    result = optgap.run(problem, "fgd")
    comparison = optgap.compare(problem, "fgd,pwr,random", "bound-pooled")
    overview = Overview((comparison,), {"queueing": f"ZeroDivisionError: {name}"}, {}, 1.0)
    items = {
        "problem": problem,
        "result": result,
        "compare": comparison,
        "overview": overview,
        "explain": explain(problem, "random", "bound-pooled", seed=1),
        "check": optgap.check(problem, result.solution),
    }
    made = []
    for key, item in items.items():
        optgap.save(item, folder / f"{key}.json")
        made.append(str(folder / f"{key}.json"))
    for key, document in documents(name).items():
        dump_json(folder / f"{key}.json", document)
        made.append(str(folder / f"{key}.json"))
    (folder / "list.json").write_text(json.dumps(rows(12)))
    return [*made, str(folder / "list.json")]


def documents(name: str) -> dict[str, dict[str, Any]]:
    """Files of other schemas, with `name` wherever there is one."""
    curve = {"label": name, "load": [0, 0.5, 1], "mean": [1, None, 3], "std": []}
    panel = {"title": name, "y_label": name, "curves": [curve]}
    trials = [{"a": 1.5, "b": name}]
    other = {"schema": "optgap.tune/1", "best": name, "trials": trials, "panels": [panel]}
    return {
        "other": other,
        "rows": {"rows": [{**row, "method": name, "instance": name} for row in rows(30)]},
    }
