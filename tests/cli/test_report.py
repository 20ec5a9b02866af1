from __future__ import annotations

import json
from pathlib import Path

import pytest
import report_files
from conftest import Cli, refused


@pytest.fixture
def result_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    return report_files.write(tmp_path)


def test_files_become_one_page(cli: Cli, result_files: list[str]) -> None:
    answer = cli("report", *result_files, "-o", "r.html", "--json", "r.json")
    assert answer.code == 0, answer.err
    assert "sections" in answer.out
    page = Path("r.html").read_text()
    assert "<title>optgap report</title>" in page
    document = json.loads(Path("r.json").read_text())
    assert document["schema"] == "optgap.report/1"
    assert document["output"] == "r.html"
    assert document["bytes"] == len(page.encode())
    assert len(document["sections"]) > 6


def test_a_page_on_standard_output_comes_alone(cli: Cli, result_files: list[str]) -> None:
    answer = cli("report", "compare.json", "-o", "-")
    assert answer.out.startswith("<!DOCTYPE html>")
    assert answer.out.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare.json",), "--output"),
        (("compare.json", "-o", "no/r.html"), "no such folder"),
        (("compare.json", "-o", "x", "--json", "x"), "two outputs"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    cli: Cli, result_files: list[str], arguments: tuple[str, ...], words: str
) -> None:
    refused(cli("report", *arguments), words)
    assert not Path("r.html").exists()
