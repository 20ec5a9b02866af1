"""What a shell offers for an argument that is being typed; nothing is imported before it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from optgap.registry import Role

Offers = list[tuple[str, str]]
"""Words with what they mean."""
Completer = Callable[[typer.Context, str], Offers]


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

    more = {"all": "every one", "list": "what there is"}
    return {**more, **{name: item.title for name, item in catalogue().items()}}


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
    files = sorted(str(path) for path in Path(incomplete).parent.glob("*.json"))
    found = [(path, "a problem file") for path in files if path.startswith(incomplete)]
    return [*families(ctx, incomplete), *found]


def _entries(role: Role, *more: str) -> Completer:
    """Offers names, also behind commas: of the family that was typed, or else of all."""

    def complete(ctx: typer.Context, incomplete: str) -> Offers:
        from optgap.registry import FAMILIES, installed_policies

        # arguments stay in ctx.args where the last option still wants its value
        named = {str(value) for value in (*ctx.params.values(), *ctx.args)}
        specs = [spec for spec in FAMILIES.values() if spec.name in named] or FAMILIES.values()
        before, comma, name = incomplete.rpartition(",")
        words = dict.fromkeys(() if comma else more, "")
        for spec in specs:
            words |= {entry.name: entry.summary for entry in getattr(spec, role).values()}
            if role == "policies":
                words |= {key: point.value for key, point in installed_policies(spec.name).items()}
        found = [(word, text) for word, text in words.items() if word.startswith(name)]
        return [(before + comma + word, text) for word, text in found]

    return complete


policies = partial(_entries, "policies")
methods = partial(_entries, "methods")
formulations = partial(_entries, "formulations")
presets = _entries("presets")


def names(ctx: typer.Context, incomplete: str) -> Offers:
    """Whatever a family has a name for."""
    found = [complete(ctx, incomplete) for complete in (policies(), methods(), presets)]
    return [offer for offers in found for offer in offers]
