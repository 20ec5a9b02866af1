"""Members of downloaded archives, taken out by name; an archive that points outside is refused."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from optgap.models.errors import InputError, NoQuote

CHUNK = 1 << 20


def extract(archive: Path, source: str, member: str, target: Path, size: int) -> None:
    """Copy one member to `target`.

    Every name in the archive is looked at first: one with a path that leads out of its folder,
    or a link, is no archive that we take anything from.

    Raises
    ------
    InputError: for such an archive, one that cannot be read, or one without that member.
    """
    try:
        if zipfile.is_zipfile(archive):
            _from_zip(archive, source, member, target, size)
        else:
            _from_tar(archive, source, member, target, size)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        raise InputError(source, "", NoQuote(error), "a zip or tar archive") from None


def _from_zip(archive: Path, source: str, member: str, target: Path, size: int) -> None:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            linked = (info.external_attr >> 16) & 0o170000 == 0o120000
            _refuse_outside(info.filename, source, linked)
        if member not in opened.namelist():
            raise _missing(source, member, iter(opened.namelist()))
        with opened.open(member) as stream:
            _copy(stream, target, source, member, size)


def _from_tar(archive: Path, source: str, member: str, target: Path, size: int) -> None:
    with tarfile.open(archive) as opened:
        for info in opened.getmembers():
            _refuse_outside(info.name, source, not (info.isfile() or info.isdir()))
        names = opened.getnames()
        stream = opened.extractfile(member) if member in names else None
        if stream is None:
            raise _missing(source, member, iter(names))
        with stream:
            _copy(stream, target, source, member, size)


def _refuse_outside(name: str, source: str, linked: bool) -> None:
    parts = name.replace("\\", "/").split("/")
    outside = name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]
    if outside or linked:
        found = NoQuote(f"a member {name!r} that leads outside the archive")
        raise InputError(source, "", found, "an archive whose members stay inside it")


def _missing(source: str, member: str, names: Iterator[str]) -> InputError:
    shown = ", ".join(name for _, name in zip(range(5), names, strict=False))
    return InputError(source, "", NoQuote(f"the members {shown}"), f"a member {member}")


def _copy(stream: IO[bytes], target: Path, source: str, member: str, size: int) -> None:
    """At most `size` bytes: a small archive may unpack to more than the disk holds."""
    left = size + 1
    with open(target, "wb") as file:
        while left and (piece := stream.read(min(CHUNK, left))):
            file.write(piece)
            left -= len(piece)
    if not left:
        raise InputError(
            source, "", NoQuote(f"more than {size} bytes in {member}"), f"{size} bytes"
        )
