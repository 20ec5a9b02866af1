"""Run a solver's blocking call so that an interrupt or the time limit still gets through."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from optgap.models.limits import Limits

T = TypeVar("T")
POLL_S = 0.05
GRACE_S = 10.0
"""Longest time that a stopped solver may take to return with its incumbent."""


class _Call(Generic[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        self.work = work
        self.result: T | None = None
        self.error: BaseException | None = None

    def __call__(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:  # handed to the caller's thread
            self.error = error


def watch(
    work: Callable[[], T], limits: Limits, cancel: Callable[[], None], grace_s: float = GRACE_S
) -> T | None:
    """Run `work` in a thread of its own, cancel it on `limits.stop`, and return its result.

    Python delivers signals between byte codes of the main thread, so a solver that blocks the
    main thread would keep Ctrl-C waiting until it is done. `cancel` asks the solver to stop and
    may be called more than once. None when the solver did not come back within `grace_s`: its
    thread is left to end by itself.
    """
    call = _Call(work)
    thread = threading.Thread(target=call, name="solver", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # a thread wants a stack
        raise MemoryError(str(error)) from error
    deadline: float | None = None
    try:
        while thread.is_alive():
            thread.join(POLL_S)
            if deadline is None and limits.stop is not None:
                deadline = time.monotonic() + grace_s
            if deadline is not None and thread.is_alive():
                cancel()
                if time.monotonic() >= deadline:
                    return None
    except BaseException:  # Ctrl-C without a handler that sets limits.interrupted
        cancel()
        raise
    if call.error is not None:
        raise call.error
    return call.result
