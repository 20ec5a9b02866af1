"""An end for a policy of a user's own that does not come back: from outside, where Python lets us.

Every method and policy of the package looks at its limits itself. Code from outside need not: a
decision may take for ever. It runs in the same process, so the only way to leave it is an exception
that Python raises in its thread between two of its instructions. Code that is busy outside Python
(a call that sleeps, a C extension) hears nothing before it is back.
"""

from __future__ import annotations

import ctypes
import threading
import time

from optgap.models.limits import Limits

GRACE_S = 5.0
"""Seconds that a policy may go on after its limits have said stop: a decision may take a while."""
AGAIN_S = 1.0
"""Seconds between two exceptions, for those who catch whatever comes."""
LOOK_S = 0.1


class Overrun(BaseException):
    """Raised in the thread of code that has not come back; no Exception, which it may catch."""


class Watchdog:
    """Raises `Overrun` in the thread that made it, `GRACE_S` after its limits said stop.

    Once `GRACE_S` more have gone by, ``limits.stuck`` is set: nothing in this process can end the
    code. Whoever makes one calls `end`, and again where an `Overrun` got in between.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._target = threading.get_ident()
        self._over = threading.Lock()  # held until the code is back
        self._over.acquire()
        self._gone = False
        threading.Thread(target=self._watch, daemon=True).start()

    def end(self) -> None:
        """No `Overrun` after this.

        It waits for a flag and joins no thread: an exception within a join leaves the thread for
        ended that has not.
        """
        while True:
            try:
                if self._over.locked():
                    self._over.release()
                while not self._gone:
                    time.sleep(1e-4)
                _raise_in(self._target, None)
                return
            except (Overrun, RuntimeError):  # on its way when the code came back
                continue

    def _watch(self) -> None:
        said, told = None, 0.0
        while not self._over.acquire(timeout=LOOK_S):
            now = time.monotonic()
            if self.limits.stop is None:
                continue
            said = said or now
            late = now - said - GRACE_S
            if late >= 0 and now - told >= AGAIN_S:
                told = now
                _raise_in(self._target, Overrun)
            if late >= GRACE_S:
                self.limits.stuck.set()
        self._gone = True


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Have Python raise an exception in a thread; None takes back one that was not raised yet."""
    what = ctypes.py_object(kind) if kind is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)
