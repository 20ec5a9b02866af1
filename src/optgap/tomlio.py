"""TOML in: strict, with errors in one line."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from optgap.models.errors import InputError, NoQuote


def load_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    InputError: when the file is missing, not UTF-8, not TOML, or nested without end.
    """
    source = str(path)
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(source, "", NoQuote(error.strerror or error), "a readable file") from None
    except RecursionError:
        raise InputError(source, "", NoQuote("nesting too deep"), "TOML") from None
    except ValueError as error:  # no UTF-8, no TOML, or an integer beyond all bounds
        raise InputError(source, "", NoQuote(error), "TOML") from None
