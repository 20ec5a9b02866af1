"""``optgap fit`` on files, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli, refused

from optgap.fitting.saved import load
from optgap.models.performance import read_fit

pytestmark = pytest.mark.usefixtures("here")

ROWS = "".join(
    f"{name},{clock},{static + slope * clock * (1 + 0.01 * (clock % 7))},{(2000 / clock) ** beta}\n"
    for name, static, slope, beta in (("a", 30, 0.05, 0.4), ("b", 40, 0.09, 0.9))
    for clock in range(500, 1400, 45)
)


@pytest.fixture
def sweep() -> str:
    Path("sweep.csv").write_text("application,frequency_mhz,power_w,time_s\n" + ROWS)
    return "sweep.csv"


def test_a_fit_is_printed_saved_and_drawn(cli: Cli, sweep: str) -> None:
    given = ("linear-power", sweep, "--by", "application", "-o", "m.json", "--plot", "m.png")
    answer = cli("fit", *given)
    assert answer.code == 0
    assert "held out" in answer.out
    assert "alpha" in answer.out
    assert answer.err == ""
    assert set(load("m.json").fits) == {"a", "b"}
    assert Path("m.png").stat().st_size > 5000


def test_json_on_standard_output_is_alone_there(cli: Cli, sweep: str) -> None:
    answer = cli("fit", "power-law-jct", sweep, "--by", "application", "--json", "-", "--cv", "0")
    document = json.loads(answer.out)
    assert document["schema"] == "optgap.fit/1"
    assert document["overall"]["cv_mape"] is None
    assert document["groups"][0]["params"]["beta"]["value"] == pytest.approx(0.4, abs=1e-3)


def test_rows_units_and_splits_are_options(cli: Cli, sweep: str) -> None:
    held_out = ("--by", "application", "--cv", "frequency_mhz>1000")
    answer = cli("fit", "linear-power", sweep, *held_out)
    assert "frequency_mhz above 1000" in answer.out
    answer = cli("fit", "linear-power", sweep, "--cv", "application")
    assert "leave one application out" in answer.out
    rows = "".join(f"{f},{f * 100}\n" for f in range(500, 900, 50))
    Path("milli.csv").write_text(f"frequency_mhz,power_w\n{rows}")
    assert cli("fit", "linear-power", "milli.csv").code == 2
    assert cli("fit", "linear-power", "milli.csv", "--unit", "power_w=mW").code == 0


def test_missing_values_stop_a_fit_unless_dropped(cli: Cli) -> None:
    Path("gaps.csv").write_text("frequency_mhz,power_w\n500,60\n600,\n700,82\n800,90\n900,104\n")
    refused(cli("fit", "linear-power", "gaps.csv"), "row 3, column power_w")
    answer = cli("fit", "linear-power", "gaps.csv", "--drop", "missing")
    assert answer.code == 0
    assert "1 rows with missing values dropped" in answer.out


def test_settings_are_typed_by_the_model(cli: Cli, sweep: str) -> None:
    arguments = ["powerflow-power", sweep, "--by", "application", "--set", "form=physical"]
    assert cli("fit", *arguments, "--set", "f0_mhz=900", "-o", "m.json").code == 0
    assert load("m.json")["a"].params_["f0_mhz"] == 900


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nonsense", "{}"], "one of linear-power"),
        (["linear-power"], "a profile to fit to"),
        (["linear-power", "missing.csv"], "a readable file"),
        (["batch-power", "{}"], "a column local_batch"),
        (["device-power", "{}"], "idle_w"),
        (["linear-power", "{}", "--by", "colour"], "by: found 'colour', expected one of appl"),
        (["linear-power", "{}", "--cv", "1"], "at least 2 folds"),
        (["linear-power", "{}", "--cv", "-3"], ""),
        (["linear-power", "{}", "--set", "colour=blue"], "colour"),
        (["linear-power", "{}", "--set", "starts=many"], "an integer"),
        (["linear-power", "{}", "--where", "nonsense"], "no --where any more: filter the table"),
        (["linear-power", "{}", "--cv", "gpus>x"], "COL>NUMBER"),
        (["linear-power", "{}", "--cv", "frequency_mhz>9999"], "rows on both sides"),
        (["linear-power", "{}", "--unit", "power_w=hp"], "one of W"),
        (["linear-power", "{}", "-o", "/no/such/folder/m.json"], "a place that can be written"),
        (["linear-power", "{}", "--plot", "picture.doc"], ".png, .svg or .pdf"),
    ],
)
def test_what_cannot_be_done_ends_in_one_line(
    cli: Cli, sweep: str, arguments: list[str], expected: str
) -> None:
    refused(cli("fit", *(sweep if item == "{}" else item for item in arguments)), expected)


def test_an_audit_fits_nothing(cli: Cli, sweep: str, data_dir: Path) -> None:
    answer = cli("fit", "--audit", sweep)
    assert answer.code == 0
    assert "40 rows, 2 groups" in answer.out
    v100 = str(data_dir / "profiles/nv-dvfs/v100_real.csv")
    document = json.loads(cli("fit", "--audit", v100, "--json", "-").out)
    assert document["schema"] == "optgap.audit/1"
    assert [item["where"] for item in document["suspects"]] == ["405 MHz"]


def test_suspects_are_left_out_on_request(cli: Cli, data_dir: Path) -> None:
    v100 = str(data_dir / "profiles/nv-dvfs/v100_real.csv")
    common = ["fit", "power-law-jct", v100, "--by", "application", "--json", "-"]
    kept = json.loads(cli(*common).out)
    clean = json.loads(cli(*common, "--drop", "suspects").out)
    assert any("405 MHz" in note for note in kept["notes"])
    assert clean["overall"]["n"] == 180  # of 200: 20 at 405 MHz
    assert clean["overall"]["cv_mape"] <= 0.075 < kept["overall"]["cv_mape"]


def test_idle_and_full_power_are_read_off_samples(cli: Cli) -> None:
    lines = ["sample_s,gpu,gpu_model,power_w,frequency_mhz"]
    lines += [f"{k / 10},0,Fake,{60 if k < 40 else 300},1400" for k in range(90)]
    Path("samples.csv").write_text("\n".join(lines))
    answer = cli("fit", "device-power", "samples.csv", "-o", "devices.csv")
    assert answer.code == 0
    assert Path("devices.csv").read_text() == "model,idle_w,full_w\nFake,60,300\n"
    document = json.loads(cli("fit", "device-power", "samples.csv", "--json", "-").out)
    assert document["groups"][0]["params"]["idle_w"]["value"] == 60
    answer = cli("fit", "device-power", "samples.csv", "-o", "devices.json")
    assert read_fit("devices.json").only()["full_w"] == 300


def test_help_lists_the_models(cli: Cli) -> None:
    assert "linear-power" in cli("fit", "--help").out
