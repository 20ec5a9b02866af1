"""Units, names and rates of users' tables: read right, or refused in a line that says what to do.

The files of ``data/doors`` are made up: each is the smallest table of one kind of fault.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optgap.fitting.readers import read_profile
from optgap.fitting.readers.naming import quantity_of
from optgap.fitting.workflow import fit
from optgap.models.errors import InputError
from optgap.models.quantities import warn
from optgap.models.units import factors, parsed, spelt

DOORS = Path(__file__).parent / "data" / "doors"

READ: list[tuple[str, dict[str, Any], str, float]] = [
    ("unit_energy_mJ.csv", {}, "energy_j", 15.99),
    ("unit_time_mu_s.csv", {}, "time_s", 205e-6),
    ("images_per_second.csv", {}, "time_s", 64 / 235.1),
    ("gpus_by_case.csv", {}, "gpus", 1),
    ("jetson_rails.csv", {"GPU_MHZ": "frequency_mhz", "RAIL_GPU": "power_w:mW"}, "power_w", 0.152),
]
"""File, `columns`, the column looked at and its first value."""


@pytest.mark.parametrize(("file", "columns", "name", "value"), READ)
def test_a_public_table_is_read_in_our_units(
    file: str, columns: dict[str, str], name: str, value: float
) -> None:
    profile = read_profile(DOORS / file, columns=columns)
    assert profile.numbers(name)[0] == pytest.approx(value)


FITTED: list[tuple[str, str, dict[str, Any], str, float]] = [
    ("unit_energy_mJ.csv", "powerflow-energy", {}, "grad_linear_w", 0.0509),
    ("unit_time_mu_s.csv", "power-law-jct", {}, "e_min", 1.0e-4),
    ("unread_time_iso.csv", "linear-power", {}, "alpha", 0.088868),
    ("unread_nodes_text.csv", "linear-power", {}, "alpha", 0.088868),
    ("own_names.csv", "linear-power", {"by": "benchmark"}, "alpha", 0.088868),
    ("own_names.csv", "linear-power", {"leave_out": "core_clock"}, "alpha", 0.099403),
    ("own_names.csv", "linear-power", {"extrapolate": {"core_clock": 1000}}, "alpha", 0.099403),
    ("own_names.csv", "linear-power",
     {"by": "benchmark", "columns": {"benchmark": "application"}}, "alpha", 0.088868),
    ("jetson_rails.csv", "linear-power",
     {"columns": {"GPU_MHZ": "frequency_mhz", "RAIL_GPU": "power_w:mW"}}, "P_gs", 0.081065),
    ("images_per_second.csv", "powerflow-throughput", {"sync": "ring"}, "a_grad_s", 0.2722),
    ("gpus_by_case.csv", "powerflow-throughput", {"sync": "ring"}, "a_grad_s", 0.2722),
]  # fmt: skip


@pytest.mark.parametrize(("file", "model", "how", "name", "value"), FITTED)
def test_a_public_table_is_fitted_under_its_own_names(
    file: str, model: str, how: dict[str, Any], name: str, value: float
) -> None:
    split = {} if {"leave_out", "extrapolate"} & how.keys() else {"cv": 0}
    found = next(iter(fit(DOORS / file, model, **{**split, **how}).fit.fits.values())).params_
    assert found[name] == pytest.approx(value, rel=0.03)


HEADERS = {
    "Avg Power (kW)": ("power_w", 0, "", ("kW",)),
    "smClock_GHz": ("frequency_mhz", 1, "", ("GHz",)),
    "clockMHz": ("frequency_mhz", 1, "", ("MHz",)),
    "FREQ_MHZ": ("frequency_mhz", 1, "", ("MHz",)),
    "target_clock": ("frequency_mhz", 3, "", ()),
    "powermW": ("power_w", 1, "", ("mW",)),
    "power/W": ("power_w", 1, "", ("W",)),
    "Power (W, avg)": ("power_w", 0, "", ("W",)),
    "Power (W) avg": ("power_w", 0, "", ("W",)),
    "Power (W/GPU)": ("power_w", 1, "each", ("W",)),
    "throughput_img_s": ("rate", 1, "", ("s",)),
    "total power [kW]": ("power_w", 1, "total", ("kW",)),
    "board power [kW]": ("power_w", 1, "", ("kW",)),
    "coreClock_GHz": ("frequency_mhz", 1, "", ("GHz",)),
    "iteration time ms": ("time_s", 1, "", ("ms",)),
    "energy_kj": ("energy_j", 1, "", ("kJ",)),
    "gpu utilisation": ("util_percent", 1, "", ()),
    "power_w [W]": ("power_w", 1, "", ("W",)),
    "power_std_w": ("power_w", 9, "", ("W",)),
    "power_p95": ("power_w", 9, "", ()),
    "power_pct": ("power_w", 1, "", ("%",)),
    "power_median_w": ("power_w", 2, "", ("W",)),
    "total_energy_mj": ("energy_j", 1, "total", ("mJ",)),
    "Energy (MJ)": ("energy_j", 1, "", ("MJ",)),
    "ENERGY_MJ": ("energy_j", 1, "", ("mJ", "MJ")),
    "Energy (J per GPU)": ("energy_j", 1, "each", ("J",)),
    "Energy (Wh)": ("energy_j", 1, "", ("Wh",)),
    "J/token": ("", 1, "", ()),
    "timeMs": ("time_s", 1, "", ("ms",)),
    "TIME_MS": ("time_s", 1, "", ("ms",)),
    "time (μs)": ("time_s", 1, "", ("us",)),
    "time (µs)": ("time_s", 1, "", ("us",)),
    "time (min)": ("time_s", 1, "", ("min",)),
    "duration_mins": ("time_s", 1, "", ("min",)),
    "runtime_min": ("time_s", 1, "", ("min", "minimum")),
    "s/it": ("time_s", 1, "", ("s",)),
    "time/iter (ms)": ("time_s", 1, "", ("ms",)),
    "Time in seconds": ("time_s", 1, "", ("s",)),
    "per_device_train_batch_size": ("local_batch", 1, "", ()),
    "ms/step": ("time_s", 1, "", ("ms",)),
    "latency (ms/token)": ("time_s", 1, "", ()),
    "GPUs": ("gpus", 1, "", ()),
    "NumGPUs": ("gpus", 1, "", ()),
    "batch_per_gpu": ("local_batch", 1, "", ()),
    "global_batch_size": ("global_batch", 1, "", ()),
    "GPU util %": ("util_percent", 1, "", ("%",)),
    "memory_bandwidth (GB/s)": ("", 1, "", ()),
}
"""What a header says: our name, the rank among others of the quantity, whose it is, its unit."""


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_is_read_by_one_grammar(name: str) -> None:
    header = parsed(name)
    assert (*quantity_of(header.words), header.units) == HEADERS[name]


RATES = {
    "images_per_sec": "samples", "Throughput (images/s)": "samples", "samples/s/GPU": "samples",
    "train_steps_per_second": "steps", "it/s": "steps", "tok/s": "tokens", "img/min": "samples",
    "requests/s": "others", "throughput": "", "s/it": "", "GB/s": "",
}  # fmt: skip


def test_what_is_counted_per_time_is_a_rate() -> None:
    assert {name: parsed(name).rate for name in RATES} == RATES


def test_units_are_spelt_in_many_ways() -> None:
    said = {
        "watts": "W", "milliwatts": "mW", "KW": "kW", "mw": "mW", "kwh": "kWh", "Ws": "Ws",
        "joule": "J", "mJ": "mJ", "MJ": "MJ", "seconds": "s", "usec": "us", "msec": "ms",
        "hrs": "h", "days": "d", "Mhz": "MHz", "mhz": "MHz", "hertz": "Hz", "pct": "%",
        "percent": "%", "ratio": "fraction", "B": "bytes", "\u00b5s": "us",
    }  # fmt: skip
    assert {text: spelt(text) for text in said} == {text: (unit,) for text, unit in said.items()}
    assert not spelt("dBm")
    assert not spelt("gpus")
    assert factors("J")["Wh"] == 3600


SWEEP = {"clock": [600, 900, 1200], "time_s": [2.0, 1.5, 1.2]}
ON_TWO = {"gpus": [2, 2, 4], "local_batch": [8, 16, 8]}
TABLES: list[tuple[dict[str, Any], str, list[float]]] = [
    ({**SWEEP, "power_max_w": [9, 9, 9], "power_w_median": [70, 80, 90], "avg_power_mw":
      [6e4, 7e4, 8e4]}, "power_w", [60, 70, 80]),
    ({"gpus": [1, 2, 3], "time": ["2026-01-01", "", "x"], "runtime (ms)": [1, 2, 3]},
     "time_s", [1e-3, 2e-3, 3e-3]),
    ({**SWEEP, "total_power_w": [140, 160, 360], **ON_TWO}, "power_w", [70, 80, 90]),
    ({**SWEEP, "energy_per_gpu_j": [10, 20, 30], **ON_TWO}, "energy_j", [20, 40, 120]),
    ({"clock": ["600 MHz", "900Mhz", "1200 mhz"]}, "frequency_mhz", [600, 900, 1200]),
    ({**ON_TWO, "clock": ["0.6 GHz", "", "1.2 GHz"]}, "frequency_mhz", [600, np.nan, 1200]),
    ({**SWEEP, "util": ["98%", "97%", "1%"]}, "util_percent", [98, 97, 1]),
    ({**ON_TWO, "samples/s": [16, 64, 32]}, "time_s", [1, 0.5, 1]),
    ({**ON_TWO, "samples/s/GPU": [8, 32, 8]}, "time_s", [1, 0.5, 1]),
    ({**ON_TWO, "img_per_min": [960, 3840, 1920]}, "time_s", [1, 0.5, 1]),
    ({**ON_TWO, "it/s": [2, 4, 8], "tokens/s": [1, 1, 1]}, "time_s", [0.5, 0.25, 0.125]),
    ({**ON_TWO, "tok/s": [160, 640, 320], "seq_len": [10, 10, 10]}, "time_s", [1, 0.5, 1]),
    ({**ON_TWO, "grad_accum_steps": [2, 2, 2], "samples/s": [16, 64, 32]}, "time_s", [2, 1, 2]),
    ({"gpus": [2, 4], "global_batch": [64, 64], "samples/s": [32, 64]}, "time_s", [2, 1]),
    ({"gpus": [1, 1], "batch_size": [64, 128], "samples/s": [32, 64]}, "time_s", [2, 2]),
    ({"gpus": [1, 1], "batch_size": [64, 128]}, "local_batch", [64, 128]),
]  # fmt: skip


@pytest.mark.parametrize(("table", "name", "values"), TABLES)
def test_a_table_is_read_as_its_headers_say(
    table: dict[str, Any], name: str, values: list[float]
) -> None:
    assert read_profile(table).numbers(name) == pytest.approx(values, nan_ok=True)


ASKED: list[tuple[dict[str, Any], str, str, str]] = [
    ({"Power (dBm)": [48, 49, 50]}, "linear-power",
     "column Power (dBm): found unit 'dBm'", "--column 'Power (dBm)=power_w:W' says otherwise"),
    ({"power_pct": [48, 49, 50]}, "linear-power", "found unit '%'", "one of W, mW, kW"),
    ({"POWER_MW": [1, 2, 3]}, "linear-power", "may be mW or MW", "--column 'POWER_MW=power_w:mW'"),
    ({"total_power": [100, 120, 140]}, "linear-power", "that of all GPUs", "a column gpus"),
    ({"gpu_power": [50, 60, 70], "board_power": [70, 80, 90]}, "linear-power",
     "gpu_power and board_power", "--column 'gpu_power=power_w' says which"),
    ({"power_w": [50, 60, "70 kW"]}, "linear-power", "row 2, column power_w: found '70 kW'", ""),
    ({"runtime_min": [4, 3, 2]}, "power-law-jct", "may be min or minimum",
     "--column 'runtime_min=time_s:min' or --column 'runtime_min=time_s:s'"),
    ({"throughput": [4, 5, 6]}, "power-law-jct", "column throughput: found a rate of what",
     "--column 'throughput=time_s:images/s'"),
    ({"requests/s": [4, 5, 6]}, "power-law-jct", "no rate of training", "1 / (steps/s)"),
    ({"tokens/s": [4, 5, 6], **ON_TWO}, "power-law-jct", "tokens per s without seq_len", ""),
    ({"samples/s": [4, 5, 6], "batch": [8, 8, 8], "gpus": [1, 2, 4]}, "power-law-jct",
     "column batch: found a batch, of each GPU or of all", "--column 'batch=global_batch'"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "model", "found", "remedy"), ASKED)
def test_what_is_not_clear_is_asked_and_stops_only_who_reads_it(
    table: dict[str, Any], model: str, found: str, remedy: str
) -> None:
    table = {"frequency_mhz": [600, 900, 1200], **table}
    with pytest.raises(InputError) as caught:
        fit(table, model, cv=0)
    assert found in str(caught.value)
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)
    other = {"time_s": [2, 1.6, 1.3]} if model == "linear-power" else {"power_w": [50, 70, 95]}
    unasked = "power-law-jct" if model == "linear-power" else "linear-power"
    assert fit({**table, **other}, unasked, cv=0).fit[""].n_ == 3


ANSWERS: list[tuple[dict[str, Any], dict[str, str], dict[str, str], list[float]]] = [
    ({"Power (dBm)": [48, 60]}, {"Power (dBm)": "power_w:W"}, {}, [48, 60]),
    ({"Power (dBm)": [48, 60]}, {}, {"power_w": "watts"}, [48, 60]),
    ({"Power (kW)": [0.1, 0.2]}, {"Power (kW)": "power_w"}, {}, [100, 200]),
    ({"POWER_MW": [6e4, 7e4]}, {"POWER_MW": "power_w:milliwatts"}, {}, [60, 70]),
    ({"board_power": [6e4, 7e4]}, {}, {"board_power": "mW"}, [60, 70]),
    ({"my": [0.1, 0.2]}, {"my": "power_w:kW"}, {}, [100, 200]),
    ({"gpu_power": [50, 60], "board_power": [7, 8]}, {"gpu_power": "power_w"}, {}, [50, 60]),
]


@pytest.mark.parametrize(("table", "columns", "units", "watts"), ANSWERS)
def test_what_the_user_says_is_an_answer(
    table: dict[str, Any], columns: dict[str, str], units: dict[str, str], watts: list[float]
) -> None:
    profile = read_profile({"clock": [600, 900], **table}, columns=columns, units=units)
    assert profile.numbers("power_w") == pytest.approx(watts)


def test_a_stated_unit_is_warned_of_at_most(caplog: pytest.LogCaptureFixture) -> None:
    warn.cache_clear()
    said = {"GPU_MHZ": "frequency_mhz", "RAIL_GPU": "power_w:mW"}
    with caplog.at_level(logging.WARNING):
        read_profile(DOORS / "jetson_rails.csv", columns=said)
        assert caplog.messages == []
        read_profile({"power": [0.01, 0.02]}, columns={"power": "power_w:W"})
    assert "found a median of 0.015" in caplog.text
    assert "kW" not in caplog.text


GROUPS: list[tuple[dict[str, Any], str | None, str]] = [
    ({"app": list("aaabbb"), "clock": [600, 900, 1200, 0.6, 0.9, 1.2]}, None,
     "column clock (frequency_mhz) (b): found a median of 0.9, .*frequency_mhz=GHz"),
    ({"what": list("aaabbb"), "clock": [600, 900, 1200, 0.6, 0.9, 1.2]}, "what", r"\(b\)"),
    ({"app": list("aaaa"), "clock": [600, 900, 1200, 1.2]}, None, "row 3, .*: found 1.2"),
    ({"power_w": [60, 70], "time_s": [2, 1], "energy_j": [1.2e5, 7e4]}, None, "energy_j=mJ"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "by", "said"), GROUPS)
def test_magnitudes_are_judged_by_group(table: dict[str, Any], by: str | None, said: str) -> None:
    said = said.replace("(frequency_mhz) (b)", r"\(frequency_mhz\) \(b\)")
    with pytest.raises(InputError, match=said):
        read_profile(table, by=by)


def test_two_columns_group_and_own_names_select() -> None:
    table = {
        "prog": list("aabbaabb"),
        "mem (GHz)": [1, 1, 1, 1, 2, 2, 2, 2],
        "SM clock (GHz)": [0.6, 0.9] * 4,
        "watts": [60, 80, 90, 120, 70, 95, 100, 130],
    }
    columns = {"prog": "application", "mem (GHz)": "memory_mhz"}
    report = fit(table, "linear-power", by=["prog", "mem (GHz)"], columns=columns, cv=0)
    assert list(report.fit.fits) == ["a / 1", "b / 1", "a / 2", "b / 2"]
    profile = read_profile(table, columns=columns)
    assert sum(profile["SM clock (GHz)"] >= 0.9) == sum(profile["prog"] == "a") == 4
    with pytest.raises(InputError, match="by: found 'colour', expected one of"):
        fit(table, "linear-power", by="prog,colour", columns=columns)
    with pytest.raises(
        InputError, match=r"images_per_sec: found samples per s, a rate.*local_batch"
    ):
        fit(DOORS / "images_per_second.csv", "powerflow-throughput",
            columns={"images_per_sec": "time_s"})  # fmt: skip


def test_names_of_a_log_select_its_runs() -> None:
    rows = {"power.draw [W]": [60.0] * 20 + [150.0] * 40 + [60.0] * 20 + [200.0] * 40}
    clocks = [900] * 60 + [1200] * 60
    seconds = {"timestamp": np.arange(120) / 2}
    log = read_profile({"clocks.current.sm [MHz]": clocks, **rows, **seconds})
    assert sum(log["clocks.current.sm [MHz]"] >= 1000) == 1
    assert [title for title, _ in log.groups("clocks.current.sm [MHz],gpu")] == [
        "900 / 0",
        "1200 / 0",
    ]


def test_a_time_and_a_rate_that_differ_are_told() -> None:
    both = {**ON_TWO, "samples/s": [16, 64, 32], "time_s": [1, 0.5, 2]}
    assert "time_s is not that of samples/s in 1 of 3 rows" in read_profile(both).notes
