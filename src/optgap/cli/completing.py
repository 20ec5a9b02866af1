"""What a shell offers for an argument that is being typed; nothing is imported before it asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from optgap.models.spec import Entry, Parameter
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
    """Offers entries of the family in question, also behind commas, and their parameters."""
    return lambda ctx, incomplete: _called(ctx, role, incomplete, more)


policies = partial(_entries, "policies")
methods = partial(_entries, "methods")
formulations = partial(_entries, "formulations")


def presets(ctx: typer.Context, incomplete: str) -> Offers:
    """Presets of the family in question, and their parameters in parentheses."""
    return _called(ctx, "presets", incomplete)


def settings(ctx: typer.Context, incomplete: str) -> Offers:
    """``key=value`` for `--set`, `--sweep` and `--param`: what the command in question takes."""
    given = [text.partition("=")[0] for text in ctx.params.get("settings") or []]
    known = {key: value for key, value in _settable(ctx).items() if key not in given}
    return _pairs(known, incomplete)


def preset_settings(ctx: typer.Context, incomplete: str) -> Offers:
    """The same for the parameters of the preset that is named, or of the family's first."""
    return _pairs(_of_entries(ctx, "presets", ctx.params.get("preset")), incomplete)


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
    """Names of entries, after the last comma; or parameters, where a parenthesis is open."""
    from optgap.registry import installed_policies

    start = _last_name(incomplete)
    before, name = incomplete[:start], incomplete[start:]
    if "(" in name:
        name, _, inside = name.partition("(")
        head, _, key = inside.rpartition(",")
        front = f"{before}{name}({head}," if head else f"{before}{name}("
        offers = _pairs(_of_entries(ctx, role, name), key.strip())
        return [(front + word, text) for word, text in offers]
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


Known = dict[str, tuple[Any, "Parameter"]]
"""Parameters by name: the default, and what it means."""


def _of_entries(ctx: typer.Context, role: Role, text: str | None) -> Known:
    """Parameters of the entries in a text such as ``a,b(key=1)``, ``auto`` or ``all``."""
    names = re.sub(r"\([^)]*\)?", "", text or "").split(",")
    known: Known = {}
    for spec in _specs(ctx):
        table: Mapping[str, Entry] = getattr(spec, role)
        chosen = [table[name] for name in names if name in table]
        if not chosen:
            chosen = list(table.values())[: 1 if role == "presets" else None]
        for entry in chosen:
            about = spec.explained(role, entry)
            known |= {key: (value, about[key]) for key, value in entry.params.items()}
    return known


def _settable(ctx: typer.Context) -> Known:
    """What `--set` takes, by the other options of the command."""
    options: tuple[tuple[Role, str], ...] = (
        ("policies", "policies"),
        ("policies", "policy"),
        ("methods", "methods"),
        ("methods", "method"),
        ("formulations", "formulation"),
        ("presets", "preset"),
    )
    known: Known = {}
    for role, option in options:
        if option in ctx.params:
            known |= _of_entries(ctx, role, ctx.params[option])
    return known


def _pairs(known: Known, incomplete: str) -> Offers:
    key, equals, value = incomplete.partition("=")
    if equals:
        return [offer for offer in _values(known, key) if offer[0].startswith(f"{key}={value}")]
    offers = [(f"{name}=", _told(*known[name])) for name in known if name.startswith(key)]
    # one alone would be taken as it is, with a space behind it
    return [*offers, *_values(known, offers[0][0][:-1])] if len(offers) == 1 else offers


def _values(known: Known, key: str) -> Iterator[tuple[str, str]]:
    if key not in known:
        return
    default, parameter = known[key]
    names = ("false", "true") if isinstance(default, bool) else parameter.choices
    for name in names or (() if default in (None, "") else (str(default),)):
        yield f"{key}={name}", ""


def _told(default: Any, parameter: Parameter) -> str:
    value = "" if default in (None, "") else f" ({default} {parameter.unit}".rstrip() + ")"
    return parameter.meaning + value
