"""Every family through the command line: all its names in one table, bad input in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli, refused
from trust.answers import SMALL
from trust.samples import TABLES

import optgap
from optgap.registry import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_every_policy_and_method_stands_in_one_table(family: str, tmp_path: Path, cli: Cli) -> None:
    spec, path = FAMILIES[family], tmp_path / "problem.json"
    optgap.save(optgap.generate(family, seed=3, **SMALL[family]), path)
    answer = cli("compare", str(path), "--methods", "all", "--json", "-", "-q")
    document = json.loads(answer.out)
    assert answer.code == 0
    assert {row["method"] for row in document["rows"]} == {*spec.policies, *spec.methods}
    assert any(row["status"] == "optimal" for row in document["rows"])
    policies = [row for row in document["rows"] if row["kind"] == "policy"]
    assert all(row["gap_to_bound"] >= 0 for row in policies)


NO_EDIT = ("", "", "")
BAD: list[tuple[str, tuple[str, str, str], tuple[str, ...], str]] = [
    ("consolidation", ("tasks", "a,12", "a,40"), (), "memory_gb: found 40.0"),
    ("consolidation", ("tasks", "a,12,0,1", "a,12,0,3"), (), "gpus: found 3"),
    ("consolidation", ("tasks", ",1.2,", ",0.9,"), (), "column kappa"),
    ("consolidation", ("series", "c,10,10\n", ""), (), "found 1 samples"),
    ("consolidation", ("series", "a,0,50", "a,0,nan"), (), "column util_percent"),
    ("consolidation", ("series", "a,0,50", "a,0,180"), (), "column util_percent"),
    ("consolidation", NO_EDIT, ("f_min_mhz=2000",), "f_min"),
    ("consolidation", NO_EDIT, ("capacity=most",), "one of none, mean, slot, peak"),
    ("consolidation", NO_EDIT, ("goal=energy", "capacity=slot"), "none, mean or peak"),
    ("consolidation", NO_EDIT, ("wake_s=-1",), "field wake_s"),
    ("consolidation", NO_EDIT, ("kappa=0.5",), "--set: kappa: found 0.5"),
    ("consolidation", NO_EDIT, ("beta=-1",), "--set: GPU.beta: found -1"),
    ("consolidation", NO_EDIT, ("server_static_w=-1",), "--set: server_static_w"),
    ("coscheduling", ("profiles", "a,1,100", "a,1,0"), (), "column runtime_s"),
    ("coscheduling", ("profiles", "100,300", "100,nan"), (), "column avg_power_per_gpu_w"),
    ("coscheduling", ("profiles", "b,1,", "b,8,"), (), "at least 8 GPUs needed"),
    ("coscheduling", ("jobs", "a,1\nb,2", "a,0"), (), "no jobs"),
    ("coscheduling", NO_EDIT, ("numa=0",), "numa"),
    ("coscheduling", NO_EDIT, ("numa=-1",), "numa"),
    ("coscheduling", NO_EDIT, ("gpus=0",), "gpus"),
    ("coscheduling", NO_EDIT, ("idle_w=nan",), "idle_w"),
    ("coscheduling", NO_EDIT, ("tau=-1",), "tau"),
    ("coscheduling", NO_EDIT, ("goal=speed",), "goal"),
    ("elastic", ("jobs", "m,8,100", "m,8,0"), (), "column iterations"),
    ("elastic", ("jobs", "m,8,100", "m,1,100"), (), "found no batch 1"),
    ("elastic", ("jobs", "m,8,100", "m,0,100"), (), "column batch"),
    ("elastic", ("jobs", "a,0,m", "a,0,x"), (), "column model"),
    ("elastic", ("jobs", "a,0", "a,-1"), (), "column submit_s"),
    ("elastic", ("models", "[160, 240]", "[160, -5]"), (), "power_w at 2 GPUs, 1000 MHz"),
    ("elastic", NO_EDIT, ("eta=1.2",), "from 0 to 1"),
    ("elastic", NO_EDIT, ("eta=0.01",), "needs to run"),
    ("elastic", NO_EDIT, ("cap=energy",), "one of power, none"),
    ("elastic", NO_EDIT, ("gpus=3",), "multiple"),
    ("queueing", ("jobs", "a,0,100", "a,0,0"), (), "row 2, column duration_s"),
    ("queueing", ("jobs", "0,100,2", "0,100,9"), (), "row 2, column gpus"),
    ("queueing", ("jobs", "a,0", "a,-1"), (), "row 2, column arrival_s"),
    ("queueing", ("jobs", "b,5", "a,5"), (), "job a again"),
    ("queueing", ("jobs", ",train,1,20", ""), (), "4 cells"),
]


@pytest.mark.parametrize(("family", "edit", "settings", "said"), BAD)
def test_bad_input_ends_in_one_line(
    family: str,
    edit: tuple[str, str, str],
    settings: tuple[str, ...],
    said: str,
    tmp_path: Path,
    cli: Cli,
) -> None:
    texts, given = TABLES[family]
    options = []
    for name, text in texts.items():
        path = tmp_path / f"{name}.{'json' if text.startswith('{') else 'csv'}"
        path.write_text(text.replace(*edit[1:], 1) if name == edit[0] else text)
        options += [f"--{name}", str(path)]
    asked = {**given, **dict(setting.split("=") for setting in settings)}
    options += [part for key, value in asked.items() for part in ("--set", f"{key}={value}")]
    refused(cli("generate", family, *options, "-o", str(tmp_path / "problem.json")), said)
    assert not (tmp_path / "problem.json").exists()
