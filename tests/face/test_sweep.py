"""Sweeps: the grid, the table, and what survives when processes die."""

from __future__ import annotations

import json
import multiprocessing
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

import pytest
from conftest import Cli, two_nodes_problem

import optgap
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Termination

pytest.importorskip("joblib")
pytest.importorskip("pyarrow")


from optgap import sweeping
from optgap.sweeping import fingerprint, journal
from optgap.sweeping.table import with_gaps

OWN = """
import os, signal, time
from pathlib import Path

def first(task, state):
    nodes = state.feasible(task)
    return nodes[0] if nodes.size else None

def slow(task, state, seconds=0.02):
    time.sleep(seconds)
    return first(task, state)

def fails_until_told(task, state):
    if not Path("told").exists():
        raise RuntimeError("not yet")
    return first(task, state)

def kills_once(task, state):
    if not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return first(task, state)

def kills(task, state, when=0):
    if when:
        os.kill(os.getpid(), signal.SIGKILL)
    return first(task, state)
"""
SMALL = {"family": "placement", "presets": ["small"], "instance": {"size": 5}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN)
    # the sources may be under work while these tests run
    monkeypatch.setenv(fingerprint.PIN, "tests")
    fingerprint.code.cache_clear()
    yield tmp_path
    fingerprint.code.cache_clear()


def grid(*policies: str, seeds: int = 3, **other: Any) -> dict[str, Any]:
    return {"seeds": seeds, "grid": [{**SMALL, "policies": list(policies), **other}]}


def swept(
    document: Mapping[str, Any], name: str = "serial", path: str = "t.parquet", **options: Any
) -> sweeping.Done:
    engine = sweeping.Engine(name, options.pop("jobs", None), options.pop("scheduler", None))
    return sweeping.run(sweeping.read_spec(document), path, engine=engine, **options)


def lasting(path: str = "t.parquet") -> list[dict[str, Any]]:
    """The table without the columns that say how it went."""
    rows = sweeping.read_rows(path)
    return [{k: v for k, v in row.items() if k not in sweeping.WALL} for row in rows]


# -- the grid ----------------------------------------------------------------------------


def test_a_grid_is_every_instance_with_every_run_and_seed() -> None:
    Path("s.toml").write_text(
        """
        seeds = [0, 7]
        [[grid]]
        family = "placement"
        presets = ["small"]
        policies = ["fgd", "pwr+fgd"]
        methods = ["bound-pooled"]
        [grid.instance]
        size = [5, 6]
        [grid.parameters]
        alpha = [0.1, 0.2, 0.3]
        [[grid]]
        family = "coscheduling"
        policies = "all"
        """
    )
    cells = sweeping.load_spec("s.toml").cells
    placement = [c for c in cells.values() if c.instance.family == "placement"]
    assert len(placement) == 2 * 2 * (1 + 3 + 1)
    assert len(cells) - len(placement) == 2 * len(optgap.registry.family("coscheduling").policies)
    assert {c.label for c in placement if c.target == "pwr+fgd"} == {
        f"pwr+fgd(alpha={a})" for a in (0.1, 0.2, 0.3)
    }
    assert {(c.seed, c.instance.seed) for c in placement} == {(0, 0), (7, 7)}


def test_instances_may_have_seeds_of_their_own() -> None:
    cells = sweeping.read_spec({**grid("random"), "instance_seeds": [8, 9]}).cells.values()
    assert {(c.instance.seed, c.seed) for c in cells} == {(i, s) for i in (8, 9) for s in range(3)}


