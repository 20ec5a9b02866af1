"""From a profiling CSV that nobody has seen to a gap with its interval, in every family."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Cli, refused
from tables import options

import optgap

pytestmark = pytest.mark.usefixtures("here")

Frame = pd.DataFrame
RNG = np.random.default_rng(5)


def near(values: Any) -> Any:
    """Measured: within a per cent."""
    return np.asarray(values) * RNG.normal(1, 0.01, np.shape(values))


def clock_sweep() -> Frame:
    """Two programs over the clock, as somebody else would write it down."""
    ghz = np.arange(0.7, 1.71, 0.1)
    parts = [
        {"Program": name, "SM clock (GHz)": ghz, "avg_power_kw": near(w + s * ghz) / 1000,
         "run time [ms]": near(t * (1.7 / ghz) ** b) * 1000, "operator": "me"}
        for name, w, s, t, b in (("stencil", 60, 90, 90, 0.8), ("gather", 70, 50, 40, 0.3))
    ]  # fmt: skip
    return pd.concat([Frame(part) for part in parts]).set_index("Program")


def devices() -> Frame:
    """Samples of two boards and a CPU, at rest and at work."""
    rows = [("Zeta-9", 21, 130), ("Omega-2", 44, 340), ("CPU Ypsilon", 18, 95)]
    return Frame(
        [
            {"device": name, "util": u, "power_mw": 1000 * near(low if u == 0 else high)}
            for name, low, high in rows
            for u in (0, 0, 0, 80, 99, 100)
        ]
    ).rename(columns={"power_mw": "milliwatts"})


def gpu_counts() -> Frame:
    """Three programs on 1 to 4 GPUs, with their DRAM activity."""
    rows = []
    for name, t, scale in (("cfd", 120.0, 0.9), ("md", 60.0, 0.6), ("fft", 45.0, 0.3)):
        for g in (1, 2, 3, 4):
            time = t / g**scale
            rows.append((name, g, near(time), near(330 - 15 * g), near(40 / time), "ok"))
    return Frame(rows, columns=["app", "num_gpus", "elapsed_s", "watts", "dram_util_sum", "log"])


def training() -> Frame:
    """Iterations of two networks by GPUs, batch and clock, with their energy."""
    rows = []
    for name, per in (("netA", 0.004), ("netB", 0.011)):
        for g in (1, 2, 4, 8):
            for b in (8, 16, 32, 64):
                for f in (900.0, 1200.0, 1500.0):
                    t = 0.01 + per * b * 1500 / f + 0.004 * (g > 1) + 0.001 * max(0, g - 2)
                    rows.append((name, g, b, f, near(t), near((60 + 0.12 * f) * g * t)))
    columns = ["model_name", "gpus", "local_batch", "frequency_mhz", "time_s", "energy_j"]
    return Frame(rows, columns=columns)


CASES: dict[str, tuple[Callable[[], Frame], tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    # family: the CSV, the models, how to read it, what to make of it
    "placement": (
        devices, ("device-power",), {"columns": {"milliwatts": "power_w:mW"}},
        {"preset": "small", "size": 6},
    ),
    "consolidation": (
        clock_sweep, ("linear-power", "power-law-jct"), {"by": "application"},
        {"size": 4, "servers": 2},
    ),
    "coscheduling": (gpu_counts, ("dram-runtime",), {"by": "application"}, {"size": 5}),
    "elastic": (
        training, ("powerflow-energy",),
        {"by": "application", "columns": {"model_name": "application"}},
        {"preset": "tiny", "size": 3},
    ),
    "queueing": (
        training, ("powerflow-throughput",),
        {"by": "application", "columns": {"model_name": "application"}},
        {"preset": "small", "size": 6},
    ),
}  # fmt: skip


TWO = {
    "placement": "fgd,pwr",
    "consolidation": "cats,first",
    "coscheduling": "ecosched,marble",
    "elastic": "powerflow,fifo",
    "queueing": "fifo,sjf",
}
"""Policies to draw gaps of."""


@cache
def fitted(family: str, path: Path) -> list[Any]:
    """The models of the family's table, which is written to a file."""
    table, models, reading, _ = CASES[family]
    table().to_csv(path)
    return [optgap.fit(path, model, cv=0, **reading) for model in models]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("family", CASES)
