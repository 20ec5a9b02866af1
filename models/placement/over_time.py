"""Tasks that come and leave: the queue, and the horizon over which energy is counted."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.placement.arrays import FloatArray
from optgap.models.times import LATEST_S, SHORTEST_S, shown

if TYPE_CHECKING:
    from optgap.models.jsonio import Fields
    from optgap.models.placement.tasks import Tasks

Queue = Literal["reject", "fifo", "backfill"]
GONE = ("sleep_after_s", "wake_s", "off_w")
"""Fields of nodes that are switched off, which problems had once."""


@dataclass(frozen=True, slots=True)
class OverTime:
    """Part of a problem over time that a problem with endless tasks lacks.

    Parameters
    ----------
    queue: what becomes of a task that no node can take at once.
        ``reject``: it is turned away, so whatever runs starts when it is submitted.
        ``fifo``: it waits, and so does everything that is submitted after it.
        ``backfill``: it waits; what comes later and fits may go ahead of it, without reservation.
        The order is the policies' discipline; a schedule with hindsight may start waiting tasks
        in any order.
    begin_s: when the horizon begins, s; NaN for the first submission.
    horizon_s: its length, s; NaN for what is needed so that every task ends within it that is
        started when it is submitted.
    """

    queue: Queue = "reject"
    begin_s: float = math.nan
    horizon_s: float = math.nan

    @property
    def end_s(self) -> float:
        """End of the horizon, s."""
        return self.begin_s + self.horizon_s

    @property
    def waits(self) -> bool:
        """Whether tasks may start later than they are submitted."""
        return self.queue != "reject"

    def settled(self, tasks: Tasks, source: str) -> OverTime:
        """Return the rules with begin and length of the horizon, checked against the tasks.

        Raises
        ------
        InputError: for an unknown queue, a horizon that is none, a task that is submitted
            outside of it, or one that never leaves where no horizon is given.
        """
        if self.queue not in get_args(Queue):
            raise InputError(source, "field over_time.queue", self.queue, one_of(get_args(Queue)))
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
        """Return each task's run time, (T,), s: its duration, or to the horizon's end if less.

        A task that waited runs as long as if it had not, beyond the horizon's end if need be.
        """
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
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Fields) -> OverTime:
        """Read the JSON form; what is left out is as in `OverTime`.

        Raises
        ------
        InputError: for nodes that are switched off, which is no longer modelled.
        """
        for name in GONE:
            if name in fields.document:
                expected = "no such field: nodes stay on"
                raise InputError(
                    fields.source, f"field over_time.{name}", fields.document[name], expected
                )
        begin = fields.known_number("begin_s")
        length = fields.known_number("horizon_s")
        return cls(
            fields.text("queue", "reject"),  # type: ignore[arg-type]  # checked by settled
            math.nan if begin is None else begin,
            math.nan if length is None else length,
        )
