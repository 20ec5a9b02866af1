"""Work in processes of its own: answers in order, errors as they are, interrupts passed on."""

from __future__ import annotations

import os
import threading
import time
from functools import partial

import pytest

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.processes import Outcome, side_by_side


def processes_of(limits: Limits) -> int:
    return os.getpid()


def _generated(name: str, limits: Limits) -> str:
    from optgap.making import generate

    return str(generate(name).family)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children find this module by its name, as pytest imports it under another."""
    here = os.path.dirname(__file__)
    monkeypatch.syspath_prepend(here)


def work(name: str, *arguments: object) -> partial[object]:
    """A function of this module under the name that children can import it by."""
    import sys

    if __name__ != "test_processes":
        sys.modules.setdefault("test_processes", sys.modules[__name__])
    function = globals()[name]
    function.__module__ = "test_processes"
    return partial(function, *arguments)


def test_answers_come_in_order_from_processes_of_their_own_and_bad_input_stays_bad_input() -> None:
    works = [work("_generated", name) for name in ("coscheduling", "no-such", "queueing")]
    first, bad, last, *processes = side_by_side(
        [*works, work("processes_of"), work("processes_of")], Limits(), processes=2
    )
    assert (first.answer, last.answer) == ("coscheduling", "queueing")
    assert isinstance(bad.error, InputError)
    assert "no-such" in str(bad.error)
    assert os.getpid() not in {outcome.answer for outcome in processes}


def _killed(limits: Limits) -> None:
    os._exit(9)


def test_a_process_that_dies_is_an_error_of_what_was_not_done() -> None:
    outcomes = side_by_side([work("_killed"), work("_waiting")], Limits(), processes=2)
    assert all("EXIT(9)" in str(one.error) for one in outcomes)


def _waiting(limits: Limits) -> str:
    limits.progress("waiting", None, None)
    return "stopped" if limits.interrupted.wait(60) else "late"


def test_an_interrupt_reaches_the_processes_and_what_was_not_begun_stays_so() -> None:
    begun = threading.Event()
    limits = Limits(progress=lambda phase, *_: begun.set() if phase == "waiting" else None)

    def interrupt() -> None:
        begun.wait(60)
        limits.interrupted.set()

    threading.Thread(target=interrupt, daemon=True).start()
    started = time.monotonic()
    outcomes = side_by_side([work("_waiting")] * 3, limits, processes=2)
    assert time.monotonic() - started < 60
    assert {o.answer for o in outcomes[:2]} <= {"stopped", None}
    assert "stopped" in {o.answer for o in outcomes[:2]}
    assert outcomes[2] == Outcome()