def test_a_csv_never_seen_becomes_a_gap_with_an_interval(family: str, folder: Path) -> None:
    _, models, _, making = CASES[family]
    fits = fitted(family, folder / f"mine-{family}.csv")
    problem = optgap.generate(family, seed=1, models=fits, **making)
    gaps = optgap.compare(problem, TWO[family], uncertainty=2)
    assert len(gaps.samples) == 2
    assert gaps.intervals
    assert all(one.low <= one.median <= one.high for one in gaps.intervals if one.count)
    # what it rests on stands in its file, which draws the same
    assert [fit.model for fit in problem.fits] == list(models)
    assert all(fit.used and f"mine-{family}.csv" in fit.described for fit in problem.fits)
    optgap.save(problem, "p.json")
    again = optgap.load("p.json")
    assert again.to_json() == problem.to_json()
    assert again.fits[0].groups == problem.fits[0].groups


def test_the_command_line_has_the_same_path(cli: Cli) -> None:
    csv, fit, made = "mine.csv", "fit.json", "p.json"
    devices().to_csv(csv)
    column = ("--column", "milliwatts=power_w:mW")
    assert cli("fit", "device-power", csv, *column, "-o", fit, "-q").code == 0
    given = ("--preset", "small", "--size", "6", "--seed", "1")
    answer = cli("generate", "placement", *given, "--model", fit, "-o", made)
    assert "device-power fitted to mine.csv" in answer.out
    asked = ("--policies", "fgd,pwr", "--methods", "exact", "--json", "-", "-q")
    saved = cli("compare", made, *asked)
    once = cli("compare", "placement", *given, "--model", fit, "--samples", "2", *asked)
    refused(cli("compare", "placement", "--model", csv), "fit it first: optgap fit MODEL")
    bounds = [json.loads(one.out)["best_bound"] for one in (saved, once)]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)


def test_a_saved_fit_of_energy_serves_as_models_of_jobs(folder: Path, cli: Cli) -> None:
    (fit,) = fitted("elastic", folder / "mine-elastic.csv")
    optgap.save(fit, "fit.json")
    jobs = "job,submit_s,model,batch,iterations\nx,0,netA,64,2000\ny,30,netB,32,900\n"
    given = options(Path(), {"jobs": jobs}, "gpus=4 gpus_per_node=4 eta=0.8")
    answer = cli("generate", "elastic", *given, "--models", "fit.json", "-o", "p.json")
    assert answer.code == 0, answer.err
    assert cli("run", "p.json", "--policy", "afs", "-q").code == 0


def test_every_model_serves_a_family() -> None:
    from optgap.fitting import ESTIMATORS
    from optgap.registry import FAMILIES

    served = {model for spec in FAMILIES.values() for model in spec.serves}
    assert served == set(ESTIMATORS)


def test_the_clocks_of_a_fit_are_those_of_the_problem() -> None:
    fits = [optgap.fit(clock_sweep(), model, cv=0) for model in ("linear-power", "power-law-jct")]
    (kind,) = optgap.generate("consolidation", size=3, models=fits).kinds
    assert (kind.f_min_mhz, kind.f_max_mhz) == pytest.approx((700, 1700))
    assert len(kind.frequencies_mhz) == 11


def test_a_policy_decides_on_what_was_fitted_and_the_referee_counts_what_was_measured(
    folder: Path,
) -> None:
    fits = fitted("coscheduling", folder / "mine-coscheduling.csv")
    problem = optgap.generate("coscheduling", seed=0, size=6, models=fits)
    mode = problem.applications[0].modes[1]
    assert mode.fitted_s != mode.runtime_s
    assert mode.fitted_s == pytest.approx(mode.runtime_s, rel=0.3)
    found, told = optgap.run(problem, "ecosched"), optgap.run(problem, "ecosched", signal="fitted")
    assert found.objective == told.objective
    for run in found.solution.runs:
        chosen = problem.application(run.job).mode(len(run.gpu_index))
        assert run.end_s - run.start_s == pytest.approx(chosen.runtime_s)


