"""One table of units and one grammar of column headers, for whatever table is read.

A unit stands in brackets or behind a slash at the end of a header, or is its last word:
``Power (mW)``, ``time/ms``, ``smClock_GHz``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

TABLE: Mapping[str, Mapping[str, float]] = {
    "power": {"W": 1.0, "mW": 1e-3, "kW": 1e3, "MW": 1e6, "uW": 1e-6},
    "energy": {
        "J": 1.0, "mJ": 1e-3, "kJ": 1e3, "MJ": 1e6, "Wh": 3600.0, "kWh": 3.6e6, "GJ": 1e9,
        "Ws": 1.0, "mWh": 3.6, "MWh": 3.6e9, "uJ": 1e-6, "nJ": 1e-9,
    },
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0, "d": 86_400.0, "ns": 1e-9},
    "clock": {"MHz": 1.0, "GHz": 1e3, "kHz": 1e-3, "Hz": 1e-6},
    "share": {"%": 1.0, "fraction": 100.0},
    "memory": {
        "GB": 1e9, "MB": 1e6, "KB": 1e3, "bytes": 1.0, "TB": 1e12,
        "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
    },
    "part": {"milli": 1.0, "vCPU": 1000.0, "cores": 1000.0, "GPU": 1000.0, "whole": 1000.0},
}  # fmt: skip
"""Factors to one unit of each dimension, by dimension and symbol."""

_DIMENSION = {symbol: dimension for dimension, units in TABLE.items() for symbol in units}
_PREFIXES = {"": "", "nano": "n", "micro": "u", "milli": "m", "kilo": "k", "mega": "M", "giga": "G"}
_BASES = {"watt": "W", "joule": "J", "second": "s", "sec": "s", "hertz": "Hz"}
_WORDS = {
    **{long + word: short + symbol
       for long, short in _PREFIXES.items() for word, symbol in _BASES.items()},
    "usec": "us", "msec": "ms", "nsec": "ns", "millis": "ms", "minute": "min", "min": "min",
    "hour": "h", "hr": "h", "day": "d", "percent": "%", "pct": "%", "ratio": "fraction",
    "share": "fraction", "byte": "bytes",
}  # fmt: skip
"""Units in words, in the singular."""
OWN = {
    "s": "s", "w": "W", "mhz": "MHz", "j": "J", "gb": "GB", "mib": "MiB", "percent": "%",
    "active": "fraction", "milli": "milli",
}  # fmt: skip
"""The symbol of a column's unit, by the end of our name for the column."""


@cache
def factors(own: str) -> Mapping[str, float]:
    """Return the factor to the unit `own` of every unit of its dimension, `own` first.

    >>> factors("MHz")["GHz"], factors("fraction")["%"], factors("gpus")
    (1000.0, 0.01, {})
    """
    units = TABLE.get(_DIMENSION.get(own, ""), {})
    return {symbol: units[symbol] / units[own] for symbol in dict.fromkeys((own, *units)) if units}


def units_of(name: str) -> Mapping[str, float]:
    """Return the units that a column of ours may come in; {} where it has none.

    >>> units_of("power_w")["kW"]
    1000.0
    """
    return factors(OWN.get(name.rpartition("_")[2], "")) if "_" in name else {}


@cache
def spelt(text: str, header: str = "") -> tuple[str, ...]:
    """Return the symbols that a unit as somebody wrote it can mean; () for what is no unit.

    The case counts as it is written. All in lower case m is milli, except of Hz; a header that
    has no lower-case letter does not tell milli from mega.

    >>> spelt("mJ"), spelt("mj"), spelt("Mhz"), spelt("MJ", "ENERGY_MJ"), spelt("microseconds")
    (('mJ',), ('mJ',), ('MHz',), ('mJ', 'MJ'), ('us',))
    """
    text = plain(text).strip()
    alike = [symbol for symbol in _DIMENSION if symbol.lower() == text.lower()]
    if len(alike) > 1 and any(letter.islower() for letter in header or "a"):
        alike = [symbol for symbol in alike if symbol[0] == text[0]]
    word = "bytes" if text == "B" else text.lower()
    found = _WORDS.get(word) or _WORDS.get(word.removesuffix("s"), word)
    return tuple(alike) or ((found,) if found in _DIMENSION else ())


