"""A budget on energy: the same policy under the highest knob that keeps it, found by bisection."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optgap.models.elastic import ElasticProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination

ETA_STEPS = 64
"""η is tried in steps of one 64th."""

SPREAD = 8
"""Steps that are tried where bisection finds none."""

Policy = Callable[..., Outcome]


def within_budget(policy: Policy) -> Policy:
    """Where the problem has an energy budget, run under a ceiling on the clock that keeps it.

    No online policy knows what the jobs still to come will draw: the ceiling is chosen in
    hindsight, by runs of the whole trace. What a policy does below the ceiling is its own affair.
    """

    @functools.wraps(policy)
    def steered(problem: ElasticProblem, *, limits: Limits, seed: int, **params: Any) -> Outcome:
        if problem.cap != "energy":
            return policy(problem, limits=limits, seed=seed, **params)
        clocks = len(problem.frequencies_mhz)
        if params.get("frequency") and not isinstance(params["frequency"], str):
            clocks = 1  # the user has chosen: all or nothing

        def run(step: int) -> Outcome:
            top = len(problem.frequencies_mhz) if clocks == 1 else step
            return policy(below(problem, top), limits=limits, seed=seed, **params)

        return highest(problem, clocks, run, limits, "clock ceiling")

    return steered


def within_budget_by_eta(policy: Policy) -> Policy:
    """The same for a policy that has η as its knob."""

    @functools.wraps(policy)
    def steered(problem: ElasticProblem, *, limits: Limits, seed: int, **params: Any) -> Outcome:
        if problem.cap != "energy":
            return policy(problem, limits=limits, seed=seed, **params)
        free = replace(problem, cap="none", energy_budget_j=0.0)
        chosen = params.get("eta")  # the user has chosen: all or nothing

        def run(step: int) -> Outcome:
            eta = step / ETA_STEPS if chosen is None else chosen
            return policy(free, limits=limits, seed=seed, **{**params, "eta": eta})

        return highest(problem, ETA_STEPS if chosen is None else 1, run, limits, "η")

    return steered


def below(problem: ElasticProblem, clocks: int) -> ElasticProblem:
    """The same without limits, on the lowest clocks alone; indices of clocks keep their meaning."""
    classes = tuple(
        replace(c, time_s=c.time_s[:, :clocks], power_w=c.power_w[:, :clocks])
        for c in problem.classes
    )
    return replace(
        problem,
        frequencies_mhz=problem.frequencies_mhz[:clocks],
        classes=classes,
        cap="none",
        energy_budget_j=0.0,
    )


def highest(
    problem: ElasticProblem, steps: int, run: Callable[[int], Outcome], limits: Limits, knob: str
) -> Outcome:
    """The outcome of the highest of steps 1 to `steps` that keeps the budget, as far as energy
    rises with the step. Below some step it may rise again, as all takes longer: where bisection
    ends without one, steps in between are tried from the top."""
    low, high = 0, steps + 1
    kept: Outcome | None = None
    least, step = math.inf, steps
    tried: set[int] = set()
    spread = sorted({max(1, round(steps * k / SPREAD)) for k in range(SPREAD)})
    while kept is None or high - low > 1:
        outcome = run(step)
        tried.add(step)
        if outcome.solution is None or outcome.termination is not Termination.COMPLETED:
            return kept or outcome
        energy = float(problem.evaluate(outcome.solution).metrics["energy_j"])
        least = min(least, energy)
        if energy <= problem.energy_budget_j:
            low, kept = step, outcome
            high = min(s for s in (*tried, steps + 1) if s > step)
        elif kept is not None or not low:
            high = min(high, step)
        step = (low + high) // 2
        if step in tried or not step:
            rest = [s for s in spread if s not in tried]
            if kept is not None or not rest:
                break
            step = rest[-1]
        if limits.stop is not None:
            break
    if kept is None:
        budget = problem.energy_budget_j / 1e6
        return Outcome(
            None,
            Status.NO_SOLUTION,
            limits.stop or Termination.COMPLETED,
            message=f"no {knob} keeps the budget of {budget:,.4g} MJ; least {least / 1e6:,.4g} MJ",
        )
    info = {**kept.info, "budget_runs": len(tried), "budget_knob": f"{knob} {low} of {steps}"}
    return replace(kept, info=info)
