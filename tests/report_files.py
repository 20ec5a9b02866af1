"""Result files of every kind, small and hostile, for the tests of the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conftest import two_nodes_problem

import optgap
from optgap.comparing.overview import Overview
from optgap.explaining import explain
from optgap.models.jsonio import dump_json

HOSTILE = "<script>window.pwned=1</script><img src=x onerror=window.pwned=2>\"'&$\\frac{$--></svg>"


def write(folder: Path, name: str = "two nodes") -> list[str]:
    """One file of each schema about a tiny problem of this name, with the name wherever one is."""
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
    curve = {"label": name, "load": [0, 0.5, 1], "mean": [1, None, 3], "std": []}
    panel = {"title": name, "y_label": name, "curves": [curve]}
    trials = [{"a": 1.5, "b": name}]
    other = {"schema": "optgap.tune/1", "best": name, "trials": trials, "panels": [panel]}
    dump_json(folder / "other.json", other)
    return [*made, str(folder / "other.json")]
