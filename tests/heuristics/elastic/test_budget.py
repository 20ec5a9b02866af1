from __future__ import annotations

import pytest
from strategies_elastic import two_jobs

from optgap.heuristics.elastic.budget import below, highest
from optgap.heuristics.elastic.custom import View
from optgap.heuristics.elastic.custom import run as custom
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.presets import small
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.registry import FAMILIES

POLICIES = FAMILIES["elastic"].policies

NAMES = sorted(POLICIES)


def run(problem: ElasticProblem, name: str, **params: object) -> Outcome:
    outcome: Outcome = POLICIES[name].load()(problem, limits=Limits(), seed=0, **params)
    return outcome


def budgeted(mj: float) -> ElasticProblem:
    return small(seed=1, size=10, gpus=8, hours=0.5, cap="energy", energy_budget_mj=mj)


def energy(problem: ElasticProblem, outcome: Outcome) -> float:
    return float(problem.evaluate(outcome.solution).metrics["energy_j"])


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_keeps_a_budget_that_it_would_pass(name: str) -> None:
    loose = budgeted(1e6)
    free = run(loose, name)
    spent = energy(loose, free)
    tight = budgeted(0.97 * spent / 1e6)
    outcome = run(tight, name)
    if outcome.solution is None:
        assert outcome.status is Status.NO_SOLUTION
        assert "keeps the budget" in outcome.message
        return
    assert tight.check(outcome.solution) == []
    assert energy(tight, outcome) <= tight.energy_budget_j
    assert int(outcome.info["budget_runs"]) > 1


def one_each(view: View) -> dict[int, tuple[int, float]]:
    """A GPU for each at the highest clock that there is."""
    top = float(view.problem.frequencies_mhz[-1])
    least = {job: view.job_class(job).counts[0] for job in view.jobs}
    return {job: (least[job], top) for job in view.jobs[: view.problem.gpus]}


def test_a_policy_of_ones_own_is_steered_to_the_budget_by_the_clocks_that_it_sees() -> None:
    def own(problem: ElasticProblem) -> Outcome:
        return custom(problem, limits=Limits(), seed=0, policy=one_each)

    loose = budgeted(1e6)
    spent = energy(loose, own(loose))
    tight = budgeted(0.9 * spent / 1e6)
    outcome = own(tight)
    assert outcome.solution is not None
    assert tight.check(outcome.solution) == []
    assert energy(tight, outcome) <= tight.energy_budget_j
    assert outcome.info["budget_knob"].startswith("clock ceiling")
    assert own(budgeted(0.001)).solution is None


def test_a_budget_that_nothing_keeps_is_told_in_a_line() -> None:
    outcome = run(budgeted(0.001), "afs")
    assert outcome.solution is None
    assert outcome.message.startswith("no clock ceiling keeps the budget of 0.001 MJ; least ")


def test_a_clock_that_the_user_chose_is_kept_or_refused() -> None:
    problem = budgeted(0.001)
    clock = float(problem.frequencies_mhz[-1])
    assert run(problem, "fifo", frequency=clock).solution is None
    assert run(budgeted(1e6), "fifo", frequency=clock).solution is not None


def test_where_low_steps_cost_more_a_step_between_is_found() -> None:
    whole = budgeted(1e6)
    outcomes = {k: run(below(whole, k), "fifo") for k in (1, 15, 30)}
    joules = {k: energy(whole, o) for k, o in outcomes.items()}
    middle = budgeted(joules[15] * (1 + 1e-9) / 1e6)

    def turned(step: int) -> Outcome:
        """Dear at both ends."""
        return outcomes[15] if step in (4, 5) else outcomes[30]

    found = highest(middle, 8, turned, Limits(), "step")
    assert joules[15] < joules[30]
    assert found.info["budget_knob"] == "step 5 of 8"


def test_a_ceiling_keeps_the_meaning_of_clocks() -> None:
    problem = two_jobs()
    lower = below(problem, 2)
    assert lower.frequencies_mhz.tolist() == problem.frequencies_mhz[:2].tolist()
    assert lower.power_w[0, 0].tolist() == problem.power_w[0, 0, :2].tolist()
    assert lower.power_limit_w == float("inf")


def test_weighing_by_slowdown_does_not_favour_the_longest() -> None:
    problem = small(seed=0)
    by_time, by_slowdown = run(problem, "optimal"), run(problem, "optimal-slowdown")
    value = [problem.evaluate(o.solution).objective for o in (by_time, by_slowdown)]
    assert value[1] < value[0]
