"""Policies from outside this package, in a module or a file of a user's own."""

from __future__ import annotations

import sys
from importlib import import_module, util
from pathlib import Path
from typing import Any

from optgap.models.errors import InputError, NoQuote, Said, one_of


def user_object(target: str, source: str) -> Any:
    """Import the object that ``module:attribute`` or ``path/to/file.py:attribute`` names.

    The search for modules begins in the current directory.

    Raises
    ------
    InputError: when the module cannot be imported or has no such attribute.
    """
    place, _, attribute = target.rpartition(":")
    module = _user_module(place, source)
    if not hasattr(module, attribute):
        shown = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
        raise InputError(source, place, attribute, one_of(shown))
    return getattr(module, attribute)


def _said(error: BaseException) -> NoQuote:
    from optgap.heuristics.custom import said  # with numpy, which few commands need this early

    return NoQuote(said(error))


def _user_module(place: str, source: str) -> Any:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        if not place.endswith(".py"):
            return import_module(place)
        path = Path(place)
        if not path.is_file():
            raise InputError(source, place, Said("no such file"), "name a Python file")
        name = f"optgap_user_{path.stem}"
        spec = util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise InputError(source, place, NoQuote("no Python module"), "a Python file")
        module = util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses in the file look their module up
        spec.loader.exec_module(module)
        return module
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # whatever a user's file may raise
        raise InputError(source, place, _said(error), "a module that can be imported") from error
    finally:
        sys.path.remove(here)
