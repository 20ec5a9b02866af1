"""Pieces of work side by side, each in a process of joblib's back end loky.

Nothing is imported from the caller's script, which needs no ``if __name__ == "__main__"`` for it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from optgap.models.clock import COMPILING
from optgap.models.limits import Limits

Answer = TypeVar("Answer")
Work = Callable[[Limits], Answer]
LOOK_EVERY_S = 0.1
"""Seconds between two looks at the interrupt, and at least between two lines on progress."""
SAFE = {"PYTHONSAFEPATH": "1"}
"""Environment that keeps files in the user's folder from replacing modules of ours."""


def cores() -> int:
    """Return how many processes may run at once on this machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Outcome(Generic[Answer]):
    """Outcome of one piece of work: an answer, or the error that ended it.

    An outcome has neither if limits said stop before the work began.
    """

    answer: Answer | None = None
    error: Exception | None = None


def side_by_side(
    works: Sequence[Work[Answer]], limits: Limits, *, processes: int | None = None
) -> Iterator[tuple[int, Outcome[Answer]]]:
    """Do the works, the first ones first, and yield place and outcome of each as it ends.

    If a process dies, all unfinished works fail with it.

    Parameters
    ----------
    works: functions that are called with limits which pass interrupts and progress on.
    limits: limits with the interrupt that is passed on and the progress that all works report to.
    processes: number of processes at a time; None for one per core. One means this process.
    """
    size = min(processes or cores(), len(works))
    if size <= 1:
        for k, work in enumerate(works):
            yield k, Outcome() if limits.stop else _outcome(partial(work, limits))
        return
    # a quarter of a second to import, which a run in one process does without
    from joblib.externals.loky.backend import get_context
    from joblib.externals.loky.process_executor import ProcessPoolExecutor

    context = get_context("loky")
    interrupted, said = context.Event(), context.SimpleQueue()
    given = (os.getpid(), interrupted, said, limits.effort)
    pool = ProcessPoolExecutor(size, initializer=_begin, initargs=given, env=SAFE)
    ended: SimpleQueue[Any] = SimpleQueue()
    places = {pool.submit(_do, work): k for k, work in enumerate(works)}
    try:
        for future in places:
            future.add_done_callback(ended.put)
        for _ in works:
            future = None
            while future is None:
                with suppress(Empty):
                    future = ended.get(timeout=LOOK_EVERY_S)
                while not said.empty():
                    limits.progress(*said.get())
                if limits.stop and not interrupted.is_set():
                    interrupted.set()
                    for other in places:
                        other.cancel()
            yield places[future], Outcome() if future.cancelled() else _outcome(future.result)
    finally:
        pool.shutdown(kill_workers=True)


def _outcome(work: Callable[[], Answer]) -> Outcome[Answer]:
    try:
        return Outcome(work())
    except BrokenProcessPool as error:
        words = " ".join(str(error).split())
        return Outcome(error=RuntimeError(f"its worker process died: {words}"[:300]))
    except Exception as error:
        return Outcome(error=error)


# -- in a process of its own ---------------------------------------------------------------

_LIMITS: list[Limits] = []
"""Limits of all work that this process will do."""


def belong(parent: int) -> None:
    """Leave Ctrl-C to the process that began this one, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:  # one that died before us is another already
            time.sleep(LOOK_EVERY_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _begin(parent: int, interrupted: Any, said: Any, effort: float) -> None:
    belong(parent)
    os.dup2(2, 1)  # standard output is the parent's alone
    latest = 0.0

    def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
        nonlocal latest
        if time.monotonic() - latest > LOOK_EVERY_S:
            said.put((phase, incumbent, bound))
            latest = time.monotonic()

    _LIMITS[:] = [Limits(None, interrupted, tell, effort=effort)]


def _do(work: Work[Answer]) -> Answer | None:
    limits = _LIMITS[0].each(None)
    if limits.interrupted.is_set():
        return None
    with COMPILING.telling(lambda line: limits.progress(line, None, None)):
        return work(limits)