def test_run_times_that_only_a_fit_tells_are_the_oracles_and_differ_from_draw_to_draw(
    folder: Path,
) -> None:
    names = {"num_gpus": "gpu_count", "watts": "avg_power_per_gpu_w"}
    table = gpu_counts().drop(columns=["elapsed_s", "log"]).rename(columns=names)
    jobs = Frame({"app": ["cfd", "md", "fft"], "count": 1})
    fits = fitted("coscheduling", folder / "mine-coscheduling.csv")
    problem = optgap.problem(
        "coscheduling", profiles=table.assign(runtime_s=None), jobs=jobs, models=fits
    )
    gaps = optgap.compare(problem, "ecosched", uncertainty=2)
    oracles = {sample.row("oracle").result.objective for sample in gaps.samples}
    assert len(oracles | {optgap.solve(problem).objective}) == 3


def test_a_signal_that_the_problem_lacks_is_asked_for_in_vain() -> None:
    problem = optgap.generate("coscheduling", "synthetic", size=4)
    for signal, said in (("dram", "without DRAM activity"), ("fitted", "without fitted run times")):
        with pytest.raises(optgap.InputError, match=said):
            optgap.run(problem, "ecosched", signal=signal)


def test_jobs_that_tell_iterations_last_as_long_as_the_fit_says(folder: Path) -> None:
    (fit,) = fitted("queueing", folder / "mine-queueing.csv")
    jobs = Frame({"job": ["a", "b"], "submitted": ["2026-03-01T08:00", "2026-03-01T08:05"],
                  "gpus": [2, 4], "family": ["netA", "netB"], "batch": [64, 64],
                  "iterations": [1000, 500]})  # fmt: skip
    problem = optgap.problem("queueing", jobs=jobs, models=fit, nodes=1,
                             columns={"submitted": "arrival_s"})  # fmt: skip
    row = {"gpus": [2.0], "local_batch": [32.0], "frequency_mhz": [1500.0]}
    assert problem.jobs.duration_s[0] == pytest.approx(1000 * fit.fit["netA"].predict(row)[0])
    with pytest.raises(optgap.InputError, match="family, batch"):
        optgap.problem("queueing", jobs=jobs.drop(columns="batch"), models=fit, nodes=1,
                       columns={"submitted": "arrival_s"})  # fmt: skip


def test_a_time_at_one_clock_asks_for_another_beside_a_power_by_clock() -> None:
    at_one = training().query("frequency_mhz == 1500").rename(columns={"model_name": "app"})
    time = optgap.fit(at_one, "powerflow-throughput", by="application", cv=0)
    power = optgap.fit(clock_sweep().query("Program == 'gather'"), "powerflow-power", cv=0)
    with pytest.raises(optgap.InputError, match="time_s at two clocks, or a fit of power-law-jct"):
        optgap.generate("elastic", "tiny", models=[time, power])
    jct = optgap.fit(clock_sweep().query("Program == 'gather'"), "power-law-jct", cv=0)
    problem = optgap.generate("elastic", "tiny", size=3, models=[time, power, jct])
    slow, fast = problem.classes[0].time_s[0, [0, -1]]
    low, high = problem.frequencies_mhz[[0, -1]]
    beta = jct.fit[""].params_["beta"]
    assert slow / fast == pytest.approx((high / low) ** beta)


@pytest.mark.parametrize("family", CASES)
def test_a_problem_refitted_with_its_own_fits_is_itself(family: str, folder: Path) -> None:
    from optgap.registry import FAMILIES

    if family in ("elastic", "placement"):  # without a preset of measurements
        fits = fitted(family, folder / f"mine-{family}.csv")
        problem = optgap.generate(family, seed=2, models=fits, **CASES[family][3])
    else:
        problem = optgap.generate(family, "measured", seed=2)
    again = FAMILIES[family].models.refit(problem, problem.fits, 2)
    one, other = problem.to_json(), again.to_json()
    for document in (one, other):
        for fit in document["fits"]:
            del fit["used"]
    assert one == other


