"""Claims of a paper, read from a TOML file, and our numbers beside them.

A file of ``reproduction/claims`` has a table for each figure or table of the paper, an *item*:
its title, the data that it reads, and ``claims``, from the claim to what the paper states. The
script of the paper gives our number for each claim. One rule gives all verdicts:

* ``yes``: the direction is the paper's, and the number, rounded as printed, is the paper's, lies
  within 10 % of it, or has it in its 95 % interval over ten seeds;
* ``nearly``: the direction alone, where two things are compared;
* ``open``: no by our choice of what the paper leaves open, but yes by another one,
  or between two;
* ``no``: anything else.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

FOLDER = Path(__file__).parent / "claims"
PAPERS = ("pwr_fgd", "cats", "ecosched", "powerflow", "queues")
"""Scripts, and the files of their claims and results."""
SEEDS = tuple(range(42, 52))

FloatArray = NDArray[np.float64]
Verdict = Literal["yes", "nearly", "open", "no", ""]
"""Whether ours is what the paper states; "" where there is nothing to agree with."""
NUMBER = re.compile(r"-?\d[\d.]*|–")
SLACK = 0.1
"""How far a number may be from the paper's, relative to it."""


def holds(it_does: bool, nearly: bool = False) -> Verdict:
    """Return the verdict on a statement: ``yes``, or else ``nearly``, or else ``no``."""
    return "yes" if it_does else "nearly" if nearly else "no"


@dataclass(frozen=True)
class Row:
    """One claim with our number.

    Parameters
    ----------
    claim: The claim, as the TOML file has it, or a line of our own.
    ours: Our number, in words.
    found: The verdict, or the numbers that are compared with the paper's.
    note: Why they differ, or what else is worth knowing.
    half: Half the width of the 95 % interval over seeds of each number in `found`.
    paper, agrees: Filled in by `Item.judged`.
    """

    claim: str
    ours: str
    found: bool | Verdict | tuple[float, ...] = ""
    note: str = ""
    half: tuple[float, ...] = ()
    paper: str = ""
    agrees: Verdict = ""

    def to_json(self) -> dict[str, str]:
        """Return what is kept of a row."""
        named = ("claim", "paper", "ours", "agrees", "note")
        return {name: value for name in named if (value := getattr(self, name))}


def number(claim: str, ours: float, unit: str = "", digits: int = 1, note: str = "") -> Row:
    """Return the row of a number that is compared with the paper's."""
    return Row(claim, f"{ours:.{digits}f} {unit}".strip(), (ours,), note)


@dataclass(frozen=True)
class Item:
    """One figure or table of a paper.

    Parameters
    ----------
    name, title: As users type it, and what it shows.
    source: What it runs from, in words.
    needs: Files below the data folder that it reads.
    stand_in: What it runs from without them, in words; "" if it cannot.
    most_seeds: Number of seeds that it uses at most; None for all.
    zero: Which value means no difference, where numbers compare two things: 1 for ratios, 0 for
        savings. Their direction is the side of it on which they are.
    open: Claims whose no hangs on a choice of ours: by another one, which `why` names, ours is the
        paper's.
    inputs: Whether it checks what goes in, not what comes out: its rows are not counted.
    why: The reason for differences, or for the lack of a verdict.
    listed: The beginning of rows that the page shows, a regular expression.
    claims, notes: What the paper states, and why ours differ, by claim.
    """

    name: str
    title: str
    source: str = ""
    needs: tuple[str, ...] = ()
    stand_in: str = ""
    most_seeds: int | None = None
    zero: float | None = None
    open: tuple[str, ...] = ()
    inputs: bool = False
    why: str = ""
    listed: str = ""
    claims: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def missing(self, data: Path | None) -> tuple[str, ...]:
        """Return those of `needs` that are not there."""
        return tuple(name for name in self.needs if data is None or not (data / name).is_file())

    def judged(self, row: Row) -> Row:
        """Return the row beside what the paper states.

        Raises
        ------
        ValueError
            If a verdict is given on a claim that the TOML file does not have.
        """
        paper = self.claims.get(row.claim, "")
        note = "; ".join(filter(None, (self.notes.get(row.claim), row.note)))
        if row.found == "":
            return replace(row, paper=paper, note=note)
        if row.claim not in self.claims:
            raise ValueError(f"{self.name}: no claim {row.claim!r}")
        if isinstance(row.found, tuple):
            stated = NUMBER.findall(paper.replace(",", "") if ", " not in paper else paper)
            halves = row.half or (0.0,) * len(row.found)
            each = zip(stated, row.found, halves, strict=False)
            agrees = worst(agreement(*one, self.zero) for one in each if one[0] != "–")
        else:
            agrees = row.found if isinstance(row.found, str) else holds(bool(row.found))
        agrees = "open" if agrees == "no" and row.claim in self.open else agrees
        return replace(row, paper=paper, agrees=agrees, note=note)


