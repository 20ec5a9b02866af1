"""What a real Slurm's accounting printed, trap by trap."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli, refused

from optgap.models.errors import InputError
from optgap.models.queueing.log import QueueLog
from optgap.models.queueing.slurm import read_slurm
from optgap.models.queueing.slurm.table import COMMAND, gpus, hosts, limit_s
from optgap.models.queueing.swf import read_swf_log

DATA = Path(__file__).parent / "data"
HEADER = (
    "JobID|JobIDRaw|User|Partition|State|Submit|Eligible|Start|End|Timelimit|ReqTRES|AllocTRES|"
    "NodeList"
)
DAY = "2026-11-24T"


def real(name: str, **options: object) -> QueueLog:
    return read_slurm(DATA / f"slurm{name}.gz", **options)  # type: ignore[arg-type]


def text_of(name: str) -> str:
    return gzip.decompress((DATA / f"slurm{name}.gz").read_bytes()).decode()


def job(log: QueueLog, name: str) -> dict[str, float]:
    k = log.problem.jobs.index[name]
    jobs = log.problem.jobs
    return {
        "gpus": int(jobs.gpus[k]),
        "lasted": float(jobs.duration_s[k]),
        "waited": float(log.logged.start_s[k] - jobs.arrival_s[k]),
        "limit": float(jobs.estimate_s[k]),
    }


Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str) -> Path:
        (tmp_path / "jobs.txt").write_text(text)
        return tmp_path / "jobs.txt"

    return to_file


def row(
    name: str, start: str = "10:00:00", end: str = "10:01:00", gpu: str = "gres/gpu=1", **more: str
) -> str:
    cells = {
        "id": name, "raw": name, "user": "ada", "partition": "gpu", "state": "COMPLETED",
        "submit": f"{DAY}09:00:00", "eligible": f"{DAY}09:30:00", "start": DAY + start,
        "end": DAY + end, "limit": "00:05:00", "asked": gpu, "held": gpu, "nodes": "n1", **more,
    }  # fmt: skip
    return "|".join(cells.values())


HOSTS = {
    "gpu[01-04,07]": "gpu01 gpu02 gpu03 gpu04 gpu07",
    "hgx-[1,3]": "hgx-1 hgx-3",
    "a,b[9-11],c": "a b10 b11 b9 c",
    "r[1-2]n[01-02]x": "r1n01x r1n02x r2n01x r2n02x",
    "None assigned": "",
}
LIMITS = {
    "1-02:04:00": 93_840, "00:05:00": 300, "8-00:00:00": 691_200, "2-12": 216_000, "05:30": 330,
    "11520": 691_200, "UNLIMITED": math.inf, "Partition_Limit": math.inf,
}  # fmt: skip


def test_host_lists_are_unfolded_and_time_limits_read_in_every_form() -> None:
    assert {text: " ".join(sorted(hosts(text))) for text in HOSTS} == HOSTS
    assert {text: limit_s(text) for text in LIMITS} == LIMITS


@pytest.mark.parametrize("text", ["gpu[01-04", "gpu]", "gpu[a-b]", "n[1-999999999]"])
def test_what_is_no_host_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"host list|range|more than"):
        hosts(text)


def test_typed_and_total_gpus_are_the_same_gpus() -> None:
    assert gpus("billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=1000M") == (2, "a100")
    assert gpus("gres/gpu:a100=2,gres/gpu:h100=1,gres/gpu=3") == (3, "a100+h100")
    assert gpus("gres/gpu:1g.10gb=2,gres/gpu=2") == (2, "1g.10gb")
    assert gpus("gres/gpu:a100=2") == (2, "a100")
    assert gpus("cpu=4,mem=8G") == (0, "")
    for memory in ("1000M", "1048576000", "4Gc", "4Gn", "1.50T"):
        assert gpus(f"cpu=4,gres/gpu=3,mem={memory},node=1") == (3, "")


@pytest.mark.parametrize("version", ["2205", "2411"])
def test_the_command_names_only_columns_that_both_versions_have(version: str) -> None:
    """An unknown one is fatal to sacct; the wait is Reserved in the one, Planned in the other."""
    columns = COMMAND.partition("-o ")[2].split(",")
    header = text_of(f"{version}_final_audit_X.psv").partition("\n")[0].split("|")
    assert set(columns) <= set(header)
    assert ("Reserved" in header) != ("Planned" in header)


def test_what_was_allocated_counts_not_what_was_asked_for() -> None:
    log = real("2205_final_audit_X.psv", pool="h100")
    assert job(log, "26")["gpus"] == 8  # --exclusive with one GPU asked for


def test_waits_count_from_eligible_or_from_submission() -> None:
    scheduler, users = (real("2205_final_audit_X.psv", wait=w) for w in ("eligible", "submit"))
    assert job(scheduler, "13_3")["waited"] == 0  # throttled until then
    assert job(users, "13_3")["waited"] == 22


def test_the_last_task_of_an_array_and_rows_of_it_are_jobs_once() -> None:
    log = real("2205_mixed_audit_X.psv")
    names = log.problem.jobs.names
    assert "12_9" in names
    assert len(set(names)) == len(names)
    assert log.reasons["still pending"] == 3  # 13_[…] is a placeholder, not a task


def test_every_run_of_a_requeued_job_counts_and_double_rows_do_not(write: Write) -> None:
    last = real("2205_final_audit_X.psv", pool="h100")
    every = real("2205_final_audit_X_D_duplicates.psv", pool="h100")
    assert len(every.problem) == len(last.problem) + 1
    assert {"3", "3#2"} <= set(every.problem.jobs.names)
    assert any(
        "unless sacct got -D" in warning for warning in real("2411_final_audit_X.psv").warnings
    )
    twice = row("5") + "\n" + row("5")
    found = read_slurm(write(f"{HEADER}\n{twice}\n"))
    assert (len(found.problem), found.reasons["stands twice"]) == (1, 1)


def test_steps_repeat_their_job_and_are_passed_over() -> None:
    steps, jobs = real("2205_final_audit_steps.psv"), real("2205_final_audit_X.psv")
    assert steps.problem.jobs.names == jobs.problem.jobs.names
    assert steps.records == jobs.records


def test_jobs_that_never_ran_are_left_out_with_the_reason() -> None:
    log = real("2205_final_audit_X_states.psv")
    assert log.reasons["cancelled before it started"] == 8
    assert log.reasons["refused"] == 1
    assert log.reasons["past its deadline"] == 1
    assert (log.reasons["asks for no GPU"], log.reasons["cannot be read"]) == (6, 3)
    assert log.reasons["ran no second"] == 2
    assert log.records == len(log.problem) + sum(log.reasons.values())


def test_failed_cancelled_and_timed_out_jobs_held_their_gpus() -> None:
    log = real("2205_final_audit_X.psv")
    timeout = job(log, "7")
    assert timeout["lasted"] == 87
    assert timeout["limit"] == 60  # it ran past its limit
    assert job(log, "12_4")["lasted"] == 4  # failed


def test_suspended_time_counts_and_no_limit_is_the_longest() -> None:
    log = real("2205_final_audit_X.psv", pool="h100")
    assert job(log, "4")["lasted"] == 25  # 19 s at work
    longest = max(300.0, float(log.problem.jobs.duration_s.max()))
    assert job(log, "6")["limit"] == longest
    assert any("without a time limit" in warning for warning in log.warnings)


def test_running_jobs_end_with_the_log(write: Write) -> None:
    log = real("2205_mixed_audit_X.psv")
    assert any("still run" in warning for warning in log.warnings)
    started = row("6", "10:01:00").replace(f"{DAY}10:01:00|{DAY}10:01:00", f"{DAY}10:01:00|Unknown")
    log = read_slurm(write(f"{HEADER}\n{row('5')}\n{started}\n"))
    assert log.problem.jobs.names == ("5",)  # the other began as the log ended
    assert log.records == len(log.problem) + sum(log.reasons.values())


def test_rows_that_names_have_broken_are_counted(write: Write) -> None:
    """Names of jobs may hold bars and line ends."""
    header = HEADER.replace("User", "JobName|User", 1)
    names = ("a|b", "c\nd", "e\nf|g", "plain")
    rows = [row(str(k)).replace("|ada", f"|{name}|ada", 1) for k, name in enumerate(names, 5)]
    text = "\n".join([header, *rows]).replace("\n", "|\n") + "|\n"  # as sacct -p ends them
    log = read_slurm(write(text))
    assert (log.problem.jobs.names, log.reasons["cannot be read"]) == (("8",), 5)
    assert any("row 2" in warning for warning in log.warnings)


def test_a_column_that_was_asked_for_twice_is_one(write: Write) -> None:
    kinds = ("a", "b", "c")
    rows = [row(str(k), partition=kind) for k, kind in enumerate(kinds, 5)]
    twice = [line + "|" + "|".join(line.split("|")[2:6]) for line in (HEADER, *rows)]
    assert tuple(read_slurm(write("\n".join(twice))).problem.jobs.kinds) == kinds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEADER}\n{row('5', submit='24/11/2026 03:38')}\n", "without SLURM_TIME_FORMAT"),
        (f"{HEADER}\n{row('5', submit='03:38:28')}\n", "without SLURM_TIME_FORMAT"),
        ("JobID           JobName  Partition\n------------ ---------- ----------\n", "-P keeps"),
        ("JobID|JobName|State\n5|x|COMPLETED\n", "no column submit"),
        (HEADER.replace("|ReqTRES|AllocTRES", "") + "\n", "AllocTRES"),
        (f"{HEADER}\n", "no job that held GPUs"),
        (f"{HEADER}\n{row('5', gpu='cpu=4')}\n", "1 asks for no GPU"),
        (f"{HEADER}\n{row('5', nodes='n[1-')}\n", "host list"),
        ("", "nothing"),
        ("hello\n", "a header with JobID"),
        ('{"jobs": [{"job_id": 5}]}', "found JSON, expected output of sacct: TZ=UTC sacct -a"),
    ],
)
def test_broken_files_are_one_clear_line(text: str, expected: str, write: Write, cli: Cli) -> None:
    refused(cli("audit", "slurm", str(write(text))), expected)


@pytest.mark.parametrize(
    ("encoding", "expected"), [("latin-1", "UTF-8 text"), ("utf-16", "iconv -f UTF-16")]
)
@pytest.mark.parametrize("kind", ["slurm", "kubernetes"])
def test_other_encodings_are_one_clear_line(
    kind: str, encoding: str, expected: str, tmp_path: Path, cli: Cli
) -> None:
    """As a Latin-1 locale, and a redirection in PowerShell, write them."""
    text = f"{HEADER}\n{row('5', user='Jürgen')}\n" if kind == "slurm" else '{"kind": "Lüst"}'
    (tmp_path / "file").write_bytes(text.encode(encoding))
    refused(cli("audit", kind, str(tmp_path / "file")), expected)


def test_several_gpu_types_are_pools_and_the_largest_is_audited() -> None:
    log = real("2205_final_audit_X.psv")
    assert set(log.pools) == {"a100", "h100", "1g.10gb"}
    assert "a100" in log.problem.name
    assert log.problem.gpus == 23  # the most that each node held, added up
    assert log.problem.placement == "count"  # which of a node's GPUs is not told
    assert real("2205_final_audit_X.psv", gpus=32).problem.gpus == 32
    with pytest.raises(InputError, match="h100"):
        real("2205_final_audit_X.psv", pool="v100")


def test_the_logged_row_stands_beside_every_policy_and_the_bound(
    write: Write, cli: Cli, tmp_path: Path
) -> None:
    """Two jobs one after the other where both would have fitted: a minute was lost."""
    rows = [row("5"), row("6", "10:01:00", "10:02:00", partition="<i>", nodes="n2")]
    path = write(HEADER + "\n" + "\n".join(rows))
    out, page, problem, schedule = (
        tmp_path / name for name in ("a.json", "a.html", "p.json", "s.json")
    )
    answer = cli(
        "audit", "slurm", str(path), "--policies", "fifo", "--json", str(out),
        "--report", str(page), "--problem", str(problem), "--solution", str(schedule),
    )  # fmt: skip
    assert answer.code == 0, answer.err
    document = json.loads(out.read_text())
    rows_of = {entry["method"]: entry for entry in document["comparison"]["rows"]}
    assert rows_of["logged"]["objective"] == pytest.approx((1800 + 1860) / 2)
    assert rows_of["fifo"]["objective"] == 0
    assert document["covered"] == {"records": 2, "used": 2, "reasons": {}}
    assert "<i>" not in page.read_text()


def test_swf_holds_its_schedule(tmp_path: Path, cli: Cli) -> None:
    lines = ["; MaxProcs: 4", *(
        f"{k} {10 * k} {wait} 100 4 -1 -1 4 200 -1 1 {k % 2} -1 -1 0 -1 -1 -1"
        for k, wait in ((1, 0), (2, 95), (3, 190))
    ), "4 40 -1 100 4 -1 -1 4 200 -1 1 0 -1 -1 0 -1 -1 -1"]  # fmt: skip
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    log = read_swf_log(tmp_path / "log.swf")
    assert log.problem.gpus == 4
    assert np.allclose(log.logged.start_s - log.problem.jobs.arrival_s, [0, 95, 190])
    assert log.reasons == {"job without a wait": 1}
    answer = cli("audit", "swf", str(tmp_path / "log.swf"), "--policies", "fifo")
    assert answer.code == 0, answer.err
    assert "logged" in answer.out
