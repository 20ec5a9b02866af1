from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from optgap import registry
from optgap.models.consolidation.presets import mixed
from optgap.models.errors import InputError
from optgap.models.placement.making import aims_of
from optgap.registry import FAMILIES, method, policy, user_object

OWN = """
from dataclasses import dataclass

@dataclass
class Lowest:
    offset: int = 0
    def place(self, task, state):
        nodes = state.feasible(task)
        return nodes[0] if nodes.size else None

def refuse(task, state):
    return None

number = 3
"""


@pytest.fixture
def own_file(here: Path) -> Path:
    path = here / "my_policy_file.py"
    path.write_text(OWN)
    return path


@pytest.mark.parametrize("spec", FAMILIES.values(), ids=FAMILIES)
def test_every_entry_is_whole_and_of_its_role(spec: registry.FamilySpec) -> None:
    """Test names, summaries, functions and their parameters; what the import contract forbids is
    not done in the import of a table's functions.
    """
    assert callable(spec.models.tables)
    assert spec.tables_out
    assert {entry.kind for entry in spec.policies.values()} == {"policy"}
    assert {entry.kind for entry in spec.methods.values()} <= {"exact", "bound", "offline"}
    roles = {"heuristics": spec.policies, "solvers": spec.methods, "models": spec.presets}
    for role, table in roles.items():
        assert table
        for name, entry in table.items():
            assert entry.name == name
            assert not set(name) & set("(),:= \t'\"\\"), name  # typed on a command line
            assert entry.summary
            function = entry.load()
            home = getattr(function, "func", function).__module__
            assert home.startswith(f"optgap.{role}.{spec.name}."), name
            function = inspect.unwrap(function)
            if entry.options is not None:  # in a dataclass that the function itself reads
                assert entry.options.__name__ in function.__code__.co_names, name
                continue
            offered = dict(inspect.signature(function).parameters)
            for one, further in (("aims", aims_of), ("mix", mixed)):
                if one in offered:  # handed on as they are
                    offered |= inspect.signature(further).parameters
            assert set(entry.params) <= set(offered), name


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    placement = FAMILIES["placement"]
    with pytest.raises(InputError, match="policy: found 'fdg', expected one of pwr, fgd"):
        policy(placement, "fdg")
    with pytest.raises(InputError, match="method: found 'x', expected one of"):
        method(placement, "x")
    with pytest.raises(InputError, match="expected one of placement"):
        registry.family("x")


def test_given_parameters_win_and_show_in_the_label() -> None:
    runnable = policy(FAMILIES["placement"], "pwr+fgd(alpha=0.3)", {"alpha": 0.2})
    assert runnable.params == {"alpha": 0.2}
    assert runnable.label == "pwr+fgd(alpha=0.2)"


@pytest.mark.parametrize("text", ["my_policy_file:Lowest", "my_policy_file.py:Lowest"])
def test_a_users_class_is_found_in_the_current_directory(own_file: Path, text: str) -> None:
    runnable = policy(FAMILIES["placement"], f"{text}(offset=2)")
    assert runnable.own
    assert runnable.label == f"{text}(offset=2)"
    assert runnable.params["policy_params"] == {"offset": 2}


def test_a_users_function_or_object_can_be_handed_over() -> None:
    class Made:
        def place(self, task: object, state: object) -> None:
            return None

    def refuse(task: object, state: object) -> None:
        return None

    placement = FAMILIES["placement"]
    assert policy(placement, refuse).label == "refuse"
    assert policy(placement, Made()).label == "Made"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_such_module:x", "ModuleNotFoundError"),
        ("no_such_file.py:x", "no such file"),
        ("my_policy_file.py:nothing", "found 'nothing', expected one of .*Lowest"),
        ("my_policy_file.py:number", "found 3"),
        ("my_policy_file.py:refuse(x=1)", "no parameters"),
        ("broken.py:x", "SyntaxError"),
        ("dying.py:x", "ZeroDivisionError"),
        (":x", "ValueError"),
    ],
)
def test_a_module_that_cannot_be_used_says_why(own_file: Path, target: str, said: str) -> None:
    Path("broken.py").write_text("def x(:\n")
    Path("dying.py").write_text("x = 1 / 0\n")
    with pytest.raises(InputError, match=said):
        policy(FAMILIES["placement"], target)


def test_loading_a_users_file_leaves_the_path_as_it_was(own_file: Path) -> None:
    before = list(sys.path)
    user_object("my_policy_file.py:refuse", "--policy")
    assert sys.path == before
