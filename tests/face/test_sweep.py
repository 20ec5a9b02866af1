"""Sweeps: the grid, the table, and what survives when processes die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pandas as pd
import pytest
from conftest import Cli, refused, two_nodes_problem

import optgap
from optgap import sweeping
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Termination

OWN = """
import os, signal, time
from pathlib import Path

def first(task, state):
    nodes = state.feasible(task)
    return nodes[0] if nodes.size else None

def slow(task, state, seconds=0.02):
    time.sleep(seconds)
    return first(task, state)

def one_by_one(state):
    time.sleep(float(os.environ.get("PACE_S", 0)))
    job = state.waiting[0]
    return [] if state.running else [(job, state.problem.application(job).fastest.gpu_count)]

def one_by_one_when_told(state):
    if not Path("told").exists():
        raise RuntimeError("not yet")
    return one_by_one(state)

def kills_once(state):
    if not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return one_by_one(state)
"""
SMALL = {"family": "placement", "presets": ["small"], "instance": {"size": 5}}
FGD = {**SMALL, "policies": ["fgd"]}


@pytest.fixture(autouse=True)
def folder(here: Path) -> Path:
    Path("own.py").write_text(OWN)
    return here


def grid(*policies: str, seeds: int = 3, **other: Any) -> dict[str, Any]:
    return {"seeds": seeds, "grid": [{**SMALL, "policies": list(policies), **other}]}


def swept(document: Mapping[str, Any], path: str = "t.csv", **options: Any) -> sweeping.Done:
    return sweeping.run(sweeping.read_spec(document), path, **{"jobs": 1, **options})


def read(path: str = "t.csv") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pd.read_csv(path, keep_default_na=False).to_dict("records")
    return rows


def lasting(path: str = "t.csv") -> list[dict[str, Any]]:
    """The table without the columns that say how it went."""
    return [{k: v for k, v in row.items() if k not in sweeping.WALL} for row in read(path)]


# -- the grid ----------------------------------------------------------------------------


def test_the_grid_of_the_page_is_every_instance_with_every_run_and_seed(root: Path) -> None:
    text = (root / "docs" / "sweep.md").read_text()
    Path("grid.toml").write_text(text.split("```toml\n")[1].split("```")[0])
    found = list(sweeping.load_spec("grid.toml").values())
    placement = [cell for cell in found if cell.family == "placement"]
    assert (len(placement), len(found)) == (2 * 5, 2 * 5 + 5)
    assert list(found[-1].policies) == list(optgap.registry.family("coscheduling").policies)
    for cell in placement:
        assert list(cell.policies) == ["fgd"] + [f"pwr+fgd(alpha={a})" for a in (0.05, 0.1, 0.2)]
        assert list(cell.methods) == ["bound-pooled"]
    assert {(c.seed, c.made["seed"]) for c in placement} == {(k, k) for k in range(5)}
    listed = sweeping.read_spec({**grid("fgd"), "seeds": [0, 7]}).values()
    assert [(c.seed, c.made["seed"]) for c in listed] == [(0, 0), (7, 7)]


def test_problem_files_are_found_beside_the_spec(folder: Path) -> None:
    (folder / "in").mkdir()
    for k in range(3):
        optgap.save(two_nodes_problem(extra=k), folder / "in" / f"p{k}.json")
    body = '[[grid]]\nfamily = "placement"\npolicies = ["fgd"]\nproblems = ["p*.json"]\n'
    (folder / "in" / "s.toml").write_text(body)
    found = list(sweeping.load_spec("in/s.toml").values())
    assert [cell.instance for cell in found] == ["p0.json", "p1.json", "p2.json"]
    (row,) = sweeping.run_cell(found[0])
    assert row["objective"] == optgap.run(two_nodes_problem(), "fgd").objective
    (folder / "in" / "p0.json").write_text((folder / "in" / "p1.json").read_text())
    (row,) = sweeping.run_cell(found[0])
    assert "another file" in row["message"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"sedes": 3}, "field: found 'sedes'.*did you mean 'seeds'"),
        ({"grid": [{**SMALL, "preset": "x"}]}, r"field grid\[0\]: found 'preset'"),
        ({"seeds": 0}, "at least 1"),
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [-1]}, "at least 0"),
        ({"time_limit": 0}, "time_limit"),
        ({"grid": []}, "policies or methods"),
        ({"grid": [{**SMALL, "family": "plaecment"}]}, "plaecment"),
        ({"grid": [{**SMALL, "policies": ["fdg"]}]}, "fdg"),
        ({"grid": [{**FGD, "presets": ["big"]}]}, "big"),
        ({"grid": [{**FGD, "instance": {"sice": 3}}]}, "sice"),
        ({"grid": [{**FGD, "instance": {"size": "x"}}]}, "an integer"),
        ({"grid": [{**FGD, "parameters": {"alpha": [1]}}]}, "alpha"),
        ({"grid": [{**FGD, "problems": ["p.json"]}]}, "conflicts with problems"),
        ({"grid": [{"family": "placement", "policies": "all", "problems": "x.json"}]}, "x.json"),
        ({"grid": [{**SMALL, "policies": ["own.py:nobody"]}]}, "nobody"),
        ({"grid": [{**SMALL}]}, "policies or methods"),
    ],
)
def test_a_wrong_spec_is_refused_before_anything_runs(change: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        sweeping.read_spec({**grid("fgd"), **change})


@pytest.mark.parametrize(
    "content",
    [b"", b"seeds = ", b"\xff\xfe", b"a = " + b"[" * 100_000, b"seeds = 1e400", b"grid = 3"],
    ids=["nothing", "half", "no text", "deep", "infinite", "no table"],
)
def test_a_file_that_is_no_spec_is_one_line(content: bytes, cli: Cli) -> None:
    Path("s.toml").write_bytes(content)
    refused(cli("sweep", "s.toml"))


# -- keys --------------------------------------------------------------------------------


def keys(document: Mapping[str, Any]) -> set[str]:
    return set(sweeping.read_spec(document))


def test_a_key_changes_with_everything_that_the_outcome_depends_on() -> None:
    base = keys(grid("own.py:slow"))
    assert keys(grid("own.py:slow")) == base
    assert not keys(grid("own.py:slow(seconds=0)")) & base
    assert not keys(grid("own.py:slow", instance={"size": 6})) & base
    assert not keys({**grid("own.py:slow"), "time_limit": 5}) & base
    Path("own.py").write_text(OWN + "# edited\n")
    assert not keys(grid("own.py:slow")) & base


def test_another_version_or_an_edit_makes_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    base, block = keys(grid("fgd")), optgap.versions.versions()

    def with_(**changed: Any) -> set[str]:
        sweeping.code.cache_clear()
        with monkeypatch.context() as patch:
            for name, value in changed.items():
                patch.setattr(sweeping, name, value)
            found = keys(grid("fgd"))
        sweeping.code.cache_clear()
        return found

    assert with_(versions=lambda: {**block, "rich": "0"}) == base
    for package in ("optgap", "numpy", "highspy"):
        assert not with_(versions=lambda package=package: {**block, package: "0"}) & base
    assert not with_(models=optgap) & base  # other sources


# -- the table ---------------------------------------------------------------------------


def test_rows_say_what_the_api_says() -> None:
    done = swept(grid("pwr", seeds=1, methods=["bound-pooled", "milp"]))
    problem = optgap.generate("placement", "small", size=5, seed=0)
    comparison = optgap.compare(problem, "pwr", "bound-pooled,milp")
    for row in done.rows:
        expected = comparison.row(row["method"])
        assert row["objective"] == expected.result.objective
        assert row["gap_to_bound"] == expected.gap_to_bound
        assert row["gap_to_best"] == expected.gap_to_best
        assert row["best_bound"] == comparison.best_bound
    frame = done.to_frame()
    assert len(frame) == 3
    assert frame["power_w"].notna().any()


def test_one_who_turns_tasks_down_is_held_against_a_bound_for_the_rest() -> None:
    optgap.save(two_nodes_problem(extra=3), "tight.json")
    own = {"family": "placement", "problems": ["tight.json"], "policies": ["fgd"]}
    *_, row = swept({"grid": [{**own, "methods": ["bound-patterns"]}]}).rows
    assert row["bound_scope"] == "accepted"
    comparison = optgap.compare(two_nodes_problem(extra=3), "fgd", "bound-patterns", parts=True)
    assert row["gap_to_bound"] == comparison.row("fgd").gap_to_bound


def test_an_objective_that_a_method_does_not_treat_is_no_failure() -> None:
    document = grid(
        seeds=1, methods=["bound-over-time"], instance={"size": 5, "goal": "fragmentation"}
    )
    done = swept(document)
    assert done.failed == []
    assert {row["failure"] for row in done.rows} <= {"", "objective"}


# -- resuming ----------------------------------------------------------------------------


def test_what_is_done_is_not_run_again_in_a_larger_grid_or_in_a_smaller_one() -> None:
    first = swept(grid("fgd"))
    before = read()
    again = swept(grid("fgd"))
    assert (first.ran, again.ran, again.skipped) == (3, 0, 3)
    assert read() == before
    for seeds, skipped, ran in ((4, 3, 1), (2, 2, 0), (4, 4, 0)):
        done = swept(grid("fgd", seeds=seeds))
        assert (done.skipped, done.ran, len(read())) == (skipped, ran, seeds)


def test_results_are_never_overwritten_by_surprise() -> None:
    Path("t.csv").write_text("my diary")
    with pytest.raises(InputError, match="the table of a sweep, or another name"):
        swept(grid("pwr"))
    assert Path("t.csv").read_text() == "my diary"


def test_an_interrupted_sweep_ends_as_one_that_was_not() -> None:
    swept(grid("fgd", "random", seeds=4), path="whole.csv")
    stop = Event()

    def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
        if phase.startswith("2 of 4"):
            stop.set()

    part = swept(grid("fgd", "random", seeds=4), limits=Limits(interrupted=stop, progress=tell))
    assert part.termination is Termination.INTERRUPTED
    assert len(read()) == 2 * 2
    rest = swept(grid("fgd", "random", seeds=4))
    assert (rest.skipped, rest.ran, rest.termination) == (2, 2, Termination.COMPLETED)
    assert lasting() == lasting("whole.csv")


def test_a_journal_that_was_cut_off_counts_up_to_its_last_whole_line() -> None:
    found = sweeping.read_spec(grid("fgd"))
    lines = [json.dumps(sweeping.run_cell(cell)) for cell in found.values()]
    broken = "\0\0\0\n[1]\n" + "\n".join(lines[:2]) + "\n" + lines[2][:50]
    Path("t.csv.jsonl").write_text(broken)
    done = swept(grid("fgd"))
    assert (done.skipped, done.ran) == (2, 1)
    assert len(Path("t.csv.jsonl").read_text().splitlines()) == 2 + 4
    swept(grid("fgd"), path="whole.csv")
    assert lasting() == lasting("whole.csv")


def test_a_worker_with_other_code_is_refused() -> None:
    cell = next(iter(sweeping.read_spec(grid("fgd")).values()))
    (row,) = sweeping.run_cell(replace(cell, code="0" * 32))
    assert "as at the beginning" in row["message"]


def test_a_table_ends_as_it_is_and_parquet_holds_the_same(cli: Cli) -> None:
    pytest.importorskip("pyarrow")
    done = swept(grid("fgd"), path="t.parquet")
    frame = pd.read_parquet("t.parquet")
    assert list(frame.columns) == list(sweeping.COLUMNS)
    assert frame["gap_to_bound"].equals(pd.DataFrame(done.rows)["gap_to_bound"])
    Path("s.toml").write_text(SLOW)
    for name in ("t.xlsx", "t", "t.csv.gz", "-"):
        refused(cli("sweep", "s.toml", "-o", name))


# -- engines -----------------------------------------------------------------------------

MIXED = {
    "seeds": 3,
    "grid": [
        {**SMALL, "policies": ["fgd", "random", "own.py:first"], "methods": ["bound-pooled"]},
        {"family": "coscheduling", "policies": ["ecosched"], "instance": {"size": 5}},
    ],
}


def test_every_engine_and_number_of_workers_gives_the_same_table() -> None:
    for jobs in (1, 2):
        swept(MIXED, f"{jobs}.csv", jobs=jobs)
    expected = lasting("1.csv")
    assert len(expected) == 15
    assert list(dict.fromkeys(row["key"] for row in expected)) == list(sweeping.read_spec(MIXED))
    assert lasting("2.csv") == expected


def until(condition: Callable[[], Any], seconds: float = 300) -> Any:
    """What `condition` gives once it gives something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise TimeoutError


