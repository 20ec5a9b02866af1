from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import Cli, two_nodes_problem

import optgap
from optgap.comparing.overview import Overview
from optgap.explaining import explain
from optgap.models.errors import InputError
from optgap.models.jsonio import dump_json
from optgap.reporting import Page, make, report

pytestmark = pytest.mark.usefixtures("here")


HOSTILE = "<script>window.pwned=1</script><img src=x onerror=window.pwned=2>\"'&$\\frac{$--></svg>"


def write(folder: Path, name: str = "two nodes") -> list[str]:
    """One file of each schema about a tiny problem of this name, with the name wherever one is."""
    problem = replace(two_nodes_problem(extra=1), name=name)
    result = optgap.run(problem, "fgd")
    comparison = optgap.compare(problem, "fgd,pwr,random", "bound-pooled")
    overview = Overview((comparison,), {"queueing": f"ZeroDivisionError: {name}"}, {}, 1.0)
    items = {
        "problem": problem,
        "result": result,
        "compare": comparison,
        "overview": overview,
        "explain": explain(problem, "random", "bound-pooled", seed=1),
        "check": optgap.check(problem, result.solution),
    }
    made = []
    for key, item in items.items():
        optgap.save(item, folder / f"{key}.json")
        made.append(str(folder / f"{key}.json"))
    curve = {"label": name, "load": [0, 0.5, 1], "mean": [1, None, 3], "std": []}
    panel = {"title": name, "y_label": name, "curves": [curve]}
    trials = [{"a": 1.5, "b": name}]
    other = {"schema": "optgap.tune/1", "best": name, "trials": trials, "panels": [panel]}
    dump_json(folder / "other.json", other)
    return [*made, str(folder / "other.json")]


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
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def made(files: list[str]) -> Page:
    return make(files)


@pytest.fixture(scope="module")
def page(made: Page) -> str:
    return made.html


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make(write(tmp_path_factory.mktemp("hostile"), HOSTILE), title=HOSTILE).html


def test_every_kind_of_file_has_its_section(made: Page) -> None:
    schemas = [section.schema for section in made.sections]
    for name in ("result", "compare", "explain", "check", "tune"):
        assert f"optgap.{name}/1" in schemas
    assert schemas.count("optgap.overview/1") == 2  # a family, and one that failed
    drawn = {section.schema: len(section.pictures) for section in made.sections}
    assert drawn["optgap.result/1"] == 1  # the problem is among the files
    assert drawn["optgap.compare/1"] == 1


