from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import report_files
from conftest import two_nodes_problem
from markupsafe import escape
from report_files import HOSTILE

import optgap
from optgap.models.errors import InputError
from optgap.reporting import Page, make, report
from optgap.reporting.grid import cell, constants, grid


class Elements(HTMLParser):
    """Every start tag with its attributes, and whether the page is well nested."""

    VOID = ("meta", "img", "input", "br", "link")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag in tags]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return make(report_files.write(tmp_path_factory.mktemp("files")))


@pytest.fixture(scope="module")
def page(made: Page) -> str:
    return made.html


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make(report_files.write(tmp_path_factory.mktemp("hostile"), HOSTILE), title=HOSTILE).html


def test_every_kind_of_file_has_its_section(made: Page) -> None:
    schemas = [section.schema for section in made.sections]
    for name in ("result", "compare", "explain", "check", "reproduce", "tune"):
        assert f"optgap.{name}/1" in schemas
    assert schemas.count("optgap.overview/1") == 2  # a family, and one that failed
    assert schemas.count("rows") == 2
    drawn = {section.schema: len(section.pictures) for section in made.sections}
    assert drawn["optgap.result/1"] == 1  # the problem is among the files
    assert drawn["optgap.compare/1"] == drawn["optgap.explain/1"] == 1
    assert drawn["rows"] == 2  # one for each family


def test_the_page_opens_with_what_was_found_and_leads_to_the_evidence(made: Page) -> None:
    told = [text for _, text in made.found]
    assert any(text.startswith("the best policy, ") for text in told)
    opening, _, evidence = made.html.partition('<main id="main"')
    for title, text in made.found:
        line = re.search(rf'<a href="#(s\d+)">{re.escape(str(escape(title)))}</a>: ', opening)
        assert line
        assert f'id="{line[1]}"' in evidence
        assert str(escape(text)) in opening


def test_the_page_needs_nothing_but_itself(page: str) -> None:
    elements = Elements(page)
    for attributes in elements.all("img", "script", "link", "iframe", "object", "use", "a"):
        for name in ("src", "href", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/png"))
    assert not elements.all("link", "iframe", "object", "base", "form")
    assert not re.search(r"@import|url\((?!#)", page)
    assert "default-src 'none'" in page


def test_the_page_is_well_formed_and_named_for_all(page: str) -> None:
    elements = Elements(page)
    assert elements.all("html")[0]["lang"] == "en"
    assert len(elements.all("h1")) == 1
    identifiers = [a["id"] for _, a in elements.found if a.get("id")]
    assert len(identifiers) == len(set(identifiers))
    for tag, attributes in elements.found:
        label = attributes.get("aria-labelledby")
        assert label is None or label in identifiers
        if tag == "a":
            assert (attributes["href"] or "")[1:] in identifiers
        if attributes.get("role") == "img":
            assert attributes["aria-label"]
    assert len(elements.all("caption")) == len(elements.all("table"))
    assert all(a.get("scope") in ("col", "row") for a in elements.all("th"))


def test_hostile_names_are_text_and_nothing_else(page: str, hostile: str) -> None:
    kinds = {tag for tag, _ in Elements(page).found}
    elements = Elements(hostile)
    assert {tag for tag, _ in elements.found} <= kinds
    assert len(elements.all("script")) == 1
    assert not any(name.startswith("on") for _, a in elements.found for name in a)
    assert "<img src=x" not in hostile
    assert "&lt;script&gt;window.pwned=1&lt;/script&gt;" in hostile


def test_the_only_script_is_the_one_that_the_policy_names(page: str) -> None:
    import base64
    import hashlib

    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_stand_out_from_the_page(theme: str) -> None:
    style = files("optgap.reporting").joinpath("templates/page.css").read_text()
    blocks = re.findall(r"color-scheme: (\w+);\s*(--paper[^}]*)", style)
    colours = dict(re.findall(r"--(\w+): (#\w{6})", dict(reversed(blocks))[theme]))
    for name in ("ink", "soft", "link"):
        for ground in ("paper", "stripe"):
            assert contrast(colours[name], colours[ground]) >= 4.5
    assert contrast(colours["focus"], colours["paper"]) >= 3
    assert contrast(colours["blue"], colours["paper"]) >= 3


def contrast(a: str, b: str) -> float:
    """WCAG 2's ratio of two colours."""

    def light(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_objects_will_do_instead_of_files(tmp_path: Path) -> None:
    problem = two_nodes_problem()
    result = optgap.run(problem, "fgd")
    comparison = optgap.compare(problem, "fgd", "bound-pooled")
    written = report([result, comparison], tmp_path / "x.html", title="From objects")
    assert (tmp_path / "x.html").read_text() == written.html
    assert "<title>From objects</title>" in written.html
    assert len(written.sections[0].pictures) == 1  # a result knows its problem


def test_a_result_without_its_problem_says_what_is_missing(tmp_path: Path) -> None:
    optgap.save(optgap.run(two_nodes_problem(), "fgd"), tmp_path / "r.json")
    other = two_nodes_problem(extra=1)
    optgap.save(other, tmp_path / "p.json")
    for inputs in (["r.json"], ["p.json", "r.json"]):
        (section,) = make([tmp_path / name for name in inputs]).sections
        assert section.pictures == ()
        assert any("problem's file" in note for note in section.notes)


def test_a_fit_shows_errors_parameters_and_its_curve(tmp_path: Path) -> None:
    import numpy as np

    from optgap.fitting import make_estimator
    from optgap.fitting.profile import Profile
    from optgap.fitting.workflow import report_of

    clocks = np.linspace(600, 1800, 12)
    table = Profile({"frequency_mhz": clocks, "power_w": 40 + 0.1 * clocks}, "synthetic")
    fitted = report_of(make_estimator("linear-power"), table, None, None)
    made = make([fitted])
    (section,) = made.sections
    assert section.schema == "optgap.fit/1"
    assert len(section.pictures) == 2
    assert [len(t.rows) for t in section.grids] == [1, len(fitted.to_json()["groups"][0]["params"])]


def test_runs_lose_machine_columns_and_name_what_is_the_same_once(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"rows": report_files.rows(150)}))
    (section,) = make([tmp_path / "r.json"]).sections
    table = section.grids[-1]
    assert len(table.rows) == 150
    assert "key" not in table.columns
    assert "metrics" not in table.columns
    assert ("unit", "W") in section.facts
    assert section.lines == ("3 of them failed",)
    summary = section.grids[0]
    assert [row[1].text for row in summary.rows] == ["25"] * 6 or len(summary.rows) == 6


