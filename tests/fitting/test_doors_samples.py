"""Logs of samples become runs, or are refused in a line that says why.

The files of ``data/doors`` are made up: power is base + slope x clock while busy, for 15 s at
900, 1200 and 1410 MHz each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from optgap.fitting.audit import audit
from optgap.fitting.readers import read_profile
from optgap.fitting.workflow import fit
from optgap.models.errors import InputError

DOORS = Path(__file__).parent / "data" / "doors"

LINES: list[tuple[str, float, float, float, list[float], str]] = [
    ("smi_base", 60, 0.156, 62, [15, 15, 15], "cut into 3 runs (45 s)"),
    ("smi_glitch_low", 60, 0.156, 62, [15, 15, 15], "2 readings of 1.2 W"),
    ("smi_high_idle", 60, 0.130, 130, [15, 15, 15], "36 idle samples"),
    ("smi_iso_times", 60, 0.156, 62, [15, 15, 15], "0.5 s apart"),
    ("smi_killed", 60, 0.156, 62, [15, 15, 15], "the last, cut line (row 127) left out"),
    ("smi_suspended", 60, 0.156, 62, [np.nan, np.nan, 15, 15], "no sample for 3,600 s"),
]
"""File, base in W, slope in W/MHz, power at rest, run times, and a part of the notes."""


@pytest.mark.parametrize(("name", "base", "slope", "idle", "times", "note"), LINES)
def test_power_over_the_clock_is_found_in_a_log(
    name: str, base: float, slope: float, idle: float, times: list[float], note: str
) -> None:
    profile = read_profile(DOORS / f"{name}.csv")
    assert profile.numbers("time_s") == pytest.approx(times, abs=0.5, nan_ok=True)
    assert profile.numbers("idle_w") == pytest.approx(idle, rel=0.01)
    assert note in "\n".join(profile.notes)
    assert len(profile.notes) <= 3
    found = fit(profile, "linear-power", cv=0).fit[""].params_
    assert found["alpha"] == pytest.approx(slope, rel=0.03)
    assert found["P_gs"] == pytest.approx(base, rel=0.05)


REFUSED = [
    ("smi_idle_only", "linear-power", "idle throughout (61.5 W)"),
    ("smi_no_power", "linear-power", "power.draw [W] is [N/A] in every row"),
    ("smi_capped_clock_jitter", "power-law-jct", "expected at least two values"),
    ("smi_suspended", "power-law-jct", "row 1, column time_s: found nothing"),
    ("preamble_ncu", "linear-power", "this is Nsight Compute's"),
]


@pytest.mark.parametrize(("name", "model", "why"), REFUSED)
def test_a_log_that_tells_nothing_is_refused(name: str, model: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        fit(DOORS / f"{name}.csv", model)
    assert why in str(caught.value)


def test_a_capped_run_is_one_run_whose_clock_is_suspect() -> None:
    profile = read_profile(DOORS / "smi_capped_clock_jitter.csv")
    row = [float(profile[name][0]) for name in ("time_s", "frequency_mhz", "power_w")]
    assert row == pytest.approx([70, 1330, 300], abs=0.5)
    assert [str(item) for item in audit(profile).suspects] == [
        "run at 1: its clock spreads over more than 5 %: not held"
    ]


def test_a_board_that_draws_more_at_rest_is_warned_of() -> None:
    report = fit(DOORS / "idle_never_seen_swapped.csv", "device-power")
    assert "rows at rest draw 68 W, more than rows at work" in str(report)


# --- logs as tools and boards write them, rebuilt with made-up numbers ---------------------------

Part = tuple[float, float, float, float]
"""Seconds, W, MHz and % of a stretch of a log."""


def log(
    parts: list[Part],
    step: float = 0.5,
    *,
    noise: float = 0.3,
    repeat: int = 1,
    drop: tuple[str, ...] = (),
    jitter: float = 0.0,
) -> list[list[str]]:
    """A log as rows of time, power, clock and utilisation; the sensor repeats each value."""
    rng = np.random.default_rng(0)
    sizes = [round(seconds / step) for seconds, *_ in parts]
    held = np.repeat(np.array(parts, dtype=float)[:, 1:], sizes, axis=0)
    count = len(held)
    held[:, 0] += np.repeat(rng.normal(0, noise, -(-count // repeat)), repeat)[:count]
    held[:, 1] += np.round(np.repeat(rng.normal(0, 1, -(-count // 4)), 4)[:count] * jitter)
    times = 1.7e9 + step * np.arange(count)
    columns = {
        "timestamp": [f"{time:.3f}" for time in times],
        "power.draw [W]": [f"{watts:.2f}" for watts in held[:, 0]],
        "clocks.sm [MHz]": [f"{clock:g}" for clock in held[:, 1]],
        "utilization.gpu [%]": [f"{used:g}" for used in held[:, 2]],
    }
    kept = {name: cells for name, cells in columns.items() if name not in drop}
    return [list(kept), *(list(row) for row in zip(*kept.values(), strict=True))]


IDLE, WORK, WARM = (10.0, 40.0, 300.0, 0.0), (20.0, 250.0, 1410.0, 98.0), (8.0, 205.0, 210.0, 0.0)
UTIL = "utilization.gpu [%]"


def changed(rows: list[list[str]], column: int, cells: dict[int, str]) -> list[list[str]]:
    """The rows with other cells in one column."""
    return [
        [*row[:column], cells.get(k, row[column]), *row[column + 1 :]] for k, row in enumerate(rows)
    ]


def moved(rows: list[list[str]], start: int, seconds: float) -> list[list[str]]:
    """The rows with the clock set on, or back, from one of them."""
    times = {k: f"{float(row[0]) + seconds:.3f}" for k, row in enumerate(rows) if k >= start}
    return changed(rows, 0, times)


def slipped() -> list[list[str]]:
    """Readings of 1.2 and 312 W on a board of 70 W, for two updates and one of the sensor."""
    rows = log([(10, 17, 300, 0), (20, 60, 1590, 99), (10, 17, 300, 0)], 0.1, repeat=10)
    return changed(rows, 1, {**dict.fromkeys(range(161, 171), "312.00"),
                             **dict.fromkeys(range(51, 71), "1.20")})  # fmt: skip


def stalled() -> list[list[str]]:
    """A logger that stalls for two seconds now and then."""
    rows = log([(8, 40, 300, 0), (60, 250, 1410, 98), (8, 40, 300, 0)], 0.4)
    for start in (60, 110, 150):
        rows = moved(rows, start, 2.0)
    return rows


def together() -> list[list[str]]:
    """Two GPUs sampled at the same times, without their number."""
    one, two = log([IDLE, WORK, IDLE]), log([IDLE, (20, 180, 1200, 90), IDLE])
    return [one[0], *(row for pair in zip(one[1:], two[1:], strict=True) for row in pair)]


LOGS: list[tuple[str, list[list[str]], list[float], list[float], str]] = [
    ("idle at 0.7 of busy", log([WARM, (20, 295, 1410, 99), WARM]), [295], [20], ""),
    ("slips as long as updates", slipped(), [60], [20], "30 readings of 1.2 to 312 W"),
    ("stalls", stalled(), [250], [66], ""),
    ("a clock under a power cap", log([IDLE, (90, 300, 1330, 99), IDLE], 0.1, jitter=30),
     [300], [90], ""),
    ("a first utilisation of 86 %", changed(log([IDLE, WORK, IDLE]), 3, {1: "86"}), [250], [20],
     "1 short busy stretch of 0.5 s"),
    ("another clock while busy", log([WORK, (20, 190, 900, 98)], 0.1), [250, 190], [], ""),
    ("a suspended host", moved(log([IDLE, WORK, IDLE]), 41, 3600), [250, 250], [],
     "no sample for 3,600 s (row 42): cut there"),
    ("a clock set back", moved(log([IDLE, WORK, IDLE]), 41, -3600), [250, 250], [],
     "the clock goes back by 3,600 s (row 42): cut there"),
    ("newest first", [(r := log([WORK, IDLE]))[0], *r[:0:-1]], [250], [20], "sorted by time"),
    ("appended", [*log([IDLE, WORK, IDLE]), *moved(log([IDLE, WORK, IDLE]), 1, 900)], [250, 250],
     [20, 20], "the header again"),
    ("an error message between", [*(r := log([IDLE, WORK, IDLE]))[:9], ["Unable to determine"],
     *r[9:]], [250], [20], "1 line"),
    ("no utilisation", log([IDLE, WORK, IDLE], drop=(UTIL,)), [250], [20], "busy is what draws"),
    ("utilisation always 0", log([(*p[:3], 0) for p in (IDLE, WORK, IDLE)]), [250], [20],
     "whatever the power"),
    ("high idle without utilisation", log([WARM, (20, 295, 1410, 99)] * 3 + [WARM], drop=(UTIL,)),
     [295] * 3, [20] * 3, "busy is what draws"),
    ("one level", log([(20, 250, 1410, 98)], drop=(UTIL,)), [250], [20], "all taken for busy"),
]  # fmt: skip
"""What it is, its rows, and the runs' power in W and times in s; a part of the notes."""


