"""The online update: closed forms, another program's minimum, and what it converges to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

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
    most_probable,
)
from optgap.models.elastic import pools
from optgap.models.performance.energy import log_power

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


def test_a_linear_curve_takes_one_step_to_the_closed_form() -> None:
    rng = np.random.default_rng(0)
    columns, mean, spread = rng.normal(size=(8, 3)), rng.normal(size=3), np.array([0.5, 1.0, 2.0])
    target, noise = rng.normal(size=8), 0.3
    found = most_probable(lambda z: (columns @ z, columns), target, noise, mean, spread, mean, 1e9)
    normal = columns.T @ columns / noise**2 + np.diag(1 / spread**2)
    expected = np.linalg.solve(normal, columns.T @ target / noise**2 + mean / spread**2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_curve_is_the_papers_and_its_jacobian_its_slope() -> None:
    where, _, _ = configurations(0)
    rng = np.random.default_rng(2)
    z = MEAN + 0.5 * rng.standard_normal(len(MEAN))
    log, slope = _log_time(z, *where.time)
    clocks = BOARD.clocks / BOARD.clocks[-1]
    written = [printed_time(z, int(n), 4, f) for n in where.gpus for f in clocks]
    np.testing.assert_allclose(log, written, rtol=1e-12, atol=1e-12)
    for k in range(len(z)):
        step = np.eye(len(z))[k] * 1e-6
        apart = (_log_time(z + step, *where.time)[0] - _log_time(z - step, *where.time)[0]) / 2e-6
        np.testing.assert_allclose(slope[:, k], apart, atol=1e-6)
    design = OnlineModel(where, 0.1, 0.1)._power_design(slice(None))
    z = POWER_MEAN + 0.3 * rng.standard_normal(5)
    _, slope = _log_power(z, design)
    for k in range(5):
        step = np.eye(5)[k] * 1e-6
        apart = (_log_power(z + step, design)[0] - _log_power(z - step, design)[0]) / 2e-6
        np.testing.assert_allclose(slope[:, k], apart, atol=1e-6)


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
        off = [printed_time(z, *_at(grid[k])) - (target[k] - scale) for k in picked]
        return sum(o * o for o in off) / 0.03**2 + float(np.sum(((z - MEAN) / SPREAD) ** 2))

    other = minimize(cost, MEAN, method="L-BFGS-B", options={"maxfun": 20000, "maxiter": 2000})
    assert cost(model.z_time) <= other.fun + 0.1


def _at(configuration: tuple[int, float]) -> tuple[int, int, float]:
    return configuration[0], 4, configuration[1]


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


def test_a_gpu_draws_no_less_than_the_floor() -> None:
    where, _, _ = configurations(0)
    design = OnlineModel(where, 0.1, 0.1)._power_design(slice(None)) | {"floor_w": 50.0}
    log, _ = log_power(np.array([1.0, 1.0, 0.0, 0.0, 1e-9, 1e-9]), design)
    assert np.exp(log) == pytest.approx(50.0)
