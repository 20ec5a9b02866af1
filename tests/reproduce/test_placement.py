"""The PWR paper's statements, from the counts in the package and from the public trace."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.reproduce import ITEMS, Report, Stopped, Study, find, run, study
from optgap.reproduce.placement.claims import stays_above, until
from optgap.reproduce.placement.runs import COMBINATIONS, COMPETITORS, FGD, PWR, Runs, Trace


@pytest.fixture(scope="module")
def without_data() -> Study:
    """Two seeds of the Default trace, from counts."""
    return Study((42, 43))


@pytest.fixture(scope="module")
def with_data(data_dir: Path) -> Study:
    """One seed of the public traces."""
    return Study((42,), data_dir)


@pytest.fixture(scope="module")
def default(without_data: Study) -> Runs:
    return Runs(without_data, Trace("default"), None)


def verdicts(report: Report) -> dict[str, str]:
    return {row.claim: row.agrees for row in report.rows}


def test_pwr_saves_over_13_percent_against_fgd_at_half_load(default: Runs) -> None:
    assert default.saving(PWR).at(0.5) > 13


def test_every_combination_saves_more_than_every_competitor_at_half_load(default: Runs) -> None:
    best = max(default.saving(policy).at(0.5) for policy in COMPETITORS)
    assert all(default.saving(policy).at(0.5) > 2 * best for policy in COMBINATIONS)


def test_savings_collapse_between_80_and_90_percent(default: Runs) -> None:
    saved = default.saving("pwr+fgd(alpha=0.1)")
    assert saved.at(0.78) > 12
    assert saved.at(0.91) < 6


def test_fgd_places_most_when_everything_has_arrived(default: Runs) -> None:
    ends = {p: default.grar(p).at(1) for p in (FGD, PWR, *COMBINATIONS, *COMPETITORS)}
    assert max(ends, key=lambda policy: ends[policy]) == FGD
    assert ends[FGD] == pytest.approx(0.952, abs=0.003)


def test_no_task_fails_before_85_percent(default: Runs) -> None:
    for policy in (FGD, PWR, *COMBINATIONS, *COMPETITORS):
        assert (default.grar(policy).runs[:, :171] == 1).all()


def test_eopc_starts_at_the_idle_cluster_and_grows_to_1_4_megawatts(default: Runs) -> None:
    power = default.power(FGD)
    assert power.at(0) == pytest.approx(230_100, abs=1000)  # a few CPU-only tasks may have come
    assert power.at(1) == pytest.approx(1.41e6, rel=0.01)
    assert (np.diff(power.mean) >= 0).all()


@pytest.mark.parametrize("name", ["pwr-table1", "pwr-table2", "pwr-fig1", "pwr-fig2", "pwr-fig3",
                                  "pwr-fig7"])  # fmt: skip
def test_the_default_trace_needs_no_data_and_says_what_it_ran_from(
    name: str, without_data: Study
) -> None:
    report = find(name).run(without_data)
    assert report.source == "the counts in the package"
    assert report.source in report.head()[0]
    found = list(verdicts(report).values())
    assert found.count("no") <= 2
    assert "yes" in found
    assert all(row.note for row in report.rows if row.agrees == "no")
    assert all(row.ours for row in report.rows)


def test_what_the_paper_says_of_nodes_without_gpus_is_contradicted(without_data: Study) -> None:
    row = find("pwr-table2").run(without_data).rows[0]
    assert row.agrees == "no"
    assert "310" in row.note


def test_drawing_with_replacement_changes_savings_by_less_than_two_points(
    default: Runs, without_data: Study
) -> None:
    drawn = Runs(without_data, Trace("default", "monte-carlo"), None)
    for policy in COMBINATIONS:
        assert drawn.saving(policy).at(0.5) == pytest.approx(default.saving(policy).at(0.5), abs=2)
    rows = find("pwr-fig3").run(without_data).rows
    assert any("replacement" in row.claim for row in rows)


@pytest.mark.parametrize("name", [n for n in ITEMS if not ITEMS[n].stand_in])
def test_other_traces_need_the_data(name: str) -> None:
    with pytest.raises(InputError, match="--data"):
        find(name).run(Study((42,)))


def test_derived_traces_are_what_their_counts_say(with_data: Study) -> None:
    report = find("pwr-traces").run(with_data)
    found = verdicts(report)
    assert [claim for claim, verdict in found.items() if verdict == "no"] == [
        "multigpu20: GPU demand of tasks with 1 or more whole GPUs",
        "multigpu50: GPU demand of tasks with 1 or more whole GPUs",
    ]
    assert "20.4 %" in report.rows[0].note


def test_counts_and_trace_are_the_same_workload(with_data: Study) -> None:
    for name in ("pwr-table1", "pwr-table2"):
        from_trace = find(name).run(with_data)
        from_counts = find(name).run(Study((42,)))
        assert from_trace.source.endswith(".csv")
        assert [r.ours.split(" (")[0] for r in from_trace.rows] == [
            r.ours for r in from_counts.rows
        ]


def test_the_reference_arrivals_are_those_of_the_simulator(with_data: Study) -> None:
    runs = Runs(with_data, Trace("default", published=True), with_data.data)
    # power after 50 % of the demand, as in docs/placement-policies.md
    assert runs.power(FGD).at(0.5) == pytest.approx(845.2e3, rel=1e-3)
    assert runs.power(PWR).at(0.5) == pytest.approx(735.5e3, rel=1e-3)


def test_constrained_tasks_fail_early_and_fgd_is_not_the_best(with_data: Study) -> None:
    report = find("pwr-fig10").run(with_data)
    assert verdicts(report)["GRAR at 80 %"] == "yes"
    runs = Runs(with_data, Trace("gpuspec33"), with_data.data)
    assert runs.grar("pwr+fgd(alpha=0.05)").at(1) > runs.grar(FGD).at(1)


def test_items_share_their_runs(without_data: Study) -> None:
    before = {key: len(rows) for key, rows in without_data.shared.items()}
    find("pwr-fig7").run(without_data)
    again = {key: len(rows) for key, rows in without_data.shared.items()}
    assert {key: again[key] for key in before} == before


def test_a_report_prints_and_draws_itself(without_data: Study) -> None:
    report = find("pwr-fig3").run(without_data)
    assert "until ~80 %" in str(report)
    assert "<table>" in report._repr_html_()
    figure = report.draw(Figure(figsize=(8, 4), layout="constrained"))
    (axes,) = figure.axes
    drawn = [text.get_text() for text in axes.texts]
    assert sorted(drawn) == sorted(line.label for line in report.panels[0].lines)
    assert "%" in axes.get_xlabel()
    assert "%" in axes.get_ylabel()
    png = report.png()
    assert png.startswith(b"\x89PNG")
    assert len(png) < 150_000
    document = report.to_json()
    assert len(document["panels"][0]["curves"]) == 7


def test_the_work_stops_when_asked() -> None:
    asked = threading.Event()
    asked.set()
    with pytest.raises(Stopped):
        find("pwr-fig1").run(Study((42,), limits=Limits(interrupted=asked)))


def test_until_and_stays_above_read_the_mean(default: Runs) -> None:
    saved = default.saving(PWR)
    end = until(saved, 10.0)
    assert saved.at(end) >= 10 > saved.at(end + 0.005)
    assert stays_above({PWR: saved}, 10.0, 0.8)[1] == "yes"
    assert stays_above({PWR: saved}, 10.0, 0.95)[1] == "no"


def test_seeds_folders_and_names_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPTGAP_DATA", raising=False)
    with pytest.raises(InputError, match="pwr-fig3"):
        run("fig3")
    with pytest.raises(InputError, match="at least 1"):
        study(seeds=0)
    with pytest.raises(InputError, match="no such folder"):
        study(data=tmp_path / "nowhere")
    monkeypatch.setenv("OPTGAP_DATA", str(tmp_path))
    assert (study(seeds=3, first_seed=7).seeds, study().data) == ((7, 8, 9), tmp_path)
