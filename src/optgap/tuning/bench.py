"""Instances with their bounds, and the gaps of a setting on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optgap.api import choose_method, choose_policy, execute, serves
from optgap.contract import Problem
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits, silent
from optgap.models.result import Result, relative_gap
from optgap.registry import Runnable
from optgap.tuning.ranges import Setting
from optgap.tuning.result import Scores


@dataclass(frozen=True, slots=True)
class Instance:
    """A problem and a proven bound, which is not 0."""

    problem: Problem
    bound: float


class Bench:
    """Bounds instances, and scores settings on them, each only once."""

    def __init__(
        self, runnable: Runnable, seed: int, time_limit: float | None, limits: Limits
    ) -> None:
        self.runnable = runnable
        self.seed = seed
        self.time_limit = time_limit
        self.limits = limits
        self.listens = True
        self._known: dict[tuple[int, str], Scores] = {}

    def _own(self) -> Limits:
        if not self.listens:
            return Limits(self.time_limit)
        return self.limits.each(self.time_limit, silent)

    def bounded(self, problem: Problem, method: str) -> Instance:
        """The instance with a proven bound."""
        self.limits.progress(f"bounding {problem.name}", None, None)
        chosen = choose_method(problem, method, bounding=True)
        proof = execute(problem, chosen, self._own(), self.seed, bound_only=True)
        if self.limits.stop is not None:  # nothing has been tried that could be told
            raise KeyboardInterrupt
        if not proof.bound:
            found = NoQuote(
                f"no bound by {chosen.label}" if proof.bound is None else "a bound of 0"
            )
            raise InputError("--bound", problem.name, found, "an instance with a bound but 0")
        return Instance(problem, proof.bound)

    def scores(self, instances: Sequence[Instance], setting: Setting) -> Scores:
        """Gaps of a setting on a set of instances."""
        key = (id(instances), str(sorted(setting.items())))
        if key not in self._known:
            pairs = [self._gap(instance, setting) for instance in instances]
            self._known[key] = Scores(
                tuple(gap for gap, _ in pairs), sum(part for _, part in pairs)
            )
        return self._known[key]

    def _gap(self, instance: Instance, setting: Setting) -> tuple[float | None, bool]:
        """The gap on one instance, and whether it is for a part of it only."""
        problem = instance.problem
        chosen = self._with(problem, setting)
        result = execute(problem, chosen, self._own(), self.seed)
        if result.solution is None:
            return None, False
        if serves(result):
            return relative_gap(result.objective, instance.bound), False
        return relative_gap(result.objective, self._part_bound(problem, result)), True

    def _with(self, problem: Problem, setting: Setting) -> Runnable:
        own = self.runnable
        if own.own:
            inner = {**own.params["policy_params"], **setting}
            return replace(own, params={**own.params, "policy_params": inner})
        return choose_policy(problem, own.entry.name, {**own.params, **setting})

    def _part_bound(self, problem: Problem, result: Result) -> float | None:
        try:
            part = problem.restrict(result.solution)
        except InputError:  # nothing served at all: no problem is left
            return None
        chosen = choose_method(part, bounding=True)
        return execute(part, chosen, self._own(), self.seed, bound_only=True).bound
