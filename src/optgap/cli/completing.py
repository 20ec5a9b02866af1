"""What a shell offers for an argument that is being typed; nothing is imported before it asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from optgap.models.spec import Entry
    from optgap.registry import FamilySpec, Role

Offers = list[tuple[str, str]]
"""Words with what they mean."""
Completer = Callable[[typer.Context, str], Offers]

SUBJECTS = ("subject", "problem_file", "name", "family")
"""Arguments of commands that name a family or a problem file."""
HEAD = 4096
"""Characters of a problem file in which its schema stands."""
SCHEMA = re.compile(r'"schema"\s*:\s*"optgap\.(\w+)\.problem/')


def one_of(table: Callable[[], Mapping[str, str] | Iterable[str]]) -> Completer:
    """Offers the names of a table, or of names with what they mean, made when it is asked for."""

    def complete(ctx: typer.Context, incomplete: str) -> Offers:
        found = table()
        words = found if isinstance(found, Mapping) else dict.fromkeys(found, "")
        return [(name, text) for name, text in words.items() if name.startswith(incomplete)]

    return complete


def _families() -> dict[str, str]:
    from optgap.registry import FAMILIES

    return {spec.name: spec.question for spec in FAMILIES.values()}


def _datasets() -> dict[str, str]:
    from optgap.datasets import catalogue

    return {"all": "every one", **{name: item.title for name, item in catalogue().items()}}


def _models() -> dict[str, str]:
    from optgap.fitting import ESTIMATORS

    return {name: entry.summary for name, entry in ESTIMATORS.items()}


families = one_of(_families)
datasets = one_of(_datasets)


def models(ctx: typer.Context, incomplete: str) -> Offers:
    """Models to fit, as the first argument."""
    return [] if ctx.params.get("arguments") or ctx.args else one_of(_models)(ctx, incomplete)


def subjects(ctx: typer.Context, incomplete: str) -> Offers:
    """Families, and the JSON files that are there."""
    folder = Path(incomplete).parent
    files = sorted(str(path) for path in folder.glob("*.json"))
    found = [(path, "a problem file") for path in files if path.startswith(incomplete)]
    return [*families(ctx, incomplete), *found]


def _entries(role: Role, *more: str) -> Completer:
    """Offers entries of the family in question, also behind commas."""
    return lambda ctx, incomplete: _called(ctx, role, incomplete, more)


policies = partial(_entries, "policies")
methods = partial(_entries, "methods")
formulations = partial(_entries, "formulations")


def presets(ctx: typer.Context, incomplete: str) -> Offers:
    """Presets of the family in question."""
    return _called(ctx, "presets", incomplete)


# -- what is in question -------------------------------------------------------------------


def _specs(ctx: typer.Context) -> list[FamilySpec]:
    """The family that the arguments so far are about; every one where they do not tell."""
    from optgap.registry import FAMILIES

    # arguments stay in ctx.args where the last option still wants its value
    for subject in (*(ctx.params.get(key) for key in SUBJECTS), *ctx.args):
        if not isinstance(subject, str):
            continue
        found = FAMILIES.get(subject) or FAMILIES.get(_family_of(subject))
        if found:
            return [found]
    return list(FAMILIES.values())


def _family_of(path: str) -> str:
    """The family of a problem file, by its first lines; "" where they do not tell."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = SCHEMA.search(file.read(HEAD))
    except OSError:
        return ""
    return found[1] if found else ""


def _called(ctx: typer.Context, role: Role, incomplete: str, more: Iterable[str] = ()) -> Offers:
    """Names of entries, after the last comma."""
    from optgap.registry import installed_policies

    start = _last_name(incomplete)
    before, name = incomplete[:start], incomplete[start:]
    words = dict.fromkeys(() if before else more, "")
    for spec in _specs(ctx):
        table: Mapping[str, Entry] = getattr(spec, role)
        words |= {entry.name: entry.summary for entry in table.values()}
        if role == "policies":
            words |= {key: point.value for key, point in installed_policies(spec.name).items()}
    return [(before + word, text) for word, text in words.items() if word.startswith(name)]


def _last_name(text: str) -> int:
    """Where the name begins that follows the last comma outside parentheses."""
    start = depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            start = k + 1
    return start
