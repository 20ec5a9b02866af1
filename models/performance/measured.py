"""Parameters that `optgap fit` found for public measurements, in the form that a saved fit has.

No measurement stands here: what was fitted, its errors and covariances, and whose data they are.
Presets called ``measured`` rest on them, as a user's problem does on a fit of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from optgap.models.performance.saved import SCHEMA, FittedParameters, read_fit

NSFCAC = "nsfcac/gpupowermodel@0b28e68 (Texas Tech, 2022)"
ECOSCHED = "zzheng33/EcoSched@6722feb (the EcoSched authors)"
ELASTICFLOW = "gudiandian/ElasticFlow@b3f5ea4 (Gu et al., ASPLOS 2023)"


class Row(NamedTuple):
    """One group: rows, mean relative error, two parameters and their covariance."""

    rows: int
    mape: float
    values: tuple[float, float]
    covariance: tuple[float, float, float]


class Scaling(NamedTuple):
    """One application over its GPU counts g, and the run-time model fitted to its DRAM activity.

    Parameters
    ----------
    time: T_1 in s, s and c of T_g = T_1·(1 − s + s/g + c·(g − 1)).
    signal: x_1 and m of the summed DRAM activity x_g = x_1·g^m.
    power: P_1 and its fall per further GPU of the power of one GPU, W.
    values: a, b, c, k of ``dram-runtime``, form ``blend``.
    covariance: var a, cov, var b.
    mape: the mean relative error of that fit.
    """

    time: tuple[float, float, float]
    signal: tuple[float, float]
    power: tuple[float, float]
    values: tuple[float, float, float, float]
    covariance: tuple[float, float, float]
    mape: float


GV100_CLOCKS = tuple(float(int(510 + 7.5 * k)) for k in range(117))
"""MHz, those of the sweep."""

GV100_POWER: Mapping[str, Row] = {
    # rows, mean error, (P_gs, alpha), (var P_gs, cov, var alpha)
    "bfs": Row(117, 0.0179, (31.699, 0.037444), (0.1691, -0.0001805, 2.079e-07)),
    "bplustree": Row(117, 0.0244, (23.061, 0.078807), (0.5916, -0.0006958, 8.749e-07)),
    "cfd": Row(117, 0.0194, (35.237, 0.059143), (0.3534, -0.0004, 4.868e-07)),
    "dgemm": Row(117, 0.0343, (0, 0.17203), (0, 0, 2.536e-07)),
    "fft": Row(117, 0.0285, (56.708, 0.098212), (1.601, -0.001708, 1.995e-06)),
    "ge": Row(117, 0.0262, (22.977, 0.061228), (0.4838, -0.0005589, 6.89e-07)),
    "heartwall": Row(117, 0.0263, (21.295, 0.053124), (0.3721, -0.000432, 5.357e-07)),
    "histo": Row(117, 0.0201, (23.4, 0.013194), (0.06915, -7.539e-05, 8.778e-08)),
    "lavamd": Row(115, 0.0501, (19.711, 0.085179), (1.366, -0.001639, 2.106e-06)),
    "lud": Row(117, 0.0216, (25.961, 0.10699), (0.7392, -0.0008504, 1.051e-06)),
    "mriq": Row(117, 0.0303, (17.803, 0.096388), (0.9878, -0.001181, 1.506e-06)),
    "nw": Row(114, 0.0186, (22.949, 0.0329), (0.1363, -0.0001548, 1.878e-07)),
    "srad": Row(116, 0.0224, (41.697, 0.085113), (0.7321, -0.0007925, 9.353e-07)),
    "stencil": Row(117, 0.0433, (60.098, 0.11217), (4.199, -0.004402, 5.038e-06)),
    "tpacf": Row(117, 0.0353, (18.775, 0.067065), (0.7187, -0.0008352, 1.043e-06)),
}
"""P_gs (W) and α (W/MHz) of 15 applications on a GV100, 510 to 1,380 MHz."""

GV100_TIME: Mapping[str, Row] = {
    # rows, mean error, (e_min, beta), (var e_min, cov, var beta)
    "bfs": Row(117, 0.0425, (18.892, 0.47837), (0.01647, -0.001416, 0.0001717)),
    "bplustree": Row(117, 0.0111, (9.3993, 0.70548), (0.0003782, -6.646e-05, 1.687e-05)),
    "cfd": Row(117, 0.0258, (12.749, 0.52848), (0.003208, -0.0004308, 8.147e-05)),
    "dgemm": Row(117, 0.0405, (3.3924, 1.179), (0.0004367, -0.000219, 0.0001604)),
    "fft": Row(117, 0.0521, (8.0368, 0.49265), (0.004012, -0.0008343, 0.0002473)),
    "ge": Row(117, 0.00951, (6.7068, 0.7908), (0.0001441, -3.578e-05, 1.288e-05)),
    "heartwall": Row(117, 0.00625, (11.058, 0.88164), (0.0001897, -2.827e-05, 6.109e-06)),
    "histo": Row(117, 0.039, (53.26, 0.1559), (0.08217, -0.002481, 0.0001142)),
    "lavamd": Row(115, 0.0137, (7.4911, 0.22712), (0.0003687, -8.172e-05, 2.612e-05)),
    "lud": Row(117, 0.0295, (11.808, 0.74422), (0.003437, -0.0005222, 0.0001114)),
    "mriq": Row(117, 0.00763, (4.4644, 0.72592), (4.418e-05, -1.632e-05, 8.772e-06)),
    "nw": Row(114, 0.0173, (14.778, 0.87125), (0.002092, -0.0002393, 3.936e-05)),
    "srad": Row(116, 0.0423, (12.594, 0.54322), (0.006928, -0.0009346, 0.0001809)),
    "stencil": Row(117, 0.0591, (8.2244, 0.40445), (0.004439, -0.000979, 0.0003211)),
    "tpacf": Row(117, 0.00895, (8.2805, 0.66727), (0.0002161, -4.288e-05, 1.225e-05)),
}
"""e_min (s) and β of the same runs."""

DEVICES: Mapping[str, Row] = {
    # samples, mean error, (idle_w, full_w), (var idle, 0, var full)
    "H100": Row(6539, 1.88, (70, 622), (0.08597, 0, 2.325)),
    "V100": Row(9827, 0.935, (43, 301), (0.03378, 0, 0.1183)),
}
"""Idle and full power (W) of single GPUs in EcoSched's raw samples."""

