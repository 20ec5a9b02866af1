"""Work in processes of its own: answers in order, errors as they are, interrupts passed on.

Functions within functions travel whole; others would be imported, and pytest's modules cannot be.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from optgap.making import generate
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.processes import Outcome, side_by_side


def test_answers_come_in_order_from_processes_of_their_own_and_bad_input_stays_bad_input() -> None:
    def generated(name: str) -> Callable[[Limits], tuple[str, int]]:
        return lambda limits: (str(generate(name).family), os.getpid())

    names = ("coscheduling", "no-such", "queueing")
    found = dict(side_by_side([generated(name) for name in names], Limits(), processes=2))
    first, bad, last = (found[k] for k in range(3))
    assert (first.answer[0], last.answer[0]) == ("coscheduling", "queueing")
    assert os.getpid() not in (first.answer[1], last.answer[1])
    assert isinstance(bad.error, InputError)
    assert "no-such" in str(bad.error)


def waiting() -> Callable[[Limits], str]:
    def wait(limits: Limits) -> str:
        limits.progress("waiting", None, None)
        return "stopped" if limits.interrupted.wait(60) else "late"

    return wait


def test_a_process_that_dies_is_an_error_of_what_was_not_done() -> None:
    outcomes = dict(side_by_side([lambda limits: os._exit(9), waiting()], Limits(), processes=2))
    assert all("EXIT(9)" in str(one.error) for one in outcomes.values())
    assert len(outcomes) == 2


def test_an_interrupt_reaches_the_processes_and_what_was_not_begun_stays_so() -> None:
    begun = threading.Event()
    limits = Limits(progress=lambda phase, *_: begun.set() if phase == "waiting" else None)

    def interrupt() -> None:
        begun.wait(60)
        limits.interrupted.set()

    threading.Thread(target=interrupt, daemon=True).start()
    started = time.monotonic()
    found = dict(side_by_side([waiting()] * 3, limits, processes=2))
    outcomes = [found[k] for k in range(3)]
    assert time.monotonic() - started < 60
    assert {o.answer for o in outcomes[:2]} <= {"stopped", None}
    assert "stopped" in {o.answer for o in outcomes[:2]}
    assert outcomes[2] == Outcome()
