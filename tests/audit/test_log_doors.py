"""Logs at which audits said what is false: small files with answers by hand, and enumeration."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, refused
from hypothesis import given
from hypothesis import strategies as st

import optgap
from optgap.models.queueing.slurm import read_slurm
from optgap.models.reading import Held

DOORS = Path(__file__).parent / "data" / "doors"
BASE = datetime(2026, 11, 2, 8, tzinfo=UTC)
HEADER = (
    "JobID|JobIDRaw|User|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|Suspended|Timelimit|"
    "ReqTRES|AllocTRES|NodeList"
)
TOO_FEW = (
    "The log held 3 GPUs at 2026-11-02T08:30:00, but --set gpus=2 allows 2: no bound and no "
    "saving; use --set gpus=3 or more."
)
ZONE = "--set zone=Europe/Berlin"
BY_HAND = (
    "The mean wait was 30 s. With the 16 GPUs in the log, fifo gives 26.7 s and the lower bound is "
    "26.7 s, so at most 11.1 % could be saved."
)
NOT_SHOWN = "The mean wait was 200 s. During 100 % of the waiting time enough GPUs were free for "
NOT_SHOWN += "every waiting job"
ANSWERS = [
    ("slurm slurm-two-on-a-node.psv", "3 GPUs", 200.0, 0.0, NOT_SHOWN),
    ("slurm slurm-two-on-a-node.psv --set gpus=2", "2 GPUs", 200.0, None, TOO_FEW),
    ("slurm slurm-two-on-a-node.psv --set gpus=4", "4 GPUs", 200.0, 0.0, NOT_SHOWN),
    (f"slurm slurm-dst-fall-back.psv {ZONE}", "8 GPUs", 3450.0, 1875.0, "at most 45.7 %"),
    ("swf swf-no-maxprocs.swf", "4 GPUs", 0.0, 0.0, "no job waited"),
    (
        "swf swf-used-more-than-asked.swf", "16 GPUs", 30.0, 80 / 3,
        BY_HAND,
    ),
]  # fmt: skip
"""Arguments; the size of the pool; the mean wait and its lower bound; part of the sentence."""


@pytest.mark.parametrize(("arguments", "gpus", "waited", "bound", "sentence"), ANSWERS)
def test_a_log_is_audited_as_by_hand(
    arguments: str, gpus: str, waited: float, bound: float | None, sentence: str, cli: Cli
) -> None:
    kind, file, *rest = arguments.split()
    answer = cli("audit", kind, str(DOORS / file), *rest, "--policies", "fifo", "--json", "-")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert sentence in found["sentence"]
    assert f" on 1 x {gpus}" in found["problem"]["summary"]
    assert found["now"]["objective"] == pytest.approx(waited)
    assert bool(found["now"]["violations"]) == (bound is None)
    rows = [row["method"] for row in found["comparison"]["rows"]]
    if bound is None:
        unknown = ("best_bound", "best_known", "gap", "gap_to_bound")
        assert {found[name] for name in unknown} == {found["comparison"]["best_bound"]} == {None}
        assert rows == ["logged"]
    else:
        assert found["best_bound"] == pytest.approx(bound)


def test_the_picture_of_a_pool_too_small_says_why() -> None:
    audit = optgap.audit("slurm", DOORS / "slurm-two-on-a-node.psv", gpus=2)
    ax = audit.plot().axes[0]
    assert not ax.axison
    assert " ".join(ax.get_title(loc="left").split()) == TOO_FEW
    text = str(audit)
    assert "fifo" not in text
    assert "violated: cluster at" in text
    assert "logged: breaks 1 constraint" in text


def line(name: str, start: str = "10:00:00", end: str = "11:00:00", **more: Any) -> str:
    """A row of sacct, of a job that ran for an hour on one GPU of n1."""
    day = "2026-11-02T"
    cells = {
        "id": name, "raw": name, "user": "ada", "partition": "gpu", "state": "COMPLETED",
        "submit": f"{day}09:00:00", "eligible": f"{day}09:00:00", "start": day + start,
        "end": day + end, "elapsed": 3600, "suspended": "00:00:00", "limit": "02:00:00",
        "asked": "gres/gpu=1", "held": "gres/gpu=1", "nodes": "n1", **more,
    }  # fmt: skip
    return "|".join(map(str, cells.values()))


def typed(kind: str, count: int = 1) -> str:
    return f"gres/gpu:{kind}={count},gres/gpu={count}"


READ = {
    "a suspended job keeps its GPU": ([line("1", end="11:30:00", suspended="00:30:00")], 1, {}),
    "another difference": (
        [line("1"), line("2", end="11:00:07")],
        1, {"whose End is not Start + ElapsedRaw + Suspended": 1},
    ),
    "started before its submission": ([line("1", start="08:59:59", end="09:59:59")], 1, {}),
    "the most of each node, added up": (
        [line("1", held="gres/gpu=6"), line("2", held="gres/gpu=2", nodes="n2")], 8, {},
    ),
    "a gang lies on its nodes evenly": (
        [line("1", held="gres/gpu=12", nodes="n[1-2]"), line("2", held="gres/gpu=3", nodes="n2")],
        15, {},
    ),
    "parts of GPUs": (
        [line("1"), line("2", held="gres/shard=2"), line("3", held="gres/mps:a100=50")],
        1,
        {
            "job holds shards of GPUs (gres/shard), which are not counted as GPUs": 1,
            "job holds percentages of GPUs (gres/mps), which are not counted as GPUs": 1,
        },
    ),
    "what was held counts": ([line("1", asked="gres/gpu=1", held="gres/gpu=8")], 8, {}),
    "parts of a heterogeneous job": (
        [line("4"), line("5+0", raw=5), line("5+1", raw=6, end="10:30:00", elapsed=1800)],
        1, {"part of a heterogeneous job": 2},
    ),
    "nodes of two types": (
        [
            line("1", held=typed("a100")), line("2", held=typed("h100")),
            *(line(str(k), start="12:00:00", end="13:00:00") for k in (3, 4, 5)),
        ],
        3, {"of another pool": 2},
    ),
}  # fmt: skip
"""Rows of sacct; the GPUs of their pool; what is left out of it."""


@pytest.mark.parametrize("case", READ)
def test_rows_of_accounting_are_read_by_the_rules(case: str) -> None:
    rows, gpus, reasons = READ[case]
    log = read_slurm(Held("jobs.txt", "\n".join([HEADER, *rows])))
    assert log.problem.gpus == gpus
    assert not log.problem.check(log.logged)
    assert log.reasons == reasons
    if "suspended" in case:
        assert log.problem.jobs.duration_s.tolist() == [5400]
    if "submission" in case:
        assert log.problem.evaluate(log.logged).objective == 0
        assert log.warnings[0] == "1 job began before its submission: a wait of 0"


SQUEUE = '{"jobs": [{"job_id": 5, "job_state": ["RUNNING"], "start_time": 5}]}'
FORWARD = line("1", start="01:30:00", end="03:30:00", submit="2026-11-02T01:00:00")
BACKWARDS = line("1", end="09:30:00").replace("|3600|", "||")
REFUSED = [
    ("slurm", SQUEUE, "found output of squeue, whose ends are time limits, expected"),
    ("slurm", "  JOBID PARTITION NAME ST TIME NODELIST(REASON)\n", "output of squeue"),
    ("slurm", "jobs:\n- job_id: 5\n", "found YAML, expected output of sacct: TZ=UTC sacct"),
    ("slurm", f"{HEADER}\n{FORWARD}\n", "row 2: found Start 2026-11-02T01:30:00, End"),
    ("slurm", f"{HEADER}\n{FORWARD}\n", "TZ=UTC sacct -a"),
    ("slurm", f"{HEADER}\n{BACKWARDS}\n", "clocks were changed"),
    ("slurm --set zone=Asia/Tokyo", f"{HEADER}\n{FORWARD}\n", "or another zone"),
    ("slurm --set zone=Mars", f"{HEADER}\n{line('1')}\n", "a time zone such as Europe/Berlin"),
    ("slurm --set nodes=1", f"{HEADER}\n{line('1')}\n", "expected one of gpus, pool, wait, zone"),
    ("slurm", f"{HEADER}\n{line('1', held='gres/shard=2')}\n", "1 job holds shards of GPUs"),
    ("swf", "1 0 -1 100 2 -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1\n", "left out: 1 job without a wait"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "text", "told"), REFUSED)
def test_a_file_that_is_no_log_is_told_in_a_line(
    arguments: str, text: str, told: str, cli: Cli, tmp_path: Path
) -> None:
    kind, *rest = arguments.split()
    (tmp_path / "log").write_text(text)
    refused(cli("audit", kind, str(tmp_path / "log"), *rest), told)


def test_a_log_of_the_largest_machines_is_read(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(
        "; MaxProcs: 163840\n1 0 0 100 163840 -1 -1 -1 200 -1 1 1 1 -1 1 -1 -1 -1\n"
    )
    audit = optgap.audit("swf", tmp_path / "log.swf", policies="fifo", methods="bound-area")
    problem: Any = audit.problem
    assert (problem.gpus, problem.nodes) == (163_840, 2)


def test_the_door_with_clocks_put_back_is_refused(cli: Cli) -> None:
    refused(cli("audit", "slurm", str(DOORS / "slurm-dst-fall-back.psv")), "row 2: found Start")


def test_jobs_that_a_trace_leaves_out_are_told(cli: Cli, tmp_path: Path) -> None:
    trace = str(DOORS / "elastic-philly-zero.csv")
    answer = cli("generate", "elastic", "--trace", trace, "-o", str(tmp_path / "e.json"))
    assert answer.code == 0, answer.err
    assert "1 job without a duration left out" in " ".join((answer.out + answer.err).split())


@pytest.mark.parametrize(
    ("file", "nodes", "gpus", "goal", "told"),
    [
        ("ok-easy-seven-waves.csv", 4, 1, "makespan", {"easy": 140, "exact": 140, "fifo": 160}),
        ("ok-strict-fifo.csv", 1, 2, "mean_wait", {"easy": 33, "exact": 33, "fifo": 247 / 3}),
    ],
)
def test_what_is_right_stays_right(
    file: str, nodes: int, gpus: int, goal: str, told: dict[str, float]
) -> None:
    problem = optgap.problem(
        "queueing", jobs=DOORS / file, nodes=nodes, gpus_per_node=gpus, goal=goal
    )
    table = optgap.compare(problem, ["fifo", "easy"], "exact")
    for name, value in told.items():
        assert table.row(name).result.objective == pytest.approx(value, abs=0.01)


# -- enumeration, without a model of optgap's -------------------------------------------------

Job = tuple[int, int, int, int, dict[int, int]]
"""Arrival, start, run time (s), GPUs, and how many on which node."""


def most(jobs: Sequence[tuple[int, int, int]]) -> int:
    """The most GPUs that runs (start, end, GPUs) hold at once."""
    return max((sum(g for a, b, g in jobs if a <= t < b) for t, _, _ in jobs), default=0)


def random_log(rng: random.Random) -> tuple[list[Job], list[int]]:
    """Up to six jobs that ran on up to three nodes of different sizes, and these."""
    nodes = [rng.choice((1, 2, 3, 4, 8)) for _ in range(rng.randint(1, 3))]
    jobs: list[Job] = []
    for _ in range(rng.randint(1, 6)):
        spread = rng.sample(range(len(nodes)), rng.randint(1, len(nodes)))
        each = rng.randint(1, min(nodes[n] for n in spread))
        held = dict.fromkeys(spread, each)
        arrival, lasts = rng.randint(0, 60), rng.randint(1, 60)
        start = arrival + rng.choice((0, 0, rng.randint(0, 90)))
        while any(
            most([(max(s, start), min(s + d, start + lasts), on[n]) for _, s, d, _, on in jobs
                  if n in on and s < start + lasts and start < s + d] ) + each > nodes[n]
            for n in spread
        ):  # fmt: skip
            start += 1
        jobs.append((arrival, start, lasts, each * len(spread), held))
    return jobs, nodes


def best_mean_wait(jobs: Sequence[Job], gpus: int) -> float:
    """The least mean wait of any schedule: every job as early as it can, in the best order."""
    best = float("inf")

    def place(left: Sequence[Job], placed: list[tuple[int, int, int]], waited: int) -> None:
        nonlocal best
        if waited >= best:
            return
        if not left:
            best = waited
        for k, (arrival, _, lasts, g, _) in enumerate(left):
            for t in sorted({arrival, *(b for _, b, _ in placed if b > arrival)}):
                runs = [(max(a, t), b, n) for a, b, n in placed if a < t + lasts and b > t]
                if most(runs) + g <= gpus:
                    rest = [*left[:k], *left[k + 1 :]]
                    place(rest, [*placed, (t, t + lasts, g)], waited + t - arrival)
                    break

    place(jobs, [], 0)
    return best / len(jobs)


def as_sacct(jobs: Sequence[Job]) -> str:
    def when(seconds: int) -> str:
        return (BASE + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")

    rows = [
        line(
            str(k + 1), submit=when(arrival), eligible=when(arrival),
            elapsed=lasts, held=f"gres/gpu={g}", asked=f"gres/gpu={k + 1}",
            nodes=",".join(f"n{n}" for n in held),
        ).replace("2026-11-02T10:00:00", when(start)).replace("2026-11-02T11:00:00",
                                                               when(start + lasts))
        for k, (arrival, start, lasts, g, held) in enumerate(jobs)
    ]  # fmt: skip
    return "\n".join([HEADER, *rows])


def as_swf(jobs: Sequence[Job]) -> str:
    return "\n".join(
        f"{k} {arrival} {start - arrival} {lasts} {g} -1 -1 {k} 200 -1 1 1 1 -1 1 -1 -1 -1"
        for k, (arrival, start, lasts, g, _) in enumerate(jobs, 1)
    )


@given(seed=st.integers(0, 10**9))
def test_no_random_log_gets_a_bound_or_a_saving_that_is_false(seed: int) -> None:
    """Test against enumeration, as sacct's rows and in the Standard Workload Format."""
    rng = random.Random(seed)
    jobs, nodes = random_log(rng)
    held = [(start, start + lasts, g) for _, start, lasts, g, _ in jobs]
    by_node = [
        most([(start, start + lasts, on[n]) for _, start, lasts, _, on in jobs if n in on])
        for n in range(len(nodes))
    ]
    kind = rng.choice(("slurm", "swf"))
    pool = sum(by_node) if kind == "slurm" else most(held)
    told = rng.choice((None, None, max(1, most(held) - 1), sum(nodes)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log.{kind}"
        path.write_text(as_sacct(jobs) if kind == "slurm" else as_swf(jobs))
        audit = optgap.audit(kind, path, policies="fifo", gpus=told)
    waited = sum(start - arrival for arrival, start, *_ in jobs) / len(jobs)
    assert audit.now.objective == pytest.approx(waited)
    problem: Any = audit.problem
    assert problem.gpus == (told or pool) <= sum(nodes)
    if told is not None and told < most(held):
        assert audit.best_bound is audit.gap is audit.gap_to_bound is None
        assert f"held {most(held)} " in audit.sentence
        return
    best = best_mean_wait(jobs, told or pool)
    assert audit.best_bound <= best + 1e-9 <= waited + 2e-9
    claimed = re.search(r"at most ([\d.]+) %", audit.sentence)
    if claimed:
        assert float(claimed[1]) == pytest.approx(100 * (waited - best) / waited, abs=0.051)
