"""Another unit than the column's name says is refused in one line that names the value."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Cli, refused
from hypothesis import given
from hypothesis import strategies as st
from tables import held, options
from trust.samples import TABLES

import optgap
from optgap.fitting.curves import LinearPower
from optgap.fitting.profile import Profile
from optgap.fitting.readers import read_profile
from optgap.models.consolidation import ConsolidationProblem, GpuKind, PowerLine, Server, Task
from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.errors import InputError
from optgap.models.quantities import GIVEN, MEASURED, doubts, warn
from optgap.registry import FAMILIES

WRONG: list[tuple[str, str, str, float, str]] = [
    ("coscheduling", "profiles", "avg_power_per_gpu_w", 1e-3, "kW"),
    ("coscheduling", "profiles", "avg_power_per_gpu_w", 1e3, "mW"),
    ("coscheduling", "profiles", "runtime_s", 1e-6, "min"),
    ("queueing", "jobs", "duration_s", 1e6, "ms"),
    ("consolidation", "tasks", "memory_gb", 1e3, "MB"),
    ("consolidation", "tasks", "memory_gb", 1e9, "bytes"),
    ("consolidation", "tasks", "util_percent", 1e-2, "fraction"),
    ("consolidation", "series", "util_percent", 1e-2, "fraction"),
    ("placement", "nodes", "cpu_milli", 1e-3, "vCPU"),
    ("placement", "nodes", "memory_mib", 1 / 1024, "GiB"),
    ("placement", "devices", "idle_w", 1e-3, "kW"),
    ("placement", "devices", "full_w", 1e-3, "kW"),
]
"""Family, table, column, the factor to a unit that is not the column's, and that unit."""

SETTINGS: list[tuple[str, str, Any, str]] = [
    ("coscheduling", "idle_w", 0.07, "0.07 kW would be 70"),
    ("consolidation", "gpu_memory_gb", 32_000, "32,000 MB would be 32"),
    ("consolidation", "server_static_w", 0.15, "0.15 kW would be 150"),
    ("consolidation", "f_min_mhz", 0.135, "0.135 GHz would be 135"),
    ("elastic", "p_max_w", 0.15, "0.15 kW would be 150"),
    ("elastic", "idle_w", 0.01, "0.01 kW would be 10"),
]


@pytest.fixture(autouse=True)
def _afresh(here: Path) -> None:
    warn.cache_clear()


