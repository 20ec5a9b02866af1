"""TOML in: strict, with errors in one line."""

from __future__ import annotations

import tomllib
from typing import Any

from optgap.models.errors import InputError, NoQuote
from optgap.models.reading import Path, read_text


def load_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    InputError: as `reading.read_text`, and for what is not TOML, or nested without end.
    """
    source = str(path)
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(source, "", NoQuote("nesting too deep"), "TOML") from None
    except ValueError as error:  # no TOML, or an integer beyond all bounds
        raise InputError(source, "", NoQuote(error), "TOML") from None
