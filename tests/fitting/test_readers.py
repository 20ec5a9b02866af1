"""Each source is known by its header and comes out in canonical columns and units."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from optgap.fitting.audit import audit
from optgap.fitting.profile import Profile
from optgap.fitting.readers import read_profile, read_profiles
from optgap.fitting.workflow import fit

SMI_HEADER = (
    "timestamp, index, name, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%], "
    "power.limit [W]"
)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def smi_lines(clocks: list[int], watts: list[float]) -> list[str]:
    return [
        f"2024/05/01 10:00:{k // 10:02d}.{k % 10}00, 0, NVIDIA A100, {p} W, {f} MHz, "
        f"{97 * (p > 100)} %, 400 W"
        for k, (f, p) in enumerate(zip(clocks, watts, strict=True))
    ]


def test_nvidia_smi_samples_become_runs(tmp_path: Path) -> None:
    clocks = [210] * 20 + [1200] * 30 + [210] * 15 + [900] * 30
    watts = [50.0] * 20 + [300.0] * 30 + [50.0] * 15 + [220.0] * 30
    path = write(tmp_path, "a.csv", "\n".join([SMI_HEADER, *smi_lines(clocks, watts)]))
    profile = read_profile(path)
    assert profile.kind == "nvidia-smi"
    assert profile.numbers("frequency_mhz") == pytest.approx([1200, 900])
    assert profile.numbers("power_w") == pytest.approx([300, 220])
    assert profile.numbers("time_s") == pytest.approx([3.0, 3.0])
    assert profile["gpu_model"].tolist() == ["NVIDIA A100"] * 2
    assert "35 idle samples" in profile.notes[0]
    found = fit(profile, "device-power").fit["NVIDIA A100"].params_
    assert found == {"idle_w": 50.0, "full_w": 400.0}


def test_samples_that_earlier_versions_took_are_still_cut_into_runs(tmp_path: Path) -> None:
    lines = ["sample_s,gpu,gpu_model,power_w,frequency_mhz,memory_mhz,util_percent,power_limit_w"]
    for k in range(51):
        watts = 250 if 15 <= k < 35 else 60
        util = 97 if watts > 100 else 0
        lines += [f"{k / 10},0,Fake,{watts},1400,2600,{util},700"]
        lines += [f"{k / 10},1,Fake,{watts},1400,,,"]
    profile = read_profile(write(tmp_path, "samples.csv", "\n".join(lines)))
    assert profile.kind == "samples"
    assert profile.numbers("samples") == pytest.approx([20, 20])
    assert profile.numbers("power_w") == pytest.approx([250, 250])
    assert profile.numbers("time_s") == pytest.approx([2.0, 2.0])
    assert profile.numbers("idle_w") == pytest.approx([60, 60])


PUBLISHED: list[tuple[str, str, dict[str, list[float]], str]] = [
    ("x_placements.csv", "placement,local_bsz,step_time\n1,32,0.04\n1123,32,0.1\n",
     {"gpus": [1, 7], "nodes": [1, 4], "gpus_on_node": [1, 3]}, ""),
    ("bert.csv", "global_batch_size,1,2,16\n64,2.0,4.0,\n128,0,2.5,8.0\n",
     {"gpus": [1, 2, 2, 16], "time_s": [0.5, 0.25, 0.4, 0.125], "local_batch": [64, 32, 64, 8],
      "nodes": [1, 1, 1, 2]}, "2 cells"),
    ("h.csv", "app,gpu_count,sm_clock_sum_mhz,fp_active_sum\nx,4,4800,2\nx,2,2000,1\n",
     {"frequency_mhz": [1200, 1000], "fp_active": [0.5, 0.5]}, "sm_clock_sum_mhz divided by gpus"),
    ("t.csv", "app,gpu_count,global_batch_size,nodes,step_time_s\nx,4,64,2,0.1\nx,8,64,2,0.07\n",
     {"local_batch": [16, 8], "gpus_on_node": [2, 4], "time_s": [0.1, 0.07]}, ""),
]  # fmt: skip
"""A file's name and text, columns of ours that it comes out with, and a part of the notes."""


@pytest.mark.parametrize(("name", "text", "columns", "note"), PUBLISHED)
def test_a_published_table_comes_out_in_our_columns(
    name: str, text: str, columns: dict[str, list[float]], note: str, tmp_path: Path
) -> None:
    profile = read_profile(write(tmp_path, name, text))
    for column, values in columns.items():
        assert profile.numbers(column) == pytest.approx(values), column
    assert note in "\n".join(profile.notes)
    assert set(profile["application"]) == {"bert" if name == "bert.csv" else "x"}


def test_files_are_joined_over_their_common_columns(tmp_path: Path) -> None:
    one = tmp_path / "a.csv.gz"
    one.write_bytes(gzip.compress(b"frequency_mhz,power_w,note\n500,60,x\n"))
    two = write(tmp_path, "b.csv", "frequency_mhz,power_w\n600,70\n")
    both = read_profiles([one, two])
    assert both.numbers("power_w") == pytest.approx([60, 70])
    assert "note" not in both
    assert len(set(both["file"].tolist())) == 2


# --- the audit --------------------------------------------------------------------------------


def sweep(held: bool) -> Profile:
    """Six applications over eight clocks; the lowest clock held or not."""
    clocks = np.tile(np.arange(400.0, 1200.0, 100.0), 6)
    real = np.where((clocks == 400) & (not held), 200.0, clocks)
    beta = np.repeat([0.2, 0.5, 0.8, 0.9, 0.95, 1.0], 8)
    return Profile(
        {
            "application": np.repeat([f"a{k}" for k in range(6)], 8).astype(object),
            "frequency_mhz": clocks,
            "time_s": (1000 / real) ** beta,
            "power_w": 30 + (0.1 + 0.01 * np.repeat(np.arange(6), 8)) * real,
        }
    )


def test_a_clock_that_was_not_held_is_found_from_the_data_alone() -> None:
    found = audit(sweep(held=False)).suspects
    assert [item.where for item in found] == ["400 MHz"]
    assert "ran near" in found[0].reason
    assert audit(sweep(held=True)).suspects == ()


def test_the_v100_sweep_did_not_run_at_405_mhz(data_dir: Path) -> None:
    for name in ("v100_real", "v100_micro"):
        found = audit(read_profile(data_dir / "profiles" / "nv-dvfs" / f"{name}.csv"))
        assert [item.where for item in found.suspects] == ["405 MHz"]
        assert len(found.suspect_rows) == found.rows / 10


def test_the_gv100_sweep_held_its_clocks(data_dir: Path) -> None:
    found = audit(read_profile(data_dir / "profiles" / "nsfcac" / "gv100_spec15.csv"))
    assert [item.where for item in found.suspects] == ["more than 1297 MHz (dgemm)"]  # its limit
    assert len(found.suspect_rows) == 11
    assert found.groups == 15


def test_every_profile_of_the_collection_is_read(data_dir: Path) -> None:
    folder = data_dir / "profiles"
    kinds = {}
    for place in (
        "nv-dvfs",
        "hkbu-dvfs",
        "nsfcac",
        "adaptdl",
        "sia",
        "elasticflow/throughputs_A100",
    ):
        for file in sorted((folder / place).glob("*.csv")):
            kinds[read_profile(file).kind] = file
    for name in (
        "zeus/summary_power_v100.csv",
        "ecosched/h100_profiles.csv",
        "dlbench/titanX-caffe-resnet.csv",
    ):
        kinds[read_profile(folder / name).kind] = folder / name
    assert len(kinds) == 7
