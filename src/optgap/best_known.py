"""optgap-lib: fixed problems that ship with the package, their best solutions and bounds.

``lib:NAME`` stands for the file of a problem wherever one is read.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from optgap.models.errors import InputError, Said, one_of
from optgap.models.reading import MAGIC, Held, Path
from optgap.models.result import relative_gap

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "lib:"
LIBRARY = "optgap-lib 1"
"""Name that a paper cites; files of another content would be another library."""

OWN = ("family", "size", "unit", "sense", "made", "why")
"""Fields of an instance that `library` shows besides its best solution and bound."""


def text_of(file: str) -> str:
    """Return the text of a file of the library, unpacked."""
    place = files("optgap.instances")
    found = place / file if (place / file).is_file() else place / f"{file}.gz"
    data = found.read_bytes()
    return (gzip.decompress(data) if data.startswith(MAGIC) else data).decode()


@cache
def records() -> Mapping[str, Mapping[str, Any]]:
    """Return the record of every instance, by name; callers must not change it."""
    known: Mapping[str, Mapping[str, Any]] = json.loads(text_of("best_known.json"))["instances"]
    return known


def record(name: str, source: str = "instance") -> Mapping[str, Any]:
    """Return the record of an instance; raise InputError for a name that no instance has."""
    if name not in records():
        raise InputError(source, "", name, one_of(records()))
    return records()[name]


def opened(path: Path) -> Path:
    """Return the file of an instance for ``lib:NAME``, and any other path as it is.

    Raises
    ------
    InputError: for a name that no instance has, or a file that is not the one of the library.
    """
    if not (isinstance(path, str) and path.startswith(PREFIX)):
        return path
    name = path.removeprefix(PREFIX)
    expected = record(name, LIBRARY)["sha256"]
    text = text_of(f"{name}.json")
    if hashlib.sha256(text.encode()).hexdigest() != expected:
        said = Said(f"the file is not that of {LIBRARY}")
        raise InputError(path, "", said, "install optgap again")
    return Held(path, text)


def library(family: str | None = None) -> pd.DataFrame:
    """List the instances of optgap-lib with the best known solution and bound of each.

    Parameters
    ----------
    family
        Only instances of this family. Default: all.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``lib:NAME``: size, best known objective, bound, and the gap between them.

    Raises
    ------
    InputError
        For an unknown family.

    Examples
    --------
    >>> import optgap
    >>> instances = optgap.library("queueing")
    >>> instances["family"].unique().tolist()
    ['queueing']
    """
    import pandas as pd

    kinds = dict.fromkeys(known["family"] for known in records().values())
    if family is not None and family not in kinds:
        raise InputError("family", "", family, one_of(kinds))
    rows = {}
    for name, known in records().items():
        best, bound = known["best"], known["bound"]
        found = {"best_known": best["value"], "best_by": best["by"]}
        proven = {"bound": bound["value"], "bound_by": bound["by"]}
        gap = relative_gap(best["value"], bound["value"])
        if family in (None, known["family"]):
            rows[PREFIX + name] = {key: known[key] for key in OWN} | found | proven | {"gap": gap}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("instance")