def plain(text: str) -> str:
    """Write both letters for micro as u.

    >>> plain("μs"), plain("µs")
    ('us', 'us')
    """
    return text.replace("\u00b5", "u").replace("\u03bc", "u")


STATISTICS: Mapping[str, int] = {
    **dict.fromkeys(("avg", "mean", "average", "actual", "measured", "effective", "current"), 0),
    **dict.fromkeys(("median",), 2),
    **dict.fromkeys(("target", "set", "requested", "applied", "locked", "nominal", "cap"), 3),
    **dict.fromkeys(("std", "stdev", "stddev", "sd", "var", "variance", "min", "minimum", "max",
                     "maximum", "peak", "percentile", "range", "err", "error", "sem"), 9),
}  # fmt: skip
"""Words of a header that say how its values came about. The lowest of one quantity is taken; a
name without such a word counts 1, and 9 is never taken."""
SCOPES = {"total": "total", "sum": "total", "all": "total", "global": "total", "each": "each",
          "local": "each"}  # fmt: skip
"""Words that say whether values are of all GPUs together or of each."""
_COUNTED = {
    **dict.fromkeys(("image", "img", "sample", "example", "sequence", "seq", "sentence", "frame"),
                    "samples"),
    **dict.fromkeys(("it", "iter", "iteration", "step", "batch", "batche", "update"), "steps"),
    **dict.fromkeys(("token", "tok"), "tokens"),
    **dict.fromkeys(("request", "req", "querie", "query", "epoch"), "others"),
}  # fmt: skip
"""Things that are counted per unit of time, in the singular."""
_BRACKETS = re.compile(r"\s*[\[(]\s*([^\])]+?)\s*[\])]\s*$")
_PIECES = re.compile(r"[pP]\d\d(?!\d)|[A-Z]{2,}s(?![a-z])|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|%")
_SYMBOL = re.compile(r"(?<=[a-z])[numkKMG]?(?:W|J|Wh|Hz)$")
"""A unit behind a word, as in ``powermW``: its capitals do not part words."""
_PER_GPU = (["per", "gpu"], ["per", "gpus"], ["per", "device"])


@dataclass(frozen=True, slots=True)
class Header:
    """Meaning of a column's name.

    Parameters
    ----------
    words: the name in lower case, its words joined by underscores, without the unit.
    units: symbols that its unit can mean; several where the name does not tell, none without.
    unknown: what stands in the unit's place and is none.
    rate: ``samples``, ``steps``, ``tokens`` or ``others``, where these are counted per unit.
    """

    words: str
    units: tuple[str, ...] = ()
    unknown: str = ""
    rate: str = ""

    @property
    def unit(self) -> str:
        """The unit, where the name tells it."""
        return self.units[0] if len(self.units) == 1 else ""


