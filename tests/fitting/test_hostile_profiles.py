"""What cannot be fitted is refused in one line that says where and what was expected."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optgap.fitting import ESTIMATORS, make_estimator
from optgap.fitting.audit import audit
from optgap.fitting.groups import Split, fit_groups
from optgap.fitting.profile import Profile
from optgap.fitting.readers import read_profile
from optgap.fitting.readers.text import number
from optgap.fitting.workflow import fit, report_of
from optgap.models import reading
from optgap.models.errors import InputError

HEADER = "frequency_mhz,power_w,time_s\n"
GOOD = "".join(f"{f},{30 + f / 10},{1000 / f}\n" for f in range(500, 1500, 100))

FILES: dict[str, tuple[bytes, str]] = {
    "empty.csv": (b"", "row 1: found nothing"),
    "header.csv": (HEADER.encode(), "at least one row"),
    "other.csv": (b"apples,pears\n1,2\n", "canonical ones"),
    "twice.csv": (b"frequency_mhz,power_w,power_w\n1,2,3\n", "column power_w: stands twice"),
    "short.csv": ((HEADER + "500,60\n").encode(), "row 2: found 2 cells, expected 3"),
    "word.csv": ((HEADER + "500,sixty,1\n").encode(), "row 2, column power_w: found 'sixty'"),
    "inf.csv": (
        (HEADER + "500,inf,1\n").encode(),
        "column power_w: found 'inf', expected a finite",
    ),
    "huge.csv": ((HEADER + "500,1e999,1\n").encode(), "row 2, column power_w"),
    "small.csv": ((HEADER + "500,1e-300,1\n").encode(), "between 1e-30 and 1e+16"),
    "thousands.csv": ((HEADER + '500,"1,060",1\n').encode(), "no thousands separator"),
    "space.csv": ((HEADER + "500,1 060.5,1\n").encode(), "no thousands separator"),
    "locale.csv": ((HEADER + '500,"60,5",1\n').encode(), "a decimal point"),
    "semicolon.csv": (b"frequency_mhz;power_w\n500;60,5\n", "semicolons between cells"),
    "tabs.csv": (b"frequency_mhz\tpower_w\n500\t60\n", "tabs between cells"),
    "utf16.csv": ((HEADER + GOOD).encode("utf-16"), "UTF-16"),
    "utf16le.csv": ((HEADER + GOOD).encode("utf-16-le"), "UTF-16"),
    "latin.csv": (b"frequency_mhz,power_w\n500,\xe9\n", "UTF-8 text"),
    "nul.csv": ((HEADER + "500,6\x000,1\n").encode(), "row 2: found a NUL byte"),
    "quote.csv": ((HEADER + '500,"60,1\n').encode(), "comma-separated cells"),
    "plain.csv.gz": ((HEADER + GOOD).encode(), "a gzip file, as its name says"),
    "cut.csv.gz": (gzip.compress((HEADER + GOOD).encode())[:-9], "a whole gzip file"),
    "broken.csv.gz": (b"\x1f\x8b\x08\x00broken", "a whole gzip file"),
    "hertz.csv": (
        (
            "frequency_mhz,power_w\n" + "".join(f"{f}000000,60\n" for f in range(500, 900, 100))
        ).encode(),
        "frequency_mhz=Hz",
    ),
    "mw.csv": (b"frequency_mhz,power_w\n500,60000\n600,70000\n700,81000\n", "power_w=mW"),
    "percent.csv": (b"dram_active,time_s\n50,1\n60,2\n", "dram_active=%"),
    "mixed.csv": (
        b"frequency_mhz,time_s\n500,2.1\n600,1.9\n700,1700\n800,1500\n900,1400\n",
        "one unit, s",
    ),
    "energy.csv": (
        b"frequency_mhz,power_w,time_s,energy_j\n500,60,10,600000\n600,70,9,630000\n",
        "J, W and s that belong together",
    ),
    "unit.csv": (
        b"timestamp,index,power.draw [W]\n2024/05/01 10:00:00.000,0,60 mW\n",
        "a number in W",
    ),
    "time.csv": (b"timestamp,index,power.draw [W]\n10 o'clock,0,60 W\n", "a time like"),
    "double.csv": (b"frequency_mhz,time_s,runtime_s\n500,1,1\n", "time_s and runtime_s"),
    "places.csv": (
        b"placement,local_bsz,step_time\n1,32,0.04\n0112,32,0.1\n",
        "row 3, column placement: found '0112'",
    ),
    "gavel.csv": (
        b"model,local_batch_size,num_gpus,steps_per_s\nLM,20,4,8.0\n",
        "Gavel's steps_per_s, a sum over the GPUs, expected a column time_s",
    ),
    "list.json": (b"{[]", "this is JSON"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_gets_a_clear_line(name: str, tmp_path: Path) -> None:
    content, expected = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_profile(path)
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message
    assert name in message


OWN = "app,SM clock (GHz),watts,runtime_ms,operator\nbfs,0.6,78,205000,me\nbfs,0.9,104,143000,\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (",78,", ",-78,", "row 2, column watts (power_w): found -78"),
        (",78,", ",,", "row 2, column watts (power_w): found nothing"),
        (",78,", ",x,", "row 2, column watts (power_w): found 'x'"),
        ("(GHz)", "(MHz)", "column SM clock (MHz) (frequency_mhz): found a median"),
        ("(GHz)", "(MHz)", "say so: --unit frequency_mhz=GHz"),
        ("SM clock (GHz)", "x", "found app (application), watts (power_w), runtime_ms (time_s)"),
    ],
)
def test_a_column_is_told_as_its_table_calls_it(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.csv"
    path.write_text(OWN.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        fit(path, "linear-power")
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["missing.csv", "."])
def test_a_file_that_is_none_gets_a_clear_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a readable file"):
        read_profile(tmp_path / name)


def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "growing.csv"
    path.write_text(HEADER + GOOD)
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        with path.open("a") as file:
            file.write("1500,180,0.66\n")
        return found

    monkeypatch.setattr(reading.os, "fstat", fstat)
    with pytest.raises(InputError, match="not being written to"):
        read_profile(path)


def table(**columns: Any) -> dict[str, Any]:
    good = {"frequency_mhz": np.linspace(500, 1400, 10), "power_w": np.linspace(60, 160, 10)}
    return {**good, **columns}


FEW = {"frequency_mhz": [500.0, 900.0], "power_w": [60.0, 90.0]}
NO_SWEEP = {"frequency_mhz": [900.0, 910.0, 920.0], "gpus": [1.0, 2.0, 4.0],
            "power_w": [100.0, 98.0, 95.0], "time_s": [9.0, 5.0, 3.0]}  # fmt: skip
TABLES: dict[str, tuple[Any, ...]] = {
    "no column": ({"power_w": [1.0, 2.0]}, "a column frequency_mhz"),
    "unequal": (table(power_w=[1.0, 2.0]), "columns of one length"),
    "text": (table(power_w=["a"] * 10), "found text, expected numbers"),
    "nan": (table(power_w=[60, np.nan, *range(70, 78)]), "row 2, column power_w: found nothing"),
    "infinite": (table(frequency_mhz=[np.inf, *range(501, 510)]), "row 1, column frequency_mhz"),
    "negative": (table(power_w=[-60, *range(61, 70)]), "found -60.0, expected a value above 0"),
    "zero": (table(power_w=[0, *range(61, 70)]), "a value above 0"),
    "no clock": (table(frequency_mhz=[0, *range(501, 510)]), "found 0.0, expected a value above 0"),
    "one clock": (table(frequency_mhz=[900.0] * 10), "only 900, expected at least two values"),
    "constant": (table(power_w=[100.0] * 10), "100 in every row"),
    "one row": ({"frequency_mhz": [500.0], "power_w": [60.0]}, "only 500"),
    "no rows": ({"frequency_mhz": [], "power_w": []}, "no rows"),
    "few": (FEW, "found 2 rows, expected at least 3 for the parameters of", "power-law-power"),
    "no sweep": (NO_SWEEP, "a sweep of the clock", "powerflow-energy"),
}
"""Columns, what is said of them, and the model, linear-power unless told."""


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_cannot_be_fitted_gets_a_clear_line(name: str) -> None:
    columns, expected, *model = TABLES[name]
    with pytest.raises(InputError) as caught:
        make_estimator(*model or ["linear-power"]).fit(columns)
    assert expected in str(caught.value)


def test_as_many_rows_as_parameters_are_fitted_with_a_warning() -> None:
    fit = make_estimator("linear-power").fit(FEW)
    assert any("nothing is left to judge the fit" in note for note in fit.warnings_)


def test_a_group_that_cannot_be_fitted_is_left_out_and_named() -> None:
    columns = {
        "application": np.repeat(["good", "bad"], 10).astype(object),
        "frequency_mhz": np.tile(np.linspace(500, 1400, 10), 2),
        "power_w": np.concatenate([np.linspace(60, 160, 10), np.full(10, 99.0)]),
    }
    table = Profile.of(columns)
    fit = fit_groups(make_estimator("linear-power"), table, "application")
    assert list(fit.fits) == ["good"]
    assert fit.skipped[0].startswith("bad: column power_w: found 99 in every row")
    report = report_of(make_estimator("linear-power"), table, "application", Split(3))
    assert "! not fitted: bad" in str(report)
    assert report.to_json()["overall"]["n"] == 10
    with pytest.raises(InputError, match="application bad, column power_w"):
        fit_groups(make_estimator("linear-power"), table.take(np.arange(10, 20)), "application")


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("nodes", np.nan, "at least one GPU per node"),
        ("nodes", 5.0, "at least one GPU per node"),
        ("nodes", 0.0, "at least one GPU per node"),
        ("local_batch", -4.0, "found -4.0, expected a value above 0"),
        ("frequency_mhz", np.nan, "a clock above 0 in every row, or in none"),
        ("frequency_mhz", 0.0, "a clock above 0 in every row, or in none"),
    ],
)
def test_what_cannot_be_in_a_column_that_may_be_absent_is_refused(
    column: str, value: float, expected: str
) -> None:
    columns = {
        "gpus": np.array([1.0, 2.0, 4.0, 8.0]),
        "nodes": np.array([1.0, 1.0, 1.0, 2.0]),
        "local_batch": np.array([8.0, 16.0, 8.0, 8.0]),
        "frequency_mhz": np.array([900.0, 1000.0, 1100.0, 1200.0]),
        "time_s": np.array([1.0, 1.1, 1.2, 1.3]),
    }
    columns[column][2] = value
    with pytest.raises(InputError, match=expected):
        make_estimator("powerflow-throughput").fit(columns)


def test_a_job_without_traffic_needs_another_counter() -> None:
    columns = {"dram_sum": [0.0, 0.0, 0.0], "time_s": [3.0, 2.0, 1.5], "gpus": [1.0, 2.0, 3.0]}
    with pytest.raises(InputError, match="fp_active or frequency_mhz"):
        make_estimator("dram-runtime").fit(columns)
    fit = make_estimator("dram-runtime").fit({**columns, "fp_active": [0.3, 0.31, 0.3]})
    assert "fp_active, summed over GPUs, stands in" in " ".join(fit.warnings_)


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        *((name, {"colour": "blue"}, "colour") for name in ESTIMATORS),
        ("powerflow-throughput", {"sync": "pigeons"}, "one of"),
        ("powerflow-throughput", {"io": "half"}, "one of"),
        ("powerflow-power", {"form": "wavy"}, "one of"),
        ("powerflow-energy", {"form": "wavy"}, "one of"),
        ("batch-power", {"form": "wavy"}, "one of"),
    ],
)
def test_unknown_settings_are_refused(name: str, settings: dict[str, str], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        make_estimator(name, **settings)


@given(st.text("0123456789.,+-eEinfaNA[]()% \u00a0µ１٣é漢\n", max_size=12))
def test_a_cell_is_a_number_or_an_input_error(cell: str) -> None:
    try:
        value = number(cell, "file", "row 1")
    except InputError:
        return
    assert np.isnan(value) or np.isfinite(value)


JUNK = st.sampled_from(
    ["", "nan", "-1", "0", "1e308", "abc", "inf", "1,5", '"1,000"', "12 MHz", "１２"]
)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), JUNK), max_size=3),
    st.sampled_from(["linear-power", "power-law-jct", "powerflow-power", "powerflow-energy"]),
)
def test_a_damaged_table_is_fitted_or_refused(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, int, str]], model: str
) -> None:
    rows = [line.split(",") for line in GOOD.splitlines()]
    for row, column, cell in damage:
        rows[row][column] = cell
    path = tmp_path_factory.mktemp("damaged") / "t.csv"
    path.write_text(HEADER + "\n".join(",".join(row) for row in rows))
    try:
        profile = read_profile(path)
        assert str(audit(profile))
        fit = make_estimator(model).fit(profile)
    except InputError as error:
        message = str(error)
    else:
        message = ""
        assert np.all(np.isfinite(fit.theta_))
        assert np.all(np.isfinite(fit.predict(profile)))
    assert "\n" not in message
