"""Subject of a command: a problem file, or a family's preset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optgap.best_known import PREFIX
from optgap.cli.options import refuse, require_writable
from optgap.contract import Problem
from optgap.models.errors import InputError, one_of
from optgap.models.reading import STANDARD_INPUT
from optgap.registry import FAMILIES


def is_file(subject: str) -> bool:
    """Tell whether `subject` is a file rather than the name of a family.

    Raises
    ------
    InputError: when it is neither.
    """
    if subject in FAMILIES:
        return False
    if subject == STANDARD_INPUT or subject.startswith(PREFIX) or subject.endswith(".json"):
        return True
    if Path(subject).exists():
        return True
    expected = one_of(FAMILIES, "one of {}, or a problem file")
    raise InputError("FAMILY|PROBLEM.json", "", subject, expected)


def refuse_beside_file(options: Mapping[str, object]) -> None:
    """Raise InputError for options that make a preset, given together with a problem file."""
    refuse(options, "conflicts with a problem file", "name a family in its place")


def opened(
    problem_file: str,
    settings: list[str] | None,
    *outputs: str | None,
    plot: str | None = None,
) -> tuple[Problem, dict[str, Any]]:
    """Return the problem in a file and the values of ``--set``; first check every output.

    Raises
    ------
    InputError: for an output that cannot be written, a malformed setting, or a bad file.
    """
    from optgap.documents import load_problem
    from optgap.models.figures import require_ending
    from optgap.parameters import assignments

    require_writable(*outputs, plot, read=[problem_file])
    require_ending(plot)
    params: dict[str, Any] = {**assignments(settings or [], "--set")}
    return load_problem(problem_file), params


def problem_of(
    subject: str, preset: str | None, size: int | None, given: dict[str, Any], *, seed: int
) -> Problem:
    """Return the problem in a file, or a preset made with those `given` parameters that it has.

    Parameters that the preset uses are taken out of `given`.

    Raises
    ------
    InputError: for a bad file, an unknown preset, or a bad parameter.
    """
    from optgap.documents import load_problem
    from optgap.making import from_preset

    if is_file(subject):
        refuse_beside_file({"--preset": preset, "--size": size})
        return load_problem(subject)
    own, _ = of_the_preset(subject, preset, size, given)
    return from_preset(subject, preset, own, seed)


def of_the_preset(
    family: str, preset: str | None, size: int | None, given: dict[str, Any]
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Take out and return the preset's own `given` parameters; also return all that it has."""
    from optgap.making import preset_entry

    if size is not None:
        given["size"] = str(size)
    known = preset_entry(family, preset)[0].params
    return {key: given.pop(key) for key in list(given) if key in (*known, "strict")}, known


def chosen(preset: str | None, own: Mapping[str, Any], seed: int) -> list[str]:
    """Return the options that make a preset with its `own` parameters again."""
    words = ["--preset", preset] if preset else []
    for key, value in own.items():
        words += ["--size", str(value)] if key == "size" else ["--set", f"{key}={value}"]
    return [*words, "--seed", str(seed)] if seed else words
