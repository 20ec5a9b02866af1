"""``optgap compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optgap.cli import BAD_INPUT, CALL, DONE, FAILED, complain
from optgap.cli import options as opt
from optgap.models.errors import InputError, Said

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.comparing.comparison import Comparison, ComparisonSet
    from optgap.comparing.overview import Overview
    from optgap.comparing.uncertain import UncertainComparison

    Answer = Comparison | ComparisonSet | UncertainComparison | Overview

Subject = Annotated[
    str | None,
    opt.argument(
        "FAMILY|PROBLEM.json",
        "a family's preset, or a problem; without it all families, in a minute or so",
    ),
]
Policies = Annotated[str, opt.option("--policies", "P,…", "names with commas, or all")]
Sweep = Annotated[
    str | None,
    opt.option("--sweep", "KEY=V1,V2,…", "make the preset anew for each value"),
]
Models = Annotated[
    list[str] | None,
    opt.option(
        "--model",
        "FIT.json",
        "a saved fit for the problem to rest on: gaps get an interval; repeatable",
    ),
]
Samples = Annotated[
    int | None,
    opt.option("--samples", "N", "draws of the fits; 19 without it"),
]
Parts = Annotated[
    bool,
    typer.Option(
        "--parts", help="where no solution serves everything, compare what each policy accepts"
    ),
]


def command(
    *,
    subject: Subject = None,
    policies: Policies = "all",
    methods: opt.Methods = "auto",
    preset: opt.Preset = None,
    size: opt.Size = None,
    sweep: Sweep = None,
    settings: opt.AnySettings = None,
    models: Models = None,
    samples: Samples = None,
    parts: Parts = False,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.RunLimit = None,
    effort: opt.Effort = 1.0,
) -> int:
    from optgap.cli import subjects
    from optgap.cli.work import Output, foreign, interruptible, no_solution
    from optgap.comparing import gaps
    from optgap.comparing.overview import compare_all
    from optgap.comparing.uncertain import compare
    from optgap.documents import load_problem
    from optgap.making import fitted, from_preset
    from optgap.models.figures import require_ending
    from optgap.parameters import assignments

    opt.require_writable(json, plot, read=(subject, *(models or [])))
    require_ending(plot)
    if subject is None:
        of_preset = {"--preset": preset, "--size": size, "--sweep": sweep, "--set": settings}
        of_runs = {"--policies": policies != "all", "--methods": methods != "auto"}
        of_fits = {"--model": models, "--samples": samples, "--parts": parts}
        lone = {**of_preset, **of_runs, **of_fits}
        opt.refuse(lone, "needs a family", "name one before it")
    given = assignments(settings or [], "--set")
    draws = _draws(models, samples, sweep)
    own: dict[str, Any] = {}
    runs: dict[str, Any] = {"time_limit": time_limit, "effort": effort, "seed": seed}
    of_file = subject is not None and subjects.is_file(subject)
    work: Callable[..., Answer]
    if subject is None:
        work = compare_all
    else:
        beside: Iterable[str] = ()
        if of_file:
            subjects.refuse_beside_file({"--preset": preset, "--size": size, "--sweep": sweep})
        else:
            own, beside = subjects.of_the_preset(subject, preset, size, given)
        if sweep is not None:
            key, values = _swept(sweep)
            family = subject
            work = partial(gaps.sweep, family, key, values, preset=preset, processes=None, **own)
        else:
            made = load_problem(subject) if of_file else from_preset(subject, preset, own, seed)
            problem = fitted(made, models or (), seed)
            family, work = problem.family, partial(compare, problem, **draws)
        with foreign():
            wanted = gaps.chosen(family, policies, methods, given, beside=beside)
        runs |= {"policies": wanted[0], "methods": wanted[1], "parts": parts}
    answer = interruptible(lambda limits: work(limits=limits, **runs))
    out = Output(json)
    code = _deliver(answer, out, plot)
    if code in (FAILED, BAD_INPUT):
        return code
    proofs = (one.infeasible for one in _judged(answer) if one.infeasible)
    if subject is not None and not parts and (proof := next(proofs, None)) is not None:
        return no_solution(proof, subject if of_file else "PROBLEM.json")
    if models:
        _follow_fits(out, CALL.get().words)
    else:
        _follow(out, subject, answer, subjects.chosen(preset, own, seed))
    return code


def _draws(models: list[str] | None, samples: int | None, sweep: str | None) -> dict[str, int]:
    """Return the arguments of `compare` about draws of fits; none without such options."""
    from optgap.comparing.uncertain import LEVEL, least_samples, require_numbers

    options = {"--model": models, "--samples": samples}
    if sweep is not None:
        opt.refuse(options, "conflicts with --sweep", "give only one")
    for path in models or []:
        if path.endswith((".csv", ".csv.gz")):
            remedy = f"fit it first: optgap fit MODEL {path} -o FIT.json"
            raise InputError("--model", path, Said("is a table"), remedy)
    if not models and samples is None:
        return {}
    require_numbers(samples, LEVEL)
    return {"uncertainty": least_samples(LEVEL) if samples is None else samples}


def _swept(text: str) -> tuple[str, list[str]]:
    from optgap.parameters import split_list

    key, equals, values = text.partition("=")
    if not equals or not key.strip():
        raise InputError("--sweep", "", text, "key=value,value,…")
    return key.strip(), split_list(values, "--sweep")


def _judged(answer: Answer) -> Sequence[Comparison]:
    """Return the comparisons that an answer shows, without those of draws."""
    from optgap.comparing.comparison import Comparison
    from optgap.comparing.uncertain import UncertainComparison

    if isinstance(answer, UncertainComparison):
        return (answer.comparison,)
    return (answer,) if isinstance(answer, Comparison) else answer.comparisons


def _deliver(answer: Answer, out: Output, plot: str | None) -> int:
    """Print, write and draw an answer, and return the exit code."""
    from optgap.cli.work import exit_code
    from optgap.comparing.overview import Overview
    from optgap.render import filled

    failures: Mapping[str, str] = {}
    if isinstance(answer, Overview):
        failures = answer.failures
        for comparison in answer.comparisons:
            out.line(comparison.family)
            out.answer(comparison)
            out.line()
        if failures:
            out.line(filled(answer.notes()))
    else:
        out.answer(answer)
    out.document(answer)
    if plot is not None:
        answer.plot(plot)
    out.wrote(plot, out.json)
    failed = _complaints(_judged(answer))
    for name, message in failures.items():
        failed = complain(f"{name}: {message}", FAILED)
    whole = [answer] if hasattr(answer, "termination") else answer.comparisons
    return failed or exit_code(one.termination for one in whole)


def _follow(out: Output, subject: str | None, answer: Any, options: list[str]) -> None:
    """Print the command that explains the gap of the best policy, in a sweep at its last value."""
    parts = _judged(answer)
    at = -1 if (key := getattr(answer, "parameter", "")) else 0
    options += ["--set", f"{key}={answer.values[at]}"] if key else []
    results = [row.result for row in parts[at].ranked] if parts else []
    policies = [one for one in results if one.kind == "policy" and one.objective is not None]
    if policies:
        words = (subject or parts[at].family, *options, "--policy", policies[0].method)
        out.following("explain", *words, why="why its gap")


def _follow_fits(out: Output, words: Sequence[str]) -> None:
    """Print the command that shows intervals from fits on a page; `words` gave them."""
    if out.json is not None:
        out.following("report", out.json, "-o", "report.html", why="as a page")
    else:
        out.following("compare", "--json", "gaps.json", *words, why="for optgap report")


def _complaints(parts: Sequence[Comparison]) -> int:
    """Print a line per row that failed, and return the exit code: 0 if none failed."""
    failed = [row for part in parts for row in part.rows if row.failure in ("input", "fault")]
    for row in failed:
        complain(f"{row.result.method}: {row.result.message}", FAILED)
    if not failed:
        return DONE
    return FAILED if any(row.failure == "fault" for row in failed) else BAD_INPUT