def test_parquet_and_json_rows_make_the_same_table(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="Parquet comes with the extra sweep")
    pq = pytest.importorskip("pyarrow.parquet")
    rows = report_files.rows(40)
    (tmp_path / "r.json").write_text(json.dumps(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "r.parquet")
    made = [make([tmp_path / name]).sections[0] for name in ("r.json", "r.parquet")]
    assert made[0].grids == made[1].grids
    assert made[0].facts == made[1].facts
    pq.write_table(
        pa.Table.from_pylist([{"raw": b"\x00\xff"}, {"raw": b""}]), tmp_path / "b.parquet"
    )
    assert len(make([tmp_path / "b.parquet"]).sections) == 1


def test_ten_thousand_rows_stay_small_and_lay_out_a_hundred(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"rows": report_files.rows(10_000)}))
    html = make([tmp_path / "r.json"]).html
    assert len(html.encode()) < 10_000_000
    table = html[html.index("All 10,000 runs") :]
    assert table[: table.index("<tbody hidden>")].count("<tr>") == 100 + 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "valid JSON"),
        ("[", "valid JSON"),
        ("[]", "no rows"),
        ("[1]", "rows[0]"),
        ('{"rows": [1]}', "rows[0]"),
        ('{"a": 1}', "no schema"),
        ('{"schema": "other/1"}', "other/1"),
        ('{"schema": "optgap.result/1"}', "field family"),
        ('{"schema": "optgap.compare/1", "problem": {}}', "field family"),
        ('{"schema": "optgap.compare-set/1", "comparisons": [1]}', "comparisons[0]"),
        ('{"schema": "optgap.explain/1"}', "field problem"),
        ('{"schema": "optgap.fit/1", "groups": {}}', "field groups"),
        ('{"schema": "optgap.fit/1", "groups": [{"group": 1}]}', "field "),
        ('{"schema": "optgap.reproduce/1", "items": [{}]}', "items[0]"),
        ('{"schema": "optgap.overview/1"}', "field families"),
        ('{"schema": "optgap.check/1"}', "field violations"),
        ('{"schema": "optgap.placement.problem/1"}', "field "),
        ("\x00", "row 1: found a NUL byte"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        make([path])
    assert "x.json" in str(caught.value)
    assert words in str(caught.value)


def test_problems_alone_are_no_report(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="problems only"):
        make([two_nodes_problem()])
    with pytest.raises(InputError, match="found nothing"):
        make([])
    with pytest.raises(InputError, match="a file, or a result"):
        make([3])
    (tmp_path / "x.parquet").write_bytes(b"no")
    with pytest.raises(InputError):
        make([tmp_path / "x.parquet"])


def test_a_heavy_drawing_becomes_a_picture_with_its_caption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from matplotlib.figure import Figure

    from optgap.reporting import pictures

    def draw() -> Figure:
        figure = Figure(figsize=(4, 3))
        figure.subplots().plot([0, 1], [1, 0])
        return figure

    light = pictures.picture(draw, "a line", "x")
    assert light.themed
    assert light.svg.startswith("<svg")
    monkeypatch.setattr(pictures, "HEAVIEST", 100)
    heavy = pictures.picture(draw, "a line", "x")
    assert heavy.png
    assert not heavy.svg
    assert not heavy.themed


def test_the_same_inputs_make_the_same_page(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(report_files.rows(20)))
    assert make([tmp_path / "r.json"]).html == make([tmp_path / "r.json"]).html


@pytest.mark.parametrize(
    ("value", "column", "text", "key"),
    [
        (None, "x", "", None),
        (0.123456, "gap_to_bound", "12.35 %", "0.123456"),
        (0.123456, "gap to best", "12.35 %", "0.123456"),
        (12, "x", "12", None),
        (True, "x", "yes", None),
        ("a\n b", "x", "a b", None),
        ({"a": 1}, "x", '{"a": 1}', None),
    ],
)
def test_cells_read_well_and_sort_exactly(value: Any, column: str, text: str, key: Any) -> None:
    made = cell(value, column)
    assert made.text == text
    assert made.key == key


def test_a_column_is_numeric_when_all_that_it_holds_are_numbers() -> None:
    made = grid("t", [{"a": 1, "b": "x"}, {"a": None, "b": 2, "c": 1.0}, {"c": None}])
    assert made.columns == ("a", "b", "c")
    assert made.numeric == (True, False, True)
    assert constants([{"a": 1, "b": 1, "c": None}, {"a": 1, "b": 2}]) == (["b"], {"a": 1})
