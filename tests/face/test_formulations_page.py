"""The page of formulations names files that exist."""

from __future__ import annotations

import re
from pathlib import Path

from optgap.registry import FAMILIES


def test_files_that_the_page_names_are_there(root: Path) -> None:
    page = (root / "docs" / "formulations.md").read_text()
    named = re.findall(r"`(solvers/[a-z_/]+(?:\.py|/))`", page)
    assert len(named) >= 5
    for name in named:
        assert (root / name).exists(), name
    for family in FAMILIES:
        assert (root / "solvers" / family / "formulation.py").exists(), family
