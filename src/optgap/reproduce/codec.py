"""Reports as JSON and back, to the last bit.

Data only: reading gives instances of this package's own dataclasses, whatever the file says, so
that a folder that others can write to is no way into this process.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np

OURS = "optgap."
KINDS = "biufU"
"""Of arrays: numbers, truth values and text."""


class CodecError(ValueError):
    """A value that has no form here, or a document that is not of this form."""


def encode(value: Any) -> Any:
    """`value` as what `json` writes; numbers keep every bit, NaN included.

    Raises
    ------
    CodecError: for anything but plain values, containers, arrays and our dataclasses.
    """
    if isinstance(value, Enum):
        return {"enum": _name(type(value)), "value": encode(value.value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS:
        return {"array": value.dtype.str, "shape": value.shape, "values": value.ravel().tolist()}
    if is_dataclass(value) and not isinstance(value, type):
        held = {f.name: encode(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"class": _name(type(value)), "fields": held}
    raise CodecError(f"a {type(value).__name__}")


def decode(form: Any) -> Any:
    """What `encode` was given.

    Raises
    ------
    CodecError: when the form is another.
    """
    try:
        return _decoded(form)
    except (ArithmeticError, AttributeError, ImportError, LookupError) as error:
        raise CodecError(str(error)) from error
    except (TypeError, ValueError) as error:  # also what a class says of its fields
        raise CodecError(str(error)) from error


def _decoded(form: Any) -> Any:
    if isinstance(form, list):
        return [_decoded(item) for item in form]
    if not isinstance(form, dict):
        return form
    if "tuple" in form:
        return tuple(_decoded(item) for item in form["tuple"])
    if "dict" in form:
        return {_decoded(key): _decoded(item) for key, item in form["dict"]}
    if "array" in form:
        if np.dtype(form["array"]).kind not in KINDS:
            raise CodecError(form["array"])
        return np.array(form["values"], dtype=form["array"]).reshape(form["shape"])
    if "enum" in form:
        return _named(form["enum"], lambda found: issubclass(found, Enum))(form["value"])
    cls = _named(form["class"], is_dataclass)
    return cls(**{name: _decoded(item) for name, item in form["fields"].items()})


def _name(cls: type) -> str:
    if not cls.__module__.startswith(OURS):
        raise CodecError(f"a {cls.__module__}.{cls.__qualname__}")
    return f"{cls.__module__}:{cls.__qualname__}"


def _named(text: str, allowed: Any) -> Any:
    module, _, name = text.partition(":")
    if not module.startswith(OURS):
        raise CodecError(text)
    found = getattr(import_module(module), name)
    if not isinstance(found, type) or not allowed(found):
        raise CodecError(text)
    return found
