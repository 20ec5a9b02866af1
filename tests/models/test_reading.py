"""The one door for files: nothing that never ends, nothing above the limit, for every reader."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, refused, two_nodes_problem
from hypothesis import given
from hypothesis import strategies as st
from trust.samples import PROFILES, TABLES, TRACES

import optgap
from optgap.models.errors import InputError
from optgap.models.jsonio import load_any
from optgap.models.reading import LIMIT, VARIABLE, Held, read_bytes, read_limit, read_text
from optgap.models.tables import Column, guarded, read_table

PIPES = hasattr(os, "mkfifo")

READERS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "problem.json": lambda path: ("solve", path),
    "compared.json": lambda path: ("compare", path),
    "solution.json": lambda path: ("check", "problem.json", path),
    "tasks.csv": lambda path: ("generate", "placement", "--nodes", "nodes.csv", "--tasks", path),
    "jobs.swf": lambda path: ("generate", "queueing", "--jobs", path),
    "jobs.csv": lambda path: ("generate", "queueing", "--jobs", path),
    "philly.csv": lambda path: ("generate", "elastic", "--trace", path),
    "models.json": lambda path: ("generate", "elastic", "--jobs", "elastic.csv", "--models", path),
    "fit.json": lambda path: ("generate", "consolidation", "--tasks", "c.csv", "--model", path),
    "profile.csv": lambda path: ("fit", "--audit", path),
    "spec.toml": lambda path: ("sweep", path),
    "rows.json": lambda path: ("report", path, "-o", "page.html"),
}
"""A command for every reader, by the name of the file that it is to read."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    optgap.save(two_nodes_problem(), "problem.json")
    for family, name, place in (
        ("placement", "nodes", "nodes.csv"),
        ("placement", "tasks", "tasks.csv"),
        ("elastic", "jobs", "elastic.csv"),
        ("elastic", "models", "models.json"),
        ("consolidation", "tasks", "c.csv"),
        ("queueing", "jobs", "jobs.csv"),
    ):
        Path(place).write_text(TABLES[family][0][name])
    Path("jobs.swf").write_text(TRACES["swf.swf"][2])
    Path("philly.csv").write_text(TRACES["philly.csv"][2])
    Path("profile.csv").write_text(PROFILES["sweep.csv"])


@pytest.mark.skipif(not PIPES, reason="no named pipes here")
@pytest.mark.parametrize("name", READERS)
def test_no_reader_waits_for_a_pipe_or_reads_a_device(cli: Cli, name: str) -> None:
    os.mkfifo(f"pipe-{name}")
    refused(cli(*READERS[name](f"pipe-{name}")), f"pipe-{name}: found a pipe", "a regular file")
    Path(f"zero-{name}").symlink_to("/dev/zero")
    refused(cli(*READERS[name](f"zero-{name}")), f"zero-{name}: found a device", "a regular file")


@pytest.mark.parametrize("name", READERS)
def test_no_reader_reads_more_than_the_limit_packed_or_not(
    cli: Cli, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "64 KiB")
    content = (Path(name).read_bytes() if Path(name).exists() else b"") + b"\n" * (1 << 17)
    Path(f"large-{name}").write_bytes(content)
    refused(cli(*READERS[name](f"large-{name}")), "expected at most 64 KiB", VARIABLE)
    Path(f"{name}.gz").write_bytes(gzip.compress(content))
    assert Path(f"{name}.gz").stat().st_size < 2048
    refused(cli(*READERS[name](f"{name}.gz")), "64 KiB unpacked", VARIABLE)
    several = (
        gzip.compress(content[: 1 << 15]) * 3
    )  # what the last member tells is no lie, and little
    Path(f"{name}.gz").write_bytes(several)
    refused(cli(*READERS[name](f"{name}.gz")), "more than 64 KiB unpacked")


@pytest.mark.parametrize(
    ("text", "size"),
    [("", LIMIT), ("1000", 1000), ("2KiB", 2048), ("1.5 m", 3 << 19), ("8GB", 8 << 30)],
)
def test_the_limit_is_a_size_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str, size: int
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    assert read_limit() == size


@pytest.mark.parametrize("text", ["much", "-1", "1e9", "4 Gbit"])
def test_a_limit_that_is_no_size_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InputError, match="a size such as 4GiB"):
        read_bytes("problem.json")


def test_a_packed_file_is_read_like_a_plain_one_whatever_its_name() -> None:
    text = Path("problem.json").read_bytes()
    for name in ("p.json.gz", "p.json"):
        Path(name).write_bytes(gzip.compress(text))
        assert read_bytes(name) == text
        assert optgap.load(name).to_json() == two_nodes_problem().to_json()


