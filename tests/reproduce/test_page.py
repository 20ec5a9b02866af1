"""Pictures on the pages of what was run again are there and small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("name", "pictures"), [("placement", 10), ("coscheduling", 8), ("elastic", 5), ("queueing", 1)]
)
def test_pictures_are_there_and_small(root: Path, name: str, pictures: int) -> None:
    page = (root / "docs" / f"reproduction-{name}.md").read_text()
    found = re.findall(r"\]\((images/[a-z0-9-]+\.png)\)", page)
    assert len(set(found)) == len(found) == pictures
    for path in found:
        assert (root / "docs" / path).stat().st_size < 150_000
