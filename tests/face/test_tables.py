"""Tables as a person sees them, at three widths of a terminal."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from conftest import Cli

import optgap
from optgap.cli import COMMANDS, main
from optgap.comparing.comparison import Comparison, ComparisonRow, ComparisonSet
from optgap.models.result import Result, Status, Termination
from optgap.registry import FAMILIES
from optgap.render import text_table

WIDTHS = (80, 100, 120)


def everything(family: str) -> Comparison:
    """Every name of a family, and its method in the comparison of all, with some numbers."""
    spec = FAMILIES[family]
    kinds = {name: entry.kind for name, entry in {**spec.methods, **spec.policies}.items()}
    kinds[spec.overview] = "offline"
    rows = []
    for k, (name, kind) in enumerate(kinds.items()):
        result = Result(
            family, name, kind, Status.FEASIBLE, Termination.COMPLETED, 6330.0 + k**3, "W", "min",
            6330.0 - k % 2, "proof", 0.1 * k, 0, {},
        )  # fmt: skip
        rows.append(ComparisonRow(result, ("all", "accepted")[k % 7 == 3], k**3 / 6330.0, 0.1))
    words = "a summary of the problem " * 8
    return Comparison(family, "made", words, "W", "min", 6330.0, "p", 6330.0, "q", tuple(rows))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_name_is_cut_and_no_line_is_wider_than_the_screen(
    family: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    one = everything(family)
    several = ComparisonSet("size", tuple(range(20)), (one,) * 20)
    for item in (one, several):
        lines = str(item).splitlines()
        assert max(map(len, lines)) <= width
        words = {word.rstrip("*") for line in lines for word in line.split()}
        assert {row.result.method for row in one.rows} <= words
    gaps = [row.gap_to_bound or 0.0 for row in one.blocks]
    kinds = [(row.partial, row.result.kind == "policy") for row in one.blocks]
    assert kinds == sorted(kinds, key=lambda kind: 2 if kind[0] else kind[1])
    for group in set(kinds):
        own = [gap for gap, kind in zip(gaps, kinds, strict=True) if kind == group]
        assert group[0] or own == sorted(own)


@pytest.mark.parametrize("width", WIDTHS)
def test_compare_and_the_list_of_names_fit_a_terminal(
    width: int, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    screen = cli("--help").out.splitlines()
    assert max(map(len, screen)) <= width
    assert {*COMMANDS} <= {word for line in screen for word in line.split()}
    told = cli("compare", "coscheduling", "--size", "4").out.splitlines()
    assert max(map(len, told)) <= width
    assert {*FAMILIES["coscheduling"].policies} <= {line.split(" ")[0] for line in told}
    assert told[-1].startswith("optgap explain coscheduling --size 4 --policy ")
    for name in FAMILIES:
        shown = cli("families", name).out.splitlines()
        assert max(map(len, shown)) <= width
        assert len(shown) <= 42 or width < 100
    assert max(map(len, cli("families").out.splitlines())) <= width


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with problems, one of which rests on a fit, a log, a profile and the fit."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "power.csv").write_text("frequency_mhz,power_w\n600,80\n900,107\n1400,152\n")
    for line in (
        "generate coscheduling --size 4 -o cos.json",
        "run cos.json --policy marble -o log.json",
        "fit linear-power power.csv -o power.json",
        "generate consolidation --size 4 --model power.json -o fitted.json",
    ):
        words = [str(folder / word) if "." in word else word for word in line.split()]
        assert main([*words, "-q"]) == 0
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "families coscheduling",
        "compare coscheduling --size 4 --seed 2 --policies ecosched,marble --set window=2",
        "compare coscheduling --sweep size=3,4 --policies marble",
        "explain coscheduling --size 4 --policy ecosched --set window=2 --set goal=edp",
        "solve cos.json",
        "run cos.json --policy 'ecosched(tau=0.3)'",
        "check cos.json log.json",
        "audit coscheduling cos.json log.json",
        "score marble",
        "fit linear-power power.csv -o power.json",
        "fit linear-power power.csv --cv 3",
        "compare fitted.json --policies cats --model power.json --samples 19",
        "compare fitted.json --policies cats --model power.json --samples 19 --json a.json",
        "export cos.json -o cos.lp",
        "report power.json -o power.html",
    ],
)
def test_the_last_line_is_a_command_to_copy(
    line: str, cli: Cli, monkeypatch: pytest.MonkeyPatch, inputs: Path, one_process: None
) -> None:
    monkeypatch.chdir(inputs)
    told = cli(*shlex.split(line))
    assert told.code == 0, told.err
    last = told.out.splitlines()[-1]
    if line.startswith("report"):
        opened = os.path.realpath("power.html")
        assert shlex.split(last, comments=True)[1:] == ["-m", "webbrowser", f"file://{opened}"]
        return
    again = cli(*shlex.split(last, comments=True)[1:])
    assert (last.split()[0], again.code) == ("optgap", 0), again.err
    for option in ("--size 4", "--seed 2", "--set goal=edp"):
        assert option in last or option not in line


def test_lists_of_names_are_frames_with_a_line_and_parameters_each() -> None:
    assert list(optgap.families().index) == list(FAMILIES)
    for name, spec in FAMILIES.items():
        for role in ("policies", "methods", "presets"):
            frame = getattr(optgap, role)(name)
            assert list(frame.index) == list(getattr(spec, role))
            assert frame["summary"].str.len().min() > 0
            for one, entry in getattr(spec, role).items():
                told = getattr(optgap, role)(name, one)
                assert told["default"].to_dict() == dict(entry.params)
    with pytest.raises(optgap.InputError, match=r"name: found 'fdg'.*did you mean 'fgd'"):
        optgap.policies("placement", "fdg")


def test_columns_wrap_their_heads_first_and_a_long_name_stands_alone() -> None:
    rows = [("short", "1.00", "some words of text"), (), ("a-very-long-name" * 3, "22.00", "more")]
    text = text_table(("", "a number (W)", "remark"), rows, (1,), 40)
    assert text.splitlines() == [
        "       a number (W)  remark",
        "-----  ------------  ------------------",
        "short          1.00  some words of text",
        "-----  ------------  ------------------",
        "a-very-long-name" * 3,
        "              22.00  more",
    ]
    narrow = text_table(("", "a number (W)", "remark"), rows[:1], (1,), 27)
    assert narrow.splitlines() == [
        "            a",
        "       number",
        "          (W)  remark",
        "-----  ------  ------------",
        "short    1.00  some words",
        "               of text",
    ]