def test_the_page_needs_nothing_but_itself_and_is_well_formed_and_named_for_all(page: str) -> None:
    elements = Elements(page)
    for attributes in elements.all("img", "script", "link", "iframe", "object", "use", "a"):
        for name in ("src", "href", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/png"))
    assert not elements.all("link", "iframe", "object", "base", "form", "script")
    assert not re.search(r"@import|url\(", page)
    assert "default-src 'none'" in page
    assert "script-src" not in page
    assert elements.all("html")[0]["lang"] == "en"
    assert len(elements.all("h1")) == 1
    identifiers = [a["id"] for _, a in elements.found if a.get("id")]
    assert len(identifiers) == len(set(identifiers))
    for tag, attributes in elements.found:
        label = attributes.get("aria-labelledby")
        assert label is None or label in identifiers
        if tag == "a":
            assert (attributes["href"] or "")[1:] in identifiers
        if tag == "img":
            assert attributes["alt"]


def test_hostile_names_are_text_and_nothing_else(page: str, hostile: str) -> None:
    elements = Elements(hostile)
    assert {tag for tag, _ in elements.found} <= {tag for tag, _ in Elements(page).found}
    assert not any(name.startswith("on") for _, a in elements.found for name in a)
    assert "<img src=x" not in hostile
    assert "&lt;script&gt;window.pwned=1&lt;/script&gt;" in hostile


def test_objects_will_do_instead_of_files() -> None:
    problem = two_nodes_problem()
    result = optgap.run(problem, "fgd")
    comparison = optgap.compare(problem, "fgd", "bound-pooled")
    written = report([result, comparison], "x.html", title="From objects")
    assert Path("x.html").read_text() == written.html
    assert make([result, comparison], title="From objects").html == written.html
    assert "<title>From objects</title>" in written.html
    assert len(written.sections[0].pictures) == 1  # a result knows its problem
    assert comparison._repr_html_() in written.html


def test_a_result_without_its_problem_is_not_drawn() -> None:
    optgap.save(optgap.run(two_nodes_problem(), "fgd"), "r.json")
    other = two_nodes_problem(extra=1)
    optgap.save(other, "p.json")
    for inputs in (["r.json"], ["p.json", "r.json"]):
        (section,) = make(inputs).sections
        assert section.pictures == ()


def test_a_fit_shows_what_it_shows_in_a_notebook_and_its_curve() -> None:
    clocks = list(range(600, 1900, 100))
    table = {"frequency_mhz": clocks, "power_w": [40 + 0.1 * clock for clock in clocks]}
    fitted = optgap.fit(table, "linear-power", cv=0)
    (section,) = make([fitted]).sections
    assert section.title == "linear-power fitted to table"
    assert section.schema == "optgap.fit/1"
    assert section.html == fitted._repr_html_()
    assert len(section.pictures) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "valid JSON"),
        ("[", "valid JSON"),
        ("[]", "no schema"),
        ('{"rows": [1]}', "no schema"),
        ('{"schema": "other/1"}', "other/1"),
        ('{"schema": "optgap.result/1"}', "field family"),
        ('{"schema": "optgap.compare/1", "problem": {}}', "field family"),
        ('{"schema": "optgap.compare-set/1", "comparisons": [1]}', "comparisons[0]"),
        ('{"schema": "optgap.overview/1"}', "field families"),
        ('{"schema": "optgap.placement.problem/1"}', "field "),
        ("\x00", "row 1: found a NUL byte"),
    ],
)
def test_what_cannot_be_read_is_named(content: str, words: str) -> None:
    Path("x.json").write_text(content)
    with pytest.raises(InputError) as caught:
        make(["x.json"])
    assert "x.json" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(("name", "title"), [("\ud800", "t"), ("whole", "\udcff")])
def test_half_of_a_character_is_bad_input(name: str, title: str) -> None:
    Path("x.json").write_text(json.dumps({"schema": "optgap.tune/1", "name": name}))
    with pytest.raises(InputError, match="half of a character"):
        make(["x.json"], title=title)


def test_problems_alone_are_no_report() -> None:
    with pytest.raises(InputError, match="problems only"):
        make([two_nodes_problem()])
    with pytest.raises(InputError, match="found nothing"):
        make([])
    with pytest.raises(InputError, match="a file, or a result"):
        make([3])
    with pytest.raises(InputError, match=r"x\.csv: found a table, expected JSON files of optgap"):
        make(["x.csv"])


# -- the command -------------------------------------------------------------------------


@pytest.fixture
def comparison(files: list[str]) -> str:
    """One of the files, of another folder."""
    return next(file for file in files if file.endswith("compare.json"))


def test_files_become_one_page(cli: Cli, files: list[str]) -> None:
    answer = cli("report", *files, "-o", "r.html", "--json", "r.json")
    assert answer.code == 0, answer.err
    assert "sections" in answer.out
    page = Path("r.html").read_text()
    assert "<title>optgap report</title>" in page
    document = json.loads(Path("r.json").read_text())
    assert document["schema"] == "optgap.report/1"
    assert document["output"] == "r.html"
    assert document["bytes"] == len(page.encode())
    assert len(document["sections"]) > 6


def test_a_page_on_standard_output_comes_alone(cli: Cli, comparison: str) -> None:
    answer = cli("report", comparison, "-o", "-")
    assert answer.out.startswith("<!DOCTYPE html>")
    assert answer.out.rstrip().endswith("</html>")
