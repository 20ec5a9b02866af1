"""Progress in one line, and its place below a notebook's cell."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import Any

from optgap.models.clock import COMPILING
from optgap.models.result import relative_gap
from optgap.render import number, percent

AFTER_S, EVERY_S = 1.0, 0.2
"""Seconds after which a cell shows progress, and between two lines."""

_cell: _Cell | None = None
"""Line of the running cell."""


def words(seconds: float, phase: str, incumbent: float | None, bound: float | None) -> str:
    """Return the line that tells of a phase, of the best objective and bound, and of the gap."""
    parts = [f"{seconds:.0f} s", phase]
    for name, value in (("best", incumbent), ("bound", bound)):
        if value is not None:
            parts.append(f"{name} {number(value)} {getattr(value, 'unit', '')}".rstrip())
    if (gap := relative_gap(incumbent, bound)) is not None:
        parts.append(f"gap {percent(gap, 1)}")
    return " · ".join(parts)


def in_notebook(phase: str, incumbent: float | None, bound: float | None) -> None:
    """Show progress below the running cell of a notebook; elsewhere, show nothing.

    The line appears only where a reader can answer the kernel. A notebook that is run to be stored
    or tested (nbconvert, nbclient, papermill) therefore stores no progress.
    """
    global _cell
    if _cell is None:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if not getattr(getattr(shell, "kernel", None), "_allow_stdin", False):
            return
        _cell = _Cell(shell)
    _cell.tell(phase, incumbent, bound)


class _Cell:
    """Line below a running cell, which disappears with the end of the cell."""

    def __init__(self, shell: Any) -> None:
        self.shell, self.started, self.latest = shell, time.monotonic(), 0.0
        self.line: Any = None
        self.compiling = ExitStack()
        self.compiling.enter_context(COMPILING.telling(lambda phase: self.show(phase, None, None)))
        shell.events.register("post_run_cell", self.end)

    def tell(self, phase: str, incumbent: float | None, bound: float | None) -> None:
        """Show a line, unless it comes too early or too soon after another."""
        if min(time.monotonic() - self.started - AFTER_S, time.monotonic() - self.latest) > 0:
            self.show(phase, incumbent, bound)

    def show(self, phase: str, incumbent: float | None, bound: float | None) -> None:
        """Show a line now, and no other for a moment."""
        now = time.monotonic()
        self.latest = now + EVERY_S
        self.put(words(now - self.started, phase, incumbent, bound))

    def put(self, text: str) -> None:
        """Replace the line."""
        from IPython.display import display

        data = {"text/plain": text}
        if self.line is None:
            self.line = display(data, raw=True, display_id=True)
        else:
            self.line.update(data, raw=True)

    def end(self, *_: Any) -> None:
        """Empty the line and forget it."""
        global _cell
        _cell = None
        self.compiling.close()
        self.shell.events.unregister("post_run_cell", self.end)
        if self.line is not None:
            self.put("")