def test_a_file_that_was_cut_off_or_damaged_is_not_called_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "1MiB")
    whole = gzip.compress(os.urandom(1 << 18))
    middle = bytes(byte ^ 0x5A for byte in whole[12:-9])
    for broken in (whole[:-9], whole[:12] + middle + whole[-9:]):
        Path("cut.gz").write_bytes(broken)
        with pytest.raises(InputError, match="a whole gzip file"):
            read_bytes("cut.gz")


def test_a_dash_is_standard_input_where_a_problem_is_read(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def typed(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    content = Path("problem.json").read_bytes()
    typed(content)
    answer = cli("solve", "-", "-q")
    assert (answer.code, answer.err) == (0, "")
    typed(content)
    assert cli("compare", "-", "--policies", "pwr", "-q").code == 0
    monkeypatch.setenv(VARIABLE, "1KiB")
    typed(content + b" " * 2048)
    refused(cli("solve", "-"), "more than 1 KiB")
    refused(cli("fit", "--audit", "-"), "-: no such file or directory")


def test_text_that_is_none_names_its_row() -> None:
    Path("x").write_bytes(b"a\nb\n\xff")
    with pytest.raises(InputError, match=r"x: row 3: found b'\\xff', expected UTF-8 text"):
        read_text("x")


@given(
    document=st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=8,
    ),
    at=st.integers(0, 200),
    length=st.integers(0, 3),
    put=st.sampled_from(["", ",", ":", "{", "]", '"', "\\", "\n", "NaN", "1e999", "x", "\t", "é"]),
    indent=st.sampled_from([None, 1]),
)
def test_json_is_read_as_python_reads_it_or_refused_where_it_is_broken(
    document: Any, at: int, length: int, put: str, indent: int | None
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    place = at % (len(text) + 1)
    text = text[:place] + put + text[place + length :]
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
    Path("any.json").write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        assert load_any("any.json") == expected
    except InputError as error:
        said = str(error)
        assert "\n" not in said
        assert len(said) < 600
        if "UTF-8" in said or "NUL" in said or "field" in error.where:
            return
        row, column = (int(part.split()[1]) for part in error.where.split(","))
        lines = text.split("\n")
        assert 1 <= row <= len(lines)
        assert 1 <= column <= len(lines[row - 1]) + 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1, column 1: found nothing, expected valid JSON: a value"),
        ('{"a": 1,\n "b" 2}', "line 2, column 6: found '2}', expected valid JSON: a colon"),
        ('{"a": [1,\n2', "line 2, column 2: found the end of the file, expected valid JSON: a co"),
        ("{'a': 1}", "line 1, column 2: found \"'a': 1}\", expected valid JSON: a name in double"),
        ('{"a": "b\nc"}', "line 1, column 9: found the end of the line"),
        ('{"a": 1}\n}', "line 2, column 1: found '}', expected valid JSON: nothing behind"),
        ('{"a": "NaN",\n"b": NaN}', "line 2, column 6: found NaN, expected finite numbers only"),
        ('{"a": "1e999",\n"b": 1e999}', "line 2, column 6: found 1e999"),
        ('{"a": ' + "1" * 5000 + "}", "line 1, column 7: found an integer of 5000 digits"),
        ("null", "found null, expected a JSON object"),
    ],
)
def test_broken_json_is_told_by_line_and_column_in_one_sentence(
    cli: Cli, text: str, said: str
) -> None:
    Path("broken.json").write_text(text)
    answer = cli("solve", "broken.json")
    refused(answer, f"optgap: broken.json: {said}")
    assert len(answer.err) < 200


@pytest.mark.parametrize(("family", "field"), [("elastic", "gpus"), ("coscheduling", "numa")])
@pytest.mark.parametrize("value", [0, -1, 1.5, "8"])
def test_a_whole_number_is_expected_in_one_way_whatever_stands_there(
    family: str, field: str, value: Any
) -> None:
    preset = "tiny" if family == "elastic" else None
    document = optgap.generate(family, preset).to_json()
    Path("edited.json").write_text(json.dumps({**document, field: value}))
    with pytest.raises(InputError, match="an integer of at least 1"):
        optgap.load("edited.json")


def test_a_small_file_does_not_unpack_to_a_gibibyte(cli: Cli) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(b"[" * (1 << 20)) for _ in range(80)]
    Path("deep.json.gz").write_bytes(b"".join([*parts, packer.flush()]))
    assert Path("deep.json.gz").stat().st_size < 1 << 20
    refused(cli("solve", "deep.json.gz"), "more than 64 MiB unpacked", VARIABLE)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1)))
def test_guarded_names_come_back_as_they_were(names: list[str]) -> None:
    names = [name.strip() for name in names if name.strip()]
    text = io.StringIO()
    csv.writer(text).writerows([["name"], *([name] for name in names)])
    table = read_table(Held("t.csv", guarded(text.getvalue())), [Column("name")])
    assert table["name"] == names
    for row in csv.reader(io.StringIO(guarded(text.getvalue()))):
        assert row[0][0] not in "=@" or row == ["name"]
