"""What a Prometheus server answers becomes a profile that models are fitted to."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli

from optgap.fitting.readers import read_profile
from optgap.models.errors import InputError


def labels(metric: str, gpu: int, pod: str = "") -> dict[str, str]:
    """The labels that dcgm-exporter gives, as a real server answered them."""
    found = {
        "DCGM_FI_DRIVER_VERSION": "550.54.15",
        "Hostname": "gpu01",
        "UUID": f"GPU-gpu01-{gpu}",
        "__name__": metric,
        "device": f"nvidia{gpu}",
        "gpu": str(gpu),
        "instance": "127.0.0.1:19400",
        "modelName": "NVIDIA A100-SXM4-80GB",
    }
    return found | ({"pod": pod, "namespace": "ml", "container": "main"} if pod else {})


def answer(*series: tuple[dict[str, str], list[Any]]) -> str:
    result = [{"metric": metric, "values": values} for metric, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def points(values: list[str], start: int = 1795490967, gap: tuple[int, ...] = ()) -> list[Any]:
    return [[start + 5 * k, v] for k, v in enumerate(values) if k not in gap]


POWER, CLOCK, DRAM = (
    "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_PROF_DRAM_ACTIVE",
)  # fmt: skip


def test_metrics_are_joined_by_gpu_pod_and_time(tmp_path: Path) -> None:
    busy = ["300"] * 8 + ["NaN", "+Inf"] + ["50"] * 4
    path = tmp_path / "answer.json"
    path.write_text(
        answer(
            (labels(POWER, 0, "train-0"), points(busy)),
            (labels(CLOCK, 0, "train-0"), points(["1410"] * 14, gap=(3,))),
            (labels(POWER, 1), points(["280"] * 10 + ["60"] * 4)),
        )
        + "\n"
        + answer((labels(DRAM, 0, "train-0"), points(["0.25"] * 14)))
    )
    profile = read_profile(path)
    assert profile.kind == "prometheus"
    rows = dict(zip(profile["gpu"], range(len(profile)), strict=True))
    k = rows["gpu01/0"]
    assert profile["application"][k] == "ml/train-0"
    assert profile["gpu_model"][k] == "NVIDIA A100-SXM4-80GB"
    assert profile["power_w"][k] == 300
    assert profile["frequency_mhz"][k] == 1410
    assert profile["dram_active"][k] == 0.25
    assert profile["application"][rows["gpu01/1"]] == "answer"
    assert not np.isfinite(profile["dram_active"][rows["gpu01/1"]])


def test_a_power_law_is_fitted_to_an_answer(tmp_path: Path, cli: Cli) -> None:
    series = []
    for gpu, clock in enumerate((600, 900, 1200, 1410)):
        watts = [str(80 + 0.1 * clock)] * 10 + ["40"] * 6
        series.append((labels(POWER, gpu, f"p-{gpu}"), points(watts)))
        series.append((labels(CLOCK, gpu, f"p-{gpu}"), points([str(clock)] * 16)))
    path = tmp_path / "answer.json"
    path.write_text(answer(*series))
    out = cli("fit", "linear-power", str(path), "--json", "-")
    assert out.code == 0, out.err
    params = json.loads(out.out)["groups"][0]["params"]
    slope = next(v["value"] for v in params.values() if math.isclose(v["value"], 0.1, rel_tol=1e-3))
    assert slope


def test_an_instant_query_answers_vectors_one_behind_another(tmp_path: Path) -> None:
    def vector(time: int, watts: str) -> str:
        result = [{"metric": labels(POWER, 0, "p"), "value": [time, watts]}]
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})

    path = tmp_path / "answer.json"
    path.write_text("\n".join(vector(1795490967 + 5 * k, "300") for k in range(10)))
    profile = read_profile(path)
    assert (profile["power_w"][0], profile["application"][0]) == (300, "ml/p")


TOO_MANY = (
    '{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of '
    '11,000 points per timeseries."}'
)
SCALAR = '{"status":"success","data":{"resultType":"scalar","result":[1795491031.7,"7"]}}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TOO_MANY, "11,000 points"),
        (answer(), "no series"),
        (SCALAR, "matrix"),
        (answer(({"Hostname": "gpu01"}, points(["1"] * 9))), "without a metric's name"),
        (answer((labels(CLOCK, 0), points(["1410"] * 9))), "DCGM_FI_DEV_POWER_USAGE"),
        (answer((labels(POWER, 0), [[1, "x"]])), "value"),
        (answer((labels(POWER, 0), points(["300"] * 9)))[:-9], "valid JSON"),
        (answer((labels(POWER, 0), points(["NaN"] * 9))), "power"),
        ('{"status": "success", "data": ' + "[" * 100_000, "nesting too deep"),
    ],
)  # fmt: skip
def test_errors_and_empty_answers_are_one_line(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(text)
    with pytest.raises(InputError, match=expected) as raised:
        read_profile(path)
    assert "answer.json" in str(raised.value)
