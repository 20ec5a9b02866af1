"""The families by name."""

from __future__ import annotations

from collections.abc import Mapping

from optgap.models.errors import InputError, one_of
from optgap.registry import consolidation, coscheduling, elastic, placement, queueing
from optgap.registry.spec import FamilySpec

FAMILIES: Mapping[str, FamilySpec] = {
    spec.name: spec
    for spec in (placement.SPEC, consolidation.SPEC, coscheduling.SPEC, queueing.SPEC, elastic.SPEC)
}


def file_options(outgoing: bool) -> dict[str, str]:
    """Every file that some family reads, or with `outgoing` writes, and what it holds."""
    found: dict[str, list[str]] = {}
    for spec in FAMILIES.values():
        columns = spec.tables_out if outgoing else spec.files
        for name, text in columns.items():
            one = "model" if name == "models" else name  # fits go by either name
            found.setdefault(one, []).append(f"{spec.name}: {text}")
    return {name: "; ".join(texts) for name, texts in found.items()}


def families() -> tuple[str, ...]:
    """The names of the problem families."""
    return tuple(FAMILIES)


def family(name: str, source: str = "family") -> FamilySpec:
    """The family of this name.

    Raises
    ------
    InputError: when there is none, listing those there are.
    """
    if not isinstance(name, str) or name not in FAMILIES:
        raise InputError(source, "", name, one_of(FAMILIES))
    return FAMILIES[name]
