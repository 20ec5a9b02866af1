"""Every JSON form broken at every place in every way: one line, or it works; never a traceback."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trust.agreement import FUZZ, elsewhere
from trust.answers import SMALL
from trust.hostile import FORMS
from trust.samples import PROFILES, TABLES, TRACES

import optgap
from optgap.documents import load
from optgap.fitting.readers import read_profile
from optgap.models.errors import InputError
from optgap.registry import FAMILIES, family

PARTS = 1 if FUZZ else 24
"""Of how many parts one is tried; a long run tries everything."""


def test_a_broken_document_or_table_is_refused_in_one_line_or_usable(tmp_path: Path) -> None:
    """Nothing but refusals in one line and usable input, within 1 GiB, nothing left behind."""
    for name, spec in FAMILIES.items():
        problem = optgap.generate(name, **SMALL.get(name, {}))
        result = optgap.run(problem, next(iter(spec.policies)))
        (folder := tmp_path / name).mkdir()
        optgap.save(problem, folder / "problem.json")
        optgap.save(result.solution, folder / "solution.json", problem)
        optgap.save(result, folder / "result.json", problem)
    for name, reports in elsewhere("trust.hostile", str(PARTS), *FAMILIES, cwd=tmp_path).items():
        assert set(reports) == {*FORMS, "table"}, name
        for form, report in reports.items():
            assert (report["failures"], report["left"]) == ([], []), (name, form)
            assert report["mib"] < 1024, (name, form)
            assert report["refused"] > 10, (name, form)


# -- arbitrary bytes -----------------------------------------------------------------------


Edit = tuple[int, int, bytes]

NASTY = st.sampled_from(
    [b"", b"1e999", b"nan", b"2026-03-01T12:00:00Z", *map(bytes, zip(b'\x00\xff",\n\r-[{}\\'))]
)
EDITS = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 20), NASTY | st.binary(max_size=8)),
    min_size=1,
    max_size=4,
)


def edited(whole: bytes, edits: list[Edit]) -> bytes:
    """`whole` with some bytes taken out and others put in."""
    for at, length, new in edits:
        place = at % (len(whole) + 1)
        whole = whole[:place] + new + whole[place + length :]
    return whole


def read(use: Callable[[], object]) -> None:
    """Raise unless a reader takes what it is given, or refuses it in one line."""
    said = "read"
    try:
        use()
    except InputError as error:
        said = str(error)
    assert "\n" not in said
    assert 0 < len(said) < 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bytes")


@pytest.mark.parametrize("name", FAMILIES)
@given(edits=EDITS)
def test_problem_files(folder: Path, name: str, edits: list[Edit]) -> None:
    whole = folder / f"{name}.json"
    if not whole.exists():
        optgap.save(optgap.generate(name), whole)
    path = folder / f"{name}-edited.json"
    path.write_bytes(edited(whole.read_bytes(), edits))
    read(lambda: json.dumps(load(path).to_json()))


@pytest.mark.parametrize("name", FAMILIES)
@given(data=st.data(), edits=EDITS, strict=st.booleans())
def test_tables(
    folder: Path, name: str, data: st.DataObject, edits: list[Edit], strict: bool
) -> None:
    texts, given_ = TABLES[name]
    victim = data.draw(st.sampled_from(sorted(texts)))
    files = {option: str(folder / f"{name}-{option}.csv") for option in texts}
    for option, text in texts.items():
        content = edited(text.encode(), edits) if option == victim else text.encode()
        Path(files[option]).write_bytes(content)
    read(lambda: family(name).from_tables(files, {**given_, "strict": strict}, 0).to_json())


@pytest.mark.parametrize("name", [*PROFILES, *TRACES])
@given(edits=EDITS, packed=st.booleans())
def test_profiles_and_traces(folder: Path, name: str, edits: list[Edit], packed: bool) -> None:
    of, option, text = TRACES.get(name) or ("", "", PROFILES[name])
    whole = gzip.compress(text.encode(), mtime=0) if packed else text.encode()
    path = folder / (name + ".gz" * packed)
    path.write_bytes(edited(whole, edits))
    if of:
        read(lambda: family(of).from_tables({option: str(path)}, {}, 0).to_json())
    else:
        read(lambda: read_profile(path))
