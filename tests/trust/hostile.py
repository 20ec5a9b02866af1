"""Thousands of broken files, made by breaking a whole one at every place in every way.

Run as a program it breaks the JSON documents of families, each in a folder of its name, and their
CSV files, and has the package read and use what is left; a report of everything that was neither
refused in one line nor usable goes to standard output. It is a program of its own so that its
memory can be measured.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

from trust.samples import TABLES, wrong_tables

FORMS = ("problem", "solution", "result")
"""Of JSON."""
SECONDS = 60
MISSING = object()

Place = tuple[str | int, ...]

INSTEAD: tuple[Any, ...] = (
    MISSING,
    None,
    True,
    "",
    "text",
    "../../etc/passwd",
    -1,
    0,
    0.5,
    10**12,
    9 * 10**18,
    10**30,
    1e300,
    5e-324,
    float("nan"),
    float("-inf"),
    [],
    [[[]]],
    {},
    {"__class__": "os.system"},
)
"""What is put in the place of a value."""


class HangError(Exception):
    """It took too long."""


def places(document: Any, at: Place = ()) -> Iterator[Place]:
    """Every place in `document`; of a list only the first, second and last item."""
    if isinstance(document, dict):
        steps: list[str | int] = list(document)
    elif isinstance(document, list):
        steps = sorted({0, 1, len(document) - 1} & set(range(len(document))))
    else:
        return
    for step in steps:
        yield (*at, step)
        yield from places(document[step], (*at, step))


def broken(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """`document` with one thing wrong, and what that is."""
    for place in places(document):
        for value in INSTEAD:
            copy = deepcopy(document)
            inner: Any = copy
            for step in place[:-1]:
                inner = inner[step]
            if value is MISSING:
                del inner[place[-1]]
            else:
                inner[place[-1]] = value
            yield f"{'.'.join(map(str, place))} = {'(gone)' if value is MISSING else value!r}", copy
        for copy, what in reshaped(document, place):
            yield what, copy


def reshaped(document: dict[str, Any], place: Place) -> Iterator[tuple[dict[str, Any], str]]:
    """Lists longer, shorter and turned round; the rest untouched."""
    copy = deepcopy(document)
    inner: Any = copy
    for step in place:
        inner = inner[step]
    if not isinstance(inner, list) or not inner:
        return
    name = ".".join(map(str, place))
    changes = {
        "longer": [*inner, inner[-1]],
        "shorter": inner[:-1],
        "reversed": inner[::-1],
        "of one thing": [inner[0]] * len(inner),
        "nested": [inner],
    }
    for what, changed in changes.items():
        again = deepcopy(document)
        target: Any = again
        for step in place[:-1]:
            target = target[step]
        target[place[-1]] = changed
        yield again, f"{name} {what}"


def one_line(error: Exception) -> bool:
    """Whether an error is what a reader is owed: one line, and not an endless one."""
    text = str(error)
    return "\n" not in text and 0 < len(text) < 600


def tried(path: Path, solution_of: Path | None) -> None:
    """Read the document and put it to use, as the command line would."""
    import optgap
    from optgap import documents
    from optgap.registry import family

    if solution_of is not None:
        problem = documents.load_problem(solution_of)
        optgap.check(problem, documents.load_solution(path, problem)).to_json()
        return
    problem = documents.load_problem(path)
    problem.to_json()
    str(problem.summary)
    spec = family(problem.family)
    for method in (spec.auto(problem), spec.auto_bound(problem)):
        optgap.solve(problem, method, time_limit=0.2)
    for policy in list(spec.policies)[:2]:
        optgap.run(problem, policy, time_limit=2)


def peak_mib() -> float:
    """Most memory that this process has held, MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def stop(*_: object) -> None:
    raise HangError


def guarded(use: Callable[[], None], what: str, counts: dict[str, int]) -> list[str]:
    """What is wrong with how `use` ends, if anything is."""
    from optgap.models.errors import InputError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        use()
        counts["usable"] += 1
    except InputError as error:
        counts["refused"] += 1
        if not one_line(error):
            return [f"{what}: refused in more than a line: {str(error)[:300]!r}"]
    except HangError:
        return [f"{what}: more than {SECONDS} s"]
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{Path(last.filename).name}:{last.lineno}"
        return [f"{what}: {type(error).__name__}: {str(error)[:200]} at {at}"]
    finally:
        signal.alarm(0)
    return []


def report(counts: dict[str, int], failures: list[str], left: list[str]) -> dict[str, Any]:
    """What a run has come to."""
    return {**counts, "failures": failures, "left": left, "mib": peak_mib()}


def documents(form: str, parts: int) -> dict[str, Any]:
    """Try every `parts`-th broken document of a form, from the whole ones in this folder."""
    document = json.loads(Path(f"{form}.json").read_text())
    solution_of = None if form == "problem" else Path("problem.json")
    counts = {"refused": 0, "usable": 0}
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "broken.json"
        for number, (what, wrong) in enumerate(broken(document)):
            if number % parts == 0:
                path.write_text(json.dumps(wrong))
                failures += guarded(lambda: tried(path, solution_of), what, counts)
        left = sorted(p.name for p in Path(folder).iterdir() if p != path)
    return report(counts, failures, left)


def wrong_files(text: str) -> list[tuple[str, bytes]]:
    """A table or a JSON document with one thing wrong."""
    if not text.startswith("{"):
        return wrong_tables(text)
    return [(what, json.dumps(wrong).encode()) for what, wrong in broken(json.loads(text))]


def tables(family_name: str, parts: int) -> dict[str, Any]:
    """Try every `parts`-th broken table of a family."""
    import optgap
    from optgap.registry import family

    spec = family(family_name)
    texts, given = TABLES[family_name]
    counts = {"refused": 0, "usable": 0}
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        files = {name: str(Path(folder) / f"{name}.csv") for name in texts}

        def use(strict: bool = True) -> None:
            problem = spec.from_tables(files, {**given, "strict": strict}, 0)
            optgap.run(problem, next(iter(spec.policies)), time_limit=2)

        for name, text in texts.items():
            for other, whole in texts.items():
                Path(files[other]).write_text(whole)
            use()
            for number, (what, wrong) in enumerate(wrong_files(text)):
                if number % parts == 0:
                    Path(files[name]).write_bytes(wrong)
                    # what looks like another unit is refused every other time only
                    failures += guarded(partial(use, number % 2 == 0), f"{name}: {what}", counts)
        left = sorted(set(map(str, Path(folder).iterdir())) - set(files.values()))
    return report(counts, failures, left)


if __name__ == "__main__":
    tried_parts, *families = sys.argv[1:]
    found: dict[str, dict[str, Any]] = {}
    for family_name in families:
        with contextlib.chdir(family_name):
            every = int(tried_parts)
            found[family_name] = {form: documents(form, every) for form in FORMS}
            found[family_name]["table"] = tables(family_name, min(every, 5))
    print(json.dumps(found))