SLOW = """
seeds = 16
[[grid]]
family = "coscheduling"
presets = ["synthetic"]
policies = ["own.py:one_by_one"]
instance.size = 10
"""
"""Of the family whose processes have least to import."""


PACED = {"PACE_S": "0.02"}
"""In processes, so that a sweep is met half-way."""


def sweep_process(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "optgap", "sweep", "s.toml", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ | PACED, **pipes)


def journal_lines() -> int:
    place = Path("s.csv.jsonl")
    return place.read_bytes().count(b"\n") if place.exists() else 0


def until_rows(count: int, process: subprocess.Popen[str]) -> None:
    """Until the sweep has so many; one that ends before has gone wrong."""
    until(lambda: journal_lines() >= count or process.poll() is not None)
    assert process.poll() is None, process.communicate()[1]


def killed_and_resumed(
    cli: Cli, *options: str, on_the_way: Callable[[], None] = lambda: None
) -> None:
    """Kill a sweep half-way and go on with it: the table is that of a sweep in one go."""
    Path("s.toml").write_text(SLOW)
    process = sweep_process(*options)
    until_rows(4, process)
    on_the_way()
    until_rows(7, process)
    process.kill()
    process.communicate()
    assert not Path("s.csv").exists()
    kept = journal_lines()
    again = cli("sweep", "s.toml", *options)
    assert (again.code, again.err) == (0, "")
    assert f"{kept} there before, {16 - kept} now" in again.out
    sweeping.run(sweeping.load_spec("s.toml"), "whole.csv", jobs=1)
    assert lasting("s.csv") == lasting("whole.csv")


