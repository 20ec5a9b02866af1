"""Fetch what is missing, and check what is there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from optgap.datasets.catalogue import Dataset, File, catalogue, choose
from optgap.datasets.converting import CONVERSIONS
from optgap.datasets.places import data_folder
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import write_bytes
from optgap.models.limits import Limits
from optgap.models.reading import file_sha256
from optgap.models.result import Termination

PARTS = ".optgap-parts"
"""Where unfinished downloads wait, inside the data folder."""


class State(StrEnum):
    """What is known of a file in the data folder."""

    RIGHT = "right"
    """There, with the catalogue's hash."""
    WRONG = "wrong"
    """There, with another hash."""
    MISSING = "missing"
    """Not there."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What became of one dataset.

    Parameters
    ----------
    dataset: which.
    came: paths that were downloaded now.
    there: paths that had been there already.
    left: paths that cannot be downloaded, for lack of an address.
    termination: ``completed``, or why it was stopped in the middle.
    """

    dataset: Dataset
    came: tuple[str, ...]
    there: tuple[str, ...]
    left: tuple[str, ...]
    termination: Termination = Termination.COMPLETED


class _Stopped(Exception):
    """The limits say stop."""


def verify(dataset: Dataset, folder: Path) -> dict[str, State]:
    """The state of every file of a dataset, by its path."""
    return {file.path: _state(file, folder) for file in dataset.files}


def path(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    known: str | os.PathLike[str] | None = None,
) -> Path:
    """Where a dataset is: the folder that holds all its files.

    Raises
    ------
    InputError: for an unknown name, or a dataset of which a file is not there.
    """
    (dataset,) = choose(catalogue(known), [name])
    place = data_folder(folder)
    for file in dataset.files:
        if not (place / file.path).is_file():
            expected = f"it there: optgap data fetch {name}"
            raise InputError(str(place / file.path), "", NoQuote("no such file"), expected)
    return place / os.path.commonpath([os.path.dirname(file.path) for file in dataset.files])


def fetch(
    names: Iterable[str],
    folder: str | os.PathLike[str] | None = None,
    known: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
) -> list[Fetched]:
    """Download what is missing of the datasets of these names.

    Files that are there and right stay as they are. One that is there and wrong is never
    overwritten. Interrupted downloads go on where they ended.

    Raises
    ------
    InputError: for an unknown name, a file that is there and is another, an address that does
        not answer, or a download that is not what the catalogue names. Files that came before
        stay.
    """
    chosen = choose(catalogue(known), names)
    place = data_folder(folder)
    limits = limits or Limits()
    done: list[Fetched] = []
    for dataset in chosen:
        done.append(_fetch(dataset, place, limits))
        if done[-1].termination is not Termination.COMPLETED:
            break
    return done


def _fetch(dataset: Dataset, folder: Path, limits: Limits) -> Fetched:
    states = verify(dataset, folder)
    for file in dataset.files:
        if states[file.path] is State.WRONG:
            raise InputError(
                str(folder / file.path),
                "",
                NoQuote(f"a file with another SHA-256 than {dataset.name}'s"),
                f"{file.sha256}; move it away to fetch the publisher's",
            )
    there = tuple(p for p, state in states.items() if state is State.RIGHT)
    missing = [file for file in dataset.files if states[file.path] is State.MISSING]
    wanted = [file for file in missing if file.url is not None]
    left = tuple(file.path for file in missing if file.url is None)
    if missing and not wanted:
        raise InputError(
            dataset.name,
            "",
            NoQuote("a converted copy, which nobody offers for download"),
            f"it in {folder}; made {missing[0].made}; the original is at {dataset.home}",
        )
    came: list[str] = []
    stop = Termination.COMPLETED
    try:
        for k, group in enumerate(_groups(wanted)):
            _obtain(group, folder, limits, f"{dataset.name}, {k + 1} of {len(wanted)}")
            came += [file.path for file in group]
    except _Stopped:
        stop = limits.stop or Termination.INTERRUPTED
    return Fetched(dataset, tuple(came), there, left, stop)


def _groups(files: Sequence[File]) -> list[list[File]]:
    """Files by themselves, and members of the same archive together."""
    groups: dict[str, list[File]] = {}
    for file in files:
        groups.setdefault(
            file.url or "" if file.published and file.published.member else file.path, []
        ).append(file)
    return list(groups.values())


def _obtain(group: Sequence[File], folder: Path, limits: Limits, label: str) -> None:
    """One download, and out of it all that is wanted of it."""
    from optgap.datasets.download import retrieve

    first, parts = group[0], folder / PARTS
    whole = first.published or first
    size = whole.bytes
    url = first.url or ""
    tell = _teller(limits, label, size)
    tell(0)
    try:
        if first.published is None:
            retrieve(url, first.sha256, size, folder / first.path, parts, tell)
            return
        came = parts / whole.sha256
        retrieve(url, whole.sha256, size, came, parts, tell)
        try:
            for file in group:
                made = _converted if first.published.convert else _member
                made(file, came, folder / file.path)
        finally:
            came.unlink(missing_ok=True)
    finally:
        if parts.is_dir() and not any(parts.iterdir()):
            parts.rmdir()


def _converted(file: File, original: Path, target: Path) -> None:
    """Write what a publisher's file becomes."""
    assert file.published is not None
    made = CONVERSIONS[file.published.convert](original.read_bytes())
    if hashlib.sha256(made).hexdigest() != file.sha256:
        found = NoQuote(f"another SHA-256 after {file.published.convert}")
        raise InputError(file.url or "", file.path, found, file.sha256)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, made)


def _member(file: File, archive: Path, target: Path) -> None:
    """Take a file out of an archive."""
    from optgap.datasets.archive import extract

    assert file.published is not None
    url, member = file.url or "", file.published.member
    half = archive.with_name(f"{file.sha256}.member")
    try:
        extract(archive, url, member, half, file.bytes)
        if file_sha256(half) != file.sha256:
            raise InputError(url, member, NoQuote("a file with another SHA-256"), file.sha256)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(half, target)
    finally:
        half.unlink(missing_ok=True)


def _teller(limits: Limits, label: str, size: int) -> Callable[[int], None]:
    def tell(have: int) -> None:
        if limits.stop is not None:
            raise _Stopped
        share = f"{100 * have // size} %" if size else ""
        limits.progress(f"{label} {share}", None, None)

    return tell


def _state(file: File, folder: Path) -> State:
    place = folder / file.path
    if not place.is_file():
        return State.MISSING
    if place.stat().st_size != file.bytes:
        return State.WRONG
    return State.RIGHT if file_sha256(place) == file.sha256 else State.WRONG
