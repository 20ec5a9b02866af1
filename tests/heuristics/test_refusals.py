"""Parameters out of range, each refused by its name."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import two_nodes_problem
from strategies_consolidation import micro
from strategies_coscheduling import three_jobs
from strategies_elastic import two_jobs
from strategies_queueing import five_jobs
from trust.agreement import outcome_of

from optgap.models.errors import InputError

CONSOLIDATION, COSCHEDULING, ELASTIC = micro(), three_jobs(), two_jobs()
PLACEMENT, QUEUEING = two_nodes_problem(), five_jobs()

REFUSED: list[tuple[Any, str, dict[str, Any], str]] = [
    (CONSOLIDATION, "cats", {"delta_mhz": 0.0}, "a step in MHz"),
    (CONSOLIDATION, "opt_repack", {"capacity": "all"}, "none, mean, slot, peak"),
    (micro(goal="energy"), "hindsight", {"schedules": -1}, "schedules"),
    (micro(goal="energy"), "bound-over-time", {"rounds": 0}, "rounds"),
    (CONSOLIDATION, "least_added_energy", {"duration_error": -1.0}, "duration_error"),
    (COSCHEDULING, "lookahead", {"tau": -1.0}, "tau"),
    (COSCHEDULING, "ecosched", {"tau": -1.0}, "tau"),
    (COSCHEDULING, "ecosched", {"signal": "psychic"}, "signal"),
    (COSCHEDULING, "ecosched", {"signal": "fitted"}, "models="),
    (COSCHEDULING, "ecosched", {"window": -1}, "window"),
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
    (PLACEMENT, "milp", {"backend": "cpsat"}, "cpsat.*highs, cbc"),  # takes no linear program
    (PLACEMENT, "milp", {"backend": "gurobi"}, "gurobi.*highs, cbc"),
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
