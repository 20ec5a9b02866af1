"""Options that commands share, so that they read the same everywhere."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from optgap.models.errors import PLACE, InputError, Said
from optgap.models.reading import STANDARD_INPUT
from optgap.registry import REPEATABLE


def positive(value: float | None) -> float | None:
    """Refuse a time limit or a factor that is no positive, finite number."""
    if value is not None and not (0 < value < math.inf):
        raise typer.BadParameter("expected a positive number")
    return value


def argument(metavar: str, text: str) -> Any:
    """Return an argument that is known by its place."""
    return typer.Argument(metavar=metavar, help=text)


def option(flags: str, metavar: str, text: str) -> Any:
    """Return an option with a value; `flags` are as in ``--output -o``."""
    return typer.Option(*flags.split(), metavar=metavar, help=text)


def _time_limit(text: str) -> Any:
    return typer.Option("--time-limit", metavar="SECONDS", callback=positive, help=text)


ProblemFile = Annotated[str, argument("PROBLEM.json", "the problem")]
JsonFile = Annotated[str | None, option("--json", "FILE", "write JSON here; - is standard output")]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", min=0, help="seed of the random number generator", show_default=True
    ),
]
TimeLimit = Annotated[float | None, _time_limit("stop after so many seconds")]
RunLimit = Annotated[
    float | None,
    _time_limit("cut each method and each policy of your own after so many seconds"),
]
Effort = Annotated[
    float,
    typer.Option(
        "--effort",
        metavar="FACTOR",
        callback=positive,
        help="multiply every budget of work: 4 for better bounds, 0.2 for a quick answer",
    ),
]
Method = Annotated[
    str,
    option("--method", "M", "see `optgap families`; auto goes by size"),
]
Formulation = Annotated[
    str,
    option(
        "--method",
        "M",
        "the formulation, with its parameters in parentheses (for check: as it was exported); auto "
        "is the family's first",
    ),
]
Methods = Annotated[
    str,
    option("--methods", "M,…", "names with commas, auto or all"),
]
Preset = Annotated[str | None, option("--preset", "NAME", "see `optgap families`")]
Size = Annotated[int | None, typer.Option("--size", metavar="N", min=1, help="the preset's `size`")]
Settings = Annotated[
    list[str] | None,
    option("--set", "KEY=VALUE", "set a parameter; repeatable"),
]
AnySettings = Annotated[
    list[str] | None,
    option("--set", "KEY=VALUE", "a parameter of the preset, or else of whatever runs and has it"),
]
Columns = Annotated[
    list[str] | None,
    option(
        "--column",
        "THEIRS=OURS[:UNIT]",
        "what a column is called and measured in, as watts=power_w:kW; repeatable",
    ),
]
PlotFile = Annotated[
    str | None, option("--plot", "FILE", "draw the picture here: .png, .svg or .pdf")
]
SolutionFile = Annotated[str | None, option("--output -o", "FILE", "write the solution alone here")]


def refuse(options: Mapping[str, object], found: str, remedy: str) -> None:
    """Raise InputError for the first of some options that was given."""
    for option, value in options.items():
        if value is not None and value is not False and value != []:
            raise InputError(option, "", Said(found), remedy)


def with_files(function: Callable[..., int], files: Mapping[str, str]) -> Callable[..., int]:
    """Give a command that takes ``**files`` one option per file that some family knows.

    A new family therefore needs no change in the commands. `files` are names with help texts.
    """
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                (list[str] if REPEATABLE in text else str) | None,
                typer.Option(
                    f"--{name}", *(["--models"] * (name == "model")), metavar="FILE", help=text
                ),
            ],
        )
        for name, text in files.items()
    ]
    signature = inspect.signature(function, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    anything: Any = function
    anything.__signature__ = signature.replace(parameters=[*own, *more])
    return function


def require_writable(*paths: str | None, read: Iterable[str | None] = ()) -> None:
    """Refuse output that cannot be written before any work goes into it.

    Parameters
    ----------
    paths: files for output.
    read: files that the command reads, which no output may overwrite.

    Raises
    ------
    InputError: for a directory, a file in a folder that is missing or not writable, one place for
        two outputs, or for an input and an output.
    """
    wanted = [path for path in paths if path is not None]
    places = [os.path.realpath(path) for path in wanted]
    inputs = {os.path.realpath(path) for path in read if path not in (None, STANDARD_INPUT)}
    for path, place in zip(wanted, places, strict=True):
        if places.count(place) > 1:
            raise InputError(path, "", Said("named for two outputs"), "give each a file of its own")
        if path == "-":
            continue
        if place in inputs:
            raise InputError(path, "", Said("read and written"), "name another file to write to")
        target = Path(path)
        if target.is_dir():
            raise InputError(path, "", Said("is a directory"), "name a file to write to")
        if not target.parent.is_dir():
            raise InputError(path, "", Said("no such folder"), PLACE)
        if not os.access(target.parent, os.W_OK):
            raise InputError(path, "", Said("no permission"), PLACE)
