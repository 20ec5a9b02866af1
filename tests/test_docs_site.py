"""The site: every page has a place, docstrings and formulas are read as meant."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

import optgap

HOOKS = ROOT / "docs" / ".hooks"


def hook(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", HOOKS / f"{name}.py")
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages_in(entries: Any) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    if isinstance(entries, dict):
        return [page for value in entries.values() for page in pages_in(value)]
    return [page for entry in entries for page in pages_in(entry)]


def test_every_page_has_one_place_in_the_navigation() -> None:
    site = hook("site")
    pages = [path.name for path in (ROOT / "docs").glob("*.md")]
    every = [*pages, *site.api_pages(ROOT)]
    found = pages_in(site.nav(every, ROOT))
    assert sorted(found) == sorted(every)
    assert found[0] == "index.md"


def test_a_familys_pages_stand_together_and_strangers_last(tmp_path: Path) -> None:
    site = hook("site")
    (tmp_path / "docs").mkdir()
    for name in ("queueing-more.md", "stranger.md"):
        (tmp_path / "docs" / name).write_text(f"# About {name}\n")
    pages = ["queueing-more.md", "queueing.md", "queueing-bounds.md", "stranger.md"]
    found = site.nav(pages, tmp_path)
    own = [{"Problem": "queueing.md"}, {"About queueing-more.md": "queueing-more.md"}]
    assert {"Families": [{"Queueing": own}]} in found
    assert {"Theory": [{"Bounds: queueing": "queueing-bounds.md"}]} in found
    assert found[-1] == {"More": [{"About stranger.md": "stranger.md"}]}


def test_modules_of_the_api_pages_exist() -> None:
    site = hook("site")
    modules = [name for _, names in site.API.values() for name in names]
    modules += [name for family in site.FAMILIES for name in site._modules(ROOT, family)]
    for name in modules:
        assert importlib.util.find_spec(name), name


def test_the_page_about_python_has_every_public_name_in_five_groups() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    names = set(optgap.__all__) - {"__version__"}
    assert names == set(hook("site").public(page))
    assert page.count("\n## ") == 5


def test_our_docstrings_become_numpydoc() -> None:
    pytest.importorskip("griffe", reason="comes with the extra docs")
    text = hook("docstrings").numpydoc(
        "Do it.\n\nParameters\n----------\na, b: what\n    goes on.\nc: more.\n\n"
        "Returns\n-------\nA list.\n\nRaises\n------\nInputError: for x: y.\n"
    )
    assert "a, b\n    what\n    goes on.\nc\n    more." in text
    assert "**Returns**\n\nA list." in text
    assert "InputError\n    for x: y." in text


def test_dollars_and_fences_are_formulas_only_where_they_are_meant_to_be() -> None:
    pytest.importorskip("latex2mathml", reason="comes with the extra docs")
    site = hook("site")
    markdown = (
        "Cost $5 and $x^2$ and `$HOME` and $OPTGAP_DATA.\n\n```sh\necho $A $B\n```\n$$y$$\n\n"
        "```math\nx\n```\n\nwith $y$ and `$z$`\n\n```math\n\\sum_i x_i\n```\n\n```\n$a$\n```\n"
    )
    page = site.on_page_markdown(markdown, None, None, None)
    assert page.count("<math") == 2 + 3
    assert 'Cost $5 and <span class="formula"><math' in page
    for kept in ("`$HOME` and $OPTGAP_DATA", "echo $A $B", "`$z$`", "```\n$a$\n```"):
        assert kept in page
    assert "```math" not in page


def test_links_out_of_the_documentation_become_words() -> None:
    site = hook("site")
    page = site.on_page_markdown("see [this](../README.md) and [that](cli.md)", None, None, None)
    assert page == "see this (`../README.md`) and [that](cli.md)".replace("../", "")


def test_notebooks_become_pages_and_the_gallery_shows_a_picture_of_each() -> None:
    site = hook("notebooks")
    notebooks = site.stored(ROOT)
    pages = {name: site.page(name, notebook) for name, notebook in notebooks.items()}
    for text, pictures in pages.values():
        assert re.findall(r"^!\[.*\]\((.*)\)$", text, re.MULTILINE) == list(pictures)
    shown = re.findall(r'href="(.*)/"><img src="(.*?)"', site.gallery(notebooks))
    assert shown == [(name, list(pictures)[-1]) for name, (_, pictures) in pages.items()]
