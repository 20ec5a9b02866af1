"""What is reproduced, and what came out: paper | ours | why they differ."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from optgap.models.errors import InputError, NoQuote
from optgap.models.figures import image
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.plotting.figures import new_figure
from optgap.render import Answer, Table, duration
from optgap.render import Row as Cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optgap.reproduce.panels import Panel

SCHEMA = "optgap.reproduce/1"
BESIDE = 5.2
"""Inches of a panel that has another beside it."""

Verdict = Literal["yes", "nearly", "no", ""]
"""Whether ours is what the paper states; "" where there is nothing to agree with."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far our number may be from the paper's.

    Parameters
    ----------
    exact, near: the largest differences that are ``yes`` and ``nearly``; no ``nearly`` if None.
    unit: of both; with "%" they are relative to the paper's number.
    """

    exact: float
    near: float | None = None
    unit: str = "%"

    def verdict(self, ours: float, paper: float) -> Verdict:
        """How near the two are."""
        off = abs(ours - paper)
        return self.judge(off * (100 / abs(paper)) if self.unit == "%" else off)

    def judge(self, off: float) -> Verdict:
        """The verdict on a difference in `unit`."""
        return holds(off <= self.exact, self.near is not None and off <= self.near)

    def row(
        self,
        claim: str,
        paper: float,
        ours: float,
        unit: str,
        digits: int = 1,
        *,
        paper_digits: int | None = None,
        why: str = "",
        note: str = "",
    ) -> Row:
        """A number beside the paper's; `why` is said where they differ, `note` in any case."""
        verdict = self.verdict(ours, paper)
        stated = f"{paper:g}" if paper_digits is None else f"{paper:.{paper_digits}f}"
        told = note or ("" if verdict == "yes" else why)
        texts = f"{stated} {unit}".strip(), f"{ours:.{digits}f} {unit}".strip()
        return Row(claim, *texts, verdict, told, str(self))

    def __str__(self) -> str:
        parts = [f"yes within {self.exact:g} {self.unit}"]
        if self.near is not None:
            parts.append(f"nearly within {self.near:g} {self.unit}")
        return ", ".join(parts)


HOLDS = "yes where the statement holds of our numbers"
"""The rule of statements that have no number to be near to."""


def holds(it_does: bool, nearly: bool = False) -> Verdict:
    """The verdict on a statement: ``yes``, or else ``nearly``, or else ``no``."""
    return "yes" if it_does else "nearly" if nearly else "no"


class Stopped(Exception):
    """The limits ended the work before this item was done."""

    def __init__(self, termination: Termination) -> None:
        super().__init__(str(termination))
        self.termination = termination


@dataclass(frozen=True, slots=True)
class Item:
    """One figure or table of a paper.

    Parameters
    ----------
    name: as users type it.
    paper: whose it is.
    title: what it shows.
    target: ``module:function``, imported on use: ``f(study) -> Report``.
    needs: files below the data folder that it reads.
    stand_in: what it runs from without them, in words; "" when it cannot.
    reads: what those files are, in words.
    most_seeds: how many seeds it uses at most, of those asked for; None for all.
    """

    name: str
    paper: str
    title: str
    target: str
    needs: tuple[str, ...] = ()
    stand_in: str = ""
    reads: str = "the public trace"
    most_seeds: int | None = None

    def of(self, study: Study) -> Study:
        """The study with the seeds that it uses."""
        return replace(study, seeds=study.seeds[: self.most_seeds])

    def runs_from(self, data: Path | None) -> str:
        """In words, what it runs from with this data folder, or which file it lacks."""
        missing = self.missing(data)
        if self.needs and not missing:
            return self.reads
        return self.stand_in or f"needs {missing[0]}"

    def missing(self, data: Path | None) -> tuple[str, ...]:
        """Those of `needs` that are not there."""
        return tuple(name for name in self.needs if data is None or not (data / name).is_file())

    def runnable(self, data: Path | None) -> bool:
        """Whether it can be run with this data folder."""
        return bool(self.stand_in) or not self.missing(data)

    def run(self, study: Study) -> Report:
        """Do the work.

        Raises
        ------
        InputError: when files are missing and nothing stands in for them.
        Stopped: when the study's limits end the work.
        """
        if not self.runnable(study.data):
            found = NoQuote(f"no {self.missing(study.data)[0]}")
            place = "the data folder" if study.data is None else str(study.data)
            raise InputError(self.name, place, found, "the public trace; see --data")
        module, _, name = self.target.partition(":")
        function: Callable[[Item, Study], Report] = getattr(import_module(module), name)
        return function(self, self.of(study))


@dataclass(frozen=True)
class Study:
    """What items are run with.

    Parameters
    ----------
    seeds: one run of every policy for each.
    data: the folder with the public traces (``openb/…``), or None.
    limits: when to stop, and who is told of progress.
    shared: results that several items need, kept between them.
    """

    seeds: tuple[int, ...]
    data: Path | None = None
    limits: Limits = field(default_factory=Limits)
    shared: dict[Any, Any] = field(default_factory=dict)

    def proceed(self, doing: str) -> None:
        """Tell what comes next.

        Raises
        ------
        Stopped: when the limits say so.
        """
        if self.limits.stop is not None:
            raise Stopped(self.limits.stop)
        self.limits.progress(doing, None, None)


