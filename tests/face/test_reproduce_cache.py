"""Results of `optgap reproduce` that are kept: when they are taken, and when never."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli

import optgap
import optgap.fingerprint
import optgap.versions
from optgap.models.limits import Limits
from optgap.reproduce import ITEMS, Cache, Study, cache, find
from optgap.reproduce.codec import CodecError, decode, encode
from optgap.reproduce.panels import Line, LoadPanel
from optgap.reproduce.report import Item, Report, Row

runs: list[str] = []


def counted(item: Item, study: Study) -> Report:
    """An item whose answer is how often it was run, and what its data file says."""
    runs.append(item.name)
    text = "" if study.data is None else (study.data / "d" / "a.csv").read_text()
    x = np.array([0.0, 0.1, np.nan])
    panel = LoadPanel("t", "W", (Line("a", x, x / 3, x, "red"),), y_range=(0.0, 1.0))
    rows = (Row("runs", "1", str(len(runs)), "yes", text, "a rule"),)
    return Report(item, "a test", rows, study.seeds, (panel,))


ITEM = Item("toy", "a paper", "Fig. 0", f"{__name__}:counted", ("d/a.csv",), "nothing")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, a data folder, and sources that nobody is working on meanwhile."""
    runs.clear()
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _this())
    monkeypatch.setenv("OPTGAP_CACHE", str(tmp_path / "kept"))
    monkeypatch.delenv("OPTGAP_DATA", raising=False)
    (tmp_path / "data" / "d").mkdir(parents=True)
    (tmp_path / "data" / "d" / "a.csv").write_text("one")
    (tmp_path / "source.py").write_text("1")
    monkeypatch.setattr(cache, "sources_of", lambda _: [tmp_path / "source.py"])
    return tmp_path


def _this() -> Any:
    """This module, under the name that an item finds it by."""
    import types

    module = types.ModuleType(__name__)
    module.__dict__.update(globals())
    return module


def made(folder: Path, seeds: tuple[int, ...] = (1, 2), **limits: Any) -> Report:
    return Cache().run(ITEM, Study(seeds, folder / "data", Limits(**limits)))


def entry(folder: Path) -> Path:
    (place,) = (folder / "kept").glob("toy-*.json")
    return place


def test_the_second_run_is_the_first_to_the_last_bit_and_says_so(folder: Path) -> None:
    first, second = made(folder), made(folder)
    assert len(runs) == 1
    assert first.cached is None
    assert second.cached is not None
    assert str(second).splitlines()[1].startswith("from the cache: computed 20")
    assert "timings were taken" in str(second)
    kept, fresh = second.to_json(), first.to_json()
    assert str({**kept, "cached": None}) == str(fresh)
    np.testing.assert_array_equal(second.panels[0].lines[0].mean, first.panels[0].lines[0].mean)


def test_other_seeds_data_or_sources_are_run_anew(folder: Path) -> None:
    assert made(folder).rows[0].note == "one"
    made(folder, seeds=(1, 2, 3))
    (folder / "data" / "d" / "a.csv").write_text("two")  # of the same size
    assert made(folder).rows[0].note == "two"
    (folder / "data" / "d" / "beside.csv").write_text("")
    made(folder)
    (folder / "source.py").write_text("2")
    made(folder)
    assert len(runs) == 5


def test_seeds_beyond_those_that_an_item_uses_are_no_reason_to_run_it_anew(folder: Path) -> None:
    few = replace(ITEM, most_seeds=2)
    for seeds in ((1, 2), (1, 2, 3), (1, 2, 3, 4)):
        assert Cache().run(few, Study(seeds, folder / "data")).seeds == (1, 2)
    assert len(runs) == 1
    assert Cache().run(few, Study((2, 1), folder / "data")).seeds == (2, 1)
    assert len(runs) == 2


def test_what_was_computed_before_a_change_is_found_again_after_it(folder: Path) -> None:
    data = folder / "data" / "d" / "a.csv"
    made(folder)
    data.write_text("two")
    made(folder)
    data.write_text("one")
    assert made(folder).rows[0].note == "one"
    assert len(runs) == 2