H100_DRAM: Mapping[str, Scaling] = {
    # (T_1, s, c), (x_1, m), (P_1, fall), (a, b, c, k) of dram-runtime, (var a, cov, var b), error
    "bert": Scaling((37.86, 0.5752, 0), (0.2485, 0.8983), (446.4, 26.65),
        (0.018499, 0.035227, 19.568, 0.46153), (5.323e-06, -9.402e-06, 2.037e-05), 0.027),
    "conjugateGradientMultiDeviceCG": Scaling(
        (26.41, 0.7816, 0.02157), (0.6218, 0.6933), (389.4, 28.92),
        (0.011299, 0.044664, 17.651, 0.78239), (9.278e-06, -8.697e-06, 9.399e-06), 0.022),
    "gpt2": Scaling((23.01, 0.6435, 0.09809), (0.2881, 0.493), (576.6, 74.57),
        (0.031219, 0.047786, 14.141, 0.35786), (2.491e-06, -5.51e-06, 1.32e-05), 0.0109),
    "resnet101": Scaling((59.2, 0.7882, 0.01484), (0.6917, 0.5367), (551.3, 70.44),
        (0, 0.025977, 38.633, 1.0615), (0, 0, 2.46e-07), 0.0248),
    "resnet152": Scaling((80.97, 0.8247, 0.06108), (0.644, 0.5128), (556.4, 73.53),
        (0.0031861, 0.015446, 53.373, 0.80211), (8.807e-07, -9.186e-07, 1.053e-06), 0.0193),
    "resnet50": Scaling((39.9, 0.8096, 0.0403), (0.6159, 0.6403), (533.4, 62.68),
        (0.007995, 0.029578, 26.344, 0.76474), (1.96e-05, -1.925e-05, 2.127e-05), 0.047),
    "vgg16": Scaling((14.43, 0, 0.03664), (0.2512, -0.1255), (371.7, 72.5),
        (0.028496, 0.16353, 6.4859, 0.57569), (2.689e-05, -0.0001181, 0.000521), 0.0064),
    "vgg19": Scaling((14.56, 0, 0.04092), (0.2702, -0.06515), (385.4, 74.98),
        (0, 0.25245, 2.5067, 1.3364), (0, 0, 3.698e-06), 0.0077),
    "cloverleaf": Scaling((36.79, 0.7679, 0.01267), (0.8317, 0.7002), (563.5, 61.22),
        (0.0072301, 0.024868, 30.884, 0.80831), (4.489e-07, -3.15e-07, 2.565e-07), 0.00517),
    "lbm": Scaling((55.45, 0.9719, 0.02266), (0.1358, 0.9674), (324.5, 13.75),
        (0.0050709, 0.099405, 10.53, 0.8181), (3.701e-06, -1.318e-05, 6.096e-05), 0.037),
    "minisweep": Scaling((142.2, 0.9143, 0), (0.02693, 0.8159), (162.2, 8.286),
        (0, 0.26875, 3.6556, 1.006), (0, 0, 7.651e-05), 0.0557),
    "pot3d": Scaling((133, 0.4025, 0.02505), (0.2109, 0.237), (252.8, 35.19),
        (0.0015399, 0.029063, 36.521, 0.81741), (6.267e-07, -2.468e-06, 9.877e-06), 0.0138),
    "tealeaf": Scaling((41.61, 0.7916, 0), (0.8219, 0.8244), (543.1, 47.85),
        (0.0074775, 0.020927, 34.928, 0.79237), (1.776e-06, -1.142e-06, 8.907e-07), 0.0178),
}  # fmt: skip
"""13 applications on 1 to 4 H100."""

