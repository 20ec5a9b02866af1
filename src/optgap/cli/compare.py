"""``optgap compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optgap.cli import BAD_INPUT, DONE, FAILED, complain, completing
from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.comparing.comparison import Comparison, ComparisonSet
    from optgap.comparing.uncertain import UncertainComparison
    from optgap.models.result import Result

    Answer = Comparison | ComparisonSet | UncertainComparison
    Work = Callable[..., Answer]
    Drawing = Callable[..., UncertainComparison] | None

Subject = Annotated[
    str | None,
    opt.argument(
        "FAMILY|PROBLEM.json",
        "a family's preset, or a problem; without it all families, in a minute or so",
        completing.subjects,
    ),
]
Policies = Annotated[
    str, opt.option("--policies", "P,…", "names with commas, or all", completing.policies("all"))
]
Sweep = Annotated[
    str | None,
    opt.option("--sweep", "KEY=V1,V2,…", "make the preset anew for each value"),
]
Models = Annotated[
    list[str] | None,
    opt.option(
        "--model",
        "FIT.json|CSV",
        "a saved fit, or measurements to fit, for the problem to rest on: gaps get an interval; "
        "repeatable",
    ),
]
Samples = Annotated[
    int | None,
    opt.option("--samples", "N", "draws of the fits; 19 without it, or what --level takes"),
]
Level = Annotated[
    float | None, opt.option("--level", "SHARE", "that a further draw lies within (0.9)")
]
Parts = Annotated[
    bool,
    typer.Option(
        "--parts", help="where no solution serves everything, compare what each policy accepts"
    ),
]


def command(
    subject: Subject = None,
    policies: Policies = "all",
    methods: opt.Methods = "auto",
    preset: opt.Preset = None,
    size: opt.Size = None,
    sweep: Sweep = None,
    settings: opt.AnySettings = None,
    models: Models = None,
    columns: opt.Columns = None,
    samples: Samples = None,
    level: Level = None,
    parts: Parts = False,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.RunLimit = None,
    effort: opt.Effort = 1.0,
    quiet: opt.Quiet = False,
) -> int:
    from optgap.cli.subjects import is_file, refuse_beside_file
    from optgap.cli.work import Output, foreign, interruptible, no_solution
    from optgap.comparing.gaps import chosen
    from optgap.models.figures import require_ending
    from optgap.parameters import assignments

    opt.require_writable(json, plot, read=(subject, *(models or [])))
    require_ending(plot)
    if subject is None:
        of_preset = {"--preset": preset, "--size": size, "--sweep": sweep, "--set": settings}
        of_runs = {"--policies": policies != "all", "--methods": methods != "auto"}
        of_fits = {"--model": models, "--column": columns}
        of_draws = {"--samples": samples, "--level": level, "--parts": parts}
        lone = {**of_preset, **of_runs, **of_fits, **of_draws}
        opt.refuse(lone, "needs a family", "name one before it")
        return _overview(Output(json, quiet), seed, time_limit, effort, plot)
    given = assignments(settings or [], "--set")
    fits = _fits(subject, models or [], columns or [], sweep, seed, quiet)
    drawn = _drawn(fits, samples, level, sweep)
    if is_file(subject):
        refuse_beside_file({"--preset": preset, "--size": size, "--sweep": sweep})
        family, beside, work = _of_file(subject, drawn)
    else:
        family, beside, work = _of_preset(subject, preset, size, sweep, given, seed, drawn)
    with foreign():
        wanted = chosen(family, policies, methods, given, beside)
    runs = {"time_limit": time_limit, "effort": effort, "seed": seed}
    work = partial(work, policies=wanted[0], methods=wanted[1], **runs)
    answer = interruptible(lambda limits: work(limits=limits, parts=parts), quiet=quiet)
    out = Output(json, quiet)
    code = _deliver(answer, out, plot)
    proof = None if parts else _proof(answer)
    if proof is None or code in (FAILED, BAD_INPUT):
        if code not in (FAILED, BAD_INPUT) and sweep is None and not models:
            of = {"--preset": preset, "--size": size, "--seed": seed or None}
            asked = [(key, str(value)) for key, value in of.items() if value is not None]
            asked += [("--set", text) for text in settings or []]
            _follow(out, subject, answer, [word for pair in asked for word in pair])
        return code
    return no_solution(proof, subject if is_file(subject) else "PROBLEM.json")


def _of_file(subject: str, drawn: Drawing) -> tuple[str, Iterable[str], Work]:
    """The family of a problem file, no parameters beside it, and what compares on it."""
    from optgap.comparing.gaps import compare
    from optgap.documents import load_problem

    problem = load_problem(subject)
    return problem.family, (), partial(drawn or compare, problem)


def _of_preset(
    family: str,
    preset: str | None,
    size: int | None,
    sweep: str | None,
    given: dict[str, Any],
    seed: int,
    drawn: Drawing,
) -> tuple[str, Iterable[str], Work]:
    """The family, the parameters of its preset, and what compares on it, or on each of a sweep.

    Those of the `given` parameters that are the preset's are taken out.
    """
    from optgap.cli.subjects import of_the_preset
    from optgap.comparing import gaps
    from optgap.making import from_preset

    own, beside = of_the_preset(family, preset, size, given)
    if sweep is None:
        problem = from_preset(family, preset, own, seed)
        return family, beside, partial(drawn or gaps.compare, problem)
    key, values = _swept(sweep)
    work = partial(gaps.sweep, family, key, values, preset=preset, processes=None, **own)
    return family, beside, work


def _proof(answer: Answer) -> Result | None:
    """That no solution serves everything, of the first problem of which that is known."""
    from optgap.comparing.comparison import ComparisonSet
    from optgap.comparing.uncertain import UncertainComparison

    if isinstance(answer, UncertainComparison):
        return answer.comparison.infeasible
    all_of = answer.comparisons if isinstance(answer, ComparisonSet) else (answer,)
    return next((one.infeasible for one in all_of if one.infeasible), None)


def _overview(
    out: Output, seed: int, time_limit: float | None, effort: float, plot: str | None
) -> int:
    from optgap.cli.work import exit_code, interruptible
    from optgap.comparing.overview import compare_all
    from optgap.render import filled

    answer = interruptible(
        lambda limits: compare_all(seed=seed, time_limit=time_limit, effort=effort, limits=limits),
        quiet=not out.talk,
    )
    out.document(answer)
    if plot is not None:
        answer.plot(plot)
    for comparison in answer.comparisons:
        out.line(comparison.family)
        out.answer(comparison)
        out.line()
    out.line(filled(answer.notes()))
    out.wrote(plot, out.json)
    if answer.comparisons:
        _follow(out, answer.comparisons[0].family, answer.comparisons[0], [])
    failed = _complaints(answer.comparisons)
    for name, message in answer.failures.items():
        complain(f"{name}: {message}", FAILED)
    if failed or answer.failures:
        return FAILED if answer.failures else failed
    return exit_code([answer.termination])


def _fits(
    subject: str,
    given: list[str],
    columns: list[str],
    sweep: str | None,
    seed: int,
    quiet: bool,
) -> list[Any]:
    """The fits that the problem is to rest on: saved ones, or those made to profiles."""
    from optgap.cli.subjects import is_file
    from optgap.parameters import assignments

    wanted = assignments(columns, "--column")
    profiles = [path for path in given if not path.endswith((".json", ".json.gz"))]
    if not profiles:
        opt.refuse({"--column": columns}, "needs --model CSV", "name a file of measurements")
        return list(given)
    beside = {"--model": len(given) > len(profiles), "--sweep": sweep}
    opt.refuse(beside, "conflicts with --model CSV", "give only one")
    opt.refuse(
        {"--model": is_file(subject)}, "measurements conflict with a problem file", "name a family"
    )
    from optgap.comparing.profiles import fits_for
    from optgap.fitting.readers import read_profiles

    fits = fits_for(subject, read_profiles(profiles, columns=wanted, reads=()), seed)
    if not quiet:
        from optgap.models.performance.saved import read_fit

        for report in fits:
            print(read_fit(report).described)
    return fits


def _drawn(
    models: list[Any], samples: int | None, level: float | None, sweep: str | None
) -> Drawing:
    """What compares under the uncertainty of fits: those given, or those of the problem."""
    from optgap.comparing.uncertain import compare_uncertain

    given = {"samples": samples, "level": level}
    if sweep is not None:
        options = {"--model": models, "--samples": samples, "--level": level}
        opt.refuse(options, "conflicts with --sweep", "give only one")
    if not models and samples is None and level is None:
        return None
    chosen: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    return partial(compare_uncertain, models=models, **chosen)


def _swept(text: str) -> tuple[str, list[str]]:
    from optgap.models.errors import InputError
    from optgap.parameters import split_list

    key, equals, values = text.partition("=")
    if not equals or not key.strip():
        raise InputError("--sweep", "", text, "key=value,value,…")
    return key.strip(), split_list(values, "--sweep")


def _deliver(answer: Answer, out: Output, plot: str | None) -> int:
    from optgap.cli.work import exit_code
    from optgap.comparing.comparison import Comparison, ComparisonSet

    parts = (answer,) if isinstance(answer, Comparison) else answer.comparisons
    out.answer(answer)
    out.document(answer)
    if plot is not None:
        answer.plot(plot)
    out.wrote(plot, out.json)
    failed = _complaints(parts if isinstance(answer, ComparisonSet) else parts[:1])
    return failed or exit_code(part.termination for part in parts)


def _follow(out: Output, subject: str, answer: Answer, options: list[str]) -> None:
    """Name the command that says why the nearest policy is where it is."""
    parts: Any = getattr(answer, "comparisons", (answer,))
    policies = [row for row in parts[0].ranked if row.result.kind == "policy" and not row.failure]
    if policies:
        policy = policies[0].result.method
        out.following("explain", subject, *options, "--policy", policy, why="why its gap")


def _complaints(parts: Sequence[Comparison]) -> int:
    """One line per row that failed; the exit code that stands for them, 0 for none."""
    failed = [row for part in parts for row in part.rows if row.failure in ("input", "fault")]
    for row in failed:
        complain(f"{row.result.method}: {row.result.message}", FAILED)
    if not failed:
        return DONE
    return FAILED if any(row.failure == "fault" for row in failed) else BAD_INPUT
