"""Jobs, what they train, and what it costs to start them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from optgap.models.elastic.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class JobClass:
    """A model trained with a global batch, on every GPU count and clock it may have.

    Parameters
    ----------
    model, batch: what is trained; the batch is global, in samples.
    counts: (K,) n, GPU counts that it may run on, ascending.
    time_s: (K, F) T_iter, s per iteration.
    power_w: (K, F) mean power of all n GPUs together, E_iter/T_iter, W.
    """

    model: str
    batch: int
    counts: tuple[int, ...]
    time_s: Floats
    power_w: Floats

    @property
    def label(self) -> str:
        """As tables call it."""
        return f"{self.model}/{self.batch}"

    def iterations_in(self, seconds: float, gpus: int) -> float:
        """As many as take so long on so many GPUs at the highest clock; 1 at the least."""
        return max(1.0, float(round(seconds / self.time_s[self.counts.index(gpus), -1])))


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds without progress when a job starts, resumes, changes its GPU count or moves.

    base_s + per_doubling_s·(1 + log2 n), and forced_s more where a job of unchanged size is
    moved. The GPUs are held and draw idle power meanwhile. The defaults are those of the
    ElasticFlow simulator below 256 GPUs.
    """

    base_s: float = 2.0
    per_doubling_s: float = 2.0
    forced_s: float = 27.0

    @classmethod
    def of_cluster(cls, gpus: int) -> Overhead:
        """Return the ElasticFlow simulator's numbers for a cluster of this size."""
        return cls(7.0, 2.0, 47.0) if gpus >= 256 else cls()

    def seconds(self, gpus: int, moved: bool = False) -> float:
        """Return what one start on n GPUs takes, s."""
        start = self.base_s + self.per_doubling_s * (1.0 + math.log2(gpus))
        if not self.base_s and not self.per_doubling_s:
            start = 0.0
        return start + (self.forced_s if moved else 0.0)

    @property
    def free(self) -> bool:
        """Whether nothing of it costs anything."""
        return not (self.base_s or self.per_doubling_s or self.forced_s)


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs in order of submission.

    Parameters
    ----------
    names: (J,) as users know them.
    submit_s: (J,) when they are known to the scheduler, ascending.
    of_class: (J,) index into the problem's classes.
    iterations: (J,) all there is to do.
    requested: (J,) GPUs that the user asked for: what schedulers that are not elastic give.
    """

    names: tuple[str, ...]
    submit_s: Floats
    of_class: Ints
    iterations: Floats
    requested: Ints

    def __len__(self) -> int:
        return len(self.names)

    def only(self, chosen: Ints) -> Jobs:
        """Return the jobs of these numbers."""
        return Jobs(
            tuple(self.names[k] for k in chosen),
            self.submit_s[chosen],
            self.of_class[chosen],
            self.iterations[chosen],
            self.requested[chosen],
        )


class Kind(IntEnum):
    """Activity of a job in a segment of a schedule."""

    RUN = 0
    """Training at one clock."""
    RESTART = 1
    """Holding its GPUs without progress, at idle power."""
    PROFILE = 2
    """Training while the clock passes through all of F in equal shares of the time; its energy is
    that of the mean power, and a power limit counts the clock that draws most."""
    PRERUN = 3
    """The same on one GPU outside the cluster, before the job may run, without progress."""


class Segment(NamedTuple):
    """Activity of a job from `start_s` to `end_s`; `frequency` and `place` as in a solution."""

    job: int
    start_s: float
    end_s: float
    kind: int
    gpus: int
    frequency: int = -1
    place: int = -1