def test_problem_files_are_found_beside_the_spec(folder: Path) -> None:
    (folder / "in").mkdir()
    for k in range(3):
        optgap.save(two_nodes_problem(extra=k), folder / "in" / f"p{k}.json")
    body = '[[grid]]\nfamily = "placement"\npolicies = ["fgd"]\nproblems = ["p*.json"]\n'
    (folder / "in" / "s.toml").write_text(body)
    cells = list(sweeping.load_spec("in/s.toml").cells.values())
    assert [cell.instance.label for cell in cells] == ["p0.json", "p1.json", "p2.json"]
    row = sweeping.run_cell(cells[0])
    assert row["objective"] == optgap.run(two_nodes_problem(), "fgd").objective
    (folder / "in" / "p0.json").write_text((folder / "in" / "p1.json").read_text())
    sweeping.cell._problem.cache_clear()
    assert "another file" in sweeping.run_cell(cells[0])["error"]


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
        ({"grid": [{**SMALL, "policies": ["fgd"], "presets": ["big"]}]}, "big"),
        ({"grid": [{**SMALL, "policies": ["fgd"], "instance": {"sice": 3}}]}, "sice"),
        ({"grid": [{**SMALL, "policies": ["fgd"], "instance": {"size": "x"}}]}, "an integer"),
        ({"grid": [{**SMALL, "policies": ["fgd"], "parameters": {"alpha": [1]}}]}, "alpha"),
        ({"grid": [{**SMALL, "policies": ["fgd"], "problems": ["p.json"]}]}, "one of the two"),
        (
            {"grid": [{"family": "placement", "policies": ["fgd"], "problems": ["no.json"]}]},
            "no.json",
        ),
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
    for arguments in (("sweep", "s.toml"), ("data", "list", "--catalogue", "s.toml")):
        answer = cli(*arguments)
        if content or arguments[0] == "sweep":
            assert answer.code == 2
            assert len(answer.err.splitlines()) == 1


# -- keys --------------------------------------------------------------------------------


def keys(document: Mapping[str, Any]) -> set[str]:
    return set(sweeping.read_spec(document).cells)


def test_a_key_changes_with_everything_that_the_outcome_depends_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = keys(grid("own.py:slow"))
    assert keys(grid("own.py:slow")) == base
    assert keys(grid("own.py:slow(seconds=0.02)")) == base  # what is the default anyway
    assert not keys(grid("own.py:slow(seconds=0)")) & base
    assert not keys(grid("own.py:slow", instance={"size": 6})) & base
    assert not keys({**grid("own.py:slow"), "time_limit": 5}) & base
    Path("own.py").write_text(OWN + "# edited\n")
    sweeping.spec._own_source.cache_clear()
    assert not keys(grid("own.py:slow")) & base


