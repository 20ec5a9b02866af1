"""One download over HTTP that can be interrupted and taken up again.

pooch keeps the hashes and moves a file into place once its hash is right; what it lacks is a
download that goes on where the last one ended, which is what this module adds to it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optgap.models.errors import InputError, NoQuote

if TYPE_CHECKING:
    import requests

ATTEMPTS = 3
"""How often a transfer that breaks off is taken up again before the command gives up."""
CHUNK = 1 << 13
"""Small: of a transfer that breaks off, less than one piece is lost."""
TIMEOUT_S = (10.0, 60.0)
"""To connect, and between two pieces."""

Tell = Callable[[int], None]
"""Told the bytes in hand so far; raises to stop."""


def retrieve(
    url: str, sha256: str, size: int, target: Path, parts: Path, tell: Tell = lambda _: None
) -> None:
    """Download `url` to `target`, which appears only whole and with the right hash.

    What has arrived of an interrupted download stays in the folder `parts`, from where the
    next call goes on.

    Raises
    ------
    InputError: when the address cannot be reached or has no such file, when the transfer keeps
        breaking off, or when what came is not what the catalogue names.
    """
    import logging

    import pooch

    target.parent.mkdir(parents=True, exist_ok=True)
    parts.mkdir(parents=True, exist_ok=True)
    pooch.get_logger().setLevel(logging.WARNING)  # the command line says what is going on
    part = parts / f"{sha256}.part"
    download = _Resumed(part, size, tell)
    try:
        pooch.retrieve(url, f"sha256:{sha256}", target.name, target.parent, downloader=download)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        # pooch says in several lines that the hash is another
        part.unlink(missing_ok=True)
        raise InputError(
            url, "", NoQuote(f"a file with another SHA-256 ({download.came} bytes)"), sha256
        ) from None
    except OSError as error:
        raise InputError(
            str(target), "", NoQuote(error.strerror or error), "a place that can be written to"
        ) from None
    part.unlink(missing_ok=True)


class _Resumed:
    """What pooch calls to download: into a part file that outlives an interruption."""

    def __init__(self, part: Path, size: int, tell: Tell) -> None:
        self.part = part
        self.size = size
        self.tell = tell
        self.came = 0

    def __call__(self, url: str, output: str | os.PathLike[str], pooch: Any) -> None:
        trouble = ""
        for _ in range(ATTEMPTS):
            trouble = self._go_on(url)
            if not trouble:
                # a copy: should the hash be wrong, pooch deletes its own
                shutil.copyfile(self.part, output)
                return
        raise InputError(url, "", NoQuote(trouble), f"{self.size} bytes; try again to go on")

    def _go_on(self, url: str) -> str:
        """Fetch what is missing; returns what went wrong, or "" when all is there."""
        import requests

        have = self._have()
        if have == self.size:
            self.came = have
            return ""
        # a compressed transfer could not be taken up in the middle
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        answered = False
        try:
            with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
                answered = True
                if answer.status_code == 416:  # the part is longer than the file
                    self.part.unlink(missing_ok=True)
                    return "nothing from where the last download ended"
                if answer.status_code not in (200, 206):
                    found = NoQuote(f"{answer.status_code} {answer.reason}")
                    raise InputError(url, "", found, "the file")
                self._take(answer, have)
        except (requests.RequestException, OSError) as error:
            if isinstance(error, requests.exceptions.InvalidURL):
                raise InputError(url, "", NoQuote("an invalid address"), "the file") from None
            if not answered:
                found = NoQuote(_reason(error))
                raise InputError(url, "", found, "a server that answers") from None
            return f"{self._have()} bytes"
        self.came = self._have()
        if self.came < self.size:
            return f"{self.came} bytes"
        return ""

    def _take(self, answer: requests.Response, have: int) -> None:
        """Append to the part, or begin anew where the server sends everything."""
        goes_on = answer.status_code == 206
        if goes_on:
            start = answer.headers.get("Content-Range", "").removeprefix("bytes ").split("-")[0]
            if start != str(have):
                self.part.unlink(missing_ok=True)
                return
        else:
            have = 0
        with open(self.part, "ab" if goes_on else "wb") as file:
            for piece in answer.iter_content(CHUNK):
                have += len(piece)
                if have > self.size:  # not the file of the catalogue, and perhaps endless
                    break
                file.write(piece)
                self.tell(have)
        if have > self.size:
            self.part.unlink(missing_ok=True)
            raise InputError(
                answer.url, "", NoQuote(f"more than {self.size} bytes"), f"{self.size} bytes"
            )

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0


def _reason(error: Exception) -> str:
    """Why nobody answered, without the libraries' names."""
    import requests

    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "no trusted certificate"
    return "no connection"
