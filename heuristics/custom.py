"""What the policies of your own of all families share: how one is made, asked, and blamed."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from traceback import walk_tb
from typing import Any

from optgap.models.errors import InputError, NoQuote


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
        """What it answers to what it is shown, turned by `read` into what was `expected`.

        Raises
        ------
        InputError: naming `where`, for whatever the policy or `read` raises; one that the policy
            raises itself goes through as it is.
        """

        given = self._tried(where, expected, lambda: self.method(*seen, **self.params))
        if read is None:
            return given
        try:
            return read(given)
        except Exception as error:
            found = NoQuote(f"{type(error).__name__}: {error}")
            raise self.wrong(where, found, expected) from error

    def wrong(self, where: str, found: Any, expected: str) -> InputError:
        """The error that an answer is."""
        return InputError(self.name, where, found, expected)

    def _tried(self, where: str, expected: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except InputError:
            raise
        except Exception as error:
            raise self.wrong(where, _shown(error), expected) from error


def listed(answer: Any) -> list[Any]:
    """An answer that is a sequence, or None for an empty one."""
    return list(answer or ())


def _shown(error: Exception) -> NoQuote:
    """A user's exception in one line, with the last line of the user's own file on its way."""
    steps = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_code.co_filename != __file__
    ]
    own = [line for file, line in steps if file == steps[0][0]]
    place = f" ({os.path.basename(steps[0][0])}, line {own[-1]})" if own else ""
    return NoQuote(f"{type(error).__name__}: {error}{place}")