@dataclass(frozen=True, slots=True)
class Row:
    """One statement of the paper beside our own number.

    Parameters
    ----------
    claim: what is stated.
    paper: the paper's number or words; "" for a row of our own.
    ours: our number.
    agrees: the verdict.
    note: why they differ, or what else is worth knowing.
    rule: by which the verdict was computed, in words; there is none without it.

    Raises
    ------
    ValueError: for a verdict without a rule.
    """

    claim: str
    paper: str
    ours: str
    agrees: Verdict = ""
    note: str = ""
    rule: str = ""

    def __post_init__(self) -> None:
        if self.agrees and not self.rule:
            raise ValueError(f"{self.claim}: a verdict without a rule")


def statement(
    claim: str,
    paper: str,
    ours: str,
    agrees: Verdict | bool,
    *,
    why: str = "",
    note: str = "",
    rule: str = HOLDS,
) -> Row:
    """A row for something the paper states; `why` is said where it does not hold of ours."""
    verdict = agrees if isinstance(agrees, str) else holds(agrees)
    return Row(claim, paper, ours, verdict, (why if verdict == "no" else "") or note, rule)


@dataclass(frozen=True, slots=True)
class Cached:
    """When a kept report was computed, in words, and how long it took, in seconds."""

    computed: str
    seconds: float

    def __str__(self) -> str:
        took = duration(self.seconds)
        return f"from the cache: computed {self.computed} in {took}, when its timings were taken"


@dataclass(frozen=True)
class Report(Answer):
    """What running one item gave.

    Parameters
    ----------
    source: what it was run from, in words.
    seeds: the seeds; none where nothing was run.
    panels: what its picture shows, top to bottom.
    columns: how many panels stand beside one another.
    cached: when it was computed, for one that was kept; None for one that was run just now.
    """

    item: Item
    source: str
    rows: tuple[Row, ...]
    seeds: tuple[int, ...] = ()
    panels: tuple[Panel, ...] = ()
    columns: int = 1
    cached: Cached | None = None

    def head(self) -> list[str]:
        """Which item, from what; on a second line when it was computed, if not just now."""
        runs = ""
        if self.seeds:
            first, last = self.seeds[0], self.seeds[-1]
            runs = f", seed {first}" if first == last else f", seeds {first} to {last}"
        text = f"{self.item.name}: {self.item.title} ({self.item.paper}; {self.source}{runs})"
        return [text] if self.cached is None else [text, str(self.cached)]

    def table(self) -> Table:
        """The rows, without the paper's columns where it states nothing."""
        shown = {"": "claim", "paper": "paper", "ours": "ours", "agrees": "agrees", "note": "note"}
        if not any(row.paper or row.agrees for row in self.rows):
            del shown["paper"], shown["agrees"]
            if not any(row.note for row in self.rows):
                del shown["note"]
        rows: list[Cells] = [
            tuple(getattr(row, key) for key in shown.values()) for row in self.rows
        ]
        return tuple(shown), rows, ()

    def notes(self) -> list[str]:
        """By which rules the verdicts were computed, where there are any."""
        found = dict.fromkeys(row.rule for row in self.rows if row.agrees)
        return [f"agrees: {'; or '.join(found)}"] if found else []

    def to_json(self) -> Mapping[str, Any]:
        """JSON form, one of the ``items`` of ``optgap.reproduce/1``."""
        return {
            "name": self.item.name,
            "paper": self.item.paper,
            "title": self.item.title,
            "source": self.source,
            "seeds": list(self.seeds),
            "rows": [asdict(row) for row in self.rows],
            "panels": [panel.to_json() for panel in self.panels],
            "cached": None if self.cached is None else asdict(self.cached),
        }

    def draw(self, figure: Figure | None = None) -> Figure:
        """Draw all panels on a figure, a new one without it; only for items with panels."""
        lines = -(-len(self.panels) // self.columns)
        if figure is None:
            width, height = self.panels[0].SIZE
            beside = width if self.columns == 1 else BESIDE * self.columns
            figure = new_figure(beside, height * lines)
        places = figure.subplots(lines, self.columns, squeeze=False).flat
        for panel in self.panels:
            panel.draw(next(places))
        for empty in places:
            empty.set_axis_off()
        return figure

    def png(self) -> bytes:
        """The picture as a PNG file, without touching pyplot's state."""
        from PIL import Image

        small = io.BytesIO()
        buffer = io.BytesIO(image(self.draw(), "png", dpi=110))
        # few colours are in it, and a palette makes a third of the size
        Image.open(buffer).convert("RGB").quantize(128).save(small, format="png", optimize=True)
        return small.getvalue()