def test_hashes_are_remembered_only_of_files_that_have_settled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Path] = []
    real = cache.file_sha256
    monkeypatch.setattr(cache, "file_sha256", lambda path: hashed.append(path) or real(path))
    data = folder / "data" / "d" / "a.csv"
    made(folder), made(folder)
    assert len(hashed) == 2  # a second edit within the clock's step would go unseen
    old = time.time() - 60
    os.utime(data, (old, old))
    made(folder), made(folder)
    assert len(hashed) == 3
    data.write_text("two, longer")
    assert made(folder).rows[0].note == "two, longer"
    (folder / "kept" / "hashes.json").write_text('{"half')
    assert made(folder).cached is not None


@pytest.mark.parametrize(("package", "again"), [("optgap", 2), ("ortools", 2), ("rich", 1)])
def test_another_version_of_what_computes_is_run_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch, package: str, again: int
) -> None:
    made(folder)
    block = {**optgap.versions.versions(), package: "0"}
    monkeypatch.setattr(optgap.fingerprint, "versions", lambda: block)
    made(folder)
    assert len(runs) == again


@pytest.mark.parametrize("damage", ["", "{", "[]", "\xff", "cut", "digit", "class", "item"])
def test_a_damaged_entry_is_run_anew_with_a_notice(folder: Path, damage: str) -> None:
    made(folder)
    place = entry(folder)
    text = place.read_text()
    document = json.loads(text)
    if damage == "cut":
        place.write_text(text[:-20])
    elif damage == "digit":
        place.write_text(text.replace('"ours": "1"', '"ours": "7"'))
    elif damage == "class":
        document["report"]["class"] = "subprocess:Popen"
        document["digest"] = optgap.fingerprint.digest({"report": document["report"]})
        place.write_text(json.dumps(document))
    elif damage == "item":
        document["report"] = encode(ITEM)
        document["digest"] = optgap.fingerprint.digest({"report": document["report"]})
        place.write_text(json.dumps(document))
    else:
        place.write_bytes(damage.encode("latin-1"))
    keeper = Cache()
    report = keeper.run(ITEM, Study((1, 2), folder / "data"))
    assert report.cached is None
    assert len(runs) == 2
    assert len(keeper.notices) == 1
    assert str(place) in keeper.notices[0]
    assert made(folder).rows == report.rows  # and it is whole again
    assert len(runs) == 2


def test_refresh_runs_anew_and_keeps(folder: Path) -> None:
    made(folder)
    assert Cache(refresh=True).run(ITEM, Study((1, 2), folder / "data")).rows[0].ours == "2"
    assert made(folder).rows[0].ours == "2"


def test_what_a_limit_may_have_cut_short_is_not_kept(folder: Path) -> None:
    made(folder, time_limit=1000.0)
    stopped = threading.Event()
    stopped.set()
    made(folder, interrupted=stopped)
    assert not list((folder / "kept").glob("toy-*"))
    made(folder)
    assert made(folder, time_limit=1000.0).cached is not None


def test_only_the_newest_few_are_kept(folder: Path) -> None:
    for seed in range(cache.PER_ITEM + 3):
        made(folder, seeds=(seed,))
    assert len(list((folder / "kept").glob("toy-*.json"))) == cache.PER_ITEM
    made(folder, seeds=(cache.PER_ITEM + 2,))
    assert len(runs) == cache.PER_ITEM + 3


def test_a_folder_that_cannot_be_written_to_costs_a_notice_and_no_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "kept").write_text("a file")
    keeper = Cache()
    for seeds in ((1,), (2,)):
        assert keeper.run(ITEM, Study(seeds, folder / "data")).cached is None
    (notice,) = keeper.notices
    assert notice.startswith(f"results are not kept: {folder / 'kept'}: ")


def test_what_has_no_form_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = replace(counted(ITEM, Study((1,))), seeds={1})  # type: ignore[arg-type]
    monkeypatch.setattr(Item, "run", lambda self, study: report)
    keeper = Cache()
    assert keeper.run(ITEM, Study((1,))) is report
    assert keeper.notices == ["toy is not kept: it holds a set"]


