"""Pieces of work side by side, each in a process of its own: joblib's (loky).

Nothing is imported from the caller's script, which needs no ``if __name__ == "__main__"`` for it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from optgap.models.clock import COMPILING
from optgap.models.limits import Limits

Answer = TypeVar("Answer")
Work = Callable[[Limits], Answer]
LOOK_EVERY_S = 0.1
"""Seconds between two looks at the interrupt, and between two words on progress at least."""
SAFE = {"PYTHONSAFEPATH": "1"}
"""No file of the folder that the user is in stands in for a module of ours."""


def cores() -> int:
    """How many processes may run at once on this machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessDied(RuntimeError):
    """A process ended before its work did: killed for want of memory, say."""


class Processes:
    """So many processes of this machine; one that dies takes no other's work with it.

    Parameters
    ----------
    begin: called in each new process, before any work.
    """

    def __init__(self, count: int, begin: Callable[[], None] | None = None) -> None:
        self._begin = partial(_begin, os.getpid(), begin)
        self._threads = ThreadPoolExecutor(count)
        self._own = threading.local()
        self._all: list[Any] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a process call the function; `ProcessDied` is raised where the process did."""
        return self._threads.submit(self._call, function, arguments)

    def _call(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        # a quarter of a second to import, which a run in one process does without
        from joblib.externals.loky.process_executor import (
            ProcessPoolExecutor,
            ShutdownExecutorError,
        )

        if getattr(self._own, "process", None) is None:
            self._own.process = ProcessPoolExecutor(1, initializer=self._begin, env=SAFE)
            self._all.append(self._own.process)
        try:
            return self._own.process.submit(function, *arguments).result()
        except (BrokenProcessPool, ShutdownExecutorError) as error:
            self._own.process = None
            words = " ".join(str(error).split())
            raise ProcessDied(f"its worker process died: {words}"[:300]) from None

    def kill(self) -> None:
        """End all processes now; what they were at is lost."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._all:
            process.shutdown(kill_workers=True)


def _begin(parent: int, then: Callable[[], None] | None) -> None:
    """Leave Ctrl-C to the parent, do not outlive it, and print to standard error alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)

    def watch() -> None:
        while os.getppid() == parent:  # one that died before us is another already
            time.sleep(LOOK_EVERY_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if then is not None:
        then()


@dataclass(frozen=True)
class Outcome(Generic[Answer]):
    """What became of one piece of work: an answer, or the error that ended it.

    Neither: it had not been begun, or could not be ended, when the whole was interrupted.
    """

    answer: Answer | None = None
    error: Exception | None = None


def side_by_side(
    works: Sequence[Work[Answer]], limits: Limits, *, processes: int | None = None
) -> list[Outcome[Answer]]:
    """Do the works, the first ones first; one outcome each, in their order.

    Parameters
    ----------
    works: called with limits that pass interrupts and progress on.
    limits: whose interrupt is passed on; whose progress is told by all of them.
    processes: at a time; None for as many as there are cores. With one, all is done here.
    """
    size = min(processes or cores(), len(works))
    if size <= 1:
        return [
            _outcome(partial(work, limits)) if not limits.interrupted.is_set() else Outcome()
            for work in works
        ]
    from joblib.externals.loky.backend import get_context

    context = get_context("loky")
    interrupted, said = context.Event(), context.SimpleQueue()
    pool = Processes(size, partial(_listen, interrupted, said, limits.effort))
    waiting = futures = [pool.submit(_do, work) for work in works]
    try:
        while waiting:
            waiting = list(wait(futures, LOOK_EVERY_S).not_done)
            while not said.empty():
                limits.progress(*said.get())
            if limits.interrupted.is_set():
                interrupted.set()
                for future in futures:
                    future.cancel()
    finally:
        pool.kill()
    cut = limits.interrupted.is_set()
    return [Outcome() if f.cancelled() else _outcome(f.result, cut) for f in futures]


def _outcome(work: Callable[[], Answer], cut: bool = False) -> Outcome[Answer]:
    try:
        return Outcome(work())
    except Exception as error:
        if cut and isinstance(error, ProcessDied):
            return Outcome()
        return Outcome(error=error)


# -- in a process of its own ---------------------------------------------------------------

_LIMITS: list[Limits] = []


def _listen(interrupted: Any, said: Any, effort: float) -> None:
    """Keep the limits of all work that this process will do."""
    latest = 0.0

    def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
        nonlocal latest
        if time.monotonic() - latest > LOOK_EVERY_S:
            said.put((phase, incumbent, bound))
            latest = time.monotonic()

    _LIMITS[:] = [Limits(None, interrupted, tell, effort=effort)]


def _do(work: Work[Any]) -> Any:
    limits = _LIMITS[0].each(None)
    with COMPILING.telling(lambda line: limits.progress(line, None, None)):
        return work(limits)
