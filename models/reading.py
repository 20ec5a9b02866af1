"""The one door for files that are read: regular files of a bounded size, unpacked on the way."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
import re
import stat
import sys
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from typing import IO, Any

from optgap.models.errors import InputError, NoQuote, Said, said, type_of

Path = str | os.PathLike[str]

VARIABLE = "OPTGAP_READ_LIMIT"
"""The environment variable that raises or lowers the limit: bytes, or a size such as ``4GiB``."""
LIMIT = 1 << 30
"""Bytes of a file, unpacked, without that variable: a log of ten million jobs is smaller."""
UNPACKED = 200
"""Times its own size that a gzip file may hold without that variable: tables and logs pack ten- to
fiftyfold, and a gibibyte of one character a thousandfold."""
FREE = 1 << 26
"""Bytes that any gzip file may hold."""
STANDARD_INPUT = "-"
MAGIC = b"\x1f\x8b"
"""First bytes of a gzip file."""
CHUNK = 1 << 20
NO_TEXT = {
    b"PK\x03\x04": "a zip archive, as .xlsx files are",
    b"\xd0\xcf\x11\xe0": "an .xls file",
    b"PAR1": "a Parquet file",
}
"""First bytes of files that hold a table, but not as text."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_KINDS = {
    stat.S_ISFIFO: "a pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}


class Held(os.PathLike[str]):
    """A table or a document in memory that stands where a path could.

    Parameters
    ----------
    name: what messages call it, and what a path's name is otherwise used for.
    text: what a file would hold.
    first_row: what messages call the first row below the header (2 in a file).
    """

    def __init__(self, name: str, text: str, first_row: int = 0) -> None:
        self.name = name
        self.text = text
        self.first_row = first_row

    def __fspath__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def held_table(name: str, table: Any) -> Held:
    """Return a DataFrame or a mapping of columns as CSV; a named index counts as a column.

    Raises
    ------
    InputError: for another object, or columns of different lengths.
    """
    if isinstance(table, Mapping):
        import pandas as pd

        try:
            table = pd.DataFrame(table)
        except ValueError as error:
            raise InputError(name, "", NoQuote(error), "columns of one length") from None
    if not hasattr(table, "to_csv"):
        found = type_of(table)
        raise InputError(name, "", found, "a path, a DataFrame, or a mapping of columns")
    named = any(part is not None for part in table.index.names)
    frame = table.reset_index() if named else table
    # a column of integers with gaps has become one of floats
    return Held(name, frame.convert_dtypes().to_csv(index=False))


def read_limit() -> int:
    """Return the largest number of bytes that are read of a file.

    Raises
    ------
    InputError: when the environment names a limit that is no size.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return LIMIT
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(VARIABLE, "", text, "a size such as 4GiB")
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))


def read_bytes(path: Path, *, stdin: bool = False) -> bytes:
    """Return the content of a file, unpacked if it is gzip.

    Parameters
    ----------
    stdin: whether ``-`` stands for standard input.

    Raises
    ------
    InputError: for a file that cannot be read, is no regular file, changes while it is read, has
        more bytes than `read_limit`, packed or unpacked, or is named ``.gz`` without being gzip.
    """
    if isinstance(path, Held):
        return path.text.encode()
    if stdin and path == STANDARD_INPUT:
        return _unpacked(b"".join(_chunks(sys.stdin.buffer, "standard input")), "standard input")
    source = as_path(path)
    try:
        with open(path, "rb", opener=_open) as file:
            before = _size(file, source)
            data = b"".join(_chunks(file, source))
            after = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InputError(source, "", said(error), "name a readable file") from None
    except ValueError as error:  # a NUL byte in the name
        if isinstance(error, InputError):
            raise
        raise InputError(source, "", Said(error), "name a readable file") from None
    if not before == len(data) == after:
        found = NoQuote(f"{max(after, len(data))} bytes after {before} when opened")
        raise InputError(source, "", found, "a file that is not being written to")
    if data.startswith(MAGIC):
        return _unpacked(data, source)
    if source.endswith(".gz"):
        raise InputError(source, "byte 0", data[:4], "a gzip file, as its name says")
    return data


def as_path(path: Path) -> str:
    """Return the name of a file.

    Raises
    ------
    InputError: for an object that names no file: None, a number, an open file.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError("file", "", type_of(path), "the path of a file")
    return os.fspath(path)