def test_the_keys_of_all_items_differ_and_count_their_own_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    keys = {Cache().key(item, Study((42,))) for item in ITEMS.values()}
    assert len(keys) == len(ITEMS)
    names = {"/".join(path.parts[-2:]) for path in cache.sources_of(find("hps-aging"))}
    expected = {"queueing/aging.py", "queueing/problem.py", "reproduce/report.py", "optgap/api.py"}
    expected |= {"comparing/gaps.py", "plotting/figures.py"}
    assert expected <= names
    assert not {name for name in names if name.startswith(("placement/", "elastic/"))}


# -- the form on disk --------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -7,
        0.1,
        float("inf"),
        "α",
        (1, (2.5, [])),
        {1: "a", (2, 3): {"b": ()}},
        find("pwr-fig1"),
        Row("a", "b", "c", "nearly", rule="a rule"),
    ],
)
def test_values_come_back_as_they_were(value: Any) -> None:
    again = decode(json.loads(json.dumps(encode(value))))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32, np.float64, "U3"])
def test_arrays_come_back_with_their_type_and_shape(dtype: Any) -> None:
    value = np.array([[1, 0], [3, 4], [5, 6]]).astype(dtype)
    again = decode(json.loads(json.dumps(encode(value))))
    assert again.dtype == value.dtype
    np.testing.assert_array_equal(again, value)


class _Foreign(Enum):
    ONE = 1


@dataclass
class _Stranger:
    x: int = 1


@pytest.mark.parametrize("value", [object(), {1, 2}, _Foreign.ONE, _Stranger(), b"bytes"])
def test_what_is_not_data_of_ours_is_refused(value: Any) -> None:
    with pytest.raises(CodecError):
        encode(value)


@pytest.mark.parametrize(
    "form",
    [
        {"class": "os:system", "fields": {}},
        {"class": "optgap.cli:main", "fields": {}},
        {"class": "optgap.nowhere:Thing", "fields": {}},
        {"class": "optgap.reproduce.report:Row", "fields": {"nothing": 1}},
        {"enum": "optgap.reproduce.report:Row", "value": 1},
        {"enum": "optgap.models.result:Status", "value": "fine"},
        {"array": "O", "shape": [1], "values": [{}]},
        {"array": "<f8", "shape": [7], "values": [1.0]},
        {"tuple": 5},
        {"dict": [[1]]},
        {},
    ],
)
def test_a_form_that_is_not_ours_is_refused(form: Any) -> None:
    with pytest.raises(CodecError):
        decode(form)


# -- through the command line ------------------------------------------------------------


def test_the_command_line_keeps_tells_and_forgets(cli: Cli, folder: Path) -> None:
    first = cli("reproduce", "hps-impossible", "--json", str(folder / "1.json"))
    again = cli("reproduce", "hps-impossible", "--json", str(folder / "2.json"))
    assert "from the cache" not in first.out
    assert "from the cache: computed" in again.out
    one, two = (json.loads((folder / f"{k}.json").read_text()) for k in (1, 2))
    cached = two["items"][0].pop("cached")
    assert set(cached) == {"computed", "seconds"}
    assert one["items"][0].pop("cached") is None
    assert one == two
    for option in ("--no-cache", "--refresh"):
        assert "from the cache" not in cli("reproduce", "hps-impossible", option).out
    both = cli("reproduce", "hps-impossible", "--no-cache", "--refresh")
    assert both.code == 2
    assert len(both.err.splitlines()) == 1


def test_without_the_cache_nothing_is_read_or_written(cli: Cli, folder: Path) -> None:
    assert cli("reproduce", "hps-impossible", "--no-cache").code == 0
    assert not (folder / "kept").exists()


def test_the_command_line_says_what_is_damaged(cli: Cli, folder: Path) -> None:
    cli("reproduce", "hps-impossible")
    (place,) = (folder / "kept").glob("hps-*.json")
    place.write_text("{}")
    answer = cli("reproduce", "hps-impossible")
    assert answer.code == 0
    assert answer.err == f"optgap: {place} is damaged: run anew\n"


@pytest.mark.slow
def test_two_processes_at_once_leave_one_whole_entry(folder: Path) -> None:
    command = [sys.executable, "-m", "optgap", "reproduce", "hps-impossible"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outs = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    left = [path.name for path in (folder / "kept").iterdir()]
    assert len(left) == 1
    assert not [name for name in left if name.endswith(".part")]
    assert all("paper" in out for out in outs)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "from the cache" in done.stdout
