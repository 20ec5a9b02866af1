"""The page of formulations shows the programs as they stand in code."""

from __future__ import annotations

import inspect
import re
import textwrap
from functools import reduce
from importlib import import_module
from pathlib import Path

from optgap.registry import FAMILIES

MARK = re.compile(r"<!-- code: (\S+):(\S+) -->\n\n```py\n(.*?)```\n", re.DOTALL)
PAGE = Path("docs/formulations.md")


def source(module: str, path: str) -> str:
    found = reduce(getattr, path.split("."), import_module(module))
    return textwrap.dedent(inspect.getsource(found))


def test_the_page_of_formulations_shows_what_is_exported(root: Path) -> None:
    page = (root / PAGE).read_text()
    shown = MARK.findall(page)
    assert len(shown) == page.count("<!-- code: ") >= 1
    for module, path, code in shown:
        assert code == source(module, path), f"{module}:{path} is another on {PAGE}"


def test_files_that_the_page_names_are_there(root: Path) -> None:
    page = (root / PAGE).read_text()
    named = re.findall(r"`(solvers/[a-z_/]+(?:\.py|/))`", page)
    assert len(named) >= 5
    for name in named:
        assert (root / name).exists(), name
    for family in FAMILIES:
        place = "formulations/printed.py" if family == "consolidation" else "formulation.py"
        assert (root / "solvers" / family / place).exists(), family


if __name__ == "__main__":  # pragma: no cover - `python tests/face/test_formulations_page.py`
    text = re.sub(r"(<!-- code: \S+ -->\n)\n(```py\n.*?```\n)?", r"\1\n```py\n```\n",
                  PAGE.read_text(), flags=re.DOTALL)  # fmt: skip
    PAGE.write_text(
        MARK.sub(
            lambda m: f"<!-- code: {m[1]}:{m[2]} -->\n\n```py\n{source(m[1], m[2])}```\n", text
        )
    )
