from __future__ import annotations

import pytest

from optgap import reproduce, run
from optgap.reproduce.charts import Curve, chart
from optgap.reproduce.elastic import ITEMS, fits
from optgap.reproduce.elastic.causes import without_longest
from optgap.reproduce.elastic.day import best_ratio
from optgap.reproduce.elastic.motivation import gpt2, problem_of
from optgap.reproduce.elastic.runs import Point, at_energy, frontier, synthetic_day
from optgap.reproduce.report import Report


def points(*pairs: tuple[float, float]) -> list[Point]:
    return [Point("x", 0.0, e, j, {}) for e, j in pairs]


def test_every_item_runs_without_data_and_is_listed() -> None:
    assert {item.name for item in ITEMS} <= set(reproduce.ITEMS)
    assert all(item.stand_in for item in ITEMS)


def test_equal_energy_is_read_off_the_points_that_more_energy_makes_faster() -> None:
    found = points((10, 100), (20, 50), (15, 120))
    assert at_energy(found, 9) is None
    assert at_energy(found, 15) == pytest.approx(75)
    assert at_energy(found, 30) == pytest.approx(50)
    assert best_ratio(points((15, 150), (20, 40)), found) == pytest.approx((2.0, 0.8))


def test_the_motivating_example_has_the_totals_that_are_stated() -> None:
    report = reproduce.run("powerflow-motivation", seeds=1)
    assert report.rows[0].paper == report.rows[0].ours == "180.4 s, 85,546 J"
    assert gpt2()[2][0] == pytest.approx(0.1328)
    assert len(problem_of()) == 2


def test_powerflow_uses_less_energy_the_lower_its_eta() -> None:
    study = reproduce.study(seeds=1)
    problem = synthetic_day(0, size=25, gpus=16, hours=1.0, scale=0.3)
    found = frontier(study, problem, "powerflow", (0.3, 1.0))
    assert found[0].energy_j < found[1].energy_j
    assert found[0].jct_s > found[1].jct_s
    assert frontier(study, problem, "powerflow", (0.3, 1.0)) is found


def test_a_report_of_curves_draws_and_lists_them() -> None:
    panel = chart(
        "title", "x", "y", [Curve("a", [1, 2], [3, 4]), Curve("b", [1, 2], [1, 0], "step")]
    )
    report = Report(ITEMS[0], "here", (), (1,), (panel,))
    assert report.to_json()["panels"][0]["curves"][0]["label"] == "a"
    assert report.png().startswith(b"\x89PNG")


def test_models_that_are_fitted_to_noise_miss_by_about_the_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fits, "TABLE_2", {"gpt2": fits.TABLE_2["gpt2"]})
    (row,) = reproduce.run("powerflow-table2", seeds=1).rows
    errors = [float(part) for part in row.ours.split(", ")]
    # the mean of |N(0, 4 %)| is 3.2 %
    assert all(0.02 < error < 0.045 for error in errors)
    assert row.agrees == ""  # what is put in comes out, which says nothing of the paper


def test_the_longest_job_is_the_one_left_out() -> None:
    problem = synthetic_day(0, size=25, gpus=16, hours=1.0)
    rest = without_longest(problem)
    (gone,) = set(problem.jobs.names) - set(rest.jobs.names)
    work = {name: problem.jobs.iterations[k] for k, name in enumerate(problem.jobs.names)}
    alike = [
        name
        for k, name in enumerate(problem.jobs.names)
        if problem.jobs.of_class[k] == problem.jobs.of_class[problem.jobs.names.index(gone)]
        and problem.jobs.requested[k] == problem.jobs.requested[problem.jobs.names.index(gone)]
    ]
    assert work[gone] == max(work[name] for name in alike)


def test_afs_without_lengths_decides_on_what_has_been_done() -> None:
    problem = synthetic_day(0, size=25, gpus=16, hours=1.0)
    blind, known = run(problem, "afs", lengths=False), run(problem, "afs")
    assert problem.serves_all(blind.solution)
    assert blind.objective is not None
    assert known.objective is not None
    assert blind.objective > known.objective


@pytest.mark.parametrize(
    "name", ["powerflow-fig2", "powerflow-fig3", "powerflow-fig4", "powerflow-fig5"]
)
def test_figures_without_numbers_are_drawn_without_a_verdict(name: str) -> None:
    report = reproduce.run(name, seeds=1)
    assert not any(row.agrees for row in report.rows)
    assert report.png()[:4] == b"\x89PNG"
