"""End of a user's own policy that does not return, from outside, as far as Python allows.

Every method and policy of the package watches its limits itself. Code from outside need not: a
decision may take for ever. It runs in a thread of its own, which Python ends by an exception
between two of its instructions. Code that is busy outside Python (a call that sleeps, a C
extension) receives no exception; its thread is left behind, and everything else goes on.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from optgap.heuristics.custom import Overrun
from optgap.models.limits import Limits

GRACE_S = 5.0
"""Seconds that a policy may go on after its limits say stop, to end a long decision."""
AGAIN_S = 1.0
"""Seconds between two exceptions, for a policy that catches every exception."""
LOOK_S = 0.1

Found = TypeVar("Found")


def attended(work: Callable[[], Found], limits: Limits) -> Found:
    """Do the work in a thread of its own, and return its answer or raise its error.

    Raises
    ------
    Overrun: if the work has not ended `GRACE_S` after its limits said stop. The thread receives
        an `Overrun` of its own, and is left behind after `GRACE_S` more.
    """
    answers: list[Found] = []
    failures: list[BaseException] = []
    over = threading.Event()
    context = copy_context()

    def body() -> None:
        try:
            answers.append(context.run(work))
        except BaseException as error:
            failures.append(error)
        finally:
            over.set()

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    said, told = None, 0.0
    try:
        while not over.wait(LOOK_S):
            now = time.monotonic()
            if limits.stop is None:
                continue
            said = said or now
            late = now - said - GRACE_S
            if late >= GRACE_S:
                raise Overrun
            if late >= 0 and now - told >= AGAIN_S:
                told = now
                _end(thread)
    except KeyboardInterrupt:  # in a notebook, say
        _end(thread)
        raise
    if failures:
        raise failures[0]
    return answers[0]


def _end(thread: threading.Thread) -> None:
    """Have Python raise `Overrun` in a thread."""
    number = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(Overrun))
