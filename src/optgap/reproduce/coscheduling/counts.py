"""Table II: how many GPUs EcoSched gives each application."""

from __future__ import annotations

from optgap.api import run
from optgap.models.coscheduling import CoschedulingProblem
from optgap.reproduce.coscheduling.facts import TABLE_2, counts_by_app
from optgap.reproduce.coscheduling.queues import PLATFORMS, queue
from optgap.reproduce.report import Item, Report, Row, Study, statement

RULE = "yes where every copy runs on the printed count"


def table2(item: Item, study: Study) -> Report:
    """One row per application and platform, and how many agree."""
    assert study.data is not None
    rows: list[Row] = []
    for column, platform in enumerate(PLATFORMS):
        study.proceed(f"EcoSched on {platform.name}")
        problem = queue(platform, study.data)
        result = run(problem, platform.ecosched)
        assert result.solution is not None
        found = counts_by_app(problem, result.solution.runs)
        same = 0
        for name, printed in TABLE_2.items():
            ours = found[name]
            agrees = ours == {printed[column]}
            same += agrees
            words, why = " and ".join(map(str, sorted(ours))), _why(problem, name, printed[column])
            claim = f"{platform.name}: {name}"
            rows.append(statement(claim, str(printed[column]), words, agrees, why=why, rule=RULE))
        rows.append(Row(f"{platform.name}: of 17 that agree", "", str(same)))
    return Report(item, "the authors' profiles", tuple(rows))


def _why(problem: CoschedulingProblem, name: str, printed: int) -> str:
    """What the profile says of the paper's count."""
    app = next(app for app in problem.applications if app.name == name)
    energies = ", ".join(f"{m.gpu_count}: {m.energy_j / 1000:.1f} kJ" for m in app.modes)
    mode = app.mode(printed)
    if mode is None:
        return f"no profile on {printed}"
    slower = 100 * (mode.runtime_s / app.fastest.runtime_s - 1)
    return f"on {printed} it is {slower:.0f} % slower than at its fastest; {energies}"