@pytest.mark.parametrize(("rows", "power", "times", "note"), [row[1:] for row in LOGS],
                         ids=[row[0] for row in LOGS])  # fmt: skip
def test_a_log_becomes_its_runs(
    rows: list[list[str]], power: list[float], times: list[float], note: str, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text("\n".join(", ".join(row) for row in rows))
    profile = read_profile(tmp_path / "log.csv")
    assert profile.numbers("power_w") == pytest.approx(power, rel=0.01)
    if times:
        assert profile.numbers("time_s") == pytest.approx(times, abs=0.5)
    else:
        assert "time_s" not in profile
    assert note in "\n".join(profile.notes)


def text(head: str, line: Callable[[int], str], count: int) -> str:
    return head + "".join(line(k) + "\n" for k in range(count))


def of_day(k: int) -> str:
    second = 86_380 + k
    stamp = f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000"
    return f"{stamp}, 0, " + ("150, 99" if 9 < k < 40 else "30, 0")


CARBON = "run_id,project_name,duration,gpu_energy,gpu_count,gpu_power,gpu_model\n"
MIDNIGHT = "Timestamp, DeviceId, GPU Power (W), GPU Utilization (%)\n"
PER_GPU = text("timestamp,GPU0,GPU1\n", lambda k: f"{1.7e9 + k / 5:.3f},{200 + k % 3},201", 150)


def test_a_time_of_day_may_pass_midnight(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(text(MIDNIGHT, of_day, 50))
    profile = read_profile(tmp_path / "log.txt")
    assert profile.numbers("power_w") == pytest.approx([150])
    assert profile.numbers("time_s") == pytest.approx([30])


FOREIGN = [
    ("several samples at a time", "\n".join(", ".join(row) for row in together())),
    ("row 1: found data", "\n".join(", ".join(row) for row in log([IDLE, WORK])[1:])),
    ("row 1: found data", "2026/04/11 04:06:39.063, 19.87, 0, 0, P8\n" * 9),
    ("dmon's", "# gpu    pwr  gtemp     sm\n# Idx      W      C      %\n    0     25     40\n"),
    ("Prometheus' exposition", "# HELP DCGM_FI_DEV_POWER_USAGE W\n"),
    ("Prometheus' exposition", 'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 25\n'),
    ("an answer of Prometheus", '{\n "status": "success",\n "data": {\n  "resultType": "matrix"\n'),
    ("nvprof's", "==123== NVPROF is profiling process 123\n"),
    ("Nsight Systems'", "Time (%),Total Time (ns),Instances\n1,2,3\n"),
    ("nvidia-smi's screen", "| NVIDIA-SMI 550.54   Driver Version: 550.54 |\n"),
    ("JSON", '[{"power": 3}]\n'),
    ("codecarbon's", CARBON + "a,x,60,0.01,2,900,2 x A100\n"),
    ("dcgmi dmon's", "Mon Jan 5 12:00:00 2026\n#Entity POWER\nID\nGPU 0 250\n"),
    ("rocm-smi's", "\ndevice,Average Graphics Package Power (W),GPU use (%)\ncard0,200,99\n"),
    ("tegrastats'", "RAM 5/7850MB GR3D_FREQ 0%@1032 VDD_IN 9/9\n"),
    ("GPU0, GPU1, expected columns of a known", PER_GPU),
    ("power.draw [W], expected times of the samples", "index,power.draw [W]\n" + "0,25\n" * 30),
    ("util, expected power", text("time_s,total_energy_mj,util\n", "{0},{0}5000,0".format, 60)),
    ("a time like", "timestamp,power.draw [W]\n" + "today,25\n" * 30),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), FOREIGN)
def test_what_cannot_be_read_is_refused_by_name(why: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(text)
    with pytest.raises(InputError) as caught:
        read_profile(tmp_path / "log.txt")
    assert why in str(caught.value)


def test_a_table_of_samples_is_recognised_and_a_sweep_is_not(tmp_path: Path) -> None:
    rows = moved(log([IDLE, WORK, IDLE]), 1, -1.7e9)
    tidy = [["time_s", "power_w", "frequency_mhz", "util_percent"], *rows[1:]]
    (tmp_path / "tidy.csv").write_text("\n".join(",".join(row) for row in tidy))
    assert len(read_profile(tmp_path / "tidy.csv")) == 1
    assert len(read_profile(tmp_path / "tidy.csv", sampled=False)) == len(rows) - 1
    sweep = ["frequency_mhz,power_w,time_s"]
    sweep += [f"{1500 - 10 * k},{180 - k},{10 + 0.1 * k}" for k in range(60)]
    (tmp_path / "sweep.csv").write_text("\n".join(sweep))
    assert len(read_profile(tmp_path / "sweep.csv")) == 60
