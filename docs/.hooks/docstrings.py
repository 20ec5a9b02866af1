"""Our docstrings for mkdocstrings: ``name: meaning`` becomes numpydoc's ``name`` and a block."""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(
    r"^(Parameters|Attributes|Raises)\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", re.M | re.S
)
RETURNS = re.compile(r"^(Returns|Yields)\n-+\n(?!\S[^\n]*\n +)", re.MULTILINE)
ENTRY = re.compile(r"^([\w*][\w*., ]*): ?(.*)$")


def numpydoc(text: str) -> str:
    """The same docstring with entries as numpydoc wants them."""
    return RETURNS.sub(r"**\1**\n\n", SECTION.sub(_section, text))


def _section(match: re.Match[str]) -> str:
    name, body = match[1], match[2]
    if not any(map(ENTRY.match, body.splitlines())):  # it is numpydoc already
        return match[0]
    lines = []
    for line in body.splitlines():
        entry = ENTRY.match(line)
        if entry:
            lines.append(entry[1])
            if entry[2]:
                lines.append(f"    {entry[2]}")
        elif line.startswith(" "):
            lines.append(line)
        elif line:
            lines.append(f"    {line}" if lines else line)
        else:
            lines.append("")
    return f"{name}\n{'-' * len(name)}\n" + "\n".join(lines) + "\n"


class Ours(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = numpydoc(obj.docstring.value)
