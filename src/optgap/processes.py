"""Pieces of work side by side, each in a process of its own, as many at a time as there are cores.

A process is ``python -m optgap.processes``: it reads pickled work from its standard input and
writes what becomes of it to its standard output. When its input ends it is to stop: that carries
an interrupt on every system, and none is left behind by a parent that died. Nothing is imported
from the caller's script, which needs no ``if __name__ == "__main__"`` for it.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Generic, TypeVar

from optgap.models.clock import COMPILING
from optgap.models.limits import Limits

Answer = TypeVar("Answer")
Work = Callable[[Limits], Answer]
PROGRESS, DONE, FAILED, STUCK = "progress", "done", "failed", "stuck"
LOOK_EVERY_S = 0.1
"""Seconds between two looks at the interrupt."""
TELL_EVERY_S = 0.1
"""Seconds between two words on progress, at least."""


@dataclass(frozen=True)
class Outcome(Generic[Answer]):
    """What became of one piece of work: an answer, or the error that ended it.

    Neither: it had not been begun when the whole was interrupted.
    """

    answer: Answer | None = None
    error: Exception | None = None


def cores() -> int:
    """How many processes may run at once on this machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def side_by_side(
    works: Sequence[Work[Answer]], limits: Limits, *, processes: int | None = None
) -> list[Outcome[Answer]]:
    """Do the works, the first ones first; one outcome each, in their order.

    Parameters
    ----------
    works: called with limits that pass interrupts and progress on. With more than one process
        they are pickled: functions of modules, or partials of those.
    limits: whose interrupt is passed on; whose progress is told by all of them.
    processes: at a time; None for as many as there are cores. With one, all is done here.
    """
    size = min(processes or cores(), len(works))
    if size <= 1:
        return [_here(work, limits) for work in works]
    outcomes: list[Outcome[Answer]] = [Outcome() for _ in works]
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for k in range(len(works)):
        waiting.put(k)
    children = [_Child(works, waiting, outcomes, limits) for _ in range(size)]
    while any(child.is_alive() for child in children):
        for child in children:
            child.join(LOOK_EVERY_S / size)
            if limits.interrupted.is_set():
                child.interrupt()
    return outcomes


def _here(work: Work[Answer], limits: Limits) -> Outcome[Answer]:
    if limits.interrupted.is_set():
        return Outcome()
    try:
        return Outcome(work(limits))
    except Exception as error:
        return Outcome(error=error)


class _Child(threading.Thread):
    """A thread that hands one piece of work after another to a process."""

    def __init__(
        self,
        works: Sequence[Work[Any]],
        waiting: queue.SimpleQueue[int],
        outcomes: list[Outcome[Any]],
        limits: Limits,
    ) -> None:
        super().__init__(daemon=True)
        self.works, self.waiting, self.outcomes, self.limits = works, waiting, outcomes, limits
        self.process = subprocess.Popen(
            # -P: no file of the folder that the user is in stands in for a module of ours
            [sys.executable, "-P", "-m", "optgap.processes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.start()

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise ValueError("a process without pipes")
        return stdin, stdout

    def run(self) -> None:
        stdin, _ = self._pipes
        while not self.limits.interrupted.is_set():
            try:
                k = self.waiting.get_nowait()
            except queue.Empty:
                break
            try:
                pickle.dump(self.works[k], stdin)
                stdin.flush()
                self.outcomes[k] = self._answer()
            except (OSError, EOFError, ValueError, pickle.PickleError) as error:
                if not self.limits.interrupted.is_set():
                    self.outcomes[k] = Outcome(error=self._trouble(error))
                break
        self.interrupt()
        self.process.wait()

    def _answer(self) -> Outcome[Any]:
        _, stdout = self._pipes
        while True:
            kind, item = pickle.load(stdout)
            if kind == DONE:
                return Outcome(item)
            if kind == FAILED:
                return Outcome(error=item)
            if kind == STUCK:
                self.limits.stuck.set()
            else:
                self.limits.progress(*item)

    def _trouble(self, error: Exception) -> Exception:
        """What to say where the process itself has failed: killed for want of memory, say."""
        if isinstance(error, EOFError):
            return RuntimeError(f"its process ended with code {self.process.wait()}")
        return RuntimeError(f"its process cannot be talked to: {error}")

    def interrupt(self) -> None:
        """Ask the process to end with what it has."""
        stdin, _ = self._pipes
        with suppress(OSError):  # it has ended already
            stdin.close()


def _serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """The life of a process: work from `source`, what becomes of it to `sink`."""
    jobs: queue.SimpleQueue[Work[Any] | None] = queue.SimpleQueue()
    interrupted, stuck = threading.Event(), threading.Event()
    telling = threading.Lock()

    def read() -> None:
        try:
            while True:
                jobs.put(pickle.load(source))
        except EOFError:
            interrupted.set()
            jobs.put(None)

    def tell(kind: str, item: Any) -> None:
        data = pickle.dumps((kind, item))
        with telling:
            sink.write(data)
            sink.flush()

    latest = 0.0

    def progress(phase: str, incumbent: float | None, bound: float | None) -> None:
        nonlocal latest
        if time.monotonic() - latest > TELL_EVERY_S:
            tell(PROGRESS, (phase, incumbent, bound))
            latest = time.monotonic()

    def compiling(line: str) -> None:
        progress(line, None, None)

    def leave() -> None:
        """End the process where code that is stuck in it would keep it for ever."""
        stuck.wait()
        tell(STUCK, None)
        interrupted.wait()
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    threading.Thread(target=leave, daemon=True).start()
    with COMPILING.telling(compiling):
        while (work := jobs.get()) is not None:
            try:
                tell(DONE, work(Limits(None, interrupted, progress, stuck=stuck)))
            except Exception as error:
                tell(FAILED, _portable(error))


def _portable(error: Exception) -> Exception:
    """The error itself, or one with its text where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent decides
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print goes to standard error
    _serve(sys.stdin.buffer, sink)
    sink.flush()
    os._exit(0)  # without waiting for threads of solvers


if __name__ == "__main__":
    _main()
