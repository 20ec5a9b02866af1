"""Every parameter says what it means, and what it says is so."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, get_args

import pytest
from conftest import Cli

import optgap
from optgap.api import choose_method, choose_policy, execute
from optgap.models.errors import InputError, OneOf
from optgap.models.limits import Limits
from optgap.models.spec import Entry, Parameter
from optgap.registry import FAMILIES, Role

FOLDERS = {
    "policies": "heuristics",
    "methods": "solvers",
    "formulations": "solvers",
    "presets": "models",
}
UNITS = {"_s": "s", "_w": "W", "_mhz": "MHz", "_gb": "GB", "_mj": "MJ"}


def parameters() -> Iterator[tuple[str, Role, Entry, str, Parameter]]:
    for family, spec in FAMILIES.items():
        for role in get_args(Role):
            for entry in getattr(spec, role).values():
                for name, parameter in spec.explained(role, entry).items():
                    yield family, role, entry, name, parameter


@cache
def tiny(family: str) -> Any:
    return optgap.generate(family, **FAMILIES[family].tiny)


def test_every_parameter_has_a_meaning_in_one_line_and_its_unit() -> None:
    for family, role, entry, name, parameter in parameters():
        where = f"{family}, {role}, {entry.name}, {name}"
        assert 4 < len(parameter.meaning) <= 100, where
        assert "\n" not in parameter.meaning, where
        for ending, unit in UNITS.items():
            if name.endswith(ending):
                assert parameter.unit == unit, where
        default = entry.params[name]
        assert not parameter.choices or default in (*parameter.choices, ""), where


@pytest.mark.parametrize(("role", "most"), [("methods", 25), ("policies", 90), ("presets", 110)])
def test_there_are_no_more_parameters_than_a_reader_can_learn(role: str, most: int) -> None:
    assert sum(item[1] == role for item in parameters()) <= most


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("folder", sorted(set(FOLDERS.values())))
def test_nothing_is_explained_that_nobody_has(family: str, folder: str) -> None:
    """Options of a dataclass are somebody's as they are; others stand in a table of their own."""
    module = import_module(f"optgap.{folder}.{family}.parameters")
    there = getattr(module, "PARAMETERS", {})
    used = [p for f, r, _, _, p in parameters() if (f, FOLDERS[r]) == (family, folder)]
    assert [name for name, parameter in there.items() if parameter not in used] == []


@pytest.mark.parametrize(
    ("family", "role", "entry", "name", "parameter"),
    [
        pytest.param(*item, id=f"{item[0]}-{item[2].name}-{item[3]}")
        for item in parameters()
        if item[4].choices
    ],
)
def test_the_choices_are_those_that_are_accepted(
    family: str, role: Role, entry: Entry, name: str, parameter: Parameter
) -> None:
    """Another value is refused, and the refusal names these."""

    def run() -> None:
        if role == "presets":
            optgap.generate(family, entry.name, **{name: "nonsense"})
        choose = choose_policy if role == "policies" else choose_method
        runnable = choose(tiny(family), entry.name, {name: "nonsense"})
        execute(tiny(family), runnable, Limits(20.0), 0)

    with pytest.raises(InputError) as refused:
        run()
    expected = refused.value.expected
    assert isinstance(expected, OneOf)
    if name == "backend":  # one that takes whole numbers alone is told later
        assert set(parameter.choices) < set(expected.names)
    else:
        assert set(parameter.choices) - {"synthetic"} == set(expected.names) - {"synthetic"}


def test_a_family_is_told_with_units_and_sources(cli: Cli) -> None:
    out = cli("families", "elastic", "tiresias").out
    (line,) = [line for line in out.splitlines() if line.startswith("  threshold_1")]
    assert line.split() == [
        *("threshold_1=3250.0", "attained", "service", "at", "which", "the", "first", "queue"),
        *("ends,", "GPU-s,", "Tiresias"),
    ]
    out = cli("families", "elastic", "powerflow").out
    assert "PowerFlow, Table 2" in out.partition("  sigma_time=")[2].partition("=")[0]
    assert "attained service at" not in cli("families").out