def agreement(stated: str, ours: float, half: float = 0.0, zero: float | None = None) -> Verdict:
    """Return the verdict on a number, which the paper states so."""
    paper, digits = float(stated), len(stated.partition(".")[2])
    apart = abs(ours - paper) - 1e-9
    near = apart <= max(SLACK * abs(paper), half) or round(ours, digits) == paper
    return holds(near, zero is not None and (ours - zero) * (paper - zero) > 0)


def at_most(limit: float, ours: float) -> Verdict:
    """Return the verdict on a limit, which has the slack of any number."""
    return holds(ours <= (1 + SLACK) * limit)


def ranked(stated: Mapping[str, float], ours: Mapping[str, float], name: str) -> bool:
    """Return whether `name` stands to each other one as the paper has it: the direction."""
    return all(
        (ours[name] - ours[other]) * (value - stated[name]) < 0
        for other, value in stated.items()
        if value != stated[name]
    )


class Spread(NamedTuple):
    """One number over seeds: the mean and half the width of its 95 % interval."""

    mean: float
    half: float

    def text(self, digits: int = 1) -> str:
        """Return ``mean ± half``."""
        shown = f"{self.mean:,.{digits}f}"
        return f"{shown} ± {self.half:,.{digits}f}" if self.half else shown


def spread(values: FloatArray) -> Spread:
    """Return the interval by Student's t; of no width for one seed."""
    count = len(values)
    half = float(t.ppf(0.975, count - 1)) * float(values.std(ddof=1)) if count > 1 else 0.0
    return Spread(float(values.mean()), half / count**0.5)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the least favourable verdict."""
    return max(verdicts, key=("yes", "nearly", "open", "no").index)


@dataclass(frozen=True)
class Study:
    """What items are run with.

    Parameters
    ----------
    seeds: One run of every policy for each.
    data: The folder with the public traces (``openb/…``, ``profiles/…``), or None.
    shared: Results that several items need, kept between them.
    item: The item that is run now.
    """

    seeds: tuple[int, ...] = SEEDS
    data: Path | None = None
    shared: dict[Any, Any] = field(default_factory=dict)
    item: Item = field(default_factory=lambda: Item("", ""))

    @property
    def files(self) -> Path | None:
        """The data folder, if it has all that the item needs."""
        return None if self.item.missing(self.data) else self.data

    @property
    def folder(self) -> Path:
        """The data folder of an item that does not run without it."""
        assert self.data is not None
        return self.data

    def proceed(self, doing: str) -> None:
        """Tell what comes next."""
        if sys.stderr.isatty():
            print(f"{self.item.name}: {doing}", file=sys.stderr)


Script = Callable[[Study], Iterable[Row]]
"""What an item's function is."""


@dataclass(frozen=True)
class Report:
    """What running one item gave: the item, what it ran from, its seeds and its rows."""

    item: Item
    source: str
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what is kept of an item."""
        rows = [row.to_json() for row in self.rows]
        return {"source": self.source, "seeds": list(self.seeds), "rows": rows}


@dataclass(frozen=True)
class Paper:
    """A paper's claims: name, heading and prose of its part of the page, its items."""

    name: str
    title: str
    text: str
    items: dict[str, Item]

    def script(self, item: str) -> Script:
        """Return the function of an item: that of ``cats-fig1`` is ``fig1`` in ``cats.py``."""
        script: Script = getattr(import_module(f"reproduction.{self.name}"), item.partition("-")[2])
        return script

    def run(self, name: str, study: Study) -> Report:
        """Run one item.

        Raises
        ------
        FileNotFoundError
            If files are missing and nothing stands in for them.
        """
        item = self.items[name]
        own = replace(study, item=item, seeds=study.seeds[: item.most_seeds])
        missing = item.missing(study.data)
        if missing and not item.stand_in:
            raise FileNotFoundError(f"{name} needs {missing[0]} in the data folder")
        rows = tuple(item.judged(row) for row in self.script(name)(own))
        source = item.stand_in if missing else item.source
        return Report(item, source, own.seeds, rows)


def paper(name: str) -> Paper:
    """Read the claims of a paper."""
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    given: dict[str, Any] = tomllib.loads(text)
    about = given.pop("paper")
    items = {}
    for key, told in given.items():
        lists = {name: tuple(told.get(name, ())) for name in ("needs", "open")}
        items[key] = Item(key, **{**told, **lists})
    return Paper(name, items=items, **about)
