"""The README's every command, in a clean environment, away from the tree.

    python tests/release/readme.py --python python3.12

makes a wheel of what is committed, installs it as a user would into an environment of its own,
and runs in an empty folder, without data, all that README.md tells its reader to type: the lines
of its ``sh`` blocks, its Python, and every complete ``optgap …`` in its text and tables. ``make``
lines run in a fresh clone. Exits with 1 when one of them fails, or a link or picture leads nowhere.
`make release-check` does it for each Python.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clean import ROOT, Clean, cloned

sys.path.insert(0, str(ROOT / "tests"))  # run as a script, not by pytest
import pages

README = ROOT / "README.md"
FILES = ("../README.md", "placement.md", "csv-to-gap.md")
"""Pages that show the files which the README names."""
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


@dataclass(frozen=True)
class Step:
    """One thing that the README has its reader do."""

    kind: str
    text: str


def steps() -> Iterator[Step]:
    """What is to be typed, from top to bottom."""
    for item in pages.read(README):
        if isinstance(item, pages.Script):
            yield Step("python", item.text)
        elif isinstance(item, pages.Command):
            words = item.words
            # a command that is only named, `optgap solve`, is asked for its help
            named = item.inline and len(words) == 2 and words[1] in ("solve", "audit")
            yield Step("sh", shlex.join([*words, "--help"] if named else words))


class Reader(Clean):
    """Somebody with one Python, a README and a wheel."""

    def __init__(self, python: str, place: Path) -> None:
        super().__init__(python, place)
        self.clone = place / "clone"
        self.wheels = place / "wheels"

    def settle(self) -> None:
        """Make clone, wheel, environment, and the files that the README leaves to others."""
        super().settle()
        cloned(self.clone)
        pip = ["python", "-m", "pip", "wheel", "--quiet", "--no-deps"]
        self.checked([*pip, "--wheel-dir", str(self.wheels), str(self.clone)])
        for page in FILES:
            for item in pages.read(ROOT / "docs" / page):
                if isinstance(item, pages.File):
                    (self.here / item.name).write_text(item.text)

    def do(self, step: Step) -> subprocess.CompletedProcess[str]:
        """Take one step."""
        if step.kind == "python":
            return self.run(["python", "-c", step.text])
        words = shlex.split(step.text)
        if words[0] == "make":
            return self.run([*words, f"PYTHON={self.python}"], self.clone)
        if words[:2] == ["pip", "install"]:
            (wheel,) = self.wheels.glob("*.whl")
            words = ["pip", "install", "--quiet", *(_of_wheel(word, wheel) for word in words[2:])]
        return self.run(words)


def _of_wheel(word: str, wheel: Path) -> str:
    """``.`` and ``.[extra]`` as the wheel; all else as it is."""
    found = re.fullmatch(r"\.(\[[\w,]+\])?", word)
    return word if found is None else f"{wheel}{found[1] or ''}"


def broken_links(markdown: str) -> list[str]:
    """Links to files that are not there, and pictures that are none."""
    wrong = []
    for target in LINK.findall(markdown):
        path = ROOT / target
        if "://" in target:
            continue
        if not path.exists():
            wrong.append(f"{target}: no such file")
        elif path.suffix == ".png" and not path.read_bytes().startswith(b"\x89PNG"):
            wrong.append(f"{target}: no PNG")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--no-make", action="store_true", help="leave out what needs a checkout")
    given = parser.parse_args()
    markdown = README.read_text()
    failed = broken_links(markdown)
    print(*failed, sep="\n", end="\n" if failed else "")
    with tempfile.TemporaryDirectory(prefix="optgap-readme-") as place:
        reader = Reader(shutil.which(given.python) or given.python, Path(place))
        reader.settle()
        for step in dict.fromkeys(steps()):
            if given.no_make and step.text.startswith("make "):
                continue
            started = time.monotonic()
            done = reader.do(step)
            shown = step.text.strip().splitlines()[0]
            print(f"{done.returncode:3d} {time.monotonic() - started:7.1f} s  {shown}", flush=True)
            if done.returncode:
                failed.append(shown)
                print(done.stdout[-2000:], done.stderr[-2000:], sep="\n", flush=True)
    print(f"{given.python}: {len(failed)} failed" if failed else f"{given.python}: all done")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
