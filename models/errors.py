"""The one exception for bad input, and the one for our own faults."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

EXPECTED_LENGTH = 400
"""Largest length of the expected value in a message, which may list names from a file."""
PLACE = "name a place that can be written to"
"""The remedy for output that cannot be written."""
ALIKE = 0.65
"""Likeness (difflib) that makes a name a slip: `fdg` of `fgd`, but not `worst` of `first`."""


ARGUMENTS = {
    "--set": "parameter",
    "--column": "columns",
    "--unit": "units",
    "--samples": "uncertainty",
    "--sweep": "parameter",
    "--plot": "path",
}
"""Names of options whose Python argument is called otherwise."""
_SPOKEN: list[bool] = []
"""Not empty while a command line is at work."""


@contextmanager
def speaking_of_options() -> Iterator[None]:
    """Make errors name options of the command line rather than arguments of functions."""
    _SPOKEN.append(True)
    try:
        yield
    finally:
        _SPOKEN.pop()


class InputError(ValueError):
    """Input that cannot be used, with its place, the problem and the remedy.

    Parameters
    ----------
    source: the file, argument or option (``"problem"``, ``"--policies"``). Outside the command
        line an option is shown as the argument of that name.
    where: the place inside it (``"row 7, column gpu_milli"``, ``"field nodes.model[3]"``).
    found: the value at that place, or with `Said` a clause about the problem.
    expected: a noun phrase for a right value, or the remedy. If it is from `one_of`, the message
        suggests the name that was probably meant.

    Examples
    --------
    >>> try:
    ...     optgap.policies("placement", "fdg")
    ... except optgap.InputError as error:
    ...     error.source, error.found
    ('name', 'fdg')
    """

    def __init__(self, source: str, where: str, found: object, expected: str) -> None:
        self.source = source
        self.where = where
        self.found = found
        self.expected = expected
        place = f"{source}: {where}" if where else source
        told = shorten(NoQuote(expected), EXPECTED_LENGTH)
        if isinstance(expected, OneOf) and (name := meant(str(found), expected.names)):
            told += f"; did you mean {name!r}?"
        shown = shorten(found)
        words = f"{shown}; {told}" if isinstance(found, Said) else f"found {shown}, expected {told}"
        super().__init__(f"{place}: {words}")

    def __str__(self) -> str:
        text = super().__str__()
        if _SPOKEN or not self.source.startswith("--"):
            return text
        option, rest = self.source.split(",")[0], text.removeprefix(self.source)
        if option == "--set" and self.where:  # the parameter itself is the argument
            return rest.removeprefix(": ")
        return ARGUMENTS.get(option, option.removeprefix("--").replace("-", "_")) + rest

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, object, str]]:
        return type(self), (self.source, self.where, self.found, self.expected)


class RefereeError(RuntimeError):
    """Claim of a solver or policy that the referee contradicts: a fault of optgap.

    Examples
    --------
    >>> try:
    ...     optgap.run(optgap.generate("coscheduling", size=4), "marble")
    ... except optgap.RefereeError as error:
    ...     print(f"please report this: {error}")
    <Result coscheduling by marble: feasible, 125,993 J>
    """


def shorten(value: object, limit: int = 80) -> str:
    """Show `value` in one line of at most `limit` characters."""
    text = value if isinstance(value, NoQuote) else repr(value)
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


class NoQuote(str):
    """Noun phrase for what was found ("nothing", "3 fields") in place of the value itself."""

    __slots__ = ()


class Said(NoQuote):
    """A clause that says what is wrong; what is expected is then the remedy.

    >>> str(InputError("p.json", "", Said("no such file"), "check the path"))
    'p.json: no such file; check the path'
    """

    __slots__ = ()


class OneOf(NoQuote):
    """List of names in words, with the names themselves."""

    names: tuple[str, ...]


def type_of(value: object) -> NoQuote:
    """Return the type of a value, as a message has found it: "a list", "an int"."""
    name = type(value).__name__
    return NoQuote(f"a{'n' * name.lower().startswith(tuple('aeiou'))} {name}")


def said(error: OSError) -> Said:
    """Return the reason of a failure of the system: "no such file or directory"."""
    reason = str(error.strerror or error)
    return Said(reason[:1].lower() + reason[1:])


def one_of(names: Iterable[str], words: str = "one of {}") -> OneOf:
    """Return the expected choice of names: `words` with the names in place of ``{}``.

    >>> str(InputError("--policy", "", "fdg", one_of(["pwr", "fgd"])))
    "policy: found 'fdg', expected one of pwr, fgd; did you mean 'fgd'?"
    """
    known = tuple(names)
    expected = OneOf(words.replace("{}", ", ".join(known)))
    expected.names = known
    return expected


def meant(name: str, names: Iterable[str]) -> str:
    """Return the one of `names` that is most like `name`, else the only one with it inside, or "".

    >>> meant("gpu_packing", ["gpupacking", "gpuclustering"])
    'gpupacking'
    """
    lower = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=ALIKE)
    held = [known for known in lower if len(name) > 1 and name.lower() in known]
    if close:
        return lower[close[0]]
    return lower[held[0]] if len(held) == 1 else ""