A100_ITERATIONS: Mapping[str, Mapping[str, float]] = {
    "bert": {
        "a_io_s": 0.00066495, "b_io_s": 8.00368e-05, "a_grad_s": 0.0501748,
        "b_grad_s": 0.00172338, "theta_local_s": 0.0838289, "B_local_s": 0.000249041,
        "theta_node_s": 0.0821568, "B_node_s": 0.000381199, "gamma1": 1.0, "gamma2": 5.10488,
    },
    "deepspeech2": {
        "a_io_s": 0.0523068, "b_io_s": 0.000836685, "a_grad_s": 0.0446621,
        "b_grad_s": 0.00893867, "theta_local_s": 0.0754688, "theta_node_s": 0.0754688,
        "B_node_s": 0.000796531, "gamma1": 3.26119, "gamma2": 5.5504,
    },
    "inception3": {
        "a_io_s": 0.0493522, "b_io_s": 8.3075e-05, "a_grad_s": 0.0214527,
        "b_grad_s": 0.00288837, "theta_local_s": 0.00656204, "B_local_s": 0.00104073,
        "theta_node_s": 0.014594, "B_node_s": 0.000200799, "gamma1": 3.2539, "gamma2": 1.0,
    },
    "resnet50": {
        "a_io_s": 0.0176514, "b_io_s": 0.000178923, "a_grad_s": 0.00872493,
        "b_grad_s": 0.00211256, "theta_local_s": 0.00928904, "B_local_s": 0.00130923,
        "theta_node_s": 0.020286, "B_node_s": 0.000133793, "gamma1": 10.0, "gamma2": 1.0,
    },
    "vgg16": {
        "a_io_s": 0.00448754, "b_io_s": 0.000174363, "a_grad_s": 0.0093149,
        "b_grad_s": 0.00291184, "theta_local_s": 0.00588308, "B_local_s": 0.00099759,
        "theta_node_s": 0.0136203, "B_node_s": 0.00012243, "gamma1": 1.71203, "gamma2": 1.0,
    },
}  # fmt: skip
"""Fitted to ElasticFlow's throughputs_A100, 1 to 64 GPUs (MAPE 0.9 to 2.6 %)."""
A100_ROWS = {
    "bert": (14, 0.00918, 128), "deepspeech2": (13, 0.0211, 64), "inception3": (14, 0.00894, 128),
    "resnet50": (21, 0.0184, 256), "vgg16": (21, 0.0255, 256),
}  # fmt: skip
"""Rows, mean relative error and the largest batch per GPU."""


def _group(
    name: str,
    params: Mapping[str, float],
    rows: int,
    mape: float,
    *,
    validity: Mapping[str, Sequence[float]],
    levels: Mapping[str, Sequence[float]] | None = None,
    facts: Mapping[str, Any] | None = None,
    covariance: Sequence[Sequence[float]] | None = None,
    fixed: Sequence[str] = (),
) -> dict[str, Any]:
    """One group in the form that ``optgap.fit/1`` has; without a covariance nothing is drawn."""
    state: dict[str, Any] = {"facts": dict(facts or {})}
    if covariance is not None:
        state["covariance"] = [list(row) for row in covariance]
    return {
        "group": name,
        "n": rows,
        "mape": mape,
        "params": {
            key: {"value": value, **({"lower": value, "upper": value} if key in fixed
                                     else {"lower": 0.0})}
            for key, value in params.items()
        },
        "validity": {key: list(span) for key, span in validity.items()},
        "levels": {key: list(values) for key, values in (levels or {}).items()},
        "warnings": [],
        "state": state if covariance is not None or facts else {},
    }  # fmt: skip


