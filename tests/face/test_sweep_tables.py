"""Tables of a sweep: what a file's ending says, and means and pictures of what can be compared."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import Cli, two_nodes_problem
from hypothesis import given, settings
from hypothesis import strategies as st

import optgap
from optgap import sweeping
from optgap.comparing.fairness import in_common
from optgap.models.errors import InputError
from optgap.reporting.page import make
from optgap.sweeping import fingerprint
from optgap.sweeping.driver import Done
from optgap.sweeping.formats import read_rows, write_rows
from optgap.sweeping.table import COLUMNS

ENDINGS = (".parquet", ".csv", ".json")
SPEC = """
seeds = 2
[[grid]]
family = "placement"
presets = ["small"]
policies = ["fgd", "random"]
methods = ["bound-pooled"]
[grid.instance]
size = [5, 12]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(fingerprint.PIN, "tests")
    fingerprint.code.cache_clear()
    Path("s.toml").write_text(SPEC)
    yield
    fingerprint.code.cache_clear()


def sweep(cli: Cli, name: str, *more: str) -> Any:
    return cli("sweep", "s.toml", "-o", name, "--engine", "serial", *more)


def test_the_ending_decides_the_format_and_every_format_holds_the_same(cli: Cli) -> None:
    tables = {}
    for ending in ENDINGS:
        answer = sweep(cli, f"t{ending}")
        assert (answer.code, answer.err) == (0, "")
        rows = read_rows(f"t{ending}")
        assert [list(row) for row in rows] == [list(COLUMNS)] * 12
        empty = {"bound_by": "", "solution": "", "bound_scope": ""}  # nothing is "" in a CSV file
        tables[ending] = [
            {k: v if v is not None else empty.get(k) for k, v in row.items()
             if k not in sweeping.WALL}
            for row in rows
        ]  # fmt: skip
        assert f"12 of 12 runs in t{ending}: 12 there before, 0 now" in (
            sweep(cli, f"t{ending}", "--resume").out
        )
    assert tables[".csv"] == tables[".json"] == tables[".parquet"]
    assert Path("t.parquet").read_bytes().startswith(b"PAR1")
    with open("t.csv", newline="") as file:
        assert next(csv.reader(file)) == list(COLUMNS)
    assert pd.read_csv("t.csv")["gap_to_bound"].notna().sum() == 8
    assert json.loads(Path("t.json").read_text())["schema"] == "optgap.sweep-table/1"


def test_rows_that_no_cell_stands_for_go_into_a_file_of_the_same_format(cli: Cli) -> None:
    assert sweep(cli, "t.csv").code == 0
    Path("s.toml").write_text(SPEC.replace('"random"', '"pwr"'))
    assert sweep(cli, "t.csv", "--resume").code == 0
    assert {row["method"] for row in read_rows("t.stale.csv")} == {"random"}


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.csv.gz", "-"])
def test_another_ending_is_refused_in_one_line_before_anything_runs(cli: Cli, name: str) -> None:
    answer = sweep(cli, name)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "expected a file that ends in .parquet, .csv or .json" in answer.err
    assert sorted(path.name for path in Path().iterdir()) == ["s.toml"]


