"""The scripts give the verdicts that are kept: a cheap item of each paper here, all of them by
``make reproduce``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optgap
from optgap import run
from optgap.models.placement import Tasks, presets
from reproduction import __main__ as command
from reproduction import cats, page, powerflow, pwr_fgd, queues
from reproduction.claims import (
    PAPERS,
    Item,
    Report,
    Row,
    Study,
    agreement,
    at_most,
    paper,
    ranked,
    spread,
    worst,
)
from reproduction.curves import curve_of, on_grid, savings, stays_above, until

QUICK = (
    *(("pwr_fgd", name) for name in ("pwr-table1", "pwr-table2", "pwr-traces")),
    *(("cats", name) for name in ("cats-fig1", "cats-fig2")),
    *(("ecosched", f"ecosched-{name}") for name in ("fig1", "fig2", "fig3", "table2", "fig7")),
    *(("ecosched", f"ecosched-{name}") for name in ("fig9", "oracle")),
    ("powerflow", "powerflow-motivation"),
    *(("queues", name) for name in ("hps-impossible", "hps-workload")),
)
SHOWN = {
    "pwr_fgd": ("1 2 3 4 5 6 7 8 9 10", "I II"),
    "cats": ("1 2 7 8 9 10", "1"),
    "ecosched": ("1 2 3 5 6 7 8 9", "II"),
    "powerflow": ("1 7 8 9 10", ""),
    "queues": ("", "II"),
}
"""Figures and tables with numbers; the others are designs, inputs, curves, or times of numpy."""
TIMES = tuple(f"{node}: solver's gap, and after how long" for node in ("H100", "V100"))
"""Claims whose numbers are times of this machine."""


def kept(name: str, item: str) -> list[dict[str, str]]:
    return [row for row in command.stored(name)[item]["rows"] if row["claim"] not in TIMES]


@pytest.mark.parametrize(("name", "item"), QUICK)
def test_an_item_gives_the_rows_that_are_kept(
    name: str, item: str, request: pytest.FixtureRequest
) -> None:
    of = paper(name)
    data = request.getfixturevalue("data_dir") if of.items[item].needs else None
    rows = of.run(item, Study(data=data)).to_json()["rows"]
    assert [row for row in rows if row["claim"] not in TIMES] == kept(name, item)


@pytest.mark.parametrize("name", PAPERS)
def test_every_item_has_a_script_claims_and_kept_results(name: str) -> None:
    of = paper(name)
    results = command.stored(name)
    assert list(results) == list(of.items)
    for key, item in of.items.items():
        assert callable(of.script(key))
        judged = {row["claim"]: row for row in results[key]["rows"] if "agrees" in row}
        assert set(judged) <= set(item.claims)
        for claim, row in judged.items():
            assert row["paper"] == item.claims[claim]
        refused = {c for c, row in judged.items() if row["agrees"] in ("open", "no")}
        assert item.why or set(item.notes) >= refused
        assert {c for c, row in judged.items() if row["agrees"] == "open"} >= set(item.open)


def test_open_numbers_of_the_queueing_paper_lie_between_or_near_those_of_its_settings() -> None:
    results = command.stored("queues")
    ranges = {row["claim"]: row["ours"].replace(",", "") for row in results["hps-loads"]["rows"]}
    for name in ("hps-table2", "hps-static"):
        for row in results[name]["rows"]:
            if row.get("agrees") in ("open", "no") and re.fullmatch(r"[\d.]+", row["paper"]):
                low, high = map(float, ranges[row["claim"]].split(" to "))
                within = 0.9 * low <= float(row["paper"]) <= 1.1 * high
                assert within == (row["agrees"] == "open"), row


def test_the_page_is_made_from_the_claims_and_results_that_are_kept() -> None:
    made = page.page({name: command.stored(name) for name in PAPERS})
    assert page.PAGE.read_text(encoding="utf-8") == made
    assert len(made.split()) <= 2400


def test_every_figure_and_table_with_numbers_is_run_again() -> None:
    for name, (figures, tables) in SHOWN.items():
        titles = [i.title for i in paper(name).items.values() if page.BEYOND not in i.title]
        numbered = " ".join(n for t in titles for n in re.findall(r"Fig\. ([\d ,and]+)", t))
        assert set(re.findall(r"\d+", numbered)) == set(figures.split()), name
        found = {n for title in titles for n in re.findall(r"^Table (\w+)", title)}
        assert found == set(tables.split()), name


@pytest.mark.parametrize(
    ("stated", "ours", "half", "zero", "verdict"),
    [
        ("0.50", 0.54, 0.0, None, "yes"),  # within 10 %
        ("3", 3.4, 0.0, None, "yes"),  # as it is printed
        ("0.50", 0.6, 0.1, None, "yes"),  # in the interval
        ("0.50", 0.6, 0.0, None, "no"),
        ("0.50", 0.6, 0.0, 0.0, "nearly"),  # the direction alone
        ("0.50", 1.6, 0.0, 1.0, "no"),
    ],
)
def test_one_rule_gives_every_verdict(
    stated: str, ours: float, half: float, zero: float | None, verdict: str
) -> None:
    assert agreement(stated, ours, half, zero) == verdict
    item = Item("x", "y", zero=zero, claims={"a": f"~{stated} W, –", "of limits": "below 2"})
    assert item.judged(Row("a", "", (ours, 9.0), half=(half, 0.0))).agrees == verdict
    unsaid = Item("x", "y", zero=zero, open=("a",), claims=item.claims)
    agrees = unsaid.judged(Row("a", "", (ours,), half=(half,))).agrees
    assert agrees == {"no": "open"}.get(verdict, verdict)
    with pytest.raises(ValueError, match="no claim"):
        item.judged(Row("b", "1", found=True))


def test_directions_limits_and_intervals() -> None:
    stated = {"a": 1.0, "b": 2.0, "c": 2.0}
    assert ranked(stated, {"a": 5, "b": 7, "c": 6}, "b")
    assert not ranked(stated, {"a": 5, "b": 7, "c": 4}, "a")
    assert [at_most(2, ours) for ours in (2.2, 2.3)] == ["yes", "no"]
    assert worst(["yes", "no", "open", "nearly"]) == "no"
    assert spread(np.array([1.0, 3.0])).text() == "2.0 ± 12.7"
    assert spread(np.array([1.0])).text() == "1.0"


def test_a_run_is_kept_and_another_verdict_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    assert command.main(["hps-workload"]) == 1  # nothing was kept
    assert "3.65" in capsys.readouterr().out
    assert command.main(["hps-workload"]) == 0
    assert command.main(["hps-impossible", "--seeds", "1"]) == 0
    assert list(json.loads((tmp_path / "queues.json").read_text())) == ["hps-workload"]
    report = Report(Item("hps-workload", ""), "", (), (Row("HPS", "", agrees="yes"),))
    assert command.changed(report, command.stored("queues")) == ["HPS: yes"]
    with pytest.raises(SystemExit):
        command.main(["hps-impossble"])


def test_items_that_lack_their_files_are_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("OPTGAP_DATA", str(tmp_path))
    assert command.main(["ecosched-fig1"]) == 0
    assert "h100_profiles.csv in the data folder: not run" in capsys.readouterr().out


# -- what the scripts compute -------------------------------------------------------------------


def test_a_run_is_read_off_at_the_papers_loads() -> None:
    """Test that equal loads take the first row, and loads between rows the value half-way."""
    values = on_grid(np.array([0, 0, 60, 100]), 100, np.array([1.0, 9.0, 3.0, 4.0]))
    assert values[[0, 120, 200]].tolist() == [1, 3, 4]
    assert values[60] == pytest.approx(1 + 2 * 60 / 120)
    # 0.35 × 6,212,000 is whole, though neither 0.35 nor 70 / 200 is exact
    found = on_grid(np.array([0, 2_174_200]), 6_212_000, np.array([1.0, 5.0]))
    assert found[70] == 5
    assert np.isnan(found[71:]).all()


def test_a_saving_is_a_ratio_of_means_and_its_runs_are_ratios() -> None:
    fgd = curve_of(np.array([[100.0] * 201, [300.0] * 201]))
    saved = savings(fgd, curve_of(np.array([[50.0] * 201, [270.0] * 201])))
    assert saved.at(0.5) == pytest.approx(20)  # not 30, the mean of 50 and 10
    assert saved.half[100] == pytest.approx(12.706 * 20, rel=1e-4)  # t with one degree of freedom
    assert until(saved, 19) == 1.0
    alone = curve_of(saved.mean[None])
    assert [stays_above({"x": alone}, x, 0.8)[1] for x in (22, 23)] == ["yes", "nearly"]
    assert stays_above({"x": saved}, 23, 0.8)[1] == "yes"  # 23 is in its interval


def test_the_first_reading_of_dotprod_is_the_policy_and_each_other_one_differs() -> None:
    problem = presets.small(seed=3)
    policy = run(problem, "dotprod").solution
    for k, form in enumerate(pwr_fgd.FORMS):
        found = run(problem, pwr_fgd.dot_product, form=form).solution
        assert problem.check(found) == []
        assert (found == policy) == (k == 0), form


@pytest.mark.parametrize("share", [0.3, 0.4])
def test_tasks_with_several_gpus_are_left_out_down_to_a_share(share: float) -> None:
    names = [f"t{k}" for k in range(300)]
    num = [1] * 200 + [8] * 100
    tasks = Tasks.of(names, [1000] * 300, [1024] * 300, num, [1000] * 300, [""] * 300)
    kept_tasks = tasks.take(pwr_fgd.with_share(tasks, share).tolist())
    several = kept_tasks.demand_milli[kept_tasks.num_gpu > 1].sum()
    assert share - 0.03 < several / kept_tasks.demand_milli.sum() <= share
    assert np.count_nonzero(kept_tasks.num_gpu == 1) == 200


@pytest.mark.slow
def test_every_policy_that_a_script_names_exists() -> None:
    exact = [policy.replace(")", ",score=exact)") for policy in pwr_fgd.OURS]
    named = {
        "placement": [*pwr_fgd.NAMES, *exact],
        "consolidation": [*cats.READINGS.values(), *cats.CALLS.values()],
        "queueing": queues.NAMES,
        "elastic": [
            *powerflow.NAMES,
            *(f"powerflow({_call(params)})" for params in powerflow.MODES.values()),
            "tiresias(discipline=gittins)",
            f"tiresias({_call(powerflow.TEN_TIMES)})",
        ],
    }
    for family, policies in named.items():
        problem = optgap.generate(family, size=6, seed=0)
        for policy in policies:
            assert run(problem, policy).solution is not None, policy


def _call(params: dict[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in params.items())


def test_equal_energy_is_read_off_the_points_that_more_energy_makes_faster() -> None:
    pairs = ((10, 100), (20, 50), (15, 120))
    found = [powerflow.Point(0.0, energy, jct, {}) for energy, jct in pairs]
    assert powerflow.at_energy(found, 9) is None
    assert powerflow.at_energy(found, 15) == pytest.approx(75)
    assert powerflow.at_energy(found, 30) == pytest.approx(50)
    others = [powerflow.Point(0.0, 15, 150, {}), powerflow.Point(0.0, 20, 40, {})]
    assert powerflow.best_ratio(others, found) == pytest.approx((2.0, 0.8))


def test_a_trend_holds_beyond_the_interval_and_nearly_in_the_mean() -> None:
    gains = np.array([[1.0, 1.1, 1.2], [1.0, 1.1, 1.21]])
    rise = gains[:, -1] - gains[:, 0]
    assert [powerflow.exceeds(each) for each in (rise, -rise)] == ["yes", "no"]
    assert powerflow.exceeds(np.array([0.2, -0.1])) == "nearly"


def test_powerflow_uses_less_energy_the_lower_its_eta_and_its_runs_are_shared() -> None:
    study = Study()
    problem = powerflow.day(0, size=25, gpus=16, hours=1.0, scale=0.3)
    found = powerflow.frontier(study, problem, "powerflow", (0.3, 1.0))
    assert found[0].energy_j < found[1].energy_j
    assert found[0].jct_s > found[1].jct_s
    assert powerflow.frontier(study, problem, "powerflow", (0.3, 1.0)) is found
    longest = powerflow.without_longest(problem)
    assert len(longest.jobs) == len(problem.jobs) - 1