def _fit(
    model: str,
    source: str,
    by: str | None,
    groups: Sequence[dict[str, Any]],
    held_out: float | None = None,
    settings: Mapping[str, Any] | None = None,
) -> FittedParameters:
    errors = [group["mape"] for group in groups]
    overall = {
        "n": sum(group["n"] for group in groups),
        "mape": sum(errors) / len(errors),
        "cv_mape": held_out,
    }
    return read_fit(
        {
            "schema": SCHEMA,
            "model": model,
            "source": source,
            "by": by,
            "settings": dict(settings or {}),
            "overall": overall,
            "groups": list(groups),
        }
    )


def _two(row: Row) -> list[list[float]]:
    first, both, second = row.covariance
    return [[first, both], [both, second]]


def _over_clock(name: str, row: Row, names: tuple[str, str]) -> dict[str, Any]:
    """A group of two parameters over the clock of the GV100 sweep."""
    return _group(
        name,
        dict(zip(names, row.values, strict=True)),
        row.rows,
        row.mape,
        validity={"frequency_mhz": (GV100_CLOCKS[0], GV100_CLOCKS[-1])},
        levels={"frequency_mhz": GV100_CLOCKS},
        facts={"reference_mhz": GV100_CLOCKS[-1]} if names[1] == "beta" else None,
        covariance=_two(row),
    )


def gv100_power() -> FittedParameters:
    """``linear-power`` of 15 applications (CATS, Eq. 1)."""
    groups = [_over_clock(g, row, ("P_gs", "alpha")) for g, row in GV100_POWER.items()]
    return _fit("linear-power", f"gv100_spec15.csv, {NSFCAC}", "application", groups, 0.0286)


def gv100_time() -> FittedParameters:
    """``power-law-jct`` of the same applications (CATS, Eq. 5)."""
    groups = [_over_clock(g, row, ("e_min", "beta")) for g, row in GV100_TIME.items()]
    return _fit("power-law-jct", f"gv100_spec15.csv, {NSFCAC}", "application", groups, 0.0280)


def a100_iterations() -> FittedParameters:
    """``powerflow-throughput`` of five networks (PowerFlow, Eq. 1-5), at one clock."""
    groups = []
    for name, params in A100_ITERATIONS.items():
        rows, mape, most = A100_ROWS[name]
        batches = [float(1 << k) for k in range(most.bit_length())]
        spans = {"gpus": (1.0, 64.0), "local_batch": (1.0, float(most)), "nodes": (1.0, 8.0)}
        levels = {"local_batch": batches}
        facts = {"clock": False}
        groups.append(_group(name, params, rows, mape, validity=spans, levels=levels, facts=facts))
    return _fit("powerflow-throughput", f"throughputs_A100, {ELASTICFLOW}", "application", groups,
                settings={"sync": "paper"})  # fmt: skip


def devices() -> FittedParameters:
    """``device-power`` of H100 and V100 (PWR, Eq. 2)."""
    names, span = ("idle_w", "full_w"), {"busy": (0.0, 1.0)}
    groups = [
        _group(g, dict(zip(names, row.values, strict=True)), row.rows, row.mape, validity=span,
               covariance=_two(row))
        for g, row in DEVICES.items()
    ]  # fmt: skip
    return _fit("device-power", f"gpu_samples.csv, {ECOSCHED}", "gpu_model", groups)


def h100_runtime() -> FittedParameters:
    """``dram-runtime`` of 13 applications (EcoSched, Phase I)."""
    groups = []
    for name, item in H100_DRAM.items():
        first, both, second = item.covariance
        a, b, c, k = item.values
        facts = {"counter": "dram_sum", "form": "blend", "c": c, "k": k}
        covariance = [[first, both, 0.0, 0.0], [both, second, 0.0, 0.0], [0.0] * 4, [0.0] * 4]
        params = {"a": a, "b": b, "c": c, "k": k}
        span = sorted((item.signal[0], item.signal[0] * 4.0 ** item.signal[1]))
        groups.append(
            _group(name, params, 4, item.mape, validity={"dram_sum": span, "gpus": (1.0, 4.0)},
                   facts=facts, covariance=covariance, fixed=("c", "k"))
        )  # fmt: skip
    source = f"h100_profiles.csv, {ECOSCHED}"
    return _fit("dram-runtime", source, "application", groups, 0.0692, {"form": "blend"})