def test_a_driver_that_is_killed_loses_nothing_and_doubles_nothing(cli: Cli) -> None:
    killed_and_resumed(cli, "--jobs", "2")


def test_a_process_that_dies_is_told_in_one_line_and_what_is_done_is_kept(cli: Cli) -> None:
    Path("s.toml").write_text(SLOW.replace("one_by_one", "kills_once"))
    refused(cli("sweep", "s.toml", "--jobs", "2"), "the same command goes on")
    assert cli("sweep", "s.toml", "--jobs", "2").code == 0
    assert len(read("s.csv")) == 16


@pytest.fixture
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler and two worker processes on loopback."""
    pytest.importorskip("distributed")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": os.environ | PACED}
    python = [sys.executable, "-m"]
    about = folder / "scheduler.json"
    scheduler = [*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    scheduler += ["--no-dashboard", "--scheduler-file", str(about)]
    processes = [subprocess.Popen(scheduler, **quiet)]
    try:
        until(lambda: about.exists() and about.stat().st_size)
        worker = [*python, "distributed.cli.dask_worker", "--scheduler-file", str(about)]
        worker += ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
        for k in range(2):
            own = [*worker, "--name", f"w{k}", "--local-directory", str(folder / f"w{k}")]
            processes.append(subprocess.Popen(own, **quiet))
        yield json.loads(about.read_text())["address"], processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_cluster_loses_a_worker_and_a_driver_and_no_row(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], cli: Cli
) -> None:
    address, (_, first, second) = cluster
    killed_and_resumed(cli, "--engine", f"dask={address}", on_the_way=first.kill)
    workers = {row["worker"].split(":")[1] for row in read("s.csv")}
    assert str(second.pid) in workers  # joblib does without a cluster of one, which is left


def test_ray_loses_a_driver_and_no_row(cli: Cli) -> None:
    pytest.importorskip("ray", reason="comes with the extra ray")
    killed_and_resumed(cli, "--engine", "ray", "--jobs", "2")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:99999", "auto"])
def test_a_ray_cluster_that_does_not_answer_is_bad_input(address: str) -> None:
    pytest.importorskip("ray", reason="comes with the extra ray")
    with pytest.raises(InputError, match=r"a Ray cluster|HOST:PORT"):
        swept(grid("fgd"), engine=f"ray={address}")


@pytest.mark.parametrize(
    "options",
    [{"engine": "slurm"}, {"engine": "dask"}, {"engine": "processes=tcp://x:1"}, {"jobs": 0}],
)
def test_an_engine_that_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        swept(grid("fgd"), **options)


def test_a_scheduler_that_does_not_answer_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweeping, "CONNECT_S", 0.5)
    with pytest.raises(InputError, match="a Dask cluster"):
        swept(grid("fgd"), engine="dask=tcp://127.0.0.1:1")


# -- the command -------------------------------------------------------------------------


def test_the_command_writes_the_table_and_the_counts(cli: Cli) -> None:
    Path("s.toml").write_text(SLOW)
    answer = cli("sweep", "s.toml", "--jobs", "1", "--json", "d.json")
    assert (answer.code, answer.err) == (0, "")
    assert "16 of 16 comparisons in s.csv: 0 there before, 16 now" in answer.out
    document = json.loads(Path("d.json").read_text())
    counts = {"total": 16, "done": 16, "skipped": 0, "ran": 16, "failed": 0}
    assert document == {
        "schema": "optgap.sweep/1", "path": "s.csv", **counts, "termination": "completed"
    }  # fmt: skip
    assert "16 there before" in cli("sweep", "s.toml").out


def test_a_failed_run_is_named_takes_no_other_with_it_and_is_run_again(cli: Cli) -> None:
    names = '"own.py:one_by_one_when_told", "marble"'
    Path("s.toml").write_text(SLOW.replace('"own.py:one_by_one"', names))
    answer = cli("sweep", "s.toml", "--jobs", "1")
    assert (answer.code, len(answer.err.splitlines())) == (1, 6)
    assert "RuntimeError: not yet" in answer.err
    ways = {(row["method"], row["status"], row["failure"]) for row in read("s.csv")}
    assert ways == {("own.py:one_by_one_when_told", "error", "input"), ("marble", "feasible", "")}
    Path("told").touch()
    answer = cli("sweep", "s.toml", "--jobs", "1")
    assert (answer.code, answer.err) == (0, "")
    assert "0 there before, 16 now" in answer.out
    assert len(read("s.csv")) == 32


def test_a_time_limit_for_the_whole_sweep_gives_a_table_to_go_on_with(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACE_S", "0.02")
    Path("s.toml").write_text(SLOW)
    answer = cli("sweep", "s.toml", "--jobs", "1", "--time-limit", "0.5")
    assert answer.code == 3
    assert 0 < len(read("s.csv")) < 16


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("pyarrow", ("-o", "s.parquet"), "sweep"),
        ("distributed", ("--engine", "dask=tcp://127.0.0.1:1"), "dask"),
        ("ray", ("--engine", "ray"), "ray"),
    ],
)
def test_a_missing_extra_is_one_line_before_anything_runs(
    package: str, arguments: tuple[str, ...], extra: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("s.toml").write_text(SLOW)
    monkeypatch.setitem(sys.modules, package, None)
    refused(cli("sweep", "s.toml", *arguments), f"pip install 'optgap[{extra}]'")
    assert not list(Path().glob("s.csv*"))


def test_one_interrupt_stops_a_sweep_cleanly() -> None:
    Path("s.toml").write_text(SLOW)
    process = sweep_process("--jobs", "2")
    until_rows(2, process)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Traceback" not in err
    assert 0 < len(read("s.csv")) < 16


def left_behind(mark: str) -> list[str]:
    """Processes with a mark in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in place.read_bytes():
                found.append((place.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has ended, or is another user's
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc on this system")
def test_a_sweep_killed_as_it_begins_leaves_no_worker_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("s.toml").write_text(SLOW)
    monkeypatch.setenv("OPTGAP_TEST_MARK", str(folder))
    process = sweep_process("--jobs", "2")
    time.sleep(1.6)
    process.kill()
    process.communicate()
    monkeypatch.delenv("OPTGAP_TEST_MARK")
    until(lambda: not left_behind(f"OPTGAP_TEST_MARK={folder}"), 30)
