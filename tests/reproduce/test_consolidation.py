from __future__ import annotations

from pathlib import Path

import pytest

from optgap import reproduce, run
from optgap.models.consolidation import presets
from optgap.reproduce.consolidation import ITEMS


def test_the_testbed_says_that_the_printed_optimum_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPTGAP_DATA", raising=False)
    rows = {row.claim: row for row in reproduce.run("cats-table4", seeds=1).rows}
    assert rows["stage 1 at once, capacity none"].ours.startswith("122.7 W")
    assert rows["stage 1 at once, capacity mean"].ours.startswith("491.0 W")


def test_few_independent_samples_look_correlated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPTGAP_DATA", raising=False)
    rows = [row for row in reproduce.run("cats-fig2", seeds=1).rows if "independent" in row.claim]
    above = [float(row.ours.split("/")[2].split("%")[0]) for row in rows]
    assert above == sorted(above, reverse=True)


def test_every_item_but_the_clocks_runs_without_data() -> None:
    assert [item.name for item in ITEMS if not item.runnable(None)] == ["cats-fig1"]


def test_the_clock_of_a_v100_fits_the_papers_forms(data_dir: Path) -> None:
    agrees = {row.claim: row.agrees for row in reproduce.run("cats-fig1", data=data_dir).rows}
    assert agrees["β of run time (Eq. 5)"] == "yes"
    assert agrees["P_gs, power at a clock of 0 (Eq. 3)"] == "no"


@pytest.mark.parametrize("name", ["cats-fig3", "cats-fig7b", "cats-table2"])
def test_small_items_run_and_draw(name: str) -> None:
    report = reproduce.run(name, seeds=1)
    assert len(report.rows) >= 2
    assert not report.panels or report.png()[:4] == b"\x89PNG"


def test_a_rule_left_out_is_a_policy_that_exists() -> None:
    from optgap.reproduce.consolidation.traces import CAUSES, READINGS

    problem = presets.pai(seed=0, size=20)
    for policy in {*CAUSES.values(), *READINGS.values()}:
        assert run(problem, policy).status == "feasible"
