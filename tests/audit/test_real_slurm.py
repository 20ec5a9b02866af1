"""What a Slurm that was started for it prints of jobs that are known, through `audit slurm`."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, Cli
from real_slurm import RealSlurm, why_not

from optgap.models.queueing.log import QueueLog
from optgap.models.queueing.slurm import read_slurm

FINISHED = {"COMPLETED", "FAILED", "CANCELLED"}


@pytest.fixture(scope="module")
def slurm() -> Iterator[RealSlurm]:
    """A cluster of four A100 on two nodes and four H100 on one."""
    if why_not():
        pytest.skip(why_not())
    root = Path(tempfile.mkdtemp(prefix="optgap-slurm-"))
    root.chmod(0o755)  # users' jobs run in it
    cluster = RealSlurm(root)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        assert not cluster.left()


@pytest.fixture(scope="module")
def submitted(slurm: RealSlurm) -> dict[str, str]:
    """Job ids by what was asked for; all of them have ended."""

    def submit(what: str, seconds: str = "1", user: str = "nobody") -> str:
        command = f"sbatch --parsable -D / -o /dev/null --mem=100 --uid={user} {what}"
        return slurm.call(*shlex.split(command), f"--wrap=sleep {seconds}").strip()

    def states() -> list[str]:
        text = slurm.call("sacct", "-a", "-X", "-P", "-n", "-o", "State")
        return [line.split()[0] for line in text.splitlines()]

    jobs = {
        "first": submit("-p h100 --gpus=4 -t UNLIMITED"),
        "second": submit("-p h100 --gpus=2", user="daemon"),  # waits for the first
        "stopped": submit("-p gpu -w gpu2 --gres=gpu:a100:2 -t 1-02:03:04", "100"),
        "array": submit("-p gpu -w gpu1 --gpus=1 --array=1-4%2 -J 'odd|name'"),
        "held": submit("-p gpu --gpus=1 --hold"),
        "no GPU": submit("-p gpu -w gpu1"),
        "fails": submit("-p gpu -w gpu1 --gpus=1", "1; exit 3"),
    }
    waits = submit("-p gpu -w gpu2 --gpus=2", user="daemon")
    running = ("squeue", "-h", "-t", "R", "-j", jobs["stopped"])
    slurm.until(lambda: bool(slurm.call(*running)), "slurmctld")
    slurm.call("scancel", jobs["held"], waits)
    # begins when the one that holds gpu2 is cancelled: two nodes, one gang
    jobs["gang"] = submit("-p gpu -N 2 --gpus-per-node=2 --gres-flags=enforce-binding")
    slurm.until(lambda: states().count("COMPLETED") >= 3, "slurmctld")
    slurm.call("scancel", jobs["stopped"])
    slurm.until(lambda: len(states()) == 11 and set(states()) <= FINISHED, "slurmdbd")
    return jobs


def command() -> list[str]:
    """The sacct command that the guide gives."""
    lines = (ROOT / "docs" / "audit.md").read_text().splitlines()
    line = next(line for line in lines if line.startswith("TZ=UTC sacct -a"))
    return shlex.split(line.partition(" > ")[0])[1:]  # RealSlurm sets TZ


def test_a_real_log_is_what_was_submitted(
    slurm: RealSlurm, submitted: dict[str, str], tmp_path: Path, cli: Cli
) -> None:
    table = tmp_path / "jobs.txt"
    table.write_text(slurm.call(*command()))
    asked = {
        "h100": {submitted["first"]: 4, submitted["second"]: 2},
        "a100": {
            **{f"{submitted['array']}_{k}": 1 for k in range(1, 5)},
            submitted["stopped"]: 2, submitted["fails"]: 1, submitted["gang"]: 4,
        },
    }  # fmt: skip
    for pool, expected in asked.items():
        log = read_slurm(table, pool=pool)
        found = dict(zip(log.problem.jobs.names, log.problem.jobs.gpus.tolist(), strict=True))
        assert found == expected
        assert not log.problem.check(log.logged)  # nobody had a GPU that another held
        assert log.reasons["cancelled before it started"] == 1
        assert log.reasons["asks for no GPU"] == 1
    large, small = (read_slurm(table, pool=pool) for pool in ("h100", "a100"))
    assert (large.problem.gpus, small.problem.gpus) == (4, 4)
    assert limit(small, submitted["stopped"]) == 86_400 + 2 * 3600 + 4 * 60  # whole minutes
    assert begins(large, submitted["second"]) >= ends(large, submitted["first"])
    assert begins(small, submitted["gang"]) >= ends(small, submitted["stopped"])
    third = f"{submitted['array']}_3"  # the throttle let it go when another had ended
    assert begins(small, third) >= ends(small, f"{submitted['array']}_1") - 1
    answer = cli(
        "audit", "slurm", str(table), "--set", "pool=h100", "--policies", "fifo", "--json", "-"
    )
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert found["comparison"]["rows"][0]["method"] == "logged"
    assert found["best_bound"] <= found["now"]["objective"] + 1e-9
    assert not found["now"]["violations"]


def limit(log: QueueLog, name: str) -> float:
    return float(log.problem.jobs.estimate_s[log.problem.jobs.index[name]])


def begins(log: QueueLog, name: str) -> float:
    return float(log.logged.start_s[log.problem.jobs.index[name]])


def ends(log: QueueLog, name: str) -> float:
    k = log.problem.jobs.index[name]
    return float(log.logged.start_s[k] + log.problem.jobs.duration_s[k])
