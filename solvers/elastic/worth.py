"""What a GPU and a watt were worth at the decisions of a schedule: multipliers of Eq. 18-19."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.referee import rates
from optgap.models.elastic.snapshot import Choices, Snapshot
from optgap.solvers.elastic.regret import active, moments
from optgap.solvers.elastic.relaxation import relaxed

if TYPE_CHECKING:
    import pandas as pd

MOST_DECISIONS = 40
"""That are priced: at most so many, spread evenly over the schedule."""


@dataclass(frozen=True)
class Worth:
    """Prices over a schedule.

    Parameters
    ----------
    time_s: (T,) moments, from the problem's first submission on.
    jobs: (T,) jobs that may run.
    bound_s: (T,) proven lower bound on the sum of their remaining times.
    gpu_s, kilowatt_s: (T,) s that one GPU or one kW more would save them together, at most: the
        more there is, the less the next is worth. Where jobs wait for a GPU that includes what
        waiting counts for: twice the longest remaining time.
    """

    time_s: Floats
    jobs: Ints
    bound_s: Floats
    gpu_s: Floats
    kilowatt_s: Floats

    @property
    def dearest_s(self) -> float:
        """When another kW would save most; where none would, when most jobs are there."""
        most = self.kilowatt_s if self.kilowatt_s.any() else self.jobs
        return float(self.time_s[int(np.argmax(most))])

    def to_frame(self) -> pd.DataFrame:
        """One line per decision."""
        import pandas as pd

        return pd.DataFrame(vars(self))

    def __str__(self) -> str:
        if not len(self.time_s):
            return "no decision to price"
        gpu, power = float(np.median(self.gpu_s)), float(np.median(self.kilowatt_s))
        many = len(self.time_s)
        if not self.kilowatt_s.any():
            return (
                f"power is short at none of {many} decisions; another GPU saves up to {gpu:,.0f} s"
            )
        first = f"at {many} decisions another kW would save the jobs there up to "
        k = int(np.argmax(self.kilowatt_s))
        most = f"{self.kilowatt_s[k]:,.0f} s at {self.time_s[k]:,.0f} s"
        return f"{first}{power:,.0f} s together (median; most: {most}), another GPU {gpu:,.0f} s"


def worth(problem: ElasticProblem, solution: ElasticSolution, most: int = MOST_DECISIONS) -> Worth:
    """What resources are worth at (some of) the moments in which a schedule decides."""
    choices, speed = Choices.of(problem), rates(problem, solution)
    rows: list[tuple[float, int, float, float, float]] = []
    for t in moments(solution, most).tolist():
        jobs, left = active(problem, solution, speed, t)
        if not len(jobs):
            continue
        of_class = problem.jobs.of_class[jobs]
        found = relaxed(Snapshot.of(choices, problem, of_class, left, problem.power_allowed_w))
        after = t - problem.epoch_s
        rows.append((after, len(jobs), found.bound, found.gpu_s, 1000 * found.watt_s))
    columns = np.array(rows, dtype=float).reshape(-1, 5).T
    time_s, count, bound, gpu, kilowatt = columns
    return Worth(time_s, count.astype(np.int64), bound, gpu, kilowatt)


def csv(problem: ElasticProblem, solution: ElasticSolution) -> str:
    """`worth` as CSV text."""
    text: str = worth(problem, solution).to_frame().to_csv(index=False)
    return text