def test_another_version_or_an_edit_makes_other_keys(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.delenv(fingerprint.PIN)
    fingerprint.code.cache_clear()
    fixed = fingerprint.sources_of("placement")[:20]
    monkeypatch.setattr(fingerprint, "sources_of", lambda _: fixed)
    base = keys(grid("fgd"))

    def with_(**changed: Any) -> set[str]:
        fingerprint.code.cache_clear()
        with monkeypatch.context() as patch:
            for name, value in changed.items():
                where = optgap.fingerprint if name == "versions" else fingerprint
                patch.setattr(where, name, value)
            found = keys(grid("fgd"))
        fingerprint.code.cache_clear()
        return found

    block = optgap.versions.versions()
    assert with_(versions=lambda: {**block, "rich": "0"}) == base
    for package in ("optgap", "numpy", "highspy"):
        assert not with_(versions=lambda package=package: {**block, package: "0"}) & base
    assert not with_(sources_of=lambda _: [*fixed, folder / "own.py"]) & base


def test_the_sources_that_count_are_those_that_the_family_can_reach() -> None:
    sources = fingerprint.sources_of("placement")
    names = {"/".join(path.parts[-2:]) for path in sources}
    assert {"placement/problem.py", "backends/highs.py", "models/limits.py"} <= names
    assert not [path for path in sources if "coscheduling" in path.parts]


# -- the table ---------------------------------------------------------------------------


def test_rows_say_what_the_api_says() -> None:
    done = swept(grid("pwr", seeds=1, methods=["bound-pooled", "milp"]))
    problem = optgap.generate("placement", "small", size=5, seed=0)
    comparison = optgap.compare(problem, "pwr", "bound-pooled,milp")
    for row in done.rows:
        expected = comparison.row(row["method"])
        assert row["objective"] == expected.result.objective
        assert row["gap_to_bound"] == pytest.approx(expected.gap_to_bound)
        assert row["gap_to_best"] == pytest.approx(expected.gap_to_best)
        assert row["best_bound"] == comparison.best_bound
    frame = done.to_frame()
    assert len(frame) == 3
    assert frame["power_w"].notna().any()


def test_one_who_turns_tasks_down_is_held_against_a_bound_for_the_rest() -> None:
    optgap.save(two_nodes_problem(extra=3), "tight.json")
    document = {
        "grid": [{"family": "placement", "problems": ["tight.json"], "policies": ["fgd"]}],
    }
    (row,) = swept(document).rows
    assert not row["serves_all"]
    assert row["bound_scope"] == "accepted"
    comparison = optgap.compare(two_nodes_problem(extra=3), "fgd", "bound-patterns", parts=True)
    assert row["gap_to_bound"] == pytest.approx(comparison.row("fgd").gap_to_bound)


def test_an_objective_that_a_method_does_not_treat_is_no_failure() -> None:
    document = grid(
        seeds=1, methods=["bound-pooled"], instance={"size": 5, "goal": "fragmentation"}
    )
    done = swept(document)
    assert done.failed == []
    if done.rows[0]["failure"]:
        assert done.rows[0]["failure"] == "objective"


def test_bounds_that_solutions_disprove_are_told() -> None:
    row = {"problem": "p", "instance": "i", "sense": "min", "bound_scope": "all", "bound": 2.0}
    known = {**row, "bound": None, "bound_scope": None, "serves_all": True, "objective": 1.0}
    assert with_gaps([row, known])[1] == ["i: a bound of 2.0 and a solution of 1.0"]
    assert with_gaps([row, {**known, "objective": 2.0 - 1e-9}])[1] == []


# -- resuming ----------------------------------------------------------------------------


def test_what_is_done_is_not_run_again() -> None:
    first = swept(grid("fgd"))
    before = sweeping.read_rows("t.parquet")
    again = swept(grid("fgd"), resume=True)
    assert (first.ran, again.ran, again.skipped) == (3, 0, 3)
    assert sweeping.read_rows("t.parquet") == before
    assert not Path("t.parquet.journal").exists()


def test_results_are_never_overwritten_by_surprise() -> None:
    swept(grid("fgd"))
    before = Path("t.parquet").read_bytes()
    with pytest.raises(InputError, match="--resume"):
        swept(grid("pwr"))
    assert Path("t.parquet").read_bytes() == before


def test_a_larger_grid_keeps_what_is_done_and_a_smaller_one_moves_it_aside() -> None:
    swept(grid("fgd"))
    more = swept(grid("fgd", "pwr"), resume=True)
    assert (more.skipped, more.ran, more.stale) == (3, 3, 0)
    less = swept(grid("pwr"), resume=True)
    assert (less.skipped, less.ran, less.stale) == (3, 0, 3)
    assert {row["method"] for row in sweeping.read_rows("t.parquet")} == {"pwr"}
    assert [row["method"] for row in sweeping.read_rows("t.stale.parquet")] == ["fgd"] * 3


def test_an_interrupted_sweep_ends_as_one_that_was_not() -> None:
    swept(grid("fgd", "random", seeds=4), path="whole.parquet")
    stop = Event()

    def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
        if phase.startswith("3 of 8"):
            stop.set()

    part = swept(grid("fgd", "random", seeds=4), limits=Limits(interrupted=stop, progress=tell))
    assert part.termination is Termination.INTERRUPTED
    assert len(sweeping.read_rows("t.parquet")) == 3
    rest = swept(grid("fgd", "random", seeds=4), resume=True)
    assert (rest.skipped, rest.ran, rest.termination) == (3, 5, Termination.COMPLETED)
    assert lasting() == lasting("whole.parquet")


def test_a_failed_run_is_a_row_and_is_retried_on_demand_only() -> None:
    document = grid("own.py:fails_until_told", "fgd")
    first = swept(document)
    assert [row["failure"] for row in first.failed] == ["input"] * 3
    assert "RuntimeError: not yet" in first.failed[0]["error"]
    assert len(first.rows) == 6
    Path("told").touch()
    assert len(swept(document, resume=True).failed) == 3
    last = swept(document, resume=True, retry_failed=True)
    assert (last.skipped, last.ran, last.failed) == (3, 3, [])


def test_a_journal_that_was_cut_off_counts_up_to_its_last_whole_line() -> None:
    spec = sweeping.read_spec(grid("fgd"))
    rows = [sweeping.run_cell(cell) for cell in spec.cells.values()]
    lines = "".join(json.dumps(row) + "\n" for row in rows[:2])
    Path("t.parquet.journal").write_text(lines + json.dumps(rows[2])[:50])
    with pytest.raises(InputError, match="--resume"):
        swept(grid("fgd"))
    done = swept(grid("fgd"), resume=True)
    assert (done.skipped, done.ran) == (2, 1)
    swept(grid("fgd"), path="whole.parquet")
    assert lasting() == lasting("whole.parquet")


def test_two_sweeps_do_not_write_to_one_file(folder: Path) -> None:
    if journal.fcntl is None:
        pytest.skip("no file locks on this system")
    held = journal.Journal(folder / "t.parquet.journal")
    with pytest.raises(InputError, match="another sweep"):
        swept(grid("fgd"), resume=True)
    held.close()


def test_a_file_that_is_no_table_is_left_alone() -> None:
    Path("t.parquet").write_text("my diary")
    with pytest.raises(InputError, match="no Parquet file"):
        swept(grid("fgd"), resume=True)
    assert Path("t.parquet").read_text() == "my diary"


def test_a_worker_with_other_code_is_refused() -> None:
    cell = next(iter(sweeping.read_spec(grid("fgd")).cells.values()))
    row = sweeping.run_cell(replace(cell, code="0" * 32))
    assert "as where the sweep began" in row["error"]


# -- engines -----------------------------------------------------------------------------

MIXED = {
    "seeds": 3,
    "grid": [
        {**SMALL, "policies": ["fgd", "random", "own.py:slow"], "methods": ["bound-pooled"]},
        {"family": "coscheduling", "policies": ["ecosched"], "instance": {"size": 5}},
    ],
}


def test_every_engine_and_number_of_workers_gives_the_same_table() -> None:
    for name, jobs in (("serial", None), ("processes", 1), ("processes", 2)):
        swept(MIXED, name, f"{name}{jobs}.parquet", jobs=jobs)
    expected = lasting("serialNone.parquet")
    assert len(expected) == 15
    assert lasting("processes1.parquet") == expected
    assert lasting("processes2.parquet") == expected


def test_processes_have_the_folder_and_the_environment_of_their_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(multiprocessing.active_children())
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        monkeypatch.setenv("PLACE", place)
        Path("own.py").write_text(OWN + f"assert os.environ['PLACE'] == {place!r}\n")
        done = swept({"grid": [{**SMALL, "policies": ["own.py:first"]}]}, "processes", jobs=1)
        assert not done.failed, done.failed
    assert set(multiprocessing.active_children()) <= before


def test_a_process_that_dies_takes_no_other_run_with_it() -> None:
    document = {
        "grid": [
            {**SMALL, "policies": ["own.py:kills_once", "fgd"]},
            {**SMALL, "policies": ["own.py:kills"], "parameters": {"when": [0, 1]}},
        ],
    }
    done = swept(document, "processes", jobs=2)
    assert len(done.rows) == 4
    assert {row["method"] for row in done.failed} == {"own.py:kills(when=1)"}, done.failed
    assert len(done.failed) == 1
    assert "worker process died" in done.failed[0]["error"]


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
seeds = 8
[[grid]]
family = "placement"
presets = ["small"]
policies = ["own.py:slow", "fgd"]
instance.size = 10
"""


def sweep_process(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "optgap", "sweep", "s.toml", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def journal_lines() -> int:
    place = Path("s.parquet.journal")
    return place.read_bytes().count(b"\n") if place.exists() else 0


def until_rows(count: int, process: subprocess.Popen[str]) -> None:
    """Until the sweep has so many; one that ends before has gone wrong."""
    until(lambda: journal_lines() >= count or process.poll() is not None)
    assert process.poll() is None, process.communicate()[1]


def test_a_driver_that_is_killed_loses_nothing_and_doubles_nothing() -> None:
    Path("s.toml").write_text(SLOW)
    process = sweep_process("--jobs", "2")
    until_rows(4, process)
    process.kill()
    process.communicate()
    assert not Path("s.parquet").exists()
    kept = journal_lines()
    again = sweep_process("--jobs", "2", "--resume")
    out, err = again.communicate(timeout=300)
    assert (again.returncode, err) == (0, "")
    assert f"{kept} there before, {16 - kept} now" in out
    sweeping.run(sweeping.load_spec("s.toml"), "whole.parquet", engine=sweeping.Engine("serial"))
    assert lasting("s.parquet") == lasting("whole.parquet")


@pytest.fixture
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler and two worker processes on loopback."""
    pytest.importorskip("distributed")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    python = [sys.executable, "-m"]
    about = folder / "scheduler.json"
    scheduler = [*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    scheduler += ["--no-dashboard", "--scheduler-file", str(about)]
    processes = [subprocess.Popen(scheduler, **quiet)]  # type: ignore[call-overload]
    try:
        until(lambda: about.exists() and about.stat().st_size)
        worker = [*python, "distributed.cli.dask_worker", "--scheduler-file", str(about)]
        worker += ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
        for k in range(2):
            own = [*worker, "--name", f"w{k}", "--local-directory", str(folder / f"w{k}")]
            processes.append(subprocess.Popen(own, **quiet))  # type: ignore[call-overload]
        yield json.loads(about.read_text())["address"], processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_cluster_loses_a_worker_and_a_driver_and_no_row(
    cluster: tuple[str, list[subprocess.Popen[bytes]]],
) -> None:
    address, (_, first, second) = cluster
    Path("s.toml").write_text(SLOW)
    process = sweep_process("--engine", "dask", "--scheduler", address)
    until_rows(4, process)
    first.kill()
    until_rows(8, process)
    process.kill()
    process.communicate()
    kept = journal_lines()
    again = sweep_process("--engine", "dask", "--scheduler", address, "--resume")
    out, err = again.communicate(timeout=300)
    assert (again.returncode, err) == (0, ""), err
    assert f"{kept} there before, {16 - kept} now" in out
    sweeping.run(sweeping.load_spec("s.toml"), "whole.parquet", engine=sweeping.Engine("serial"))
    assert lasting("s.parquet") == lasting("whole.parquet")
    workers = {row["worker"].split(":")[1] for row in sweeping.read_rows("s.parquet")}
    assert workers <= {str(first.pid), str(second.pid)}


def test_ray_loses_processes_and_a_driver_and_no_row() -> None:
    pytest.importorskip("ray", reason="comes with the extra ray")
    deadly = '"own.py:kills_once", "own.py:kills(when=1)"'
    text = SLOW.replace('"fgd"', deadly).replace("seeds = 8", "seeds = 4")
    Path("s.toml").write_text(text)
    process = sweep_process("--engine", "ray", "--jobs", "2")
    until_rows(3, process)
    process.kill()
    process.communicate()
    kept = journal_lines()
    again = sweep_process("--engine", "ray", "--jobs", "2", "--resume")
    out, err = again.communicate(timeout=300)
    assert f"{kept} there before, {12 - kept} now" in out
    assert again.returncode == 1  # for the cells that nobody survives
    assert len(err.splitlines()) == 4
    swept(grid("own.py:slow", "own.py:kills_once", seeds=4, instance={"size": 10}))
    rows = lasting("s.parquet")
    dead = [row for row in rows if row["method"] == "own.py:kills(when=1)"]
    assert ["worker process died" in row["error"] for row in dead] == [True] * 4
    assert [row for row in rows if row not in dead] == lasting()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:99999", "auto"])
def test_a_ray_cluster_that_does_not_answer_is_bad_input(address: str) -> None:
    pytest.importorskip("ray", reason="comes with the extra ray")
    with pytest.raises(InputError, match=r"a Ray cluster|HOST:PORT"):
        swept(grid("fgd"), "ray", scheduler=address)


@pytest.mark.parametrize(
    "options",
    [
        {"name": "slurm"},
        {"name": "dask"},
        {"name": "processes", "scheduler": "tcp://x:1"},
        {"jobs": 0},
    ],
)
def test_an_engine_that_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        sweeping.Engine(**options)


def test_a_scheduler_that_does_not_answer_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweeping.engines, "CONNECT_S", 0.5)
    with pytest.raises(InputError, match="a Dask scheduler"):
        swept(grid("fgd"), "dask", scheduler="tcp://127.0.0.1:1")


# -- the command -------------------------------------------------------------------------


def test_the_command_writes_the_table_and_the_counts(cli: Cli) -> None:
    Path("s.toml").write_text(SLOW.replace("slow", "first"))
    answer = cli("sweep", "s.toml", "--dry-run")
    assert "16 runs" in answer.out
    assert not Path("s.parquet").exists()
    answer = cli("sweep", "s.toml", "--engine", "serial", "--json", "d.json")
    assert (answer.code, answer.err) == (0, "")
    assert "16 of 16 runs in s.parquet: 0 there before, 16 now" in answer.out
    document = json.loads(Path("d.json").read_text())
    assert (document["schema"], document["ran"]) == ("optgap.sweep/1", 16)
    assert cli("sweep", "s.toml", "--engine", "serial").code == 2
    assert cli("sweep", "s.toml", "--retry-failed").code == 2
    assert "16 there before" in cli("sweep", "s.toml", "--resume").out


def test_failed_runs_are_named_and_make_the_command_fail(cli: Cli) -> None:
    Path("s.toml").write_text(SLOW.replace("slow", "fails_until_told"))
    answer = cli("sweep", "s.toml", "--engine", "serial")
    assert answer.code == 1
    assert len(answer.err.splitlines()) == 6
    assert "not yet" in answer.err
    Path("told").touch()
    answer = cli("sweep", "s.toml", "--engine", "serial", "--resume", "--retry-failed")
    assert (answer.code, answer.err) == (0, "")


def test_a_time_limit_for_the_whole_sweep_gives_a_table_to_resume(cli: Cli) -> None:
    Path("s.toml").write_text(SLOW)
    answer = cli("sweep", "s.toml", "--engine", "serial", "--time-limit", "0.5")
    assert answer.code == 3
    assert 0 < len(sweeping.read_rows("s.parquet")) < 16


@pytest.mark.parametrize(
    ("package", "engine", "extra"),
    [
        ("pyarrow", ("serial",), "sweep"),
        ("joblib", ("processes",), "sweep"),
        ("distributed", ("dask", "--scheduler", "tcp://127.0.0.1:1"), "dask"),
        ("ray", ("ray",), "ray"),
    ],
)
def test_a_missing_extra_is_one_line_before_anything_runs(
    package: str, engine: tuple[str, ...], extra: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("s.toml").write_text(SLOW.replace("slow", "first"))
    monkeypatch.setitem(sys.modules, package, None)
    answer = cli("sweep", "s.toml", "--engine", *engine)
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert f"pip install 'optgap[{extra}]'" in answer.err
    assert not list(Path().glob("s.parquet*"))


def test_one_interrupt_stops_a_sweep_cleanly() -> None:
    Path("s.toml").write_text(SLOW)
    process = sweep_process("--jobs", "2")
    until_rows(2, process)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Traceback" not in err
    assert 0 < len(sweeping.read_rows("s.parquet")) < 16
    assert not Path("s.parquet.journal").exists()


def test_the_specification_in_the_documentation_is_one(root: Path) -> None:
    text = (root / "docs" / "sweep.md").read_text()
    Path("load.toml").write_text(text.split("```toml\n")[1].split("```")[0])
    spec = sweeping.load_spec("load.toml")
    assert len(spec.cells) > 2 * 5 * 5