@pytest.mark.parametrize(("family", "table", "column", "factor", "unit"), WRONG)
def test_a_column_in_another_unit_is_refused_by_its_row_unless_told_to_go_on(
    family: str,
    table: str,
    column: str,
    factor: float,
    unit: str,
    cli: Cli,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tables, settings = held(TABLES[family][0]), TABLES[family][1]
    frame = tables[table]
    frame[column] = frame[column] * factor
    if frame[column].mod(1).eq(0).all() or column in ("cpu_milli", "memory_mib"):
        frame[column] = frame[column].astype(int)
    with pytest.raises(InputError) as caught:
        optgap.problem(family, **tables, **settings)
    said = str(caught.value)
    assert f"{table}: row " in said
    assert f"column {column}: found " in said
    assert f" {unit} would be " in said
    assert "strict=False (--set strict=false) goes on" in said
    given = options(Path(), tables, settings)
    refused(cli("generate", family, *given, "-o", "problem.json"), f"{table}.csv: row ")
    assert not Path("problem.json").exists()
    if column in ("cpu_milli", "memory_mib", "memory_gb", "full_w"):
        return  # no longer what tasks ask for, or above idle power: refused for another reason
    with caplog.at_level(logging.WARNING):
        problem = optgap.problem(family, **tables, **settings, strict=False)
        optgap.run(problem, next(iter(FAMILIES[family].policies)))
    assert len(caplog.messages) == (column != "util_percent" or table != "tasks")  # else: series
    assert all(f" {unit} would be " in message for message in caplog.messages)
    assert cli("generate", family, *given, "--set", "strict=false", "-o", "p.json").code == 0


@pytest.mark.parametrize(("family", "name", "value", "said"), SETTINGS)
def test_a_setting_in_another_unit_is_refused_with_tables_and_with_a_preset(
    family: str, name: str, value: Any, said: str, cli: Cli
) -> None:
    tables, settings = held(TABLES[family][0]), TABLES[family][1] | {name: value}
    if name == "f_min_mhz":
        settings["f_max_mhz"] = 1.35
    with pytest.raises(InputError, match=said):
        optgap.problem(family, **tables, **settings)
    if name in ("idle_w", "server_static_w") and family != "elastic":
        preset = next(iter(FAMILIES[family].presets))
        with pytest.raises(InputError, match=said):
            optgap.generate(family, preset, **{name: value})
        assert optgap.generate(family, preset, strict=False, **{name: value})
        given = ("--set", f"{name}={value}", "--set", "strict=false")
        assert cli("generate", family, *given, "-o", "p.json").code == 0


def test_fits_of_power_in_kilowatts_are_refused_before_and_after(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clocks = np.linspace(400, 1400, 12)
    frame = pd.DataFrame({"frequency_mhz": clocks, "power_w": (30 + 0.1 * clocks) / 1000})
    said = "linear-power: column power_w: found a median of 0.12, .*power_w=kW"
    with pytest.raises(InputError, match=said):
        LinearPower().fit(frame)
    with pytest.raises(InputError, match=r"frequency_mhz=GHz.*strict=False \(--set"):
        LinearPower().fit(frame.assign(frequency_mhz=clocks / 1000, power_w=30 + 0.1 * clocks))
    with caplog.at_level(logging.WARNING):
        LinearPower().fit(Profile.of(frame, strict=False))
    assert any("a median of 0.12" in message for message in caplog.messages)
    frame.to_csv("profile.csv", index=False)
    with pytest.raises(InputError, match="strict=False"):
        read_profile("profile.csv")
    assert len(read_profile("profile.csv", strict=False)) == 12


def test_a_saved_fit_in_kilowatts_is_refused_where_it_is_put_into_a_problem(cli: Cli) -> None:
    clocks = range(400, 1500, 100)
    lines = "".join(f"{f},{(30 + 0.1 * f) / 1000}\n" for f in clocks)
    Path("profile.csv").write_text("frequency_mhz,power_w\n" + lines)
    assert cli("fit", "linear-power", "profile.csv", "-o", "fit.json").code == 2
    fitted = cli(
        "fit", "linear-power", "profile.csv", "--set", "strict=false", "-o", "fit.json", "--cv", "0"
    )
    assert fitted.code == 0
    Path("tasks.csv").write_text(TABLES["consolidation"][0]["tasks"])
    options = ("--tasks", "tasks.csv", "--model", "fit.json", "-o", "problem.json")
    answer = cli("generate", "consolidation", *options)
    refused(answer, "GPU V100, power at its highest clock: found 0.17, expected 1 to 2,500 W")
    assert cli("generate", "consolidation", *options, "--set", "strict=false").code == 0


def test_problems_made_in_python_are_warned_of_once_where_they_are_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = [Task(f"t{k}", 4.0, 1, 1.2, 0.0, 60.0, np.array([30.0])) for k in range(2)]
    kind = GpuKind(power=PowerLine(0.0261, 0.00008))  # kW
    power = ConsolidationProblem.of([kind], [Server((0, 0))], tasks, name="mine")
    modes = (Mode(1, 100.0, 0.3), Mode(2, 60.0, 0.28))
    energy = CoschedulingProblem.of([Application("a", modes)], name="theirs")
    with caplog.at_level(logging.WARNING):
        assert optgap.run(power, "cats").objective is not None
        optgap.compare(power, "cats,first", "bound-area")
        optgap.save(energy, "energy.json")
        optgap.run("energy.json", "ecosched")
    said = (
        ("mine: GPU V100, power at its highest clock: found 0.1341", "(0.1341 kW would be 134.1)"),
        ("energy.json: application a on 1 GPUs, power_per_gpu_w: found 0.3 (and 1 more)",
         "(0.3 kW would be 300)"),
    )  # fmt: skip
    expected = "expected 1 to 2,500 W"
    assert caplog.messages == [f"warning: {what}, {expected} {hint}" for what, hint in said]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_preset_is_believed(family: str, caplog: pytest.LogCaptureFixture) -> None:
    spec = FAMILIES[family]
    with caplog.at_level(logging.WARNING):
        for name in spec.presets:
            few = {"size": 8} if "size" in spec.presets[name].params else {}
            spec.judge(optgap.generate(family, name, **few), name, strict=True)
    assert caplog.messages == []


def test_a_log_of_milliseconds_is_told_by_what_half_of_it_lasts(cli: Cli) -> None:
    ms = [3.6e6, 1.2e6, 9e6, 6e5, 2.4e6]
    rows = [f"j{k},0,{lasts:.0f},1" for k, lasts in enumerate(ms)]
    options = ("--jobs", "jobs.csv", "--set", "nodes=1", "--set", "gpus_per_node=1", "-o", "q.json")
    for few, code in ((rows, 2), (rows[:2], 0)):  # two long jobs are no log
        Path("jobs.csv").write_text("\n".join(["job,arrival_s,duration_s,gpus", *few]))
        answer = cli("generate", "queueing", *options)
        assert answer.code == code
    Path("jobs.csv").write_text("\n".join(["job,arrival_s,duration_s,gpus", *rows]))
    assert cli("generate", "queueing", *options).err == (
        "optgap: jobs.csv: row 6, column duration_s: found 2,400,000 (and 3 more), "
        "expected a median of at most 604,800 s (2,400,000 ms would be 2,400); "
        "strict=False (--set strict=false) goes on\n"
    )
    assert cli("generate", "queueing", *options, "--set", "strict=false").code == 0


@given(name=st.sampled_from(sorted(GIVEN)), share=st.floats(0, 1), zeros=st.integers(0, 2))
def test_what_lies_within_its_range_is_believed_and_ten_times_as_far_is_not(
    name: str, share: float, zeros: int
) -> None:
    quantity = GIVEN[name]
    low = max(quantity.low, quantity.high * 1e-12)
    value = low * (quantity.high / low) ** share
    inside = min(max(value, quantity.low), quantity.high)
    column = [0.0] * zeros + [inside, float("nan")]
    assert doubts(name, column, str) == []
    for outside in (quantity.high * 10, quantity.low / 10):
        if outside:
            (doubt,) = doubts(name, [*column[:-2], outside], str)
            assert (doubt.where, doubt.value, doubt.more) == (str(zeros), outside, 0)
            assert "\n" not in str(doubt.error("x"))


def test_every_range_says_what_there_is_at_its_ends() -> None:
    judged = {**MEASURED, **GIVEN}
    assert [n for n, q in judged.items() if q.units and "sync" not in n and not q.source] == [
        "energy_j", "dram_active", "fp_active",
    ]  # fmt: skip
    assert all(q.low <= q.high for q in judged.values())
