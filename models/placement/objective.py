"""Objectives of a placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from optgap.models.errors import InputError, one_of
from optgap.models.result import Objective

Goal = Literal["power", "fragmentation", "weighted", "accepted_gpu"]
TimeGoal = Literal["energy", "mean_fragmentation", "mean_weighted", "mean_accepted_gpu"]
AT_A_MOMENT: dict[str, Goal] = {
    "energy": "power",
    "mean_fragmentation": "fragmentation",
    "mean_weighted": "weighted",
    "mean_accepted_gpu": "accepted_gpu",
}
"""Goal at a moment whose integral or mean each goal over time is."""


@dataclass(frozen=True, slots=True)
class PlacementObjective:
    """Objective to optimise.

    Parameters
    ----------
    goal:
        ``power``: minimise P_datacenter (Eq. 3), W.
        ``fragmentation``: minimise F_datacenter (Eq. 4), milli-GPU.
        ``weighted``: minimise α·P + (1−α)·w·F (Eq. 5), W, with F in GPUs.
        ``accepted_gpu``: maximise the GPU demand of the tasks placed, milli-GPU.
        The first three compare solutions that place the *same* tasks; exact methods and
        bounds take them to mean: place all of them.
        Where tasks leave: ``energy``, J, ``mean_fragmentation``, milli-GPU, ``mean_weighted``, W,
        and ``mean_accepted_gpu``, milli-GPU: the same over the horizon, see `PlacementProblem`.
    alpha: α of Eq. 5, from 0 to 1.
    watts_per_gpu: w, what one fragmented GPU counts, in W. Eq. 5 adds watts and GPUs without
        saying so; the default, 120 W, is what activating one more GPU of the cluster's most
        common model (G2, 150 − 30 W) costs. ``watts_per_gpu=1`` is the formula as printed.
    """

    goal: Goal | TimeGoal = "power"
    alpha: float = 0.5
    watts_per_gpu: float = 120.0

    @property
    def over_time(self) -> bool:
        """Whether it is one for tasks that come and leave."""
        return self.goal in AT_A_MOMENT

    @property
    def at_a_moment(self) -> PlacementObjective:
        """The goal whose integral or mean this one is; itself where nothing leaves."""
        goal = AT_A_MOMENT.get(self.goal, self.goal)
        return PlacementObjective(goal, self.alpha, self.watts_per_gpu)

    @property
    def described(self) -> Objective:
        """Name, unit and sense."""
        unit = {
            "energy": "J",
            "power": "W",
            "weighted": "W",
            "mean_weighted": "W",
        }.get(self.goal, "milli-GPU")
        return Objective(self.goal, unit, "max" if "accepted" in self.goal else "min")

    @property
    def weights(self) -> tuple[float, float]:
        """(per W of power, per milli-GPU of fragmentation), at a moment, in its own unit."""
        goal = self.at_a_moment.goal
        if goal == "power":
            return 1.0, 0.0
        if goal == "fragmentation":
            return 0.0, 1.0
        if goal == "weighted":
            return self.alpha, (1 - self.alpha) * self.watts_per_gpu / 1000
        return 0.0, 0.0

    def validate(self, source: str, over_time: bool = False) -> None:
        """Raise InputError when a field is out of range."""
        goals = get_args(TimeGoal if over_time else Goal)
        if self.goal not in goals:
            raise InputError(source, "field objective.goal", self.goal, one_of(goals))
        if not 0 <= self.alpha <= 1:
            raise InputError(source, "field objective.alpha", self.alpha, "a number from 0 to 1")
        if not 0 <= self.watts_per_gpu < float("inf"):
            raise InputError(
                source, "field objective.watts_per_gpu", self.watts_per_gpu, "a power in W"
            )


def over_time_goal(goal: str) -> TimeGoal:
    """Return the goal over time for a goal at a moment; others stay, and are checked later."""
    named: Any = {at: over for over, at in AT_A_MOMENT.items()}
    found: TimeGoal = named.get(goal, goal)
    return found