def test_a_table_of_csv_or_json_needs_no_package_for_parquet(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert sweep(cli, "t.csv").code == 0
    assert cli("report", "t.csv", "-o", "page.html").code == 0
    assert sweep(cli, "t.parquet").code == 2


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("content", ["", "my diary", "a,b\n1,2\n", '{"rows": []}', "PAR1\x00"])
def test_what_is_no_table_of_a_sweep_is_not_touched(cli: Cli, ending: str, content: str) -> None:
    Path(f"t{ending}").write_text(content)
    answer = sweep(cli, f"t{ending}", "--resume")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert Path(f"t{ending}").read_text() == content


VALUES = {
    "string": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    "int64": st.none() | st.integers(-(2**53), 2**53),
    "float64": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.none() | st.booleans(),
}


@settings(max_examples=max(15, settings().max_examples // 10))  # rows are long
@given(st.lists(st.fixed_dictionaries({n: VALUES[k] for n, k in COLUMNS.items()}), max_size=2))
def test_rows_come_back_from_every_format_as_they_were(rows: list[dict[str, Any]]) -> None:
    for ending in ENDINGS:
        write_rows(rows, f"again{ending}")
        assert read_rows(f"again{ending}") == rows


def test_a_broken_cell_of_a_csv_table_is_named(cli: Cli) -> None:
    assert sweep(cli, "t.csv").code == 0
    text = Path("t.csv").read_text()
    rows = list(csv.reader(text.splitlines()))
    rows[3][list(COLUMNS).index("seed")] = "three"
    with open("t.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(InputError, match=r"t.csv: row 4, column seed: found 'three', expected"):
        read_rows("t.csv")


# -- what may be held side by side -----------------------------------------------------------


@given(
    st.dictionaries(
        st.sampled_from("abc"), st.dictionaries(st.integers(0, 5), st.floats(0, 1)), min_size=1
    )
)
def test_means_are_over_the_same_runs_or_a_line_says_that_they_are_not(
    values: dict[str, dict[int, float]],
) -> None:
    used, note = in_common({name: dict(own) for name, own in values.items()})
    there = [set(own) for own in values.values() if own]
    if not there or all(own == there[0] for own in there):
        assert note == ""
        assert used == {name: list(own.values()) for name, own in values.items()}
        return
    shared = set.intersection(*there)
    if shared:
        assert note.startswith(f"means over the {len(shared)} of {len(set.union(*there))} runs")
        assert {len(own) for own in used.values() if own} == {len(shared)}
    else:
        assert note.endswith("not to be compared")


def row(method: str, seed: int, gap: float | None, scope: str = "all", **more: Any) -> Any:
    known = {"family": "placement", "instance": "small", "instance_seed": seed, "failure": ""}
    return {**dict.fromkeys(COLUMNS), **known, "method": method, "seed": seed,
            "gap_to_bound": gap, "gap_to_best": gap, "bound_scope": scope, **more}  # fmt: skip


def test_a_method_that_failed_where_it_is_hard_does_not_look_better_for_it() -> None:
    rows = [row("steady", seed, 0.1 * (1 + seed)) for seed in range(3)]
    rows += [row("fragile", 0, 0.15), row("fragile", 1, 0.25), row("fragile", 2, None)]
    rows += [row("picky", 0, 0.2), row("picky", 1, 0.2), row("picky", 2, 0.0, "accepted")]
    done = Done(Path("t.csv"), tuple(rows), 9, 0, 9)
    means = {line[1]: (line[4], line[5]) for line in done.table()[1]}
    assert means == {
        "steady": ("15.00 %", "20.00 %"),
        "fragile": ("20.00 %", "25.00 %"),
        "picky": ("20.00 %", "20.00 %"),
    }
    assert done.notes() == [
        "placement: means over the 2 of 3 runs on which all have a gap",
        "placement: left out of all means, as they accepted only a part: 1 of picky",
    ]
    Path("rows.json").write_text(json.dumps({"rows": rows}))
    (section,) = make(["rows.json"]).sections
    summary = next(grid for grid in section.grids if grid.caption.startswith("Summary"))
    shown = {cells[0].text: [cell.text for cell in cells[1:4]] for cells in summary.rows}
    assert shown["fragile"] == ["2", "2", "20.00 %"]
    assert shown["steady"] == ["3", "2", "15.00 %"]
    assert shown["picky (accepted part)"] == ["1", "1", "0.00 %"]
    assert section.notes == ("means over the 2 of 3 runs on which all have a gap",)


def test_a_method_that_auto_makes_for_some_instances_takes_no_runs_from_the_others() -> None:
    rows = [row("pwr", seed, 0.1 * (1 + seed)) for seed in range(3)] + [row("exact", 0, 0.0)]
    done = Done(Path("t.csv"), tuple(rows), 4, 0, 4)
    assert [line[4] for line in done.table()[1]] == ["20.00 %", "0.00 %"]
    assert done.notes() == ["placement: exact: over its own 1 of 3 runs"]


def test_the_command_says_what_its_means_are_over(cli: Cli) -> None:
    optgap.save(two_nodes_problem(extra=2), "tight.json")
    optgap.save(two_nodes_problem(), "roomy.json")
    Path("s.toml").write_text(
        '[[grid]]\nfamily = "placement"\nproblems = ["tight.json", "roomy.json"]\n'
        'policies = ["fgd", "random"]\nmethods = ["bound-pooled"]\n'
    )
    answer = sweep(cli, "t.csv")
    assert "placement: left out of all means, as they accepted only a part: 1 of fgd, 1 of" in (
        answer.out
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_size_has_a_picture_of_its_own(cli: Cli, ending: str) -> None:
    assert sweep(cli, f"t{ending}").code == 0
    (section,) = make([f"t{ending}"]).sections
    assert [picture.caption for picture in section.pictures] == [
        "gap to bound by method: small(size=5)",
        "gap to bound by method: small(size=12)",
    ]
    summary = next(grid for grid in section.grids if grid.caption.startswith("Summary"))
    assert [(cells[0].text, cells[1].text, cells[2].text) for cells in summary.rows] == [
        (f"small(size={size})", method, "2") for size in (5, 12) for method in ("fgd", "random")
    ]


def test_rows_of_anybody_are_kept_apart_by_size_and_none_is_lost() -> None:
    rows = [
        {"method": method, "size": size, "load": load, "seed": 0, "gap": 0.1 * size}
        for method in "ab"
        for size in (1, 2)
        for load in (1, 2, 3)
    ]
    pd.DataFrame(rows).to_csv("mine.csv", index=False)
    Path("mine.json").write_text(json.dumps(rows[:-1]))
    (section,) = make(["mine.csv"]).sections
    assert [picture.caption for picture in section.pictures] == [
        "gap by method: 1", "gap by method: 2",
    ]  # fmt: skip
    summary = section.grids[0]
    assert [cells[2].text for cells in summary.rows] == ["3"] * 4
    (uneven,) = make(["mine.json"]).sections
    assert uneven.notes == ("2: means are over different numbers of runs, see the column runs",)
