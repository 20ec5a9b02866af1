"""Every command in the README and the documentation works.

Complete commands are run in an empty folder that holds what the page shows, on presets made small.
Those in `PARSED` are taken apart by the real command line alone, for the reason beside them. A
command that a sentence only mentions must have the options it names.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pages
import pytest
from conftest import ROOT, Cli

from optgap.cli import COMMANDS, Call, UsageProblem, load_command
from optgap.models.spec import Entry
from optgap.registry import FAMILIES

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

PARSED = {
    r"optgap generate --fetch (NAME|openb)": "needs a network; tests/face/test_datasets",
    r"optgap fit powerflow-energy .*": "needs a profile over clocks and GPUs; tests/fitting",
    r"optgap audit swf .*": "needs a log in that format; tests/audit",
    r"optgap fit --audit gpu\.csv .*": "needs a log of a GPU; tests/fitting",
}
"""Commands that are not run, and why."""
OTHERS = {
    "jupyter lab notebooks": "opens a browser",
    "python -m build": "comes with the build front end, as CI installs it",
    "python3 -m venv .venv '&&' . .venv/bin/activate": "an environment is what these tests run in",
}
"""Commands of others that are not looked into, and why."""
PRINTED = {
    "cluster.json": "kubernetes.json.gz",
    "jobs.txt": "slurm2205_final_audit_X_D_duplicates.psv.gz",
}
"""What programs of a cluster printed once, by the names that pages give it."""
CLUSTERS = {"kubectl", "sacct", "curl", "nvidia-smi"}
"""Programs of a cluster's, which are not here."""
SMALL = {"alibaba": 3, "large": 3, "day": 3, "small": 2, "tiny": 2}
SIZE = 5
"""Sizes of presets here, those of `SMALL` by name: nodes, tasks or jobs."""
QUICK = {"runs": 5, "rounds": 20}
"""Of elastic's offline search, as long for few jobs as for many: it is tested elsewhere."""
FORM = re.compile(r".*[\[…].*|[A-Z]{3,}")
"""A word of a command that stands for something else."""
NAME = re.compile(r"(?:^|=|:|,)([\w-]+\.(?:csv|json|toml|py|txt))\b")


# -- what the reader has ---------------------------------------------------------------------


def shown(path: Path) -> dict[str, str]:
    """The files that a page shows."""
    return {item.name: item.text for item in pages.read(path) if isinstance(item, pages.File)}


class Reader:
    """Somebody in an empty folder, with a page before them."""

    def __init__(self, page: Path, cli: Cli) -> None:
        self.page, self.cli = page, cli
        self.own = shown(page)
        for name, text in self.own.items():
            Path(name).write_text(text)
        self.family = next((name for name in FAMILIES if page.name.startswith(name)), "placement")
        tiny = [f"{key}={value}" for key, value in FAMILIES[self.family].tiny.items()]
        preset = [word.removeprefix("preset=") for word in tiny if word.startswith("preset=")]
        settings = [part for word in tiny if "preset=" not in word for part in ("--set", word)]
        chosen = ["--preset", *preset] if preset else []
        assert cli("generate", self.family, *chosen, *settings, "-o", "problem.json").code == 0

    def supply(self, words: list[str]) -> None:
        """Files that a command names and the page does not show, from the page that does."""
        about = next((word for word in words if word in FAMILIES), self.family)
        for name in NAME.findall(" ".join(words).replace(" ", ",")):
            if name in self.own:
                continue
            if name in PRINTED and not Path(name).exists():
                data = (ROOT / "tests" / "audit" / "data" / PRINTED[name]).read_bytes()
                Path(name).write_bytes(gzip.decompress(data))
                continue
            of_family = shown(ROOT / "docs" / f"{about}.md")
            if name in of_family:
                Path(name).write_text(of_family[name])
            elif not Path(name).exists():
                texts = (shown(page).get(name) for page in PAGES)
                text = next((text for text in texts if text is not None), None)
                if text is not None:
                    Path(name).write_text(text)

    def type(self, command: pages.Command) -> None:
        """Run a command, or look into it."""
        line, _, reader = command.text.partition(" | ")
        words = shlex.split(line)
        assert reader in ("", "python -m json.tool")
        if command.inline and mentions(words):
            require_options(words)
        elif any(re.fullmatch(pattern, line) for pattern in PARSED):
            arguments(words)
        elif any(map(FORM.fullmatch, words)):
            require_options(words)
        else:
            self.supply(words)
            answer = self.cli(*words[1:])
            assert answer.code == 0, f"{line}: {answer.err}"
            if reader:
                json.loads(answer.out)


