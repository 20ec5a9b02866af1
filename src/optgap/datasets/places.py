"""Which folder the data is in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from optgap.models.errors import InputError, NoQuote

VARIABLE = "OPTGAP_DATA"


def home() -> Path:
    """The folder of the user's that downloads go to when nobody names another."""
    return _caches() / "data"


def _caches() -> Path:
    # the same places that platformdirs gives, without importing it to show a path
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "optgap"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/optgap"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "optgap"


def data_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """`given`, or what ``OPTGAP_DATA`` names, or `home`; the first two must be there.

    Raises
    ------
    InputError: for a folder that was named and is not there.
    """
    named = given or os.environ.get(VARIABLE)
    if not named:
        return home()
    if not Path(named).is_dir():
        source = "--data" if given else VARIABLE
        raise InputError(source, str(named), NoQuote("no such folder"), "a folder")
    return Path(named)


def present_folder(given: str | os.PathLike[str] | None = None) -> Path | None:
    """The same, or None when nobody named a folder and nothing has been downloaded.

    Raises
    ------
    InputError: as `data_folder` does.
    """
    folder = data_folder(given)
    return folder if folder.is_dir() else None
