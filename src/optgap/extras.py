"""Import of packages that only some commands need; one line says how to install them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from optgap.models.errors import InputError, NoQuote


def require(module: str, extra: str) -> Any:
    """Import a module that comes with an extra of this package.

    Raises
    ------
    InputError: if the package is missing; the error names the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        found = NoQuote(f"no package {module.split('.')[0]}")
        raise InputError("installation", "", found, f"it: pip install 'optgap[{extra}]'") from None
