"""What the compiled event loop works on: who runs where, and how far each task is, as arrays."""

from __future__ import annotations

from typing import NamedTuple

from optgap.models.consolidation.tasks import FloatArray, IntArray


class Tables(NamedTuple):
    """What runs where, and how far it is. Entries are the GPUs of tasks, one after another.

    Parameters
    ----------
    held, many: (G, most) and (G,) the residents of each GPU. slowdown: (G,) by their contention.
    ready: (G,) when each GPU is awake, s.
    start, place, speed: (L+1,) the first entry of each task; (entries,) its GPU and what the clock
        there lets it do.
    series, offset, length: samples of all tasks, where each begins, and how many it has.
    at, sample: (L,) the present sample of each task, and its utilisation, %.
    duration, progress, rate: (L,) s, s and s per s. since, due: (L,) when progress was counted
        last, and when the sample or the task ends, s.
    period, exponent: s per sample, and q of the slowdown.
    """

    held: IntArray
    many: IntArray
    slowdown: FloatArray
    ready: FloatArray
    start: IntArray
    place: IntArray
    speed: FloatArray
    series: FloatArray
    offset: IntArray
    length: IntArray
    at: IntArray
    sample: FloatArray
    duration: FloatArray
    progress: FloatArray
    rate: FloatArray
    since: FloatArray
    due: FloatArray
    period: float
    exponent: float
