"""What is short, and by how much, in the words of every family."""

from __future__ import annotations

WAITING = (
    "jobs may wait for as long as it takes, and one that is too large "
    "is refused when the problem is read"
)
"""Why some problems always have a solution."""
SLACK = 1e-9
"""Relative: sums of numbers that are no decimals may be off by this."""


def short(what: str, asked: float, there: float, unit: str) -> str:
    """One line about a capacity that does not suffice; "" about one that does."""
    if asked <= there * (1 + SLACK):
        return ""
    return (
        f"{what}: {asked:,.10g} {unit} asked for, {there:,.10g} there, "
        f"short by {asked - there:,.10g} {unit}"
    )
