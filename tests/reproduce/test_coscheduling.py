"""The paper's figures from the authors' profiles, and what needs no data."""

from __future__ import annotations

from pathlib import Path

import pytest

from optgap import reproduce
from optgap.models.errors import InputError
from optgap.reproduce.coscheduling import ITEMS
from optgap.reproduce.coscheduling.facts import SAVINGS, shown, verdict
from optgap.reproduce.report import Report


def item(name: str, data: Path | None, seeds: int = 2) -> Report:
    return reproduce.run(name, seeds=seeds, data=data)


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.removesuffix(" %").split(", ")]


def test_gpu_counts_are_those_of_table_2_nearly_everywhere(data_dir: Path) -> None:
    report = item("ecosched-table2", data_dir)
    same = {row.claim.split(":")[0]: int(row.ours) for row in report.rows if "of 17" in row.claim}
    assert same["H100"] == 17
    assert same["V100"] >= 14


def test_savings_are_within_four_points_of_the_papers(data_dir: Path) -> None:
    report = item("ecosched-fig6", data_dir, seeds=10)
    rows = [r for r in report.rows if "EcoSched against sequential_optimal" in r.claim]
    assert len(rows) == 2
    for row in rows:
        for paper, ours in zip(numbers(row.paper), numbers(row.ours), strict=True):
            assert abs(paper - ours) <= 4, row.claim


def test_the_case_study_has_the_papers_shape(data_dir: Path) -> None:
    report = item("ecosched-fig7", data_dir)
    agrees = {row.claim: row.agrees for row in report.rows}
    assert agrees["run beside pot3d"] == "yes"
    assert agrees["runs in the tail"] == "yes"
    assert agrees["energy saved against Marble"] == "yes"
    assert report.png()[:4] == b"\x89PNG"


def test_both_main_queues_are_proven_optimal(data_dir: Path) -> None:
    report = item("ecosched-oracle", data_dir)
    proven = [row for row in report.rows if row.claim.endswith("after how long")]
    assert [row.note.split(";")[0] for row in proven] == [
        "445,013 J, optimal",
        "428,556 J, optimal",
    ]
    assert next(row for row in report.rows if "by our referee" in row.claim).agrees == "yes"


def test_what_needs_no_data_runs_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPTGAP_DATA", raising=False)
    report = item("ecosched-gaps", None, seeds=1)
    assert report.rows[0].ours == "1"


def test_every_other_item_says_which_file_it_wants(tmp_path: Path) -> None:
    for name in (i.name for i in ITEMS if not i.stand_in):
        with pytest.raises(InputError, match="h100_profiles"):
            item(name, tmp_path)


def test_verdicts_pass_over_what_the_paper_does_not_state() -> None:
    assert verdict((10.0, None, 30.0), (10.4, 99.0, 29.9)) == "yes"
    assert verdict((10.0, 20.0, 30.0), (10.4, 23.0, 29.9)) == "nearly"
    assert verdict((10.0, 20.0, 30.0), (15.0, 20.0, 30.0)) == "no"
    assert shown(SAVINGS["H100", "Marble"]) == "4.2, 11.5, – %"


def test_the_costs_of_profiling_are_the_papers(data_dir: Path) -> None:
    report = item("ecosched-overhead", data_dir)
    costs = {row.claim: row for row in report.rows if "profiling" in row.claim}
    assert costs["profiling gpt2"].ours == "64.1 kJ"
    assert costs["profiling of gpt2 pays back after"].ours == "3.13 min"
    assert all(row.agrees == "yes" for row in costs.values())


def test_the_authors_setting_is_one_of_those_swept_and_more_tolerance_saves_more_energy(
    data_dir: Path,
) -> None:
    rows = {row.claim: numbers(row.ours) for row in item("ecosched-sweep", data_dir).rows}
    assert len(rows) == 2 * 18

    def of(change: str) -> list[float]:
        return rows[f"H100: {change}"]

    assert of("tau = 0.15") == of("idle_weight = 0.5") == of("signal = dram, normalise = kept")
    energy = [of(f"tau = {tau}")[0] for tau in (0.05, 0.1, 0.15, 0.25, 0.4, 100.0)]
    assert energy == sorted(energy)


def test_scaling_is_as_the_paper_says(data_dir: Path) -> None:
    one_less = {row.claim: row for row in item("ecosched-fig2", data_dir).rows}
    assert one_less["gpt2, 3 to 2 GPUs: slower"].agrees == "yes"
    assert one_less["gpt2, 3 to 2 GPUs: energy saved"].agrees == "yes"
    fastest = {row.claim: row.ours for row in item("ecosched-fig1", data_dir).rows}
    assert fastest["H100: miniweather is fastest on"] == "1 GPU"
    assert fastest["V100: miniweather is fastest on"] == "4 GPUs"
    assert all(row.agrees in ("yes", "") for row in item("ecosched-fig3", data_dir).rows)
    assert "miniweather alone" in item("ecosched-fig5", data_dir).rows[0].note


def test_the_authors_log_has_the_slow_downs_of_the_case_study(data_dir: Path) -> None:
    rows = item("ecosched-fig9", data_dir).rows
    logged = [row for row in rows if "authors' log" in row.claim]
    assert [row.ours for row in logged] == ["8.7 %", "5.9 %", "9.1 %"]
    assert next(row for row in rows if row.claim == "V100: miniweather: slower").agrees == "no"
