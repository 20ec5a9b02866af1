"""The online update: closed forms, another program's minimum, and what it converges to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from strategies_elastic import rigid

from optgap.heuristics.elastic.online_model import (
    MEAN,
    POWER_MEAN,
    SPREAD,
    TIME_NAMES,
    Board,
    Configurations,
    OnlineModel,
    _log_power,
    _log_time,
    board_of,
)
from optgap.heuristics.elastic.powerflow import powerflow
from optgap.heuristics.elastic.predictions import Known, Online
from optgap.models.elastic import ElasticProblem, Kind, Overhead, pools, presets
from optgap.models.elastic.simulation.cluster import Cluster
from optgap.models.elastic.simulation.engine import Simulation, simulate
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.models.limits import Limits

BOARD = pools.board_of("a100")
CLASSES = pools.classes("a100", gpus=8, gpus_per_node=4)


def configurations(index: int) -> tuple[Configurations, np.ndarray, np.ndarray]:
    """A class, and ln of its true T_iter and power of a GPU."""
    item = CLASSES[index]
    board = board_of(BOARD.clocks, np.array([c.power_w[0] for c in CLASSES]))
    where = Configurations(np.array(item.counts, float), item.batch, BOARD.clocks, 4, board)
    power = item.power_w / np.array(item.counts)[:, None]
    return where, np.log(item.time_s).reshape(-1), np.log(power).reshape(-1)


def printed_time(z: np.ndarray, n: int, per_node: int, f: float) -> float:
    """ln of Eq. 2-5 on shares, written from the paper: bs and f relative to one GPU at f_max."""
    p = dict(zip(TIME_NAMES, np.exp(z), strict=True))
    bs, r = 1 / n, min(n, per_node)
    io = p["a_io_s"] + p["b_io_s"] * bs * r
    grad = p["a_grad_s"] + (p["b_grad_s"] + p["k_grad_s_mhz"] / f) * bs
    s = "local" if n <= per_node else "node"
    sync = 0.0
    if n > 1:
        sync = p[f"A_{s}_s_mhz"] / f + p[f"theta_{s}_s"]
        sync += (p[f"K_{s}_s_mhz"] / f + p[f"B_{s}_s"]) * (n - 2)
    g1, g2 = 1 + min(p["gamma1"], 9), 1 + min(p["gamma2"], 9)
    return math.log(((io**g1 + grad**g1) ** (g2 / g1) + sync**g2) ** (1 / g2))


def slopes(curve: Any, z: np.ndarray) -> np.ndarray:
    """The derivatives of a curve by each parameter, from values on either side."""
    steps = 1e-6 * np.eye(len(z))
    return np.stack([(curve(z + s) - curve(z - s)) / 2e-6 for s in steps], axis=1)


def test_the_curve_is_the_papers_and_its_jacobian_its_slope() -> None:
    where, _, _ = configurations(0)
    rng = np.random.default_rng(2)
    z = MEAN + 0.5 * rng.standard_normal(len(MEAN))
    log, slope = _log_time(z, *where.time)
    clocks = BOARD.clocks / BOARD.clocks[-1]
    written = [printed_time(z, int(n), 4, f) for n in where.gpus for f in clocks]
    np.testing.assert_allclose(log, written, rtol=1e-12, atol=1e-12)
    apart = slopes(lambda x: _log_time(x, *where.time)[0], z)
    np.testing.assert_allclose(slope, apart, atol=1e-6)
    design = OnlineModel(where, 0.1, 0.1)._power_design(slice(None))
    z = POWER_MEAN + 0.3 * rng.standard_normal(5)
    apart = slopes(lambda x: _log_power(x, design)[0], z)
    np.testing.assert_allclose(_log_power(z, design)[1], apart, atol=1e-6)


@pytest.mark.parametrize("seen", [1, 3])
def test_the_update_ends_where_another_minimiser_does(seen: int) -> None:
    where, log_t, log_p = configurations(6)
    rows = np.arange(seen * len(BOARD.clocks))
    picked = rows[::10]
    target = log_t + 0.03 * np.random.default_rng(1).standard_normal(len(log_t))
    model, mask = OnlineModel(where, 0.03, 0.05), np.zeros(len(log_t), bool)
    mask[picked] = True
    for _ in range(5):
        model.update(mask, target, log_p)
    scale, clocks = model.scale_s, BOARD.clocks / BOARD.clocks[-1]
    grid = [(int(n), f) for n in where.gpus for f in clocks]

    def cost(z: np.ndarray) -> float:
        off = [printed_time(z, grid[k][0], 4, grid[k][1]) - (target[k] - scale) for k in picked]
        return sum(o * o for o in off) / 0.03**2 + float(np.sum(((z - MEAN) / SPREAD) ** 2))

    other = minimize(cost, MEAN, method="L-BFGS-B", options={"maxfun": 20000, "maxiter": 2000})
    assert cost(model.z_time) <= other.fun + 0.1


@pytest.mark.parametrize("index", [0, 5, 11])
def test_with_everything_measured_and_no_noise_belief_is_the_truth(index: int) -> None:
    where, log_t, log_p = configurations(index)
    model = OnlineModel(where, 0.0, 0.0)
    for _ in range(40):
        model.update(np.ones(len(log_t), bool), log_t, log_p)
    time_s, power_w = model.predict()
    np.testing.assert_allclose(np.log(time_s).reshape(-1), log_t, atol=0.01)
    watts = power_w / where.gpus[:, None]
    np.testing.assert_allclose(np.log(watts).reshape(-1), log_p, atol=0.05)


def test_belief_comes_closer_with_what_is_seen() -> None:
    errors = np.zeros((len(CLASSES), 4))
    for index in range(len(CLASSES)):
        where, log_t, log_p = configurations(index)
        rng = np.random.default_rng(index)
        time = log_t + 0.044 * rng.standard_normal(len(log_t))
        power = log_p + 0.07 * rng.standard_normal(len(log_t))
        model, seen = OnlineModel(where, 0.044, 0.07), np.zeros((4, len(BOARD.clocks)), bool)
        for k in range(4):
            seen[k] = True
            model.update(seen.reshape(-1), time, power)
            errors[index, k] = np.abs(np.log(model.predict()[0]).reshape(-1) - log_t).mean()
            assert (model.predict()[1] > 0).all()
    middle = errors.mean(axis=0)
    assert middle[0] > middle[2] > middle[3]
    assert middle[-1] < 0.02


def test_a_board_is_found_from_its_powers() -> None:
    board = board_of(BOARD.clocks, np.array([c.power_w[0] for c in CLASSES]))
    assert board.f0_mhz == pytest.approx(pools.KNEE * BOARD.high_mhz, rel=0.01)
    assert board.kappa == pytest.approx(1000 * pools.VOLTAGE / BOARD.high_mhz, rel=0.05)
    assert board_of(np.array([900.0, 1000.0]), np.ones((1, 2))) == Board(1000.0, 0.0)


# -- in the loop of events -----------------------------------------------------------------


@pytest.fixture(scope="module")
def problem() -> ElasticProblem:
    return presets.small(seed=3, size=10, gpus=8, gpus_per_node=4)


class Watching:
    """Doubles everyone's GPUs in turn, and notes what has been seen at each event."""

    def __init__(self, problem: ElasticProblem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.noted: list[tuple[ElasticState, np.ndarray]] = []

    def decide(self, state: ElasticState) -> Decision:
        self.noted.append((state, state.seen.copy()))
        count = np.full(len(state.jobs), -1)
        count[0] = len(self.noted) % 2
        return Decision(count, np.zeros(len(count), dtype=int))


def test_a_job_has_been_seen_where_it_was_profiled_or_ran(problem: ElasticProblem) -> None:
    policy = Watching(problem, Settings(prerun_s=100.0, profile_s=0.0))
    Simulation(problem, policy, Limits()).run()
    first, seen = policy.noted[0]
    job = int(first.jobs[0])
    assert seen[job, 0].all()
    assert not seen[job, 1:].any()
    assert not seen[job + 1 :].any()
    _, later = policy.noted[-1]
    assert later[job, :2].all()
    watching = Watching(problem, Settings(prerun_s=100.0, profile_s=1e9, strict=True))
    Simulation(problem, watching, Limits()).run()
    assert watching.noted[-1][1][:, 0].all()


def test_measurements_hang_on_the_seed_the_job_and_the_configuration_alone(
    problem: ElasticProblem,
) -> None:
    shape = problem.time_s.shape[1:]
    half, whole = np.zeros(shape, bool), np.ones(shape, bool)
    half[0] = True
    one, other = Online(problem, 5, 0.05, 0.05), Online(problem, 5, 0.05, 0.05)
    one.learnt(2, half)
    other.learnt(4, whole)
    other.learnt(2, half)
    for a, b in zip(one.learnt(2, whole), other.learnt(2, whole), strict=True):
        np.testing.assert_array_equal(a, b)
    elsewhere = Online(problem, 6, 0.05, 0.05).learnt(2, half)
    assert not np.array_equal(elsewhere[0], Online(problem, 5, 0.05, 0.05).learnt(2, half)[0])
    kinds = problem.jobs.of_class.tolist()
    twin = next(j for j, kind in enumerate(kinds) if kind in kinds[:j])
    alike = (kinds.index(kinds[twin]), twin)
    pair = [Online(problem, 5, 0.05, 0.05).learnt(j, whole)[0] for j in alike]
    assert not np.array_equal(*pair)


def _start_clocks(model: Known, state: ElasticState) -> np.ndarray:
    steps, row = model.steps(state, "per_n")
    return steps.start[row, :3]


def test_start_clocks_follow_what_is_measured() -> None:
    problem = presets.small(seed=3, size=10, gpus=8, gpus_per_node=4, pool="v100")
    policy = Watching(problem, Settings(prerun_s=100.0, profile_s=50.0))
    Simulation(problem, policy, Limits()).run()
    truth = Known(problem)
    online = Online(problem, 0, 0.1, 0.1)
    moved = 0
    for state, seen in policy.noted:
        state.seen = seen
        moved += int((_start_clocks(online, state) != _start_clocks(truth, state)).sum())
    assert moved > 0


def test_every_job_has_its_own_row_while_others_come_and_go(problem: ElasticProblem) -> None:
    online, names = Online(problem, 0, 0.05, 0.05), np.arange(10)
    seen = np.zeros((10, *problem.time_s.shape[1:]), bool)
    seen[:, 0] = True
    for first in range(8):
        jobs = names[first : first + 2]
        state = ElasticState(
            problem, 0.0, jobs, problem.jobs.of_class[jobs], np.ones(2), -np.ones(2, int),
            np.zeros(2, int), -np.ones(2, int), np.zeros(2), seen,
            np.zeros(10),
        )  # fmt: skip
        steps, row = online.steps(state, "fixed")
        for job, r in zip(jobs.tolist(), row.tolist(), strict=True):
            time_s, _ = Online(problem, 0, 0.05, 0.05).learnt(job, seen[job])
            np.testing.assert_allclose(online.time_s[r], time_s)
            assert np.isfinite(steps.watts[r][np.isfinite(time_s)]).all()
    assert online.models.keys() <= {7, 8}


def test_the_same_seed_gives_the_same_day_and_another_another(problem: ElasticProblem) -> None:
    def jct(seed: int) -> float:
        solution = powerflow(problem, limits=Limits(), seed=seed).solution
        return problem.evaluate(solution).objective

    assert jct(1) == jct(1)
    assert len({jct(seed) for seed in range(4)}) > 1


# -- moves --------------------------------------------------------------------------------------


class Blink:
    """Stops a job for a moment too short to count, and goes on elsewhere."""

    settings = Settings(making="none")

    def decide(self, state: ElasticState) -> Decision:
        now, size = state.time_s, len(state.jobs)
        clock = np.zeros(size, dtype=np.int64)
        if 20 <= now < 20.0000001:
            return Decision(np.full(size, -1), clock, wake_s=20 + 1e-7, places=[()] * size)
        place = (0,) if now < 20 else (2,)
        wake = 20.0 if now < 20 else np.inf
        return Decision(np.zeros(size, dtype=np.int64), clock, wake_s=wake, places=[place] * size)


def test_a_job_that_goes_on_elsewhere_after_a_blink_has_been_moved() -> None:
    problem = rigid([(0, 100, 1)], overhead=Overhead(2.0, 2.0, 27.0))
    outcome = simulate(problem, Blink(), Limits())
    solution = outcome.solution
    assert problem.check(solution) == []
    restarts = (solution.end_s - solution.start_s)[solution.kind == Kind.RESTART]
    assert np.allclose(np.sort(restarts), [4, 31])


def cluster_of(*sizes: int) -> Cluster:
    """Two nodes of four GPUs, with these jobs placed one after another."""
    cluster = Cluster(rigid([(0, 1, 1)] * len(sizes), gpus=8))
    for job, n in enumerate(sizes):
        assert cluster.start(job, n, "none")
    return cluster


def test_placing_anew_makes_room_that_no_single_place_has() -> None:
    cluster = cluster_of(1, 1, 1, 1, 2, 2)
    for job in (1, 3, 5):
        cluster.release(job)
    assert not cluster.start(5, 4, "none")
    assert cluster.start(5, 4, "repack")
    assert sorted(cluster.free.tolist()) == [0, 0]
    assert np.bincount(cluster.owner, minlength=6).tolist() == [1, 0, 1, 0, 2, 4]
    assert not cluster.start(1, 1, "repack")
