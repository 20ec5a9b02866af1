from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from strategies_queueing import stream

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing.presets import mixed
from optgap.solvers.queueing.rolling import Plan, branched, programmed, rolling


def plan(rng: np.random.Generator, count: int, makespan: bool) -> Plan:
    """A few jobs beside running ones on two nodes of four GPUs; twins and ties among them."""

    def whole(gpus: np.ndarray) -> np.ndarray:
        return gpus // 4 + (2 * (gpus % 4) > 4)

    gpus, used = rng.choice([1, 1, 2, 3, 4, 6, 8], count), rng.choice([1, 2], 3)
    rows = [rng.integers(1, 9, count), gpus, whole(gpus), rng.choice([0, 0, 2], count)]
    busy = [rng.integers(1, 9, 3), used, whole(used)]
    return Plan(np.stack(rows, axis=1), np.stack(busy, axis=1), 8, 2, makespan)


def feasible(p: Plan, starts: np.ndarray) -> bool:
    everyone = np.vstack([p.jobs[:, :3], p.busy])
    begins = np.concatenate([starts, np.zeros(len(p.busy), dtype=np.int64)])
    for t in range(int((begins + everyone[:, 0]).max())):
        runs = (begins <= t) & (t < begins + everyone[:, 0])
        if everyone[runs, 1].sum() > p.gpus or everyone[runs, 2].sum() > p.nodes:
            return False
    return bool((starts >= p.jobs[:, 3]).all())


def enumerated(p: Plan) -> int:
    """The least cost over all lists, each job as early as it fits among those before it."""
    best = 2**62
    for order in permutations(range(len(p.jobs))):
        profile = np.tile([p.gpus, p.nodes], (200, 1))
        for end, *width in p.busy.tolist():
            profile[:end] -= width
        starts = np.zeros(len(p.jobs), dtype=np.int64)
        for k in order:
            length, n, whole, t = p.jobs[k].tolist()
            while not (profile[t : t + length] >= (n, whole)).all():
                t += 1
            starts[k] = t
            profile[t : t + length] -= (n, whole)
        best = min(best, p.cost(starts))
    return best


@pytest.mark.parametrize("makespan", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_both_solvers_find_the_least_cost_of_all_lists(seed: int, makespan: bool) -> None:
    p = plan(np.random.default_rng(seed), 5, makespan)
    truth = enumerated(p)
    for starts, proven in (branched(p, 100_000), programmed(p, 10.0, Limits(), 0)):
        assert starts is not None
        assert proven
        assert feasible(p, starts)
        assert p.cost(starts) == truth


@pytest.mark.parametrize("makespan", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_both_solvers_agree_on_eight_jobs(seed: int, makespan: bool) -> None:
    p = plan(np.random.default_rng(100 + seed), 8, makespan)
    starts, proven = branched(p, 1_000_000)
    other, other_proven = programmed(p, 30.0, Limits(), 0)
    assert other is not None
    assert proven
    assert other_proven
    assert feasible(p, starts)
    assert p.cost(starts) == p.cost(other)


def test_a_short_search_gives_a_feasible_plan_that_is_not_called_proven() -> None:
    p = plan(np.random.default_rng(3), 8, False)
    starts, proven = branched(p, 9)
    assert feasible(p, starts)
    assert not proven


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 12])
def test_streams_with_patience_and_wrong_estimates_are_served(seed: int) -> None:
    problem = stream(seed)
    outcome = rolling(problem, limits=Limits(), seed=0)
    assert problem.check(outcome.solution) == []
    assert outcome.info["plans_proven"] == outcome.info["plans"]


def test_solvers_that_do_not_exist_or_heads_too_large_are_refused() -> None:
    problem = mixed(seed=0, size=5)
    with pytest.raises(InputError, match="one of auto, branch, cp-sat"):
        rolling(problem, limits=Limits(), seed=0, solver="magic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1 to 16 jobs"):
        rolling(problem, limits=Limits(), seed=0, solver="branch", head=0)