def read_text(path: Path, *, stdin: bool = False) -> str:
    """Return the content of a file as text; parameters are as for `read_bytes`.

    Raises
    ------
    InputError: as `read_bytes`, and for content that is no UTF-8 text.
    """
    return decode(read_bytes(path, stdin=stdin), as_path(path))


def decode(data: bytes, source: str) -> str:
    """UTF-8 text, with or without a byte-order mark.

    Raises
    ------
    InputError: naming the row of what is no such text.
    """
    marks = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    looks_wide = data[1:8:2] == b"\0\0\0\0" or data[0:8:2] == b"\0\0\0\0"
    if data.startswith(marks) or looks_wide:
        expected = "UTF-8 (iconv -f UTF-16 -t UTF-8 converts it)"
        raise InputError(source, "", NoQuote("UTF-16 or UTF-32 text"), expected)
    for magic, kind in NO_TEXT.items():
        if data.startswith(magic):
            raise InputError(source, "", NoQuote(kind), "UTF-8 text, such as a table saved as CSV")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = error.object[error.start : error.start + 4]
        row = data.count(b"\n", 0, error.start) + 1
        raise InputError(source, f"row {row}", found, "UTF-8 text") from None
    if "\0" in text:
        row = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(source, f"row {row}", NoQuote("a NUL byte"), "text")
    return text


def _open(path: str, flags: int) -> int:
    """Open without waiting for somebody to write into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _size(file: IO[bytes], source: str) -> int:
    """Return the size of an open regular file within the limit."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        kind = next((text for test, text in _KINDS.items() if test(status.st_mode)), "no file")
        raise InputError(source, "", NoQuote(kind), "a regular file")
    if status.st_size > read_limit():
        raise _too_large(source, status.st_size)
    return status.st_size


def _chunks(
    file: IO[bytes] | gzip.GzipFile, source: str, known: str = "", limit: int | None = None
) -> Iterator[bytes]:
    """Yield the rest of a stream, piece by piece.

    Raises
    ------
    InputError: if the stream is longer than the limit.
    """
    limit, total = read_limit() if limit is None else limit, 0
    while chunk := file.read(CHUNK):
        total += len(chunk)
        if total > limit:
            raise _too_large(source, None, known, limit)
        yield chunk


def _unpacked(data: bytes, source: str) -> bytes:
    """Return the content of a gzip file, and other content as it is."""
    if not data.startswith(MAGIC):
        return data
    try:
        # The last four bytes of a whole file tell its size, modulo 4 GiB. Where that is too much
        # it is unpacked into nothing: to see whether the file is too large, or cut off.
        limit = read_limit()
        if not os.environ.get(VARIABLE, "").strip():
            limit = min(limit, max(FREE, UNPACKED * len(data)))
        if int.from_bytes(data[-4:], "little") > limit:
            with gzip.open(io.BytesIO(data)) as stream:
                deque(_chunks(stream, source, " unpacked", limit), maxlen=0)
        with gzip.open(io.BytesIO(data)) as stream:
            return b"".join(_chunks(stream, source, " unpacked", limit))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(source, "", NoQuote(error), "a whole gzip file") from None


def _too_large(
    source: str, size: int | None, known: str = "", most: int | None = None
) -> InputError:
    limit = _shown(read_limit() if most is None else most)
    found = NoQuote((f"more than {limit}" if size is None else _shown(size)) + known)
    expected = f"at most {limit} (the environment variable {VARIABLE}=8GiB would allow 8 GiB)"
    return InputError(source, "", found, expected)


def _shown(size: int) -> str:
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return f"{size / 1024**power:.4g} {unit}"
    return f"{size} bytes"
