"""``optgap generate``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from optgap.cli import completing
from optgap.cli import options as opt
from optgap.registry import REPEATABLE, family, file_options


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="FAMILY", help="the problem family", autocompletion=completing.families
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="the problem file; - is stdout")
    ] = "-",
    preset: opt.Preset = None,
    size: opt.Size = None,
    settings: opt.Settings = None,
    strict: opt.Strict = True,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.UnusedTimeLimit = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    **files: str | list[str] | None,
) -> int:
    from optgap.models.jsonio import dump_json
    from optgap.parameters import assignments

    # the problem is the JSON document: --json is another name for -o
    target = output if json is None else json
    opt.require_writable(*dict.fromkeys((output, target)))
    given: dict[str, Any] = dict(assignments(settings or [], "--set"))
    given.setdefault("strict", strict)
    spec = family(name, "FAMILY")
    given_files = {key: path for key, path in files.items() if path}
    if given_files:
        problem = _from_files(spec, given_files, given, preset, size, seed)
    else:
        problem = _from_preset(spec, preset, size, given, seed)
    for path in dict.fromkeys((output, target) if output != "-" else (target,)):
        dump_json(path, problem.to_json())
    if not quiet and target != "-" and output != "-":
        print(problem)
    return 0


def _from_preset(
    spec: Any, preset: str | None, size: int | None, given: dict[str, Any], seed: int
) -> Any:
    from optgap.making import from_preset
    from optgap.models.errors import InputError, NoQuote

    if size is not None:
        if "size" in given:
            raise InputError("--set", "size", NoQuote("it and --size"), "one of them")
        given["size"] = size
    return from_preset(spec.name, preset, given, seed)


def _from_files(
    spec: Any,
    files: dict[str, str | list[str]],
    given: dict[str, Any],
    preset: str | None,
    size: int | None,
    seed: int,
) -> Any:
    from optgap.models.errors import InputError, NoQuote

    for option, value in (("--preset", preset), ("--size", size)):
        if value is not None:
            raise InputError(option, "", NoQuote("it beside CSV files"), "one or the other")
    for key, paths in files.items():
        if key not in spec.files:
            expected = f"files of {spec.name}: " + ", ".join(f"--{key}" for key in spec.files)
            raise InputError(f"--{key}", "", paths, expected)
        if isinstance(paths, list) and REPEATABLE not in spec.files[key]:
            if len(paths) > 1:
                raise InputError(f"--{key}", "", NoQuote(f"{len(paths)} files"), "one")
            files[key] = paths[0]
    for key in list(spec.files)[: spec.needed]:
        if key not in files:
            raise InputError(f"--{key}", "", NoQuote("nothing"), "a CSV file")
    return spec.from_tables(files, given, seed)


opt.with_files(command, file_options(outgoing=False))
