"""Sampling through NVML, against a library that behaves like it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

from optgap.fitting import nvml
from optgap.fitting.nvml import Nvml, Reading
from optgap.fitting.readers import read_profile
from optgap.fitting.sampler import HEADER, sample
from optgap.models.errors import InputError


def put(reference: Any, value: int) -> int:
    reference._obj.value = value
    return 0


class FakeNvml:
    """Two boards by NVML's C interface; the second tells no utilisation and no power limit."""

    def __init__(self, count: int = 2, init: int = 0, power: int = 0) -> None:
        self.count, self.init, self.power = count, init, power
        self.shut = 0
        self.looks = 0

    def nvmlInit_v2(self) -> int:
        return self.init

    def nvmlShutdown(self) -> int:
        self.shut += 1
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        return put(count, self.count)

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:
        return put(handle, index.value + 1)

    def nvmlDeviceGetName(self, handle: Any, text: Any, length: Any) -> int:
        text.value = f"NVIDIA Fake {handle.value}".encode()
        return 0

    def nvmlDeviceGetPowerUsage(self, handle: Any, value: Any) -> int:
        self.looks += 1
        busy = 10 < self.looks <= 50
        return self.power or put(value, (250_000 if busy else 60_000) + handle.value)

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: Any, value: Any) -> int:
        return put(value, 1400 if kind.value == nvml.SM_CLOCK else 2600)

    def nvmlDeviceGetUtilizationRates(self, handle: Any, rates: Any) -> int:
        if handle.value == 2:
            return nvml.NOT_SUPPORTED
        rates._obj.gpu = 97
        return 0

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Any, value: Any) -> int:
        return nvml.NOT_SUPPORTED if handle.value == 2 else put(value, 700_000)


def test_a_reading_is_in_our_units() -> None:
    machine = Nvml(FakeNvml())
    assert machine.names == ["NVIDIA Fake 1", "NVIDIA Fake 2"]
    assert machine.read(0) == Reading(60.001, 1400.0, 2600.0, 97.0, 700.0)
    assert machine.read(1) == Reading(60.002, 1400.0, 2600.0, None, None)


def test_the_library_is_given_back() -> None:
    library = FakeNvml()
    Nvml(library).close()
    assert library.shut == 1


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        (FakeNvml(init=9), "NVML error 9"),
        (FakeNvml(count=0), "no GPU"),
    ],
)
def test_a_machine_without_gpus_says_so(library: FakeNvml, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        Nvml(library)


def test_a_driver_that_fails_midway_says_so() -> None:
    machine = Nvml(FakeNvml(power=15))
    with pytest.raises(InputError, match="error 15 from nvmlDeviceGetPowerUsage"):
        machine.read(0)


def steady() -> tuple[Callable[[], float], Callable[[float], None]]:
    """A clock that only moves when somebody sleeps."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return lambda: now[0], sleep


def test_samples_are_cut_into_runs_like_any_others(tmp_path: Path) -> None:
    clock, sleep = steady()
    text = sample(
        Nvml(FakeNvml()), lambda elapsed: elapsed >= 3, interval_s=0.1, clock=clock, sleep=sleep
    )
    assert text.splitlines()[0] == ",".join(HEADER)
    assert len(text.splitlines()) == 1 + 2 * 31
    path = tmp_path / "samples.csv"
    path.write_text(text)
    profile = read_profile(path)
    assert profile.kind == "optgap-samples"
    assert profile["gpu_model"].tolist() == ["NVIDIA Fake 1", "NVIDIA Fake 2"]
    assert profile.numbers("samples") == pytest.approx([20, 20])
    assert profile.numbers("power_w") == pytest.approx([250.001, 250.002], abs=0.01)
    assert profile.numbers("time_s") == pytest.approx([2.0, 2.0])
    assert profile.numbers("idle_w") == pytest.approx([60, 60], abs=0.01)


def test_only_the_chosen_gpus_are_sampled() -> None:
    clock, sleep = steady()
    machine = Nvml(FakeNvml())
    text = sample(machine, lambda t: t >= 1, indices=[1], clock=clock, sleep=sleep)
    assert {line.split(",")[1] for line in text.splitlines()[1:]} == {"1"}
    with pytest.raises(InputError, match="GPUs from 0 to 1"):
        sample(machine, lambda t: True, indices=[2])
    with pytest.raises(InputError, match="positive number of seconds"):
        sample(machine, lambda t: True, interval_s=0)


def test_the_command_says_clearly_that_there_is_no_gpu(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    answer = cli("profile", "--seconds", "1", "-o", str(tmp_path / "x.csv"))
    assert answer.code == 2
    assert "no libnvidia-ml.so.1" in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "x.csv").exists()


def test_the_command_samples_while_a_command_runs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nvml, "_load", FakeNvml)
    path = tmp_path / "samples.csv"
    answer = cli("profile", "--interval", "0.01", "-o", str(path), "--", "sleep", "0.2")
    assert answer.code == 0
    assert "samples in" in answer.out
    assert path.read_text().startswith(",".join(HEADER))


@pytest.mark.parametrize(
    "arguments",
    [
        ["profile"],
        ["profile", "--seconds", "0"],
        ["profile", "--seconds", "1", "--gpus", "x"],
        ["profile", "--seconds", "1", "--interval", "0"],
        ["profile", "--", "no-such-command-anywhere"],
        ["profile", "--seconds", "1", "-o", "/no/such/folder/x.csv"],
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nvml, "_load", FakeNvml)
    answer = cli(*arguments)
    assert answer.code == 2
    assert answer.err.startswith("optgap: ")
    assert answer.err.count("\n") == 1
