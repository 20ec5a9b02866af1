"""Parts of commands around the work itself: progress, interrupts, tables, exit codes."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from types import FrameType
from typing import Any, TypeVar

from optgap.cli import CALL, DONE, FAILED, INFEASIBLE, PARTIAL, complain
from optgap.models.clock import COMPILING
from optgap.models.jsonio import dump_json
from optgap.models.limits import Limits, Progress, silent
from optgap.models.reading import STANDARD_INPUT
from optgap.models.result import Result, Status, Termination
from optgap.progress import words
from optgap.render import Answer, Row, filled, number, result_facts, screen_width, text_table

Found = TypeVar("Found")


def interruptible(
    work: Callable[[Limits], Found],
    time_limit: float | None = None,
    effort: float = 1.0,
) -> Found:
    """Do the work; the first Ctrl-C asks the work to end with what it has, the second aborts.

    The work runs beside the main thread, because only the main thread receives signals, and a
    solver that is busy outside Python would keep it from receiving any. Text that a user's own
    policy prints meanwhile goes to standard error.
    """
    done = threading.Event()
    answers: list[Found] = []
    failures: list[BaseException] = []

    with on_terminal() as progress:
        limits = Limits(time_limit, progress=progress, effort=effort)

        def body() -> None:
            try:
                answers.append(work(limits))
            except BaseException as error:
                failures.append(error)
            finally:
                done.set()

        with _signals(limits), foreign():
            threading.Thread(target=body, daemon=True).start()
            while not done.wait(0.2):
                pass
    if failures:
        raise failures[0]
    return answers[0]


@contextmanager
def foreign() -> Iterator[None]:
    """Send the output of code from outside, also from C or a shell, to standard error."""
    try:
        sys.stdout.flush()
        kept = os.dup(1)
    except (OSError, AttributeError):  # nobody listens anyway
        yield
        return
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        with suppress(Exception):  # what C keeps in its buffer: not on every system
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)


def _leave(words: bytes) -> None:
    """End the process without the interpreter's farewell: other threads are still at work."""
    os.write(2, b"optgap: " + words)
    os._exit(PARTIAL)


@contextmanager
def _signals(limits: Limits) -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        if limits.interrupted.is_set():
            _leave(b"aborted\n")
        limits.interrupted.set()
        first = b", once code is compiled (on a first run only)" if COMPILING.busy else b""
        os.write(2, b"optgap: stopping with what there is" + first + b"; once more aborts\n")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@contextmanager
def on_terminal() -> Iterator[Progress]:
    """Show progress in one changing line on standard error, if that is a terminal."""
    if CALL.get().quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console

    latest = 0.0
    started = time.monotonic()
    with Console(stderr=True).status("…") as status:

        def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
            nonlocal latest
            now = time.monotonic()
            if now - latest < 0.1:
                return
            latest = now
            line = words(now - started, phase, incumbent, bound)
            status.update(line.replace("[", r"\["))

        def compiling(line: str) -> None:
            status.update(f"{time.monotonic() - started:.0f} s · {line}")

        with COMPILING.telling(compiling):
            yield tell


