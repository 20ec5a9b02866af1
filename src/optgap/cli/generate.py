"""``optgap generate``."""

from __future__ import annotations

from typing import Annotated, Any

from optgap.cli import options as opt
from optgap.models.errors import InputError, Said, one_of
from optgap.registry import FAMILIES, family, file_options

NOTES = ("columns: ", "arrivals: ", "times: ")
"""Beginnings of those parts of a problem's origin that a person is shown."""


def command(
    *,
    name: Annotated[str | None, opt.argument("FAMILY", "the problem family")] = None,
    output: Annotated[
        str, opt.option("--output -o", "FILE", "the problem file; - is stdout")
    ] = "-",
    preset: opt.Preset = None,
    size: opt.Size = None,
    settings: opt.Settings = None,
    columns: opt.Columns = None,
    fetch: Annotated[
        list[str] | None,
        opt.option(
            "--fetch",
            "NAME",
            "instead, download public data of this name, or all; list shows what there is; "
            "repeatable",
        ),
    ] = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    **files: str | list[str] | None,
) -> int:
    from optgap.cli.fetching import fetched
    from optgap.cli.work import Output
    from optgap.making import MODELS, fitted, from_preset, from_tables
    from optgap.models.jsonio import dump_json
    from optgap.parameters import assignments
    from optgap.render import filled

    # the problem is the JSON document: --json is another name for -o
    target = output if json is None else json
    listed = ([paths] if isinstance(paths, str) else paths or [] for paths in files.values())
    tables = [path for paths in listed for path in paths]
    opt.require_writable(*dict.fromkeys((output, target)), read=tables)
    if fetch:
        opt.refuse({"FAMILY": name}, "conflicts with --fetch", "give only one")
        return fetched(fetch, Output(json))
    if name is None:
        raise InputError("FAMILY", "", Said("it is missing"), one_of(FAMILIES, "name one of {}"))
    given: dict[str, Any] = dict(assignments(settings or [], "--set"))
    spec = family(name, "FAMILY")
    given_files: dict[str, Any] = {key: path for key, path in files.items() if path}
    if any(key not in MODELS for key in given_files) or _document(spec, given_files):
        opt.refuse({"--preset": preset, "--size": size}, "conflicts with tables", "give only one")
        wanted = assignments(columns or [], "--column")
        problem: Any = from_tables(spec, {**given, **given_files}, seed, wanted)
    else:
        if size is not None:
            opt.refuse({"--size": given.get("size")}, "conflicts with --set size", "give only one")
            given["size"] = size
        models = [path for paths in given_files.values() for path in paths]
        problem = fitted(from_preset(spec.name, preset, given, seed), models, seed)
    for path in dict.fromkeys((output, target) if output != "-" else (target,)):
        dump_json(path, problem.to_json())
    told = [part for part in problem.origin.split("; ") if part.startswith(NOTES)]
    told += [fit.described for fit in problem.fits]
    out = Output(None, silent="-" in (output, target))
    out.line(filled([str(problem)]))
    if told:
        out.line(filled([f"  {line}" for line in told], indent="    "))
    out.wrote(*dict.fromkeys((output, target)))
    out.following("compare", target, why="every policy's gap")
    return 0


def _document(spec: Any, files: dict[str, Any]) -> bool:
    """Tell whether a given model is no fit: elastic jobs have tables of models in files, too."""
    from optgap.models.performance.saved import read_fit

    try:
        for path in files.get("model", []) if "models" in spec.files else []:
            read_fit(path)
    except InputError:
        return True
    return False


opt.with_files(command, file_options(outgoing=False))
