"""Mutation testing of the referees and the bounds: `make mutants`, see docs/trust.md.

cosmic-ray makes the mutants. They are run here and not by its own runner: no file changes (the
mutated source is what the import system is given), and each run is forked from a process that has
everything but optgap loaded already, which is what makes some thousand of them affordable.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import fnmatch
import gc
import importlib
import importlib.util
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
OUT = ROOT / "out" / "mutants"
OURS = ("optgap", "tests", "conftest", "enumeration", "reference")
ADDRESS_SPACE = 24 << 30
"""Bytes that a mutant may map: some ask for all there is."""
LONGEST_S, SLOWER = 20.0, 8.0
"""A mutant's tests are stopped after so long, or so many times as long as without it."""


@dataclass(frozen=True)
class Target:
    """One module and the tests that are to notice.

    Parameters
    ----------
    sample: how many of its mutants are tried; all without.
    compiled: whether numba compiles something of it.
    """

    module: str
    tests: tuple[str, ...]
    sample: int = 0
    compiled: bool = False

    @property
    def path(self) -> Path:
        return ROOT / self.module

    @property
    def name(self) -> str:
        """As it is imported."""
        parts = self.path.with_suffix("").relative_to(ROOT).parts
        return ".".join(parts[1:] if parts[0] == "src" else ("optgap", *parts))

    @property
    def kept(self) -> Path:
        """Where the outcomes are kept."""
        return OUT / f"{self.name.removeprefix('optgap.')}.json"

    def before(self) -> list[dict[str, Any]]:
        """The outcomes of the last time."""
        return json.loads(self.kept.read_text()) if self.kept.exists() else []


@dataclass
class Mutant:
    """One change of a module."""

    operator: str
    line: int
    was: str
    now: str
    source: str
    outcome: str = ""
    why: str = ""

    @property
    def key(self) -> Key:
        return self.operator, self.was, self.now


Key = tuple[str, str, str]


# -- mutants ------------------------------------------------------------------------------


Position = tuple[int, str, int]
"""Which chunk, operator, and occurrence of what it would change."""


def chunks(source: str) -> list[str]:
    """The source by statements at the top: to parse one function is faster than all of them."""
    lines = source.splitlines(keepends=True)
    starts = [
        min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        for node in ast.parse(source).body
    ]
    return ["".join(lines[a:b]) for a, b in itertools.pairwise([0, *starts[1:], len(lines)])]


def positions(parts: list[str]) -> list[Position]:
    """All that cosmic-ray would change."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    found = []
    for c, part in enumerate(parts):
        nodes = list(ast_nodes(get_ast(part)))
        for name in sorted(operator_names()):
            operator = get_operator(name)
            if not operator.arguments():  # others want names of variables
                count = sum(len(list(operator().mutation_positions(node))) for node in nodes)
                found += [(c, name, k) for k in range(count)]
    return found


def mutants(parts: list[str], wanted: list[Position]) -> Iterator[Mutant]:
    """The mutants at these positions, less those that mean the same as another or the source."""
    from cosmic_ray.mutating import MutationVisitor
    from cosmic_ray.plugins import get_operator

    seen = {(c, _meaning(part)) for c, part in enumerate(parts)}
    before = list(itertools.accumulate((part.count("\n") for part in parts), initial=0))
    for c, name, occurrence in wanted:
        changed = MutationVisitor.mutate_code(parts[c], get_operator(name)(), occurrence)
        meaning = (c, _meaning(changed))
        if meaning not in seen:
            seen.add(meaning)
            line, was, now = _difference(parts[c], changed)
            whole = "".join([*parts[:c], changed, *parts[c + 1 :]])
            yield Mutant(name.removeprefix("core/"), before[c] + line, was, now, whole)


class _Unannotated(ast.NodeTransformer):
    """Without what is never evaluated: annotations, and decorators that compile."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        node.decorator_list = [d for d in node.decorator_list if ast.unparse(d) not in _COMPILES]
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        node.annotation = ast.Constant(None)
        return node


