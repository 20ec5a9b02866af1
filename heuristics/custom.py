"""Parts that users' own policies of all families share: making, asking and blaming one."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import fields, replace
from traceback import walk_tb
from typing import Any, TypeVar

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.times import Timed

P = TypeVar("P", bound=Timed)


class Overrun(BaseException):
    """Interruption of a policy that takes too long; no Exception, which the policy could catch."""


class Own:
    """A policy from outside the package.

    Parameters
    ----------
    policy: a class that is made with `params` and has the method `asked`; or an object with that
        method, or a function, which get `params` by keyword.
    asked: the method and what it is asked with, as ``place(state)``.

    Raises
    ------
    InputError: for a class that cannot be made, and where there is nothing to ask.
    """

    def __init__(self, policy: Any, params: Mapping[str, Any] | None, asked: str) -> None:
        self.name = f"policy {getattr(policy, '__name__', type(policy).__name__)}"
        self.params = dict(params or {})
        if inspect.isclass(policy):
            given, self.params = self.params, {}
            policy = self._tried("constructor", "parameters that it takes", lambda: policy(**given))
        self.policy = policy
        method = asked.partition("(")[0]
        self.method: Callable[..., Any] = getattr(policy, method, policy)
        if not callable(self.method):
            expected = f"a class with {asked}, or a function"
            raise self.wrong("", NoQuote(f"no method {method}"), expected)

    def ask(
        self, where: str, expected: str, *seen: Any, read: Callable[[Any], Any] | None = None
    ) -> Any:
        """Show the policy the arguments `seen`, and return its answer as `read` turns it.

        Raises
        ------
        InputError: for any exception of the policy or of `read`, with the place `where`; an
            InputError of the policy itself stays as it is.
        """

        given = self._tried(where, expected, lambda: self.method(*seen, **self.params))
        if read is None:
            return given
        try:
            return read(given)
        except (InputError, Overrun):
            raise
        except BaseException as error:
            raise self.wrong(where, NoQuote(said(error)), expected) from error

    def ask_for_list(self, where: str, expected: str, *seen: Any) -> list[Any]:
        """Return the list that the policy answers, empty for None.

        Raises
        ------
        InputError: as `ask` does, and for an answer that is one thing rather than a list.
        """

        def listed(given: Any) -> list[Any]:
            if given is None:
                return []
            if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
                raise self.wrong(where, given, f"a list of {expected}")
            return list(given)

        answer: list[Any] = self.ask(where, expected, *seen, read=listed)
        return answer

    def wrong(self, where: str, found: Any, expected: str) -> InputError:
        """Return the error for a wrong answer."""
        return InputError(self.name, where, found, expected)

    def _tried(self, where: str, expected: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (InputError, Overrun):
            raise
        except BaseException as error:  # it may leave by sys.exit, too
            raise self.wrong(where, _shown(error), expected) from error


class Arrived:
    """A problem as far as it has happened: a policy does not see jobs that are still to come.

    Arrays of jobs are copies, and what else a policy changes it changes in a copy.

    Parameters
    ----------
    problem: the whole of it, with jobs column by column in order of arrival.
    arrival_s: when each job arrives, s.
    """

    def __init__(self, problem: Any, arrival_s: np.ndarray) -> None:
        self._problem, self._arrival_s = deepcopy(problem), arrival_s
        self._columns = {f.name: getattr(problem.jobs, f.name) for f in fields(problem.jobs)}
        self._count, self._shown = -1, problem

    def at(self, time_s: float) -> Any:
        """Return the problem with the jobs that have arrived by `time_s`."""
        count = int(np.searchsorted(self._arrival_s, time_s, side="right"))
        if count != self._count:
            columns = {name: _first(column, count) for name, column in self._columns.items()}
            jobs = replace(self._problem.jobs, **columns)
            self._count, self._shown = count, replace(self._problem, jobs=jobs)
        return self._shown


def _first(column: Any, count: int) -> Any:
    if not isinstance(column, np.ndarray):
        return column if column is None else column[:count]
    kept = column[:count].copy()
    kept.flags.writeable = column.flags.writeable
    return kept


def by_clock(problem: P, shown: P | None) -> tuple[P, float]:
    """Return the problem by the clock that a policy sees, and how late that is, s.

    A policy runs on `problem`; it sees `shown`, the same at other times, or `problem` without it.
    """
    seen = problem if shown is None else shown
    return seen, seen.epoch_s - problem.epoch_s


def whole(value: Any) -> bool:
    """Tell whether a value is a whole number, numpy's included."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def said(error: BaseException) -> str:
    """Return the name and words of an exception; for SystemExit, its effect."""
    if isinstance(error, SystemExit):
        return "SystemExit, an end of the interpreter"
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _shown(error: BaseException) -> NoQuote:
    """Return a user's exception in one line, with the last line of the user's file that it left."""
    steps = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_code.co_filename != __file__
    ]
    own = [line for file, line in steps if file == steps[0][0]]
    place = f" ({os.path.basename(steps[0][0])}, line {own[-1]})" if own else ""
    return NoQuote(said(error) + place)
