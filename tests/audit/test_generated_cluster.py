"""A cluster of the Alibaba trace, written as the objects that an API server would print."""

from __future__ import annotations

import json
import runpy
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

import optgap
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.kubernetes import read_kubernetes
from optgap.models.reading import Held

VERSIONS = ("1.25", "1.33")


@pytest.fixture(scope="module")
def placed() -> tuple[PlacementProblem, PlacementSolution]:
    problem = optgap.generate("placement", size=20, seed=2, load=0.9)
    return problem, optgap.run(problem, "random", seed=2).solution


@pytest.fixture(scope="module")
def objects(placed: tuple[PlacementProblem, PlacementSolution]) -> dict[str, Any]:
    bench = runpy.run_path(str(ROOT / "benchmarks" / "audit_kubernetes.py"))
    found: dict[str, Any] = bench["kubernetes_objects"](*placed)
    return found


def test_objects_of_a_placement_are_read_back_as_that_placement(
    placed: tuple[PlacementProblem, PlacementSolution], objects: dict[str, Any]
) -> None:
    _, solution = placed
    reading = read_kubernetes(Held("cluster.json", json.dumps(objects)))
    found = reading.migration
    rows = np.flatnonzero(solution.node >= 0)
    names = [f"trace/pod-{k}" for k in rows]
    order = [found.problem.tasks.names.index(name) for name in names]
    assert sorted(order) == list(range(len(rows)))
    assert found.current.node[order].tolist() == solution.node[rows].tolist()
    assert found.current.gpu_mask[order].tolist() == solution.gpu_mask[rows].tolist()
    ours, theirs = (p.evaluate(s) for p, s in ((found.problem, found.current), placed))
    assert ours.metrics["power_gpu_w"] == pytest.approx(theirs.metrics["power_gpu_w"])
    assert found.movable[order].all()
    assert not found.movable.sum() > len(order)  # what belongs to a node stays
    assert not reading.violations
    assert not reading.warnings


def test_the_objects_have_the_shape_that_kubernetes_publishes(objects: dict[str, Any]) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs the extra `kubernetes`: pip install optgap[kubernetes]"
    )
    pods = [item for item in objects["items"] if item["kind"] == "Pod"]
    nodes = [item for item in objects["items"] if item["kind"] == "Node"]
    for version in VERSIONS:
        for item in [*nodes, *pods[: len(nodes)], *pods[-20:]]:
            validate.validate(item, version, strict=True)
    wrong = json.loads(json.dumps(pods[0]))
    wrong["spec"]["containers"][0]["resources"]["requests"] = "much"
    with pytest.raises(validate.ValidationError):
        validate.validate(wrong, VERSIONS[0], strict=True)
