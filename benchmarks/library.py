"""Make, score and improve optgap-lib, the benchmark problems in instances/.

    python benchmarks/library.py make                  # problems of new lines of library.csv
    python benchmarks/library.py improve [NAME…] [--methods 'M;…'] [--effort 4] [--seeds 0,1]
    python benchmarks/library.py submit NAME --file solution.json --by 'who, and how'
    python benchmarks/library.py scoreboard [NAME…]    # every policy; docs/scoreboard.md
    python benchmarks/library.py pages                 # both tables again, without a run

No problem file is written twice: names keep their content. What is better than what is known goes
into best_known.json at once, and a policy's score into scores.json, so that both can be stopped at
any time; `improve` begins again, `scoreboard` goes on.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import optgap
from optgap.api import ahead, close, serves
from optgap.best_known import LIBRARY, PREFIX
from optgap.comparing.gaps import EXACT_UNITS
from optgap.documents import load_problem, load_solution
from optgap.models.jsonio import finite, write_bytes, write_text
from optgap.models.limits import Limits, silent
from optgap.models.reading import Held
from optgap.models.result import relative_gap
from optgap.registry import family
from optgap.render import number, percent

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "instances"
KNOWN, SCORES = FOLDER / "best_known.json", FOLDER / "scores.json"
TABLE, BOARD = FOLDER / "README.md", ROOT / "docs" / "scoreboard.md"
MADE = """Made by `python benchmarks/library.py make` from `library.csv`, and this table by `pages`.
All jobs and tasks are synthetic; `origin` in each file names the published counts, statistics and
fits that they are drawn from. `best_known.json` has seeds, CPU seconds and commits."""
READ = """`python benchmarks/library.py scoreboard` makes this page. The second column counts
instances on which the policy serves everything; compare gaps only if that number is the same. Gaps
are to the best known solutions."""
PACKED = 40_000
"""Characters from which a file is packed."""
DIGITS = 6
"""Decimals that utilisations, clocks and powers of a consolidation problem keep."""


def compact(document: Any) -> str:
    return json.dumps(finite(document), separators=(",", ":"), allow_nan=False) + "\n"


def write(path: Path, text: str) -> None:
    """Write a file, packed where it is large."""
    packed = path.with_name(f"{path.name}.gz")
    for one in (path, packed):
        one.unlink(missing_ok=True)
    if len(text) <= PACKED:
        write_text(path, text)
    else:
        write_bytes(packed, gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path) -> str:
    packed = path.with_name(f"{path.name}.gz")
    return path.read_text() if path.exists() else gzip.decompress(packed.read_bytes()).decode()


def load() -> dict[str, Any]:
    if not KNOWN.exists():
        return {"schema": "optgap.best-known/1", "library": LIBRARY, "instances": {}}
    return json.loads(KNOWN.read_text())


def save(path: Path, document: Any) -> None:
    write_text(path, json.dumps(document, indent=1) + "\n")


# -- the problems ------------------------------------------------------------------------


def made(name: str, preset: str, seed: int, given: dict[str, str], change: str) -> str:
    """The text of a problem file."""
    kind = name.partition("-")[0]
    document = optgap.generate(kind, preset, seed=seed, **given).to_json()
    document["name"] = name
    if change:
        document["origin"] += f"; {change}"
    if change.startswith("shares="):
        keep_shares(document, int(change.removeprefix("shares=")))
    if change == "models":
        bind_models(document, seed)
    return compact(rounded(document) if kind == "consolidation" else document)


def keep_shares(document: dict[str, Any], count: int) -> None:
    """Keep the first tasks that ask for a share of one GPU."""
    tasks = document["tasks"]
    kept = [k for k, milli in enumerate(tasks["gpu_milli"]) if 0 < milli < 1000][:count]
    document["tasks"] = {key: [column[k] for k in kept] for key, column in tasks.items()}


def bind_models(document: dict[str, Any], seed: int) -> None:
    """Bind each task with GPUs to the model of a GPU that it fits on, drawn by chance."""
    tasks, nodes = document["tasks"], document["nodes"]
    rng = np.random.default_rng(seed)
    rows = list(zip(*(nodes[key] for key in ("cpu_milli", "memory_mib", "gpus")), strict=True))
    wants = zip(*(tasks[key] for key in ("cpu_milli", "memory_mib", "num_gpu")), strict=True)
    for k, asked in enumerate(wants):
        able = [
            n for n, row in enumerate(rows) if all(a <= b for a, b in zip(asked, row, strict=True))
        ]
        shares = np.array([nodes["gpus"][n] for n in able], float)
        if asked[2]:
            tasks["gpu_spec"][k] = nodes["model"][int(rng.choice(able, p=shares / shares.sum()))]


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def make() -> None:
    """Write the problem of every line that has none yet."""
    known = load()
    with open(FOLDER / "library.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    for row in lines:
        name, seed, change = row["name"], int(row["seed"]), row["change"]
        if name in known["instances"]:
            known["instances"][name]["why"] = row["why"]
            continue
        given = dict(pair.split("=") for pair in row["settings"].split())
        text = made(name, row["preset"], seed, given, change)
        problem = load_problem(Held(name, text))
        write(FOLDER / f"{name}.json", text)
        goal = problem.objective.described
        sets = "".join(f" --set {key}={value}" for key, value in given.items())
        command = f"optgap generate {problem.family} --preset {row['preset']} --seed {seed}{sets}"
        known = load()  # others may have found better solutions meanwhile
        known["instances"][name] = {
            "family": problem.family,
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "made": command + (f", then {change}" if change else ""),
            "origin": problem.origin,
            "size": problem.summary,
            "why": row["why"],
            "unit": goal.unit,
            "sense": goal.sense,
            "best": None,
            "bound": None,
        }
        save(KNOWN, known)
        print(name, len(text), problem.summary, flush=True)
    known = load()
    known["instances"] = {row["name"]: known["instances"][row["name"]] for row in lines}
    save(KNOWN, known)


# -- what is known of them ---------------------------------------------------------------


def keep(
    name: str,
    objective: float | None,
    bound: float | None,
    solution: Callable[[], Any],
    by: str,
    seed: int,
    seconds: float,
) -> str:
    """Keep what is better than what is known; returns what changed, and the gap."""
    known = load()
    one, said = known["instances"][name], []
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    how = {"by": by, "seed": seed, "cpu_s": round(seconds, 1), "commit": commit}
    sense, other = one["sense"], "max" if one["sense"] == "min" else "min"
    best, proven = one["best"], one["bound"]
    if objective is not None and (best is None or ahead(objective, best["value"], sense)):
        said.append(f"{best and best['value']} -> {objective}")
        one["best"] = best = {"value": objective, **how}
        write(FOLDER / "solutions" / f"{name}.json", compact(solution()))
    if bound is not None and (proven is None or ahead(bound, proven["value"], other)):
        said.append(f"bound {proven and proven['value']} -> {bound}")
        one["bound"] = proven = {"value": bound, **how}
    if best and proven and close(best["value"], proven["value"]):
        proven["value"] = best["value"]  # equal but for rounding
    if said:
        save(KNOWN, known)
    gap = relative_gap(best and best["value"], proven and proven["value"])
    return f"{'; '.join(said) or 'nothing better'}; gap {percent(gap, 3)}"


def improve(names: list[str], methods: str, effort: float, seeds: list[int]) -> None:
    """Run methods on instances, those of their size unless some are named.

    Exact methods have a budget as in a comparison, others count what they do themselves.
    """
    for name in names or load()["instances"]:
        problem = load_problem(Held(name, read(FOLDER / f"{name}.json")))
        spec = family(problem.family)
        auto = dict.fromkeys([spec.auto(problem), spec.auto_bound(problem)])
        for label in methods.split(";") if methods else auto:
            for seed in seeds:
                one = load()["instances"][name]
                if one["best"] and one["bound"] and one["best"]["value"] == one["bound"]["value"]:
                    break
                run = optgap.run if label.partition("(")[0] in spec.policies else optgap.solve
                limits = Limits(effort=effort).each(None, silent, EXACT_UNITS * effort)
                began = time.process_time()
                try:
                    found = run(problem, label, limits=limits, seed=seed)
                except Exception as error:
                    print(name, label, seed, type(error).__name__, error, flush=True)
                    continue
                spent = time.process_time() - began
                by = label if effort == 1 else f"{label}, effort {effort:g}"
                said = kept(name, found, problem, by, seed, spent)
                print(name, by, seed, f"{spent:.1f} s:", said, flush=True)


def kept(name: str, found: Any, problem: Any, by: str, seed: int, spent: float) -> str:
    """Keep what a result has."""
    value = found.objective if found.objective is not None and serves(found) else None
    bound = found.bound if found.kind != "policy" else None
    return keep(name, value, bound, lambda: found.solution.to_json(problem), by, seed, spent)


def submit(name: str, file: str, by: str) -> None:
    """Take in a solution from outside, if the referee accepts it and it is better."""
    problem = load_problem(PREFIX + name)
    solution = load_solution(file, problem)
    verdict = optgap.check(problem, solution)
    if not verdict.serves_all:
        raise SystemExit(f"{file}: {verdict.violations or 'does not serve everything'}")
    print(keep(name, verdict.objective, None, lambda: solution.to_json(problem), by, 0, 0.0))


# -- scores and pages --------------------------------------------------------------------


def scoreboard(names: list[str]) -> None:
    """Run every policy where it has no score yet, and keep its better solutions."""
    scores = json.loads(SCORES.read_text()) if SCORES.exists() else {}
    for name in names or load()["instances"]:
        known, problem = load()["instances"][name], load_problem(PREFIX + name)
        for policy in family(known["family"]).policies:
            done = scores.setdefault(known["family"], {}).setdefault(policy, {})
            if name in done:
                continue
            began = time.process_time()
            found = optgap.score(policy, known["family"], instances=[name]).rows[0].result
            spent = time.process_time() - began
            counts = found.solution is not None and serves(found)
            done[name] = {
                "objective": found.objective if counts else None,
                "cpu_s": round(spent, 2),
            }
            said = kept(name, found, problem, policy, 0, spent)
            print(name, policy, done[name], said, flush=True)
            save(SCORES, scores)


def board(scores: dict[str, Any], known: dict[str, Any]) -> str:
    """The page of scores: objectives as they were stored, against what is known now."""
    lines = [
        "# Scoreboard\n",
        f"Every built-in policy on [{LIBRARY}](optgap-lib.md), with default parameters.\n{READ}",
    ]
    for kind, on in scores.items():
        names = [name for name, one in known.items() if one["family"] == kind]
        scored = [name for name in names if all(name in done for done in on.values())]
        open_ = ", ".join(f"`{name}`" for name in names if name not in scored)
        lines += [f"\n## {kind.capitalize()}\n", *([f"Not scored: {open_}.\n"] if open_ else [])]
        rows = []
        for policy, done in on.items():
            gaps = [
                100 * (relative_gap(done[name]["objective"], known[name]["best"]["value"]) or 0.0)
                for name in scored
                if done[name]["objective"] is not None
            ]
            if gaps:
                rows.append((-len(gaps), fmean(gaps), max(gaps), policy))
        wide = max(len(policy) for policy in on)
        lines += ["```text", f"{'policy':{wide}}  {f'of {len(scored)}':>6}  mean %  worst %"]
        lines += [
            f"{p:{wide}}  {-n:6}  {mean:6.2f}  {most:7.1f}" for n, mean, most, p in sorted(rows)
        ]
        lines += ["```"]
    return "\n".join(lines) + "\n"


def table(known: dict[str, Any]) -> str:
    """The table of all instances."""
    head = ("instance", "what", "best known", "bound", "gap", "found by", "why it is there")
    lines = [
        f"# {LIBRARY}\n",
        f"{MADE}\n",
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
    ]
    for name, one in known.items():
        best, bound = one["best"], one["bound"]
        gap = relative_gap(best["value"], bound["value"])
        cells = (
            name,
            one["size"],
            f"{number(best['value'])} {one['unit']}",
            number(bound["value"]),
            "proven" if gap == 0 else percent(gap),
            f"{best['by']}; {bound['by']}",
            one["why"],
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def pages() -> None:
    known = load()["instances"]
    write_text(TABLE, table(known))
    write_text(BOARD, board(json.loads(SCORES.read_text()), known))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["make", "improve", "submit", "scoreboard", "pages"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--methods", default="", help="separated by semicolons")
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--file", default="")
    parser.add_argument("--by", default="")
    given = parser.parse_args()
    if given.what == "make":
        make()
    elif given.what == "improve":
        seeds = [int(seed) for seed in given.seeds.split(",")]
        improve(given.names, given.methods, given.effort, seeds)
    elif given.what == "submit":
        submit(given.names[0], given.file, given.by)
    else:
        if given.what == "scoreboard":
            scoreboard(given.names)
        pages()


if __name__ == "__main__":
    main()
