"""What the fits reach on public profiles; all of it is measured by benchmarks/fitting_bars.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optgap.fitting.curves import BatchPower, LinearPower, PowerLawJct
from optgap.fitting.dram import DramRuntime
from optgap.fitting.groups import Split, cross_validate
from optgap.fitting.powerflow_energy import PowerFlowEnergy
from optgap.fitting.powerflow_power import PowerFlowPower
from optgap.fitting.profile import Profile
from optgap.fitting.readers import read_profile, read_profiles
from optgap.fitting.throughput import PowerFlowThroughput


@pytest.fixture(scope="module")
def profiles(data_dir: Path) -> Path:
    return data_dir / "profiles"


@pytest.fixture(scope="module")
def gv100(profiles: Path) -> Profile:
    return read_profile(profiles / "nsfcac/gv100_spec15.csv")


@pytest.fixture(scope="module")
def v100(profiles: Path) -> Profile:
    profile = read_profile(profiles / "nv-dvfs/v100_real.csv")
    return profile.take(np.flatnonzero(profile.numbers("frequency_mhz") >= 502))


def some_of(profile: Profile, every: int) -> Profile:
    """The rows of every so-manieth application; the benchmark takes them all."""
    return profile.take(
        np.isin(profile["application"], sorted(set(profile["application"]))[::every])
    )


def test_the_mean_of_the_applications_is_linear_in_the_clock(gv100: Profile) -> None:
    power = gv100.to_frame().pivot(index="frequency_mhz", columns="application", values="power_w")
    mean = power.dropna().mean(axis=1).rename("power_w").reset_index()
    assert cross_validate(LinearPower(), mean).r2 >= 0.97
    assert 0.07 <= LinearPower().fit(mean).params_["alpha"] <= 0.12


def test_power_and_run_time_of_each_application(gv100: Profile, v100: Profile) -> None:
    assert cross_validate(LinearPower(), v100, "application").mape <= 0.065
    assert cross_validate(PowerLawJct(), v100, "application").mape <= 0.075
    some = gv100.take(np.isin(gv100["application"], ["dgemm", "nw", "srad", "bfs"]))
    assert cross_validate(LinearPower(), some, "application").mape <= 0.045
    assert cross_validate(PowerLawJct(), some, "application").mape <= 0.040


def test_the_pieces_of_powerflow_beat_the_line(v100: Profile) -> None:
    some = some_of(v100, 3)
    power, energy = PowerFlowPower(form="physical"), PowerFlowEnergy(form="physical")
    assert cross_validate(power, some, "application", Split(5)).mape <= 0.026
    assert cross_validate(energy, some, "application", Split(3)).mape <= 0.085


def test_throughput_of_a_job_by_placement(profiles: Path) -> None:
    files = [profiles / f"adaptdl/yolov3_{kind}.csv" for kind in ("placements", "scalability")]
    table = read_profiles(files)
    printed = cross_validate(PowerFlowThroughput(), table, split=Split(10))
    better = cross_validate(PowerFlowThroughput(sync="topology"), table, split=Split(10))
    assert printed.mape <= 0.082
    assert better.mape < printed.mape - 0.01
    beyond = cross_validate(PowerFlowThroughput(), table, split=Split(column="gpus", upto=8))
    assert beyond.mape <= 0.10
    bert = read_profile(profiles / "elasticflow/throughputs_A100/bert.csv")
    assert cross_validate(PowerFlowThroughput(io="none"), bert).mape <= 0.042


def test_power_by_batch_with_its_two_ends(profiles: Path) -> None:
    for board, limit in (("v100", 0.060), ("rtx6000", 0.042)):
        table = some_of(read_profile(profiles / f"zeus/summary_power_{board}.csv"), 2)
        split = Split(column="local_batch")
        assert cross_validate(BatchPower(), table, "application", split).errors.mean() <= limit


def test_run_time_from_dram_activity(profiles: Path) -> None:
    for board, limit in (("h100", 0.046), ("v100", 0.050)):
        table = read_profile(profiles / f"ecosched/{board}_profiles.csv")
        held = cross_validate(DramRuntime(), table, "application", Split(column="gpus"))
        assert held.median <= limit
