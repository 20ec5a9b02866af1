"""What is short, and by how much, in the words of every family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WAITING = (
    "jobs may wait for as long as it takes, and one that is too large "
    "is refused when the problem is read"
)
"""Why some problems always have a solution."""
SLACK = 1e-9
"""Relative: sums of numbers that are no decimals may be off by this."""


Asked = tuple[str, float, float, str]
"""What is asked for, how much of it, how much there is, and the unit."""


class Limited:
    """A problem that says by its `capacities` why some of its tasks cannot be served together."""

    def capacities(self, chosen: Sequence[int]) -> Iterator[Asked]:
        """Yield what these tasks or jobs want at one time."""
        raise NotImplementedError

    def why_not(self, chosen: Sequence[int]) -> str:
        """What is short for these tasks together, in one line; "" where no capacity alone is."""
        return "; ".join(
            f"{what}: {asked:,.10g} {unit} asked for, {there:,.10g} there, "
            f"short by {asked - there:,.10g} {unit}"
            for what, asked, there, unit in self.capacities(chosen)
            if asked > there * (1 + SLACK)
        )
