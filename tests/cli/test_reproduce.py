"""``optgap reproduce``: what it prints, writes and returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli

from optgap.reproduce import ITEMS


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPTGAP_DATA", raising=False)
    monkeypatch.delenv("OPTGAP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nor what somebody has downloaded
    monkeypatch.chdir(tmp_path)


def test_the_list_names_every_item_and_what_it_needs(cli: Cli) -> None:
    answer = cli("reproduce", "list", "--json", "list.json")
    assert answer.code == 0
    for name in ITEMS:
        assert name in answer.out
    assert "needs openb/" in answer.out
    document = json.loads(Path("list.json").read_text())
    assert [item["name"] for item in document["items"]] == list(ITEMS)


def test_one_figure_gives_a_table_a_picture_and_json(cli: Cli) -> None:
    answer = cli("reproduce", "pwr-fig1", "--seeds", "1", "--plot", "figures", "--json", "one.json")
    assert answer.code == 0, answer.err
    header = answer.out.splitlines()[2].split()
    assert header == ["paper", "ours", "agrees", "note"]
    assert "about 1.4 MW" in answer.out
    assert Path("figures/pwr-fig1.png").read_bytes().startswith(b"\x89PNG")
    document = json.loads(Path("one.json").read_text())
    assert document["schema"] == "optgap.reproduce/1"
    assert document["not_run"] == []
    (item,) = document["items"]
    assert item["seeds"] == [42]
    assert len(item["panels"][0]["curves"][0]["mean"]) == 201


def test_without_the_trace_one_that_needs_it_is_bad_input(cli: Cli) -> None:
    answer = cli("reproduce", "pwr-fig4", "--seeds", "1")
    assert answer.code == 2
    assert "--data" in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [("pwr-fig99",), ("all", "--data", "nowhere"), ("all", "--seeds", "0")],
)
def test_what_cannot_be_run_is_said_in_one_line(cli: Cli, arguments: tuple[str, ...]) -> None:
    answer = cli("reproduce", *arguments)
    assert answer.code == 2
    assert len(answer.err.splitlines()) == 1


def test_a_file_is_no_folder_for_pictures(cli: Cli) -> None:
    Path("taken").write_text("")
    assert cli("reproduce", "pwr-table1", "--plot", "taken").code == 2


def test_a_time_limit_keeps_what_is_finished(cli: Cli) -> None:
    answer = cli("reproduce", "all", "--seeds", "1000", "--time-limit", "1", "--json", "part.json")
    assert answer.code == 3
    document = json.loads(Path("part.json").read_text())
    assert [item["name"] for item in document["items"]] == ["pwr-table1", "pwr-table2"]
    assert "pwr-fig3" in document["not_run"]
