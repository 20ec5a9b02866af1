"""Parameters as they are written, and that each says what it means, and what it says is so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, get_args

import pytest
from conftest import Cli
from hypothesis import given
from hypothesis import strategies as st

import optgap
from optgap.api import choose_method, choose_policy, execute
from optgap.models.errors import InputError, OneOf
from optgap.models.limits import Limits
from optgap.models.spec import Entry, Parameter
from optgap.parameters import assignments, call_text, split_call, split_list, typed
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


# -- as they are written -----------------------------------------------------------------


NAMES = st.text("abcxyz+-_0", min_size=1, max_size=8)
DEFAULTS = {"alpha": 0.1, "count": 3, "strict": False, "score": "implemented", "free": None}


def test_commas_inside_parentheses_do_not_split() -> None:
    assert split_list(" a(x=1,y=2) , b ", "here") == ["a(x=1,y=2)", "b"]


@pytest.mark.parametrize(
    ("split", "text"),
    [
        *((split_list, text) for text in ("", ",", "a,", "a,,b", "a(", "a)", "a)(", "a(x=1")),
        (split_list, "a((x=1)"),
        *((split_call, text) for text in ("(x=1)", "a(x=1)b", "a(x)", "a(=1)", "a(x=1,x=2)")),
        *((split_call, text) for text in ("a(x=1,)", "a(,)")),
    ],
)
def test_a_broken_list_or_call_is_refused(split: Callable[[str, str], Any], text: str) -> None:
    with pytest.raises(InputError, match="here: found" if split is split_list else "here"):
        split(text, "here")


@pytest.mark.parametrize("text", ["pwr", " pwr ", "pwr()", "pwr( )"])
def test_a_bare_name_has_no_parameters(text: str) -> None:
    assert split_call(text, "here") == ("pwr", {})


@given(NAMES, st.dictionaries(NAMES, st.text("ab1.", max_size=5)))
def test_splitting_undoes_writing(name: str, params: dict[str, str]) -> None:
    assert split_call(call_text(name, params), "here") == (name, params)


def test_only_the_first_equals_sign_separates() -> None:
    assert assignments(["path=a=b"], "here") == {"path": "a=b"}


def test_texts_become_what_the_defaults_are() -> None:
    given = {"alpha": "1e-1", "count": "7", "strict": "Yes", "score": "5", "free": "2.5"}
    values = typed(given, DEFAULTS, "pwr", "--set")
    assert values == {"alpha": 0.1, "count": 7, "strict": True, "score": "5", "free": 2.5}
    assert type(values["alpha"]) is float
    assert typed({"alpha": 1}, DEFAULTS, "pwr", "--set") == {"alpha": 1.0}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("alpha", "x"),
        ("alpha", "nan"),
        ("alpha", "inf"),
        ("alpha", ""),
        ("alpha", None),
        ("alpha", True),
        ("count", True),
        ("count", "1.5"),
        ("count", "1e400"),
        ("count", 1.5),
        ("strict", "maybe"),
        ("score", 3),
    ],
)
def test_another_type_is_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^pwr, {key}: found"):
        typed({key: value}, DEFAULTS, "pwr", "--set")


def test_an_unknown_parameter_is_answered_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"found 'aplha', expected a parameter of pwr: alpha=0\.1"):
        typed({"aplha": "1"}, DEFAULTS, "pwr", "--set")
    with pytest.raises(InputError, match="no parameters: fgd"):
        typed({"x": "1"}, {}, "fgd", "--set")
