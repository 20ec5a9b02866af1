"""Tasks that come and leave: the horizon over which energy is counted."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.arrays import FloatArray
from optgap.models.times import LATEST_S, SHORTEST_S, shown

if TYPE_CHECKING:
    from optgap.models.jsonio import Fields
    from optgap.models.placement.tasks import Tasks

GONE = ("sleep_after_s", "wake_s", "off_w")
"""Fields of nodes that are switched off, which problems had once."""
NO_QUEUE = "reject: tasks no longer wait (queueing has jobs that do)"
"""What is expected of the queue, of which problems had three kinds once."""


@dataclass(frozen=True, slots=True)
class OverTime:
    """Part of a problem over time that a problem with endless tasks lacks.

    A task that no node can take at once is turned away, so whatever runs starts when it is
    submitted.

    Parameters
    ----------
    begin_s: when the horizon begins, s; NaN for the first submission.
    horizon_s: its length, s; NaN for what is needed so that every task ends within it that is
        started when it is submitted.
    """

    begin_s: float = math.nan
    horizon_s: float = math.nan

    @property
    def end_s(self) -> float:
        """End of the horizon, s."""
        return self.begin_s + self.horizon_s

    def settled(self, tasks: Tasks, source: str) -> OverTime:
        """Return the rules with begin and length of the horizon, checked against the tasks.

        Raises
        ------
        InputError: for a horizon that is none, a task that is submitted outside of it, or one that
            never leaves where no horizon is given.
        """
        begin = float(tasks.submit_s.min()) if math.isnan(self.begin_s) else float(self.begin_s)
        length = float(self.horizon_s)
        if math.isnan(length):
            length = float((tasks.submit_s + tasks.duration_s).max()) - begin
            if math.isinf(length):
                k = int(np.flatnonzero(np.isinf(tasks.duration_s))[0])
                found = NoQuote(f"nothing, and task {k} ({tasks.names[k]}) never leaves")
                raise InputError(source, "field over_time.horizon_s", found, "a time in s")
        for name, value in (("begin_s", begin), ("horizon_s", length)):
            if not abs(value) <= LATEST_S:
                expected = f"a time in s, {LATEST_S:g} at most"
                raise InputError(source, f"field over_time.{name}", value, expected)
        if length < SHORTEST_S:
            expected = f"a time of at least {SHORTEST_S:g} s"
            raise InputError(source, "field over_time.horizon_s", length, expected)
        settled = replace(self, begin_s=begin, horizon_s=length)
        outside = (tasks.submit_s < begin) | (tasks.submit_s >= settled.end_s)
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            expected = f"a time within the horizon, {shown(begin)} to {shown(settled.end_s)} s"
            where = f"field tasks.submit_s[{k}]"
            raise InputError(source, where, float(tasks.submit_s[k]), expected)
        return settled

    def lasting_s(self, tasks: Tasks) -> FloatArray:
        """Return each task's run time, (T,), s: its duration, or to the horizon's end if less."""
        lasting: FloatArray = np.where(
            tasks.submit_s + tasks.duration_s <= self.end_s,
            tasks.duration_s,
            self.end_s - tasks.submit_s,
        )
        lasting.flags.writeable = False
        return lasting

    def moved(self, by_s: float) -> OverTime:
        """Return the same horizon so much later."""
        return replace(self, begin_s=self.begin_s + by_s)

    def to_json(self) -> dict[str, Any]:
        return {"queue": "reject", **asdict(self)}

    @classmethod
    def from_json(cls, fields: Fields) -> OverTime:
        """Read the JSON form; what is left out is as in `OverTime`.

        Raises
        ------
        InputError: for tasks that wait or nodes that are switched off, which are no longer
            modelled.
        """
        if (queue := fields.text("queue", "reject")) != "reject":
            raise InputError(fields.source, "field over_time.queue", queue, NO_QUEUE)
        for name in GONE:
            if name in fields.document:
                expected = "no such field: nodes stay on"
                raise InputError(
                    fields.source, f"field over_time.{name}", fields.document[name], expected
                )
        begin = fields.known_number("begin_s")
        length = fields.known_number("horizon_s")
        return cls(
            math.nan if begin is None else begin,
            math.nan if length is None else length,
        )
