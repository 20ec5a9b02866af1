from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optgap.models.errors import InputError
from optgap.parameters import assignments, call_text, split_call, split_list, typed

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
