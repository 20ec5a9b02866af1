"""Parameters out of range, and wrong answers of one's own policy: each is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import two_nodes_problem
from strategies_consolidation import micro
from strategies_coscheduling import three_jobs
from strategies_elastic import two_jobs
from strategies_queueing import five_jobs
from trust.agreement import outcome_of

import optgap
from optgap.models.errors import InputError
from optgap.models.queueing import Jobs, QueueingProblem

CONSOLIDATION, COSCHEDULING, ELASTIC = micro(), three_jobs(), two_jobs()
PLACEMENT, QUEUEING = two_nodes_problem(), five_jobs()

REFUSED: list[tuple[Any, str, dict[str, Any], str]] = [
    (CONSOLIDATION, "cats", {"delta_mhz": 0.0}, "a step in MHz"),
    (CONSOLIDATION, "hotcloud", {"fit": "worst"}, "one of first, best"),
    (CONSOLIDATION, "opt_repack", {"capacity": "all"}, "none, mean, slot, peak"),
    (CONSOLIDATION, "least_added_energy", {"duration_error": -1.0}, "duration_error"),
    (COSCHEDULING, "lookahead", {"tau": -1.0}, "tau"),
    (COSCHEDULING, "ecosched", {"tau": -1.0}, "tau"),
    (COSCHEDULING, "ecosched", {"window": -1}, "window"),
    (COSCHEDULING, "ecosched", {"signal": "psychic"}, "signal"),
    (COSCHEDULING, "ecosched", {"signal": "fitted"}, "models="),
    (COSCHEDULING, "ecosched", {"sigma": -1.0}, "sigma"),
    (COSCHEDULING, "ecosched", {"idle_weight": -2.0}, "idle_weight"),
    (COSCHEDULING, "ecosched", {"normalise": "some"}, "normalise"),
    (COSCHEDULING, "exact-window", {"window": -1}, "window"),
    (ELASTIC, "powerflow", {"mode": "loose"}, "mode"),
    (ELASTIC, "powerflow", {"sigma_time": -1.0}, "sigma_time"),
    (ELASTIC, "powerflow", {"eta": 2.0}, "eta"),
    (ELASTIC, "powerflow", {"frequency": "x"}, "frequency"),
    (ELASTIC, "work-value", {"power": 1.5}, "0 to 1"),
    (ELASTIC, "bound-prices", {"rounds": -1}, "0 to 100000"),
    (ELASTIC, "bound-prices", {"rounds": 100_001}, "0 to 100000"),
    (PLACEMENT, "pwr+fgd", {"alpha": 1.5}, "alpha"),
    (PLACEMENT, "pwr+fgd", {"alpha": float("nan")}, "alpha"),
    (PLACEMENT, "pwr+fgd", {"alpha": True}, "alpha"),
    (PLACEMENT, "pwr", {"score": "precise"}, "score"),
    (PLACEMENT, "fgd", {"score": 1}, "score"),
    (PLACEMENT, "node-value", {"q": -0.1}, "q"),
    (PLACEMENT, "node-value", {"rent_w": -1.0}, "rent_w"),
    (QUEUEING, "hps", {"max_wait_time": 100.0}, "more than the threshold"),
    (QUEUEING, "hps", {"aging_boost": -1.0}, "1e-09 to 1e"),
    (QUEUEING, "pbs", {"pair_stage": "x"}, "after_rule1"),
    (QUEUEING, "pbs", {"delta": 2.0}, "0 to 1"),
    (QUEUEING, "sbs", {"time_unit_s": 0.0}, "1e-06 to 1e"),
    (QUEUEING, "replan", {"jobs": 0}, "1 to 10000"),
    (QUEUEING, "replan", {"moves": -1}, "0 to 1e"),
    (QUEUEING, "shortest-reserve", {"reserve_after_s": -1.0}, "0 to 1e"),
    (QUEUEING, "offline", {"moves": -1}, "0 for the default"),
    (QUEUEING, "time-indexed", {"jobs": 1}, "at least 2"),
    (QUEUEING, "time-indexed", {"rounds": 0}, "at least 1"),
    (QUEUEING, "time-indexed", {"moves": 0}, "at least 1"),
]


@pytest.mark.parametrize(("problem", "name", "params", "said"), REFUSED)
def test_a_parameter_out_of_range_is_refused(
    problem: Any, name: str, params: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        outcome_of(problem, name, **params)


ONE_NODE = QueueingProblem.of(Jobs.of([0, 0], [1, 1], [8, 8]), nodes=1)
WRONG: list[tuple[Any, Callable[..., Any], str]] = [
    (CONSOLIDATION, lambda task, state: 99, "GPU numbers"),
    (CONSOLIDATION, lambda task, state: [0, 1], "1 different GPUs"),
    (CONSOLIDATION, lambda task, state: "x", "GPU numbers"),
    (CONSOLIDATION, lambda task, state: True, "GPU numbers"),
    (COSCHEDULING, lambda state: [], "nothing"),
    (COSCHEDULING, lambda state: [(0, 9)], "one of 1, 2, 3, 4 GPUs"),
    (COSCHEDULING, lambda state: [(7, 1)], "a job that waits"),
    (COSCHEDULING, lambda state: [(0, 1), (0, 1)], "a job that waits, once"),
    (COSCHEDULING, lambda state: [(0, 4), (1, 1)], "at most 0 GPUs"),
    (COSCHEDULING, lambda state: [(0, 1), (1, 1), (2, 1)], "2 jobs"),
    (COSCHEDULING, lambda state: [5], "pairs"),
    (COSCHEDULING, lambda state: 1 / 0, "ZeroDivisionError"),
    (ELASTIC, lambda view: {0: (3, 1000.0)}, "GPUs"),
    (ELASTIC, lambda view: {0: (1, 999.0)}, "a clock"),
    (ELASTIC, lambda view: {7: (1, 1000.0)}, "a job that may run"),
    (ELASTIC, lambda view: {0: (4, 1000.0), 1: (4, 1000.0)}, "at most 4"),
    (ELASTIC, lambda view: {0: (4, 1400.0)}, "W"),
    (ELASTIC, lambda view: {0: 1}, "gpus, frequency_mhz"),
    (ELASTIC, lambda view: {}, "a job to run"),
    (ONE_NODE, lambda state: [99], "a job that waits"),
    (ONE_NODE, lambda state: [0, 0], "each job once"),
    (ONE_NODE, lambda state: [0, 1], "in this order"),
    (ONE_NODE, lambda state: 1, "a list"),
]


@pytest.mark.parametrize(("problem", "policy", "said"), WRONG)
def test_a_wrong_answer_of_ones_own_policy_is_told_in_one_line(
    problem: Any, policy: Callable[..., Any], said: str
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        optgap.run(problem, policy)
    assert "\n" not in str(caught.value)
