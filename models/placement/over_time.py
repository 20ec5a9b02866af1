"""Tasks that come and leave: the queue, and the horizon over which energy is counted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.placement.arrays import LATEST_S, FloatArray
from optgap.models.times import SHORTEST_S, shown

if TYPE_CHECKING:
    from optgap.models.jsonio import Fields
    from optgap.models.placement.tasks import Tasks

Queue = Literal["reject", "fifo", "backfill"]
LONGEST_BOOT_S = 1e6


@dataclass(frozen=True, slots=True)
class OverTime:
    """What a problem over time adds to one whose tasks stay for ever.

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
    sleep_after_s: how long a node holds nothing until it is switched off, s; infinity where nodes
        stay on. All are off at first.
    wake_s: how long one takes to boot, s: it then draws what it does with what is placed on it,
        which does not run yet.
    off_w: power of a node that is off, W.
    """

    queue: Queue = "reject"
    begin_s: float = math.nan
    horizon_s: float = math.nan
    sleep_after_s: float = math.inf
    wake_s: float = 0.0
    off_w: float = 0.0

    @property
    def sleeps(self) -> bool:
        """Whether nodes that hold nothing are switched off."""
        return self.sleep_after_s < math.inf

    @property
    def end_s(self) -> float:
        """When the horizon ends, s."""
        return self.begin_s + self.horizon_s

    @property
    def waits(self) -> bool:
        """Whether tasks may start later than they are submitted."""
        return self.queue != "reject"

    def settled(self, tasks: Tasks, source: str) -> OverTime:
        """The same with the horizon's begin and length as numbers, checked against the tasks.

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
        self._require_sleep(source)
        settled = replace(self, begin_s=begin, horizon_s=length)
        outside = (tasks.submit_s < begin) | (tasks.submit_s >= settled.end_s)
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            expected = f"a time within the horizon, {shown(begin)} to {shown(settled.end_s)} s"
            where = f"field tasks.submit_s[{k}]"
            raise InputError(source, where, float(tasks.submit_s[k]), expected)
        return settled

    def _require_sleep(self, source: str) -> None:
        for name, most in (("sleep_after_s", math.inf), ("wake_s", LONGEST_BOOT_S), ("off_w", 1e6)):
            value = getattr(self, name)
            if not 0 <= value <= most:
                expected = "at least 0" if most == math.inf else f"0 to {most:g}"
                raise InputError(source, f"field over_time.{name}", value, expected)
            if value and not self.sleeps and name != "sleep_after_s":
                expected = "sleep_after_s beside it: nodes stay on"
                raise InputError(source, f"field over_time.{name}", value, expected)

    def lasting_s(self, tasks: Tasks) -> FloatArray:
        """(T,) how long each task runs: its duration, or to the horizon's end if that is less.

        A task that waited, or whose node booted, runs as long as if it had not, beyond the
        horizon's end if need be.
        """
        lasting: FloatArray = np.where(
            tasks.submit_s + tasks.duration_s <= self.end_s,
            tasks.duration_s,
            self.end_s - tasks.submit_s,
        )
        lasting.flags.writeable = False
        return lasting

    def moved(self, by_s: float) -> OverTime:
        """The same horizon so much later."""
        return replace(self, begin_s=self.begin_s + by_s)

    def to_json(self) -> dict[str, Any]:
        document = {"queue": self.queue, "begin_s": self.begin_s, "horizon_s": self.horizon_s}
        if self.sleeps:
            names = ("sleep_after_s", "wake_s", "off_w")
            document |= {name: getattr(self, name) for name in names}
        return document

    @classmethod
    def from_json(cls, fields: Fields) -> OverTime:
        """Read the JSON form; what is left out is as in `OverTime`."""
        begin = fields.known_number("begin_s")
        length = fields.known_number("horizon_s")
        sleep_after = fields.known_number("sleep_after_s", 0.0)
        return cls(
            fields.text("queue", "reject"),  # type: ignore[arg-type]  # checked by settled
            math.nan if begin is None else begin,
            math.nan if length is None else length,
            math.inf if sleep_after is None else sleep_after,
            fields.number("wake_s", default=0.0),
            fields.number("off_w", default=0.0),
        )
