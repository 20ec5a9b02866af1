"""The bill of materials names everything that is needed, once, with its version."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from trust.sbom import document, name_of


def test_every_dependency_is_named_with_its_version() -> None:
    bill = document()
    found = {part["name"]: part["version"] for part in bill["components"]}
    for name in ("numpy", "scipy", "ortools", "highspy", "pulp", "cvxpy", "numba", "typer"):
        assert found[name] == version(name)
    assert bill["metadata"]["component"]["name"] == "optgap"
    assert "pytest" not in found


def test_every_dependency_refers_to_a_component() -> None:
    bill = document()
    known = {part["bom-ref"] for part in (*bill["components"], bill["metadata"]["component"])}
    assert len(known) == len(bill["components"]) + 1
    for entry in bill["dependencies"]:
        assert {entry["ref"], *entry["dependsOn"]} <= known


def test_names_are_those_of_registries() -> None:
    assert name_of("Typing_Extensions") == name_of("typing.extensions") == "typing-extensions"


def test_the_program_prints_the_document(root: Path) -> None:
    program = root / "tests" / "trust" / "sbom.py"
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=60
    )
    assert '"bomFormat": "CycloneDX"' in done.stdout
