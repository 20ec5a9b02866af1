"""What the items try where a number is not the paper's."""

from __future__ import annotations

import numpy as np
import pytest

from optgap import run
from optgap.models.placement import Tasks, presets
from optgap.reproduce.elastic.sensitivity import trend
from optgap.reproduce.placement.causes import FORMS, dot_product, with_share


def test_a_trend_holds_where_every_step_goes_its_way_and_nearly_where_the_ends_do() -> None:
    assert trend([1.0, 1.1, 1.2], rises=True) == "yes"
    assert trend([1.2, 1.1, 1.0], rises=False) == "yes"
    assert trend([1.0, 1.2, 1.06], rises=True) == "nearly"
    assert trend([1.06, 1.2, 1.0], rises=False) == "nearly"
    assert trend([1.0, 1.2, 1.04], rises=True) == "no"
    assert trend([1.2, 1.1, 1.0], rises=True) == "no"


def test_the_first_reading_of_dotprod_is_the_policy_and_each_other_one_differs() -> None:
    problem = presets.small(seed=3)
    policy = run(problem, "dotprod").solution
    for k, form in enumerate(FORMS):
        found = run(problem, dot_product, form=form).solution
        assert problem.check(found) == []
        assert (found == policy) == (k == 0), form


@pytest.mark.parametrize("share", [0.3, 0.4])
def test_tasks_with_several_gpus_are_left_out_down_to_a_share(share: float) -> None:
    names = [f"t{k}" for k in range(300)]
    num = [1] * 200 + [8] * 100
    tasks = Tasks.of(names, [1000] * 300, [1024] * 300, num, [1000] * 300, [""] * 300)
    kept = tasks.take(with_share(tasks, share).tolist())
    several = kept.demand_milli[kept.num_gpu > 1].sum() / kept.demand_milli.sum()
    assert share - 0.03 < several <= share
    assert np.count_nonzero(kept.num_gpu == 1) == 200
