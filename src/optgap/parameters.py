"""Reader of ``name(key=value, …)`` and ``--set key=value``, from text to typed parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from optgap.models.errors import InputError, NoQuote, one_of

TRUE = ("true", "yes", "on", "1")
FALSE = ("false", "no", "off", "0")


def split_list(text: str, source: str) -> list[str]:
    """Split at the commas that stand outside parentheses.

    >>> split_list("pwr+fgd(alpha=0.1, k=2),fgd", "--policies")
    ['pwr+fgd(alpha=0.1, k=2)', 'fgd']

    Raises
    ------
    InputError: for parentheses that do not match, or nothing between two commas.
    """
    parts, depth, start = [], 0, 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append(text[start:k].strip())
            start = k + 1
    if depth:
        raise InputError(source, "", text, "matching parentheses")
    parts.append(text[start:].strip())
    if not all(parts):
        raise InputError(source, "", text, "names between the commas")
    return parts


def split_call(text: str, source: str) -> tuple[str, dict[str, str]]:
    """Split ``name(key=value, …)`` into the name and its parameters as text.

    >>> split_call("pwr+fgd(alpha=0.1)", "--policy")
    ('pwr+fgd', {'alpha': '0.1'})

    Raises
    ------
    InputError: for anything after the parentheses, or a parameter that is not ``key=value``.
    """
    if not isinstance(text, str):  # whatever a caller in Python may hand over
        raise InputError(source, "", text, "a name")
    text = text.strip()
    if "(" not in text:
        return text, {}
    name, _, rest = text.partition("(")
    if not rest.endswith(")") or not name.strip():
        raise InputError(source, "", text, "name(key=value, …)")
    inside = rest[:-1].strip()
    return name.strip(), assignments(split_list(inside, source) if inside else [], source)


def assignments(items: Iterable[str], source: str) -> dict[str, str]:
    """Return ``key=value`` texts as a dictionary.

    Raises
    ------
    InputError: for a text without ``=`` or key, or a key given twice.
    """
    result: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InputError(source, "", item, "key=value")
        if key in result:
            raise InputError(source, key, NoQuote("the key twice"), "it once")
        result[key] = value.strip()
    return result


def typed(
    given: Mapping[str, Any], defaults: Mapping[str, Any], owner: str, source: str
) -> dict[str, Any]:
    """Return `given` with every value converted to the type of its default.

    Only texts are converted. Other values must have the type already, except that an integer may
    stand for a number.

    Raises
    ------
    InputError: for an unknown key, with a list of the known ones, or a value of another type.
    """
    result = {}
    for key, value in given.items():
        if key not in defaults:
            known = ", ".join(f"{name}={default}" for name, default in defaults.items())
            words = f"a parameter of {owner}: {known}" if known else f"no parameters: {owner}"
            raise InputError(source, "", key, one_of(defaults, words))
        result[key] = _convert(value, defaults[key], f"{owner}, {key}", source)
    return result


def _convert(value: Any, default: Any, where: str, source: str) -> Any:
    kind = type(default)
    if default is None:
        return _guess(value) if isinstance(value, str) else value
    expected = {
        bool: "true or false",
        int: "an integer",
        float: "a finite number",
        str: "text",
    }.get(kind, f"what {default!r} is")
    try:
        if isinstance(value, str) and kind is not str:
            return _parse(value, kind)
    except ValueError:
        raise InputError(source, where, value, expected) from None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(source, where, value, expected)
    return value


def _parse(text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() in TRUE + FALSE:
            return text.lower() in TRUE
        raise ValueError
    if kind in (int, float):
        value = kind(text)
        if value - value != 0:  # infinite, or not a number
            raise ValueError
        return value
    if kind in (tuple, list):
        return kind(_guess(part) for part in text.strip("[]() ").split(";") if part.strip())
    raise ValueError


def _guess(text: str) -> Any:
    for kind in (int, float):
        try:
            return _parse(text.strip(), kind)
        except ValueError:
            continue
    return text.strip()


def call_text(name: str, params: Mapping[str, Any]) -> str:
    """Return ``name(key=value,…)``, or the bare name: the inverse of `split_call`."""
    if not params:
        return name
    return f"{name}({','.join(f'{key}={value}' for key, value in params.items())})"