@cache
def parsed(name: str) -> Header:
    """Read a column's name.

    >>> parsed("Avg Power (kW)")
    Header(words='avg_power', units=('kW',), unknown='', rate='')
    >>> parsed("images_per_sec").rate, parsed("s/it").words, parsed("GPUs").words
    ('samples', 'time', 'gpus')
    >>> parsed("Power (dBm)").unknown, parsed("time_min").units
    ('dBm', ('min', 'minimum'))
    """
    text = plain(name)
    bracket = _BRACKETS.search(text)
    words = _split(text[: bracket.start()] if bracket else text)
    if bracket is None:
        return _read(words, name)
    inside = re.split(r"[\s,;]+", bracket[1].replace("/", " per "))
    said = [part for part in inside if is_statistic(part.lower()) or part.lower() in SCOPES]
    said = [part for part in said if part != "min"]  # in brackets: minutes
    found = _read(["", *(part for part in inside if part not in said)], name)
    left = [word for word in found.words.split("_") if word]
    if found.unknown or left not in ([], ["time"], ["per", "gpu"], ["time", "per", "gpu"]):
        return Header(_joined(words), (), bracket[1])
    units = tuple(unit for unit in found.units if unit != "minimum")
    if units and len(words) > 1 and set(spelt(words[-1], name)) & set(units):
        words.pop()  # power_w [W] says it twice
    body = Header(_joined(_bare(words)), units, "", found.rate) if units else _read(words, name)
    more = [*said, *(["per", "gpu"] if "gpu" in left else [])]
    return replace(body, words=_joined([*body.words.split("_"), *more]))


def is_statistic(word: str) -> bool:
    """Return whether a word of a header says how its values came about."""
    return word in STATISTICS or bool(re.fullmatch(r"p\d\d", word))


def _joined(words: Sequence[str]) -> str:
    return "_".join(word.lower() for word in words if word)


def _split(text: str) -> list[str]:
    """Split ``smClock_GHz`` into its words; what is a unit as a whole stays whole."""
    found: list[str] = []
    for part in re.split(r"[\W_]+", text.replace("/", " per ").replace("%", " pct ")):
        symbol = _SYMBOL.search(part)
        if spelt(part):
            found.append(part)
        elif symbol:
            found += [*_PIECES.findall(part[: symbol.start()]), symbol[0]]
        else:
            found += _PIECES.findall(part)
    return found


def _read(words: list[str], name: str) -> Header:
    """Take the unit, or the rate, from the end of a name's words."""
    words, scope = list(words), ""
    while len(words) > 2 and is_statistic(words[-1].lower()) and words[-1].lower() != "min":
        words.insert(0, words.pop())  # power_kw_avg
    if [word.lower() for word in words[-2:]] in _PER_GPU and len(words) > 2:
        words, scope = words[:-2], "per_gpu"
    units = () if len(words) < 2 else _unit(words[-1], name)
    per = len(words) > 2 and words[-2].lower() == "per"
    over = _unit(words[-3], name) if per and _counted(words[-1]) else ()  # s/it, J/token
    if over and (_counted(words[-1]) != "steps" or not _is_time(over)):
        return Header(_joined(words[:-3]), (), f"{words[-3]}/{words[-1]}")
    if over:
        words, units = [*words[:-3], "time"], over
    elif units and _is_time(units) and (per or "throughput" in words) and _counted(words[-2 - per]):
        rate = _counted(words[-2 - per])
        return Header(_joined([*words[: -2 - per], scope]), units[:1], "", rate)
    elif units:
        minutes = units == ("min",) and words[-1].lower() == "min" and not per and words[0]
        units = ("min", "minimum") if minutes else units
        words = words[: -2 if per else -1]
    return Header(_joined([*_bare(words), scope]), units)


def _bare(words: list[str]) -> list[str]:
    """Leave out what only leads to a unit, or says that a time is one of an iteration."""
    if len(words) > 1 and words[-1].lower() == "in":  # time in ms
        return words[:-1]
    steps = len(words) > 2 and words[-2].lower() == "per" and _counted(words[-1]) == "steps"
    return words[:-2] if steps else words


def _unit(word: str, name: str) -> tuple[str, ...]:
    return tuple(unit for unit in spelt(word, name) if _DIMENSION[unit] != "part")


def _is_time(units: Sequence[str]) -> bool:
    return all(unit in TABLE["time"] for unit in units)


def _counted(word: str) -> str:
    """Return what kind of thing is counted, or nothing."""
    return _COUNTED.get(word.lower()) or _COUNTED.get(word.lower().removesuffix("s"), "")
