"""``optgap compare``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.comparison import Comparison, ComparisonSet


def command(
    subject: Annotated[
        str, typer.Argument(metavar="[FAMILY|PROBLEM.json]", help="a family's preset, or a problem")
    ] = "placement",
    policies: Annotated[
        str, typer.Option("--policies", metavar="P,…", help="names with commas, or all")
    ] = "all",
    methods: Annotated[
        str, typer.Option("--methods", metavar="M,…", help="names with commas, auto or all")
    ] = "auto",
    preset: Annotated[
        str | None, typer.Option("--preset", metavar="NAME", help="see `optgap families`")
    ] = None,
    size: Annotated[
        int | None, typer.Option("--size", metavar="N", min=1, help="the preset's `size`")
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option("--sweep", metavar="KEY=V1,V2,…", help="make the preset anew for each value"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="a parameter of the preset, or else of every policy and method that has it",
        ),
    ] = None,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            callback=opt.positive,
            help="stop each single method and policy after so many seconds",
        ),
    ] = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    from optgap import gaps
    from optgap.api import generate, preset_entry
    from optgap.cli.subjects import is_file, refuse_beside_file
    from optgap.cli.work import Output, interruptible
    from optgap.documents import load_problem
    from optgap.parameters import assignments

    opt.require_writable(json, plot)
    given = assignments(settings or [], "--set")
    if size is not None:
        given["size"] = str(size)
    work: Callable[..., Comparison | ComparisonSet]
    if is_file(subject):
        refuse_beside_file({"--preset": preset, "--size": size, "--sweep": sweep})
        problem = load_problem(subject)
        name, work = problem.family, partial(gaps.compare, problem)
    else:
        name = subject
        entry, _ = preset_entry(name, preset)
        own: dict[str, Any] = {k: given.pop(k) for k in list(given) if k in entry.params}
        if sweep is None:
            work = partial(gaps.compare, generate(name, preset, seed=seed, **own))
        else:
            key, values = _swept(sweep)
            work = partial(gaps.sweep, name, key, values, preset=preset, **own)
    wanted = gaps.chosen(name, policies, methods, given)
    work = partial(work, policies=wanted[0], methods=wanted[1], time_limit=time_limit, seed=seed)
    answer = interruptible(lambda limits: work(limits=limits), quiet=quiet)
    return _deliver(answer, Output(json, quiet), plot)


def _swept(text: str) -> tuple[str, list[str]]:
    from optgap.models.errors import InputError
    from optgap.parameters import split_list

    key, equals, values = text.partition("=")
    if not equals or not key.strip():
        raise InputError("--sweep", "", text, "key=value,value,…")
    return key.strip(), split_list(values, "--sweep")


def _deliver(answer: Comparison | ComparisonSet, out: Output, plot: str | None) -> int:
    from optgap.cli import BAD_INPUT, FAILED, complain
    from optgap.cli.work import exit_code
    from optgap.comparison import Comparison
    from optgap.models.jsonio import write_bytes

    parts = (answer,) if isinstance(answer, Comparison) else answer.comparisons
    if isinstance(answer, Comparison):
        for line in answer.head():
            out.line(line)
        out.line()
    out.table(*answer.table())
    for k, note in enumerate(answer.notes()):
        out.line(note if k else "\n" + note)
    out.document(answer)
    if plot is not None:
        from optgap.plotting import gaps_png

        write_bytes(plot, gaps_png(answer))
    failed = [row for part in parts for row in part.rows if row.failure in ("input", "fault")]
    for row in failed:
        complain(f"{row.result.method}: {row.result.message}", FAILED)
    if failed:
        return FAILED if any(row.failure == "fault" for row in failed) else BAD_INPUT
    return exit_code(part.termination for part in parts)
