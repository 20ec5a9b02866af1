"""What a person sees at a terminal: tables with lines, and progress that is gone at the end."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from optgap.cli import CALL, Call
from optgap.cli.work import on_terminal
from optgap.models.limits import with_unit


def seen(*arguments: str) -> tuple[int, str]:
    """Exit code and everything that one command writes to a terminal of 200 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-m", "optgap", *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
    )  # fmt: skip
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 4096):
            parts.append(part)
    except OSError:  # how Linux says that nobody writes any more
        pass
    os.close(ours)
    return process.wait(60), b"".join(parts).decode()


pytestmark = pytest.mark.usefixtures("problem_file")


def test_a_table_has_lines_and_names_are_shown_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def first(task, state, label='[bold]'):\n    return state.feasible(task)[0]\n"
    )
    code, text = seen("compare", "problem.json", "--policies", "own.py:first(label='[red]'),pwr")
    assert code == 0, text
    answer = text.rpartition("\x1b[?25h")[2]  # after the last of the progress
    assert "─────" in answer
    assert "[red]" in answer
    assert "pwr" in answer


class Terminal(io.StringIO):
    """A standard error that says that it is one."""

    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_that_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with on_terminal() as tell:
        tell("start [red]", None, None)
        tell("too soon after it", 7.0, None)
        time.sleep(0.12)
        tell("search", 5.5, 3.25)
        time.sleep(0.2)  # it is drawn twelve times a second
        with_unit(tell, "W")("placement 2/5: patterns", 5.5, 3.25)
        time.sleep(0.2)
    shown = screen.getvalue()
    assert "0 s · search · best 5.50000 · bound 3.25000 · gap 69.2 %" in shown
    assert "placement 2/5: patterns · best 5.50000 W · bound 3.25000 W · gap 69.2 %" in shown
    assert "too soon" not in shown
    assert shown.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")  # the cursor is back, the line gone


def test_nothing_is_told_in_a_pipe_or_when_asked_to_be_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for quiet, screen in ((True, Terminal()), (False, io.StringIO())):
        monkeypatch.setattr(sys, "stderr", screen)
        CALL.set(Call(quiet=quiet))
        with on_terminal() as tell:
            tell("search", 5.5, 3.25)
        assert screen.getvalue() == ""