class Output:
    """Output of a command: tables for a person, JSON for a file.

    Parameters
    ----------
    json: the JSON file; ``-`` is standard output, which then carries nothing else.
    silent: whether to print no tables, as with ``-q``.
    """

    def __init__(self, json: str | None, silent: bool = False) -> None:
        self.json = json
        self.talk = not (silent or CALL.get().quiet or json == "-")

    def line(self, text: str = "") -> None:
        """Print one line for a person."""
        if self.talk:
            print(text)

    def table(self, header: Row, rows: Sequence[Row], right: Sequence[int] = ()) -> None:
        """Print a table; on a terminal its rules are lines."""
        line = "─" if self.talk and sys.stdout.isatty() else "-"
        if self.talk:
            print(text_table(header, rows, right, line=line))

    def answer(self, item: Answer) -> None:
        """Print lines, the table and notes, with a blank line between them."""
        self.answer_head(item.head())
        self.table(*item.table())
        self.notes(item.notes())

    def answer_head(self, lines: Sequence[str]) -> None:
        """Print lines above a blank one."""
        if lines:
            self.line(filled(lines) + "\n")

    def notes(self, notes: Sequence[str]) -> None:
        """Print lines below a blank one."""
        if notes:
            self.line("\n" + filled(notes))

    def pairs(self, rows: Sequence[Row]) -> None:
        """Print names and values without a header; a wide value is wrapped in its column."""
        if self.talk:
            width = max(len(row[0]) for row in rows)
            for name, value in rows:
                room = max(20, screen_width() - width - 2)
                for k, line in enumerate(filled([value], room, "").split("\n")):
                    print(f"{'' if k else name:{width}}  {line}".rstrip())

    def wrote(self, *paths: str | None) -> None:
        """Name the files that were written."""
        if named := [path for path in paths if path not in (None, "-")]:
            self.line(f"\nwrote {', '.join(map(str, named))}")

    def following(self, *words: str | None, why: str = "") -> None:
        """Print a command of optgap to copy as the last line; `why` is a comment behind it.

        Print nothing if the command would read standard input, which is used up.
        """
        if STANDARD_INPUT not in words:
            self.last("optgap", *words, why=why)

    def last(self, *words: str | None, why: str = "") -> None:
        """Print a command to copy as the last line; `why` is a comment behind it."""
        command = shlex.join([word for word in words if word is not None])
        self.line(f"\n{command}" + (f"  # {why}" if why else ""))

    def document(self, item: Any) -> None:
        """Write the JSON form if the command was asked for it."""
        if self.json is not None:
            dump_json(self.json, item if isinstance(item, dict) else item.to_json())


def exit_code(terminations: Iterable[Termination]) -> int:
    """Return `FAILED` if a method failed, `PARTIAL` if a limit or an interrupt stopped anything."""
    ends = set(terminations)
    if Termination.ERROR in ends:
        return FAILED
    stopped = {Termination.TIME_LIMIT, Termination.INTERRUPTED}
    return PARTIAL if stopped & ends else DONE


def no_solution(result: Result, problem_file: str | None) -> int:
    """Say that there is no solution and how to learn why, and return the exit code.

    Parameters
    ----------
    result: the proof.
    problem_file: the problem for `optgap solve`; None if the reason is told already.
    """
    line = f"there is no solution, as {result.method} proves"
    if result.message:
        line += f": {result.message}"
    if problem_file is not None:
        why = f"optgap solve {shlex.quote(problem_file)} --conflict"
        line += f"; `{why}` names what cannot go together"
    return complain(line, INFEASIBLE)


def show(result: Result, problem: Any, out: Output) -> None:
    """Print the result as names and values."""
    who = "policy" if result.kind == "policy" else "method"
    rows = [("problem", str(problem)), (who, result.method), *result_facts(result)]
    if result.message:
        rows.append(("note", result.message))
    for key, value in result.metrics.items():
        rows.append((key, value if isinstance(value, str) else number(value)))
    out.pairs(rows)


def deliver(
    result: Result,
    problem: Any,
    out: Output,
    solution_file: str | None,
    *,
    plot: str | None = None,
    ask: str | None = None,
    tables: Iterable[str] = (),
) -> int:
    """Show, write and draw a result, and return the exit code.

    Parameters
    ----------
    result, problem
        The result, and its problem.
    out
        Tables for a person, and JSON for a script.
    solution_file
        File for the solution.
    plot
        File for a picture of the solution.
    ask
        The problem's file, for the command that a person may type next.
    tables
        Files that are written already.
    """
    show(result, problem, out)
    out.document(result)
    found = result.solution is not None
    if solution_file is not None and result.solution is not None:
        dump_json(solution_file, result.solution.to_json(problem))
    if plot is not None and found:
        result.plot(plot)
    elif plot is not None:
        print(f"optgap: {plot}: nothing drawn, there is no solution", file=sys.stderr)
    out.wrote(*((solution_file, plot, *tables) if found else ()), out.json)
    if result.status is Status.INFEASIBLE:
        return no_solution(result, ask)
    if ask is not None and result.kind == "policy" and found:
        out.following("explain", ask, "--policy", result.method, why="why its gap")
    elif ask is not None:
        out.following("compare", ask, why="every policy's gap")
    return exit_code([result.termination])
