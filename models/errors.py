"""The one exception for bad input, and the one for our own faults."""

from __future__ import annotations

EXPECTED_LENGTH = 400
"""What is expected may list names that a file chose, however long."""


class InputError(ValueError):
    """Input that cannot be used: says where it is, what was found and what was expected.

    Parameters
    ----------
    source: the file, or what stands for it (``"problem"``, ``"--policies"``).
    where: the place inside it (``"row 7, column gpu_milli"``, ``"field nodes.model[3]"``).
    found: what stands there.
    expected: what should.
    """

    def __init__(self, source: str, where: str, found: object, expected: str) -> None:
        self.source = source
        self.where = where
        self.found = found
        self.expected = expected
        place = f"{source}: {where}" if where else source
        told = shorten(NoQuote(expected), EXPECTED_LENGTH)
        super().__init__(f"{place}: found {shorten(found)}, expected {told}")

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, object, str]]:
        return type(self), (self.source, self.where, self.found, self.expected)


class RefereeError(RuntimeError):
    """A solver's or policy's own claim disagrees with the referee: a fault of ours."""


def shorten(value: object, limit: int = 80) -> str:
    """Show `value` in one line of at most `limit` characters."""
    text = value if isinstance(value, NoQuote) else repr(value)
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


class NoQuote(str):
    """Words about the value found ("nothing", "3 fields") rather than the value itself."""

    __slots__ = ()
