"""JSON in and out: strict on the way in, atomic on the way out."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from optgap.models.errors import PLACE, InputError, NoQuote, one_of, said
from optgap.models.reading import Path, as_path, read_text

TOO_LARGE = 2**1023
"""Integers from here on are no floats."""
SHOWN = 20
"""Characters of a broken document that a message shows."""


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` in one step: a reader sees the old file or the new one, never half.

    ``-`` stands for standard output.

    Raises
    ------
    InputError: when the folder is missing or may not be written to.
    """
    if str(path) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` in one step, as `write_text` does.

    Raises
    ------
    InputError: when the folder is missing or may not be written to.
    """
    target = pathlib.Path(as_path(path))
    try:
        if target.exists() and not target.is_file():  # /dev/null, a named pipe
            target.write_bytes(content)
            return
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part"
        )
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(name, 0o666 & ~umask)
            os.replace(name, target)
        except BaseException:
            pathlib.Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(str(path), "", said(error), PLACE) from None


def plain(item: object, *names: str) -> dict[str, Any]:
    """Some attributes by name, tuples and arrays as lists."""
    values = {name: getattr(item, name) for name in names}
    for name, value in values.items():
        if isinstance(value, tuple):
            values[name] = list(value)
        elif hasattr(value, "tolist"):
            values[name] = value.tolist()
    return values


def dump_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write `document` as JSON (no NaN or infinity), atomically; ``-`` is standard output."""
    write_text(path, json.dumps(finite(document), indent=1, allow_nan=False) + "\n")


def finite(value: Any) -> Any:
    """Return `value` with NaN and infinity replaced by None, and numpy scalars by Python's."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (str, bool)) or value is None:
        return value
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    if isinstance(value, Iterable):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def load_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; ``-`` stands for standard input.

    Raises
    ------
    InputError: as `load_any`, and for what is not an object.
    """
    document = load_any(path)
    if not isinstance(document, dict):
        kinds = {list: "a list", str: "text", bool: "true or false", type(None): "null"}
        found = NoQuote(kinds.get(type(document), "a number"))
        raise InputError(str(path), "", found, "a JSON object")
    return document


def load_any(path: Path, *, lenient: bool = False) -> Any:
    """Read a JSON document; ``-`` stands for standard input.

    Parameters
    ----------
    lenient: NaN and infinite numbers become None.

    Raises
    ------
    InputError: as `reading.read_text`, and, with line and column, for what is not JSON; when a
        key stands twice, or a number is NaN or infinite.
    """
    source = str(path)
    text = read_text(path, stdin=True)

    def number(found: str) -> float | None:
        value = float(found)
        if math.isfinite(value):
            return value
        if lenient:
            return None
        raise InputError(source, _place_of(found, text), NoQuote(found), "finite numbers only")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in items:
            if key in result:
                raise InputError(source, f"field {key}", NoQuote("the field twice"), "it once")
            result[key] = value
        return result

    try:
        return json.loads(text, parse_constant=number, parse_float=number, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise _broken(error, source) from None
    except RecursionError:
        raise InputError(source, "", NoQuote("nesting too deep"), "a JSON object") from None
    except InputError:
        raise
    except ValueError:  # more digits than Python converts
        digits = max(re.findall(r"\d+", text), key=len)
        found = NoQuote(f"an integer of {len(digits)} digits")
        raise InputError(source, _place_of(digits, text), found, "a number of fewer") from None


EXPECTED = {
    "Expecting value": "a value: text in double quotes, a number, true, false, null, { or [",
    "Expecting property name": "a name in double quotes",
    "Expecting ':'": "a colon behind the name",
    "Expecting ','": "a comma, or the bracket that closes what is open",
    "Illegal trailing comma": "no comma before a closing bracket",
    "Unterminated string": "a double quote at the end of the text that begins here",
    "Invalid control character": r"no line break or other control character in a text (\n is one)",
    "Invalid \\": r"an escape such as \n, \" or \u00e9 behind a backslash",
    "Extra data": "nothing behind the end of the document",
}
"""Expected text, by the beginning of the message of Python's decoder."""


def _broken(error: json.JSONDecodeError, source: str) -> InputError:
    """Return the error of a broken document, with the place and the expected text."""
    expected = next((v for k, v in EXPECTED.items() if error.msg.startswith(k)), error.msg)
    there = error.doc[error.pos : error.pos + SHOWN].splitlines()
    found = there[0].strip() if there and there[0].strip() else NoQuote("the end of the line")
    if error.pos >= len(error.doc.rstrip()):
        found = NoQuote("the end of the file" if error.doc.strip() else "nothing")
    where = f"line {error.lineno}, column {error.colno}"
    return InputError(source, where, found, f"valid JSON: {expected}")


def _place_of(token: str, text: str) -> str:
    """Line and column of a bare word or number, the first outside quotes."""
    pattern = re.compile(rf'"(?:[^"\\]|\\.)*"|(?<![\w.+-]){re.escape(token)}', re.DOTALL)
    for match in pattern.finditer(text):
        if not match[0].startswith('"'):
            start = match.start()
            line = text.count("\n", 0, start) + 1
            return f"line {line}, column {start - text.rfind(chr(10), 0, start)}"
    return ""


def _too_large(number: float) -> bool:
    return isinstance(number, int) and abs(number) >= TOO_LARGE


class Fields:
    """Typed access to a JSON object, with errors that name the field.

    ``Fields(document, source).integers("tasks.cpu_milli", minimum=0)``
    """

    def __init__(self, document: Mapping[str, Any], source: str, prefix: str = "") -> None:
        self.document = document
        self.source = source
        self.prefix = prefix

    def fail(self, name: str, found: object, expected: str) -> InputError:
        where = f"field {self.prefix}{name}".rstrip(". ")  # of an object as such: no name
        return InputError(self.source, where, found, expected)

    def get(self, name: str, kind: type | tuple[type, ...], expected: str) -> Any:
        if name not in self.document:
            raise self.fail(name, NoQuote("nothing"), expected)
        value = self.document[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fail(name, value, expected)
        return value

    def schema(self, expected: str) -> None:
        found = self.document.get("schema")
        if found != expected:
            shown = NoQuote("nothing") if found is None else found
            raise InputError(self.source, "field schema", shown, repr(expected))

    def text(self, name: str, default: str | None = None) -> str:
        if default is not None and name not in self.document:
            return default
        return str(self.get(name, str, "text"))

    def choice(self, name: str, choices: Iterable[str], default: str | None = None) -> str:
        options = list(choices)
        value = self.text(name, default)
        if value not in options:
            raise self.fail(name, value, one_of(options))
        return value

    def integer(self, name: str, minimum: int = 0, default: int | None = None) -> int:
        if default is not None and name not in self.document:
            return default
        value: int = self.get(name, int, f"an integer of at least {minimum}")
        if not minimum <= value < 2**62:
            raise self.fail(name, value, f"an integer of at least {minimum}")
        return value

    def number(
        self,
        name: str,
        minimum: float = 0.0,
        maximum: float = math.inf,
        default: float | None = None,
    ) -> float:
        if default is not None and name not in self.document:
            return default
        expected = f"a number from {minimum:g} to {maximum:g}"
        found = self.get(name, (int, float), expected)
        if not minimum <= found <= maximum or _too_large(found):
            raise self.fail(name, found, expected)
        return float(found)

    def flag(self, name: str, default: bool) -> bool:
        known = name in self.document
        return bool(self.get(name, bool, "true or false")) if known else default

    def like(self, known: object, *names: str) -> dict[str, Any]:
        """Return the values of these fields, with kinds and defaults as in `known`.

        A value is a text, a truth, a whole number, a number of at least 0, or several numbers.
        """
        found: dict[str, Any] = {}
        for name in names:
            default = getattr(known, name)
            if isinstance(default, tuple):
                found[name] = tuple(self.numbers(name)) if name in self.document else default
                continue
            kinds = (bool, self.flag), (int, self.integer), (float, self.number), (str, self.text)
            read: Any = next(reader for kind, reader in kinds if isinstance(default, kind))
            found[name] = read(name, default=default)
        return found

    def known(self, name: str) -> bool:
        """Tell whether there is a value that is not null."""
        return self.document.get(name) is not None

    def known_text(self, name: str) -> str | None:
        """Return a text, or None without one."""
        return self.text(name) if self.known(name) else None

    def known_number(self, name: str, minimum: float = -math.inf) -> float | None:
        """Return a number, or None without one."""
        return self.number(name, minimum) if self.known(name) else None

    def object(self, name: str) -> Fields:
        return Fields(self.get(name, dict, "an object"), self.source, f"{self.prefix}{name}.")

    def array(self, name: str) -> list[Any]:
        values: list[Any] = self.get(name, list, "a list")
        return values

    def objects(self, name: str) -> list[Fields]:
        items = self.array(name)
        for k, item in enumerate(items):
            if not isinstance(item, dict):
                raise self.fail(f"{name}[{k}]", item, "an object")
        return [
            Fields(item, self.source, f"{self.prefix}{name}[{k}].") for k, item in enumerate(items)
        ]

    def integers(self, name: str, minimum: int = 0) -> list[int]:
        expected = f"an integer of at least {minimum}"
        values = self.array(name)
        for k, value in enumerate(values):
            if type(value) is not int or not minimum <= value < 2**62:
                raise self.fail(f"{name}[{k}]", value, expected)
        return values

    def numbers(self, name: str, minimum: float = 0.0, maximum: float = math.inf) -> list[float]:
        expected = f"a number from {minimum:g} to {maximum:g}"
        values = self.array(name)
        for k, value in enumerate(values):
            known = type(value) in (int, float) and not _too_large(value)
            if not known or not minimum <= value <= maximum:
                raise self.fail(f"{name}[{k}]", value, expected)
        return [float(value) for value in values]

    def texts(self, name: str) -> list[str]:
        values = self.array(name)
        for k, value in enumerate(values):
            if not isinstance(value, str):
                raise self.fail(f"{name}[{k}]", value, "text")
        return values
