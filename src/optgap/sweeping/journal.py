"""Rows as they come in: a file that is only ever appended to, and survives its writer.

A sweep that is killed leaves its journal beside the table; the next one reads it. A line that
was cut off in the middle is as if it had never been begun.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import IO, Any

from optgap.models.errors import InputError, NoQuote

try:
    import fcntl
except ImportError:  # Windows: two sweeps into one file are the user's own look-out
    fcntl = None  # type: ignore[assignment]

Row = dict[str, Any]
SYNC_S = 1.0
"""Seconds between two times that the disk itself has to confirm."""


class Journal:
    """Appends rows to a file that one process at a time has to itself.

    Raises
    ------
    InputError: when another sweep is writing there, or nobody may.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._synced = 0.0
        try:
            self._file: IO[bytes] = open(path, "a+b")  # noqa: SIM115  # closed by `close`
        except OSError as error:
            found = NoQuote(error.strerror or error)
            raise InputError(str(path), "", found, "a place that can be written to") from None
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                found = NoQuote("another sweep that is writing there")
                raise InputError(str(path), "", found, "one at a time") from None

    def rows(self) -> list[Row]:
        """Every whole row; what was cut off at the end is removed."""
        self._file.seek(0)
        text = self._file.read()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            self._file.truncate(whole)
        rows = []
        for line in text[:whole].splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:  # a machine that went down may leave zeros
                continue
        return [row for row in rows if isinstance(row, dict) and "key" in row]

    def add(self, row: Row) -> None:
        """Append one row."""
        line = json.dumps(row, separators=(",", ":"))
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        if time.monotonic() - self._synced > SYNC_S:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def remove(self) -> None:
        """Remove the file: its rows are in the table now."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