_COMPILES = ("compiled", "inner")


def _meaning(source: str) -> str:
    try:
        return ast.dump(_Unannotated().visit(ast.parse(source)))
    except SyntaxError:
        return source


def _difference(source: str, changed: str) -> tuple[int, str, str]:
    """Line number, what it was and what it is now."""
    before, after = source.splitlines(), changed.splitlines()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if tag != "equal":
            was = " ".join(line.strip() for line in before[a:b])
            return a + 1, was, " ".join(line.strip() for line in after[c:d])
    return 0, "", ""


# -- running ------------------------------------------------------------------------------


class _Loader(SourceFileLoader):
    """Gives a module another source than its file has."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the mutated module, and nothing else."""

    def __init__(self, target: Target, source: str) -> None:
        self.target, self.source = target, source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.target.name:
            return None
        place = str(self.target.path)
        loader = _Loader(name, place, self.source)
        return importlib.util.spec_from_file_location(name, place, loader=loader)


def _pytest(tests: tuple[str, ...]) -> int:
    import pytest

    off = [f"-pno:{name}" for name in ("cacheprovider", "unraisableexception", "threadexception")]
    return int(pytest.main(["-x", "-q", "--assert=plain", "--tb=short", *off, *tests]))


def _child(target: Target, source: str | None, report: Path | None = None) -> int:
    """Fork a process that runs the tests, with a mutant or without; its id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        out = os.open(report or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if target.compiled:
            os.environ["NUMBA_DISABLE_JIT"] = "1"  # or what was compiled before is what runs
            importlib.import_module("numba").config.reload_config()
        if source is not None:
            sys.meta_path.insert(0, _Finder(target, source))
        code = _pytest(target.tests)
    finally:
        os._exit(code)


def _wait(running: dict[int, tuple[Mutant, float]], limit: float) -> None:
    """Until one has ended, or has had its time."""
    while True:
        for pid, (mutant, began) in list(running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            late = time.monotonic() - began > limit
            if not done and not late:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            if not done:
                os.waitpid(pid, 0)
            mutant.outcome = "timeout" if not done else "survived" if status == 0 else "killed"
            del running[pid]
            return
        time.sleep(0.005)


def run(target: Target, jobs: int, seed: int, before: dict[Key, Mutant]) -> list[Mutant]:
    """Try the mutants of a module, or a sample of them; not again those that died before.

    Nor those of `before` that survived and have a reason.
    """
    source = target.path.read_text()
    parts = chunks(source)
    every = positions(parts)
    if target.sample:
        random.Random(seed).shuffle(every)
    chosen = list(itertools.islice(mutants(parts, every), target.sample or None))
    chosen.sort(key=lambda mutant: mutant.line)
    for mutant in chosen:
        known = before.get(mutant.key)
        if known is not None and (known.outcome != "survived" or known.why):
            mutant.outcome = known.outcome
    began = time.monotonic()
    report = OUT / "baseline.txt"
    _, status = os.waitpid(_child(target, None, report), 0)
    alone = time.monotonic() - began
    if status:
        raise SystemExit(f"{target.module}: the tests fail as it is\n{report.read_text()}")
    limit = LONGEST_S + SLOWER * alone
    left = [mutant for mutant in chosen if not mutant.outcome]
    print(
        f"{target.module}: {len(left)} to try, {len(every)} positions, {alone:.1f} s each",
        flush=True,
    )
    running: dict[int, tuple[Mutant, float]] = {}
    for k, mutant in enumerate(left):
        if len(running) >= jobs:
            _wait(running, limit)
        if k % 25 == 24:
            keep(target, chosen)
        running[_child(target, mutant.source)] = (mutant, time.monotonic())
    while running:
        _wait(running, limit)
    return chosen


def keep(target: Target, found: list[Mutant]) -> None:
    """Write what is known so far, for `--again` and `--report`."""
    rows = [{k: v for k, v in asdict(m).items() if k != "source"} for m in found]
    target.kept.write_text(json.dumps(rows, indent=1, ensure_ascii=False))


def preload(targets: list[Target]) -> None:
    """Import what the tests need of others' packages, as they would."""
    code = (
        "import sys, pytest; pytest.main(['-q', '--collect-only', *sys.argv[1:]]);"
        "print('\\n::', *sys.modules, sep='\\n')"
    )
    tests = sorted({t for target in targets for t in target.tests if not t.startswith("-")})
    said = subprocess.run([sys.executable, "-c", code, *tests], cwd=ROOT, capture_output=True)
    names = said.stdout.decode().partition("\n::\n")[2].split()
    for name in names:
        if name.split(".")[0] not in OURS and not name.startswith("strategies_"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    from hypothesis import HealthCheck, Phase, settings

    settings.register_profile(
        "mutants",
        max_examples=25,
        deadline=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),  # a killed mutant need not be killed smaller
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


# -- what is known of survivors -----------------------------------------------------------


Rule = dict[str, str]
"""Patterns of module and operator, parts of the line before and after, and why."""


def explain(target: Target, found: list[Mutant], rules: list[Rule]) -> None:
    """Note the reason of those survivors that have one in explained.toml."""
    for mutant in found:
        if mutant.outcome == "survived":
            mutant.why = next((r["why"] for r in rules if _covers(r, target, mutant)), "")


def _covers(rule: Rule, target: Target, mutant: Mutant) -> bool:
    return (
        fnmatch.fnmatchcase(target.module, rule.get("module", "*"))
        and fnmatch.fnmatchcase(mutant.operator, rule.get("operator", "*"))
        and rule.get("was", "") in mutant.was
        and rule.get("now", "") in mutant.now
    )


def settle(target: Target, found: list[Mutant]) -> int:
    """Keep what came out, print a row of the table, and the survivors that nobody explained."""
    count = Counter(m.outcome for m in found)
    still = [m for m in found if m.outcome == "survived" and not m.why]
    explained = count["survived"] - len(still)
    columns = (len(found), count["killed"], count["timeout"], explained, len(still))
    print(f"| {target.module} |", " | ".join(map(str, columns)), "|", flush=True)
    for m in still:
        print(f"{target.module}:{m.line} {m.operator}\n  - {m.was}\n  + {m.now}", flush=True)
    keep(target, found)
    return len(still)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="parts of their paths; all without")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=20261121, help="of the samples")
    parser.add_argument("--sample", type=int, help="instead of what targets.toml says")
    parser.add_argument("--again", action="store_true", help="those that survived the last time")
    parser.add_argument("--open", action="store_true", help="of those only what has no reason")
    parser.add_argument("--report", action="store_true", help="run nothing, show the last time's")
    given = parser.parse_args()
    listed = tomllib.loads((HERE / "targets.toml").read_text())["target"]
    explained = tomllib.loads((HERE / "explained.toml").read_text())["explained"]
    targets = [Target(**{**row, "tests": tuple(row["tests"])}) for row in listed]
    if given.modules:
        targets = [t for t in targets if any(part in t.module for part in given.modules)]
    if given.sample is not None:
        targets = [Target(t.module, t.tests, given.sample, t.compiled) for t in targets]
    OUT.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "HYPOTHESIS_PROFILE": "mutants",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    sys.path.insert(0, str(ROOT / "src"))
    os.chdir(ROOT)
    if not given.report:
        preload(targets)
        gc.freeze()  # what is shared with every child
    print("| module | tried | killed | timed out | explained | open |")
    bad = 0
    for target in targets:
        found = [Mutant(**row, source="") for row in target.before()]
        if not given.report:
            # of two that look alike the survivor counts
            kept = found if given.again or given.open else []
            explain(target, kept, explained if given.open else [])
            before = sorted(kept, key=lambda m: m.outcome == "survived")
            found = run(target, given.jobs, given.seed, {m.key: m for m in before})
        explain(target, found, explained)
        bad += settle(target, found)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
