"""Reports that are kept: an item that was run with the same inputs and versions is not run again.

One JSON file per report, named after a hash of all that it depends on: the item, its seeds, the
sources that compute it, the versions of the packages that do, and the data files it can read. What
has changed has another name, so nothing is ever out of date; only the newest few are kept.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import optgap
from optgap.datasets import home
from optgap.fingerprint import digest, hashed, sources, stack
from optgap.models.errors import InputError
from optgap.models.jsonio import write_text
from optgap.models.reading import file_sha256
from optgap.reproduce.codec import CodecError, decode, encode
from optgap.reproduce.report import Cached, Item, Report, Study

SCHEMA = "optgap.kept/1"
PER_ITEM = 8
"""Reports of one item that are kept: other seeds, other data, versions before this one."""
SETTLED_S = 2.0
"""A file younger than this may change again without another size or time of change."""


class Cache:
    """A folder of reports.

    Parameters
    ----------
    folder: by default what ``OPTGAP_CACHE`` names, or a folder in the user's cache.
    refresh: run everything anew, and keep it.

    Attributes
    ----------
    notices: what the user should know, one line each: entries that were damaged, a folder that
        cannot be written to.
    """

    def __init__(self, folder: Path | None = None, refresh: bool = False) -> None:
        self.folder = (
            (
                Path(os.environ["OPTGAP_CACHE"])
                if "OPTGAP_CACHE" in os.environ
                else home().parent / "results"
            )
            if folder is None
            else folder
        )
        self.refresh = refresh
        self.notices: list[str] = []

    def run(self, item: Item, study: Study) -> Report:
        """The kept report of an item, or a new one, which is kept.

        Raises
        ------
        InputError, Stopped: as `Item.run` does.
        """
        place = self.folder / f"{item.name}-{self.key(item, study)}.json"
        kept = None if self.refresh else self._read(place)
        if kept is not None and kept.item == item:
            return kept
        started = time.monotonic()
        report = item.run(study)
        # what a limit has cut short is not what the item gives
        if study.limits.time_limit is None and study.limits.stop is None:
            self._write(place, report, time.monotonic() - started)
        return report

    def key(self, item: Item, study: Study) -> str:
        """The hash of all that the item's report depends on."""
        return digest(
            {
                "item": item.name,
                "target": item.target,
                "seeds": item.of(study).seeds,
                "sources": hashed(sources_of(item)),
                "data": self._data(item, study.data),
                **stack(),
            }
        )

    def _data(self, item: Item, data: Path | None) -> dict[str, str]:
        """Hashes of all files in the folders that the item reads from, by path."""
        if data is None or not item.needs:
            return {}
        memory = _Hashes(self.folder / "hashes.json")
        paths = {p for name in item.needs for p in (data / name).parent.rglob("*") if p.is_file()}
        found = {p.relative_to(data).as_posix(): memory.of(p) for p in sorted(paths)}
        memory.save()
        return found

    def _read(self, place: Path) -> Report | None:
        try:
            text = place.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError):
            self.notices.append(f"{place} cannot be read: run anew")
            return None
        try:
            return _opened(text)
        except (CodecError, KeyError, TypeError, ValueError, RecursionError):
            self.notices.append(f"{place} is damaged: run anew")
            return None

    def _write(self, place: Path, report: Report, seconds: float) -> None:
        try:
            form = encode(report)
            document = {
                "schema": SCHEMA,
                "computed": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
                "seconds": seconds,
                "digest": digest({"report": form}),
                "report": form,
            }
            place.parent.mkdir(parents=True, exist_ok=True)
            write_text(place, json.dumps(document))
            self._prune(report.item)
        except CodecError as error:
            self.notices.append(f"{report.item.name} is not kept: it holds {error}")
        except (InputError, OSError) as error:
            reason = error.found if isinstance(error, InputError) else error.strerror
            notice = f"results are not kept: {self.folder}: {reason}"
            if notice not in self.notices:
                self.notices.append(notice)

    def _prune(self, item: Item) -> None:
        kept = sorted(self.folder.glob(f"{item.name}-{'?' * 32}.json"), key=_changed, reverse=True)
        for old in kept[PER_ITEM:]:
            old.unlink(missing_ok=True)


def _opened(text: str) -> Report:
    """The report in the text of an entry, marked as kept.

    Raises
    ------
    KeyError, TypeError, ValueError: when it is not what was written.
    """
    document = json.loads(text)
    form = document["report"]
    if document["schema"] != SCHEMA or document["digest"] != digest({"report": form}):
        raise ValueError("another hash")
    report = decode(form)
    if not isinstance(report, Report):
        raise TypeError("no report")
    return replace(report, cached=Cached(str(document["computed"]), float(document["seconds"])))


def sources_of(item: Item) -> Iterator[Path]:
    """What computes an item: its family in every role, the face, and its own code."""
    face = Path(optgap.__file__).parent
    family = item.target.removeprefix("optgap.reproduce.").split(".")[0].partition(":")[0]
    yield from sources(family)
    for room in (".", "comparing", "plotting", "reproduce"):
        yield from sorted((face / room).glob("*.py"))
    yield from sorted((face / "reproduce" / family).rglob("*.py"))


class _Hashes:
    """Hashes of files, remembered for as long as size and time of change stay the same."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.known = _remembered(place)
        self.learnt = False

    def of(self, path: Path) -> str:
        """The SHA-256 of a file."""
        status = path.stat()
        name, stamp = str(path.resolve()), [status.st_size, status.st_mtime_ns]
        entry = self.known.get(name)
        if isinstance(entry, list) and entry[:2] == stamp and len(entry) == 3:
            return str(entry[2])
        found = file_sha256(path)
        if time.time() - status.st_mtime > SETTLED_S:
            self.known[name] = [*stamp, found]
            self.learnt = True
        return found

    def save(self) -> None:
        """Write what is new; a memory that cannot be written is none."""
        if not self.learnt:
            return
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.place, json.dumps(self.known))
        except (InputError, OSError):
            return


def _remembered(place: Path) -> dict[str, Any]:
    try:
        known = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process has just removed it
        return 0.0


def _own_folder() -> Path:
    named = os.environ.get("OPTGAP_CACHE")
    return Path(named) if named else home().parent / "results"