# -- commands that are not run ---------------------------------------------------------------


def arguments(words: list[str]) -> Any:
    """The command's parameters as the command line reads them."""
    command = load_command(words[1])
    return command.make_context(words[1], list(words[2:]), obj=Call()).params


def mentions(words: list[str]) -> bool:
    """Whether a sentence names the command without all that it needs."""
    if words[1].isupper() or words[1].startswith("--"):
        return True
    if len(words) == 2 or (words[1] == "fit" and not any(map(NAME.search, words))):
        return words[1] in COMMANDS or words[1].startswith("--")
    try:
        arguments(words)
    except UsageProblem as problem:
        told = problem.format_message()  # type: ignore[attr-defined]
        return "Missing" in told or "requires an argument" in told
    return False


def require_options(words: list[str]) -> None:
    if words[1].startswith("--"):
        known = {"--version", "--json"}
    elif words[1] in COMMANDS:
        command = load_command(words[1])
        options = [(*option.opts, *option.secondary_opts) for option in command.params]
        known = {"--help", *(name for names in options for name in names)}
    else:
        assert words[1] == "COMMAND"
        known = {"--help"}
    named = re.findall(r"(?<!\S)\[?(--?[a-z][\w-]*)", " ".join(words))
    assert set(named) <= known, words


def look_into(command: pages.Command) -> None:
    """Commands of pip, make and Python: what they name is there."""
    words = command.words
    if command.text in OTHERS or next(w for w in words if "=" not in w) in CLUSTERS:
        return
    if words[:2] == ["pip", "install"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for extra in re.findall(r"\[(\w+)\]", command.text):
            assert extra in project["optional-dependencies"]
    elif words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets
    elif words[1] == "-m" and (ROOT / words[2]).is_dir():
        assert (ROOT / words[2] / "__main__.py").exists(), words
    else:
        text = (ROOT / words[1]).read_text()
        assert all(word in text for word in words[2:] if word.startswith("--")), words


# -- the tests -------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, one_process: None) -> None:
    """An empty folder, presets made small, and everything in this process, which knows them."""
    load = Entry.load

    def loaded(entry: Entry) -> Callable[..., Any]:
        function = load(entry)
        if set(QUICK) <= set(entry.params):
            return lambda problem, **given: function(problem, **{**QUICK, **given})
        if entry.kind != "policy" or "size" not in entry.params:
            return function

        def make(*, seed: int, **params: Any) -> Any:
            size = min(params.get("size", SIZE), SMALL.get(entry.name, SIZE))
            return function(seed=seed, **{**params, "size": size})

        return make

    monkeypatch.setattr(Entry, "load", loaded)
    pages.solve_once(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def commands(page: Path) -> Iterator[pages.Command]:
    yield from dict.fromkeys(item for item in pages.read(page) if isinstance(item, pages.Command))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_everything_that_a_page_shows_works(page: Path, cli: Cli) -> None:
    reader: Reader | None = None
    for item in dict.fromkeys(pages.read(page)):
        if isinstance(item, pages.File):
            continue
        ours = isinstance(item, pages.Script) or item.text.startswith("optgap ")
        if not ours:
            look_into(item)
            continue
        reader = reader or Reader(page, cli)
        if isinstance(item, pages.Script):
            reader.supply(re.findall(r'"([^"\s]+)"', item.text))
            exec(compile(item.text, page.name, "exec"), {"__name__": "__main__"})
        elif page.name != "tutorial.md" or item.inline:  # test_docs runs its commands as they are
            reader.type(item)


def test_every_line_of_the_synopsis_has_options_that_there_are() -> None:
    lines = [line for page in PAGES for line in pages.usage(page)]
    assert len(lines) > len(COMMANDS)
    for line in lines:
        for name in line.split()[1].split("|"):
            require_options(["optgap", name, *line.split()[2:]])


def test_no_exception_stands_for_nothing() -> None:
    lines = {command.text for page in PAGES for command in commands(page)}
    for pattern in PARSED:
        assert any(re.fullmatch(pattern, line) for line in lines), pattern
    assert set(OTHERS) <= lines
    assert set(QUICK) <= set(FAMILIES["elastic"].methods["offline"].params)
