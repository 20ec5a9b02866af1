"""Every public name: its signature, its docstring, and the example in it."""

from __future__ import annotations

import ast
import doctest
import inspect
from pathlib import Path

import pytest

import optgap

FUNCTIONS = [n for n in optgap.__all__ if inspect.isroutine(getattr(optgap, n))]
CLASSES = [n for n in optgap.__all__ if inspect.isclass(getattr(optgap, n))]
FREE = {"params", "settings", "options", "tables_and_settings"}
"""Names of parameters that a preset, policy, method or table brings along."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_types_sections_and_an_example_that_runs(name: str) -> None:
    function = getattr(optgap, name)
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty, parameter
        assert parameter.kind is not parameter.VAR_KEYWORD or parameter.name in FREE
        assert parameter.name in text.partition("Parameters")[2], parameter
    wanted = ["Parameters", "Raises"] * bool(signature.parameters)
    wanted += ["Returns"] * (signature.return_annotation not in ("None", None))
    for section in (*wanted, "Examples"):
        assert f"\n{section}\n---" in text, section
    run_examples(function, name)


def run_examples(item: object, name: str) -> None:
    runner, known = doctest.DocTestRunner(), {"optgap": optgap}
    for example in doctest.DocTestFinder(recurse=False).find(item, name, extraglobs=known):
        assert runner.run(example).attempted, "no example"
    assert not runner.failures


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_an_example_that_runs_and_methods_that_say_what_they_return(name: str) -> None:
    kind = getattr(optgap, name)
    assert "\nExamples\n---" in (inspect.getdoc(kind) or "")
    run_examples(kind, name)
    if issubclass(kind, (BaseException, str)):
        return  # methods of Python's own
    for method, function in inspect.getmembers(kind, inspect.isroutine):
        if not method.startswith("_") and "Returns\n---" not in (inspect.getdoc(function) or ""):
            signature = inspect.signature(function)
            opening = (inspect.getdoc(function) or "").split(" ")[0]
            said = opening in {"Return", "Tell", "Draw", "Read"}
            assert said or signature.return_annotation in ("None", None), method


def test_the_packages_own_example_runs() -> None:
    assert not doctest.testmod(optgap).failed


QUESTIONS = {"What", "Of", "Those", "By", "From", "Where", "How", "Which", "Why", "Who", "When"}
ARTICLES = {"The", "A", "An", "Whether", "It", "Its", "All", "Every", "Each", "One", "JSON"}


def test_docstrings_open_with_a_verb_or_a_noun(root: Path) -> None:
    """Test that no docstring of the face needs the sentence before it."""
    face, bad = root / "src" / "optgap", []
    rooms = [room for room in face.iterdir() if room.is_dir() and not room.is_symlink()]
    for path in [*face.glob("*.py"), *(path for room in rooms for path in room.rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                first = (ast.get_docstring(node) or "Verb").split()[0]
                function = isinstance(node, ast.FunctionDef) and not any(
                    isinstance(one, ast.Name) and one.id == "property"
                    for one in node.decorator_list
                )
                if first in QUESTIONS or (function and first in ARTICLES):
                    bad.append(f"{path.name}: {getattr(node, 'name', '')}: {first} …")
    assert not bad
