"""GPUs, places and frequencies of every job over time."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optgap.models.elastic.jobs import Kind, Segment
from optgap.models.elastic.referee import finished, powers, step_function
from optgap.models.errors import NoQuote, one_of
from optgap.models.shown import Brief
from optgap.models.times import slack_s

if TYPE_CHECKING:
    from optgap.models.csvout import Table
    from optgap.models.elastic.problem import ElasticProblem
    from optgap.models.jsonio import Fields

SCHEMA = "optgap.elastic.solution/1"


@dataclass(frozen=True, eq=False, repr=False)
class ElasticSolution(Brief):
    """Elastic solution: segments of jobs by (start, job); a job ends with its last iteration.

    Parameters
    ----------
    job, kind, gpus, place: (S,) integers; `place` is an index into `places`, −1 where none is
        stated (then only counts are checked).
    start_s, end_s: start and end of each segment, shape (S,), s.
    frequency: (S,) index into the problem's clocks; −1 unless the kind is RUN.
    places: the first GPU of every block: one block of n ≤ GPUs per node that starts at a
        multiple of n, or n / (GPUs per node) whole nodes.
    switch_off: nodes without a job are switched off and draw nothing.
    power_limit_w: declared limit, W, if it is above the problem's own; None otherwise.
        Such a solution is measured against bounds for that limit.
    """

    job: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    kind: NDArray[np.int64]
    gpus: NDArray[np.int64]
    frequency: NDArray[np.int64]
    place: NDArray[np.int64]
    places: tuple[tuple[int, ...], ...] = ()
    switch_off: bool = False
    power_limit_w: float | None = None

    @classmethod
    def of(
        cls,
        segments: Sequence[Segment],
        places: Sequence[tuple[int, ...]] = (),
        switch_off: bool = False,
        power_limit_w: float | None = None,
    ) -> ElasticSolution:
        """Make a solution of segments in any order."""
        rows = np.array(segments, dtype=np.float64).reshape(-1, 7)
        rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
        job, kind, gpus, frequency, place = rows[:, [0, 3, 4, 5, 6]].T.astype(np.int64)
        start_s, end_s = rows[:, 1:3].T.copy()
        return cls(
            job, start_s, end_s, kind, gpus, frequency, place, tuple(places), switch_off,
            power_limit_w,
        )  # fmt: skip

    def moved(self, by_s: float) -> ElasticSolution:
        """Return the segments shifted by `by_s`, without those that rounding leaves no length."""
        start, end = self.start_s + by_s, self.end_s + by_s
        real = (end > start) | ~(self.end_s > self.start_s)
        columns = {
            name: getattr(self, name)[real]
            for name in ("job", "kind", "gpus", "frequency", "place")
        }
        return replace(self, start_s=start[real], end_s=end[real], **columns)

    def __len__(self) -> int:
        return len(self.job)

    def timeline(self, problem: ElasticProblem) -> Table:
        """Return the events of jobs, in order of time.

        Events: ``submit``, ``prerun``, ``restart``, ``profile``, ``run`` (or a change of clock),
        ``pause`` (GPUs taken away) and ``complete``.
        """
        clocks = np.append(problem.frequencies_mhz, 0.0)
        rows: list[tuple[float, int, int, str, int, float]] = [
            (t, 0, j, "submit", 0, 0.0) for j, t in enumerate(problem.jobs.submit_s.tolist())
        ]
        done = finished(problem, self)
        order = np.lexsort((self.start_s, self.job)).tolist()
        for s, after in zip(order, [*order[1:], -1], strict=True):
            job, kind = int(self.job[s]), Kind(int(self.kind[s]))
            clock = float(clocks[self.frequency[s]]) if kind is Kind.RUN else 0.0
            start, end = float(self.start_s[s]), float(self.end_s[s])
            rows.append((start, 2, job, kind.name.lower(), int(self.gpus[s]), clock))
            if after < 0 or self.job[after] != job:
                rows.append((end, 1, job, "complete" if done[job] else "pause", 0, 0.0))
            elif kind is not Kind.PRERUN and self.start_s[after] > end:
                rows.append((end, 1, job, "pause", 0, 0.0))
        rows.sort(key=lambda row: row[:3])
        names = problem.jobs.names
        return ("time_s", "job", "event", "gpus", "frequency_mhz"), [
            (t, names[j], event, n, f) for t, _, j, event, n, f in rows
        ]

    def series(self, problem: ElasticProblem) -> Table:
        """Return jobs, GPUs and power (W) after each change.

        Idle power counts all nodes, or with switching off as few as hold the GPUs in use.
        """
        inside = self.kind != Kind.PRERUN
        start, end, n = self.start_s[inside], self.end_s[inside], self.gpus[inside].astype(float)
        columns = [
            step_function(start, end, value, 0.0)
            for value in (np.ones(len(n)), n, powers(problem, self)[inside])
        ]
        times, (jobs, used, watts) = columns[0][0], (column[1] for column in columns)
        last = np.append(np.diff(times) > slack_s(times[1:]), True)
        per = problem.gpus_per_node
        on = np.ceil(used / per - 1e-6) * per if self.switch_off else float(problem.gpus)
        idle = np.maximum(0.0, on - used) * problem.idle_w
        limit = problem.power_limit_w if np.isfinite(problem.power_limit_w) else ""
        header = ("time_s", "jobs_running", "gpus_used", "power_jobs_w", "power_idle_w",
                  "power_limit_w")  # fmt: skip
        return header, [
            (f"{times[k]:.6f}", round(jobs[k]), round(used[k]), f"{max(0.0, watts[k]):.3f}",
             f"{idle[k]:.3f}", limit)
            for k in np.flatnonzero(last)
        ]  # fmt: skip

    def to_json(self, problem: ElasticProblem) -> dict[str, Any]:
        """Return the JSON form, by columns; frequencies in MHz."""
        clocks = np.append(problem.frequencies_mhz, 0.0)[self.frequency]
        names = [kind.name.lower() for kind in Kind]
        return {
            "schema": SCHEMA,
            "switch_off": self.switch_off,
            "power_limit_w": self.power_limit_w,
            "places": [list(place) for place in self.places],
            "segments": {
                "job": self.job.tolist(),
                "start_s": self.start_s.tolist(),
                "end_s": self.end_s.tolist(),
                "kind": [names[k] for k in self.kind.tolist()],
                "gpus": self.gpus.tolist(),
                "frequency_mhz": clocks.tolist(),
                "place": self.place.tolist(),
            },
        }

    @classmethod
    def from_json(cls, fields: Fields, problem: ElasticProblem) -> ElasticSolution:
        """Read a solution of `problem`.

        Raises
        ------
        InputError: with the name of a field that is missing or wrong.
        """
        fields.schema(SCHEMA)
        item = fields.object("segments")
        columns: dict[str, list[Any]] = {
            "job": item.integers("job"),
            "start_s": item.numbers("start_s"),
            "end_s": item.numbers("end_s"),
            "kind": item.texts("kind"),
            "gpus": item.integers("gpus", minimum=1),
            "frequency_mhz": item.numbers("frequency_mhz"),
            "place": item.integers("place", minimum=-1),
        }
        size = len(columns["job"])
        for key, values in columns.items():
            if len(values) != size:
                raise item.fail(key, NoQuote(f"{len(values)} entries"), f"{size}, as in job")
        places = [tuple(_place(fields, k, entry)) for k, entry in enumerate(fields.array("places"))]
        kinds = {kind.name.lower(): int(kind) for kind in Kind}
        clocks = {0.0: -1, **{float(f): k for k, f in enumerate(problem.frequencies_mhz)}}
        known: tuple[tuple[str, Container[Any], str], ...] = (
            ("frequency_mhz", clocks, "a clock of the problem, or 0"),
            ("kind", kinds, one_of(kinds)),
            ("job", range(len(problem)), f"a job below {len(problem)}"),
            ("place", range(-1, len(places)), f"an index below {len(places)}, or -1"),
        )
        for key, those, expected in known:
            for k, value in enumerate(columns[key]):
                if value not in those:
                    raise item.fail(f"{key}[{k}]", value, expected)
        columns["kind"] = [kinds[word] for word in columns["kind"]]
        columns["frequency_mhz"] = [clocks[mhz] for mhz in columns["frequency_mhz"]]
        limit = fields.document.get("power_limit_w")
        return cls.of(
            [Segment(*row) for row in zip(*columns.values(), strict=True)],
            places,
            bool(fields.get("switch_off", bool, "true or false")),
            None if limit is None else fields.number("power_limit_w"),
        )


def _place(fields: Fields, k: int, entry: Any) -> list[int]:
    """Read one place: a list of GPU numbers."""
    if not isinstance(entry, list) or not all(type(x) is int and x >= 0 for x in entry):
        raise fields.fail(f"places[{k}]", entry, "a list of GPU numbers")
    return entry
