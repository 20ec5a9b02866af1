"""What pages of the documentation tell their reader to type, and the files that they show."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:optgap|pip install|make|python) [^`]+)`")
NAMED = re.compile(r"`([\w.-]+\.(?:csv|json|toml|py))`(?:(?!\n\n).)*:\s*\Z", re.DOTALL)
"""The file that a fence holds, by the paragraph before it: one that ends in a colon names it."""
TITLED = re.compile(r"# ([\w-]+\.(?:py|toml))\b")
"""Or by its first line, a comment."""


@dataclass(frozen=True)
class File:
    """A file that a page shows."""

    name: str
    text: str


@dataclass(frozen=True)
class Script:
    """Python that a page shows."""

    text: str


@dataclass(frozen=True)
class Command:
    """A line to be typed; `inline` where it stands within a sentence, which may only name it."""

    text: str
    inline: bool = False

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


def read(path: Path) -> Iterator[File | Script | Command]:
    """Everything to be typed or kept in a file, from the top of a page to its bottom."""
    markdown, place = path.read_text(encoding="utf-8"), 0
    for fence in FENCE.finditer(markdown):
        before = markdown[place : fence.start()]
        yield from _inline(before)
        place = fence.end()
        kind, code = fence.groups()
        named = NAMED.search(before) or TITLED.match(code)
        if named:
            yield File(named[1], code)
        elif kind == "python":
            yield Script(code)
        elif kind == "sh":
            yield from (Command(line) for line in _lines(code))
    yield from _inline(markdown[place:])


def usage(path: Path) -> list[str]:
    """Lines of fences without a language that begin with ``optgap``, what goes on joined."""
    lines: list[str] = []
    for kind, code in FENCE.findall(path.read_text(encoding="utf-8")):
        if kind == "" and code.startswith("optgap "):
            for line in code.splitlines():
                if line.startswith("optgap "):
                    lines.append(line)
                else:
                    lines[-1] += " " + line.strip()
    return lines


def _lines(code: str) -> Iterator[str]:
    for line in code.replace("\\\n", " ").splitlines():
        text = shlex.join(shlex.split(line, comments=True)) if "|" not in line else line
        if text.strip():
            yield text.strip()


def _inline(text: str) -> Iterator[Command]:
    for command in INLINE.findall(text):
        yield Command(" ".join(command.split()), inline=True)


KNOWN: dict[tuple[str, str, int], Any] = {}


def solve_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pages compare again, on the same problem with the same seed, is taken from before."""
    from optgap.comparing import gaps

    execute = gaps.execute

    def remembered(problem: Any, runnable: Any, limits: Any, seed: int) -> Any:
        key = json.dumps(problem.to_json()), runnable.label, seed
        if key not in KNOWN:
            KNOWN[key] = execute(problem, runnable, limits, seed)
        return KNOWN[key]

    monkeypatch.setattr(gaps, "execute", remembered)
