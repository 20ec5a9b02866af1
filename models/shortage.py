"""Lines on insufficient capacity, for every family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WAITING = (
    "jobs may wait for as long as it takes, and one that is too large "
    "is refused when the problem is read"
)
"""Reason why some problems always have a solution."""
SLACK = 1e-9
"""Relative: sums of numbers that are no decimals may be off by this."""


Asked = tuple[str, float, float, str]
"""Requested resource, the requested and the available amount, and the unit."""


class Limited:
    """A problem that says by its `capacities` why some of its tasks cannot be served together."""

    def capacities(self, chosen: Sequence[int]) -> Iterator[Asked]:
        """Yield what these tasks or jobs want at one time."""
        raise NotImplementedError

    def why_not(self, chosen: Sequence[int]) -> str:
        """Say in one line what these tasks together lack; "" if no capacity alone is short."""
        return "; ".join(
            f"{what}: {asked:,.10g} {unit} asked for, {there:,.10g} there, "
            f"short by {asked - there:,.10g} {unit}"
            for what, asked, there, unit in self.capacities(chosen)
            if asked > there * (1 + SLACK)
        )