@pytest.mark.parametrize("family", CASES)
def test_objects_show_themselves_briefly_and_safely(family: str) -> None:
    from matplotlib.figure import Figure

    _, _, _, making = CASES[family]
    problem = optgap.generate(family, seed=0, **making)
    policy = next(iter(optgap.registry.FAMILIES[family].policies))
    result = optgap.run(problem, policy)
    table = optgap.compare(problem, policy, methods=())
    for thing in (problem, result, result.solution, table):
        assert len(repr(thing)) < 3000
    for thing in (problem, result, table):
        html = thing._repr_html_()
        assert "overflow-x:auto" in html
        assert thing is problem or isinstance(thing.plot("x.svg"), Figure)
    assert len(problem.to_frame())
    assert len(result.to_frame())


def test_what_a_notebook_shows_is_escaped() -> None:
    table = clock_sweep().reset_index().replace("stencil", "<script>alert(1)</script>")
    fit = optgap.fit(table, "linear-power", by="application", cv=0)
    problem = optgap.generate("consolidation", size=3, models=fit)
    page = optgap.report([fit], "page.html")
    shown = optgap.export(optgap.generate("coscheduling", size=3), "<script>.lp")
    assert "overflow-x:auto" in page._repr_html_()
    for thing in (fit, problem, fit.profile, fit.fit, shown):
        assert "<script>" not in thing._repr_html_()
        assert "&lt;script&gt;" in thing._repr_html_()
        assert len(repr(thing)) < 3000


def test_missing_values_concern_only_what_a_model_reads() -> None:
    table = clock_sweep()
    table["run time [ms]"] = np.where(
        np.arange(len(table)) % 3 == 0, np.nan, table["run time [ms]"]
    )
    table["note"] = None
    fit = optgap.fit(table, "linear-power", by="application", cv=0, drop_missing=True)
    assert fit.overall()["n"] == len(table)
    jct = optgap.fit(table, "power-law-jct", by="application", cv=0, drop_missing=True)
    assert jct.overall()["n"] < len(table)
    with pytest.raises(optgap.InputError, match=r"run time \[ms\] \(time_s\): found nothing"):
        optgap.fit(table, "power-law-jct", by="application", cv=0)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"wats": "power_w"}, "columns: found 'wats', expected one of watts, frequency_mhz"),
        ({"watts": "power"}, "watts: found 'power', expected one of frequency_mhz"),
        ({"watts": "power_w:kJ"}, "watts: found 'kJ', expected one of W, mW, kW"),
        ({"watts": "power_w", "frequency_mhz": "power_w"}, "power_w twice"),
    ],
)
def test_a_wrong_mapping_is_told_in_one_line(columns: dict[str, str], said: str) -> None:
    table = {"watts": [50.0, 60.0], "frequency_mhz": [900.0, 1000.0]}
    with pytest.raises(optgap.InputError) as caught:
        optgap.fit(table, "linear-power", columns=columns)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tables_of_problems_are_mapped_and_converted_and_one_line_says_so() -> None:
    tasks = Frame(
        {"task": ["a", "b"], "mem": [2048, 4096], "duration_h": [1, 2], "who": ["x", "y"]}
    )
    problem = optgap.problem(
        "consolidation", tasks=tasks, columns={"mem": "memory_gb:MiB"}, servers=1
    )
    assert problem.tasks[1].memory_gb == pytest.approx(4096 * 2**20 / 1e9)
    assert [task.duration_s for task in problem.tasks] == [3600, 7200]
    assert "mem → memory_gb (from MiB), duration_h → duration_s (from h)" in problem.origin
    with pytest.raises(optgap.InputError, match=r"found 'memm', expected one of task, mem"):
        optgap.problem("consolidation", tasks=tasks, columns={"memm": "memory_gb"}, servers=1)
