"""Every bound of pyproject.toml has a lowest version, and the constraints for pip name it."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from release.lowest import constraints, lowest, main, project

from optgap.solvers.backends import BACKENDS

PROJECT: dict[str, Any] = {
    "name": "our-own",
    "dependencies": ["A.b>=1.2,<3", "other>=2; python_version < '3'"],
    "optional-dependencies": {
        "small": ["a-b>=1.10", "third~=4.1"],
        "large": ["our.own[small]", "Our_Own[large]", "fourth==5.0.1,!=6"],
    },
}


def test_an_extra_brings_those_that_it_names_and_the_higher_bound_counts() -> None:
    assert constraints(PROJECT) == ["a-b==1.2"]
    assert constraints(PROJECT, ["small"]) == ["a-b==1.10", "third==4.1"]
    assert constraints(PROJECT, ["large"]) == ["a-b==1.10", "fourth==5.0.1", "third==4.1"]


def test_a_marker_is_asked_about_the_python_that_they_are_for() -> None:
    table = {"name": "x", "dependencies": ["a>=1", "a>=2; python_version >= '3.13'"]}
    assert constraints(table, python="3.12") == ["a==1"]
    assert constraints(table, python="3.13") == ["a==2"]


@pytest.mark.parametrize("text", ["numpy", "numpy<3", "numpy!=2"])
def test_a_requirement_without_a_lower_bound_is_none_to_test_with(text: str) -> None:
    with pytest.raises(ValueError, match="no lower bound"):
        lowest(Requirement(text))


def test_everything_that_is_needed_has_a_lowest_version() -> None:
    table = project()
    extras = list(table["optional-dependencies"])
    named = {line.partition("==")[0] for line in constraints(table, extras)}
    assert {canonicalize_name(Requirement(r).name) for r in table["dependencies"]} <= named
    assert {"pyarrow", "distributed", "ray", "pytest", "ruff"} <= named
    assert "optgap" not in named


def test_back_ends_ask_for_what_the_package_asks_for() -> None:
    table = project()
    extras = table["optional-dependencies"]
    for backend in BACKENDS.values():
        texts = [*table["dependencies"], *extras.get(backend.extra, [])]
        asked = {r.name: r.specifier for r in map(Requirement, texts)}
        for name, spec in backend.packages.items():
            assert SpecifierSet(spec) == asked[name], name


def test_an_unknown_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test"]) == 0
    assert "pytest==" in capsys.readouterr().out
    assert main(["nothing"]) == 1
    assert "nothing" in capsys.readouterr().err
