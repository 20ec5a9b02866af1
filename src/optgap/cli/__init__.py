"""The command line: a table of commands, each in a module of its own, loaded on use."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from optgap.models.errors import InputError, NoQuote, one_of, shorten, speaking_of_options

GROUPS = {
    "Make problems": {
        "families": "list families, policies, methods, presets and their parameters",
        "generate": "write a problem file from a preset or from CSV files",
        "fit": "fit a performance or power model to measurements",
    },
    "Compare": {
        "compare": "show every policy's gap to the best proven bound",
        "score": "score a policy on optgap-lib, fixed problems with best known solutions",
        "explain": "split a policy's gap into parts, and name its costliest decisions",
        "audit": "hold a real cluster or a scheduler's log against the proven bound",
        "sweep": "run a grid of comparisons on many processes or machines",
        "report": "write one self-contained page of HTML from result files",
    },
    "One run at a time": {
        "solve": "solve a problem with an exact method, or prove a bound",
        "run": "run one online policy",
        "check": "have the referee check a solution, another solver's, too",
        "export": "write the paper's formulation as an LP or MPS file",
    },
}
"""Commands in the order of the help, with their summaries; `name` is `optgap.cli.name:command`."""
COMMANDS = {name: text for table in GROUPS.values() for name, text in table.items()}

REMOVED = {
    "bound": "optgap solve PROBLEM.json --bound-only proves a bound",
    "import": "optgap check PROBLEM.json MODEL.sol reads another solver's solution",
    "info": "optgap --version shows versions and usable back ends, optgap generate --fetch NAME "
    "downloads public data",
    "data": "optgap generate --fetch NAME downloads public data, --fetch list shows what there is",
    "reproduce": "run make reproduce PAPER=cats in a checkout, as docs/reproduction.md shows",
    "tune": "choose parameters with Optuna, as docs/sweep.md and 09-tune-and-sweep.ipynb show",
    "profile": "sample with nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,power.draw,"
    "clocks.sm --format=csv -lms 100 > profile.csv, which optgap fit reads",
    "--against-best": "check lib:NAME SOLUTION compares with the best known solution",
    "--hold-out": "--cv COL or COL>VALUE holds rows out",
    "--where": "filter the table first; optgap.fit takes a DataFrame",
    "--scheduler": "--engine dask=ADDRESS or ray=ADDRESS names a cluster",
}
"""Commands and options of earlier versions, and their replacements."""

SMALL = "optgap generate placement --preset small --size 20 -o problem.json"
EXAMPLES: dict[str, tuple[str, ...]] = {
    "families": ("optgap families placement",),
    "generate": (
        SMALL,
        "optgap generate queueing --size 50 --set load=1.2 --seed 3 -o queue.json",
        "optgap generate --fetch list",
    ),
    "solve": (
        SMALL,
        "optgap solve problem.json -o best.json --plot best.png",
        "optgap solve problem.json --bound-only",
    ),
    "run": (SMALL, "optgap run problem.json --policy 'pwr+fgd(alpha=0.2)' --plot run.png"),
    "check": (
        SMALL,
        "optgap run problem.json --policy fgd -o solution.json",
        "optgap check problem.json solution.json",
        "optgap run lib:queueing-wait-9 --policy shortest -o waits.json",
        "optgap check lib:queueing-wait-9 waits.json",
    ),
    "export": (
        "optgap generate queueing --preset small --size 5 -o problem.json",
        "optgap export problem.json -o model.lp",
        "optgap export problem.json -o model.mps --json -",
    ),
    "compare": (
        "optgap compare placement --preset small --size 20 --plot gaps.png",
        "optgap compare coscheduling --sweep size=6,8,10 --policies ecosched,marble",
    ),
    "score": ("optgap score marble --json score.json",),
    "explain": ("optgap explain coscheduling --policy ecosched --plot why.png",),
    "audit": (
        "optgap audit kubernetes cluster.json --moves 14",
        SMALL,
        "optgap run problem.json --policy bestfit -o log.json",
        "optgap audit placement problem.json log.json",
    ),
    "report": (
        "optgap compare coscheduling --json gaps.json",
        "optgap report gaps.json -o report.html",
    ),
    "fit": (
        r"printf 'frequency_mhz,power_w\n600,80\n900,107\n1400,152\n' > power.csv",
        "optgap fit linear-power power.csv -o power.json --plot power.png",
    ),
    "sweep": (
        r"""printf '[[grid]]\nfamily="coscheduling"\npolicies=["marble"]\n' > grid.toml""",
        "optgap sweep grid.toml",
    ),
}
"""Examples in the help of each command: lines that work as they stand, one after another."""

COMMON = "Every command takes --seed N, --time-limit SECONDS, -q and -v."
DONE, FAILED, BAD_INPUT, PARTIAL, INFEASIBLE = 0, 1, 2, 3, 4
"""Exit codes."""
TYPERS_INTERRUPT = 130
"""Exit code that typer gives to a Ctrl-C which no command has caught."""
EXIT_CODES = (
    "Exit codes: 0 done, 1 our own failure, 2 input that cannot be used, "
    "3 stopped by a limit or an interrupt, 4 there is no solution."
)
FIRST = ("Example:", "optgap compare placement --preset small --size 20")
"""An example that takes a second, below the list of commands."""

# ClickException, wherever this version of typer keeps it
UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]


@dataclass
class Call:
    """Options of one call that every command takes, and the words behind the command's name."""

    verbose: bool = False
    quiet: bool = False
    words: tuple[str, ...] = ()


CALL: ContextVar[Call] = ContextVar("CALL", default=Call())  # noqa: B039  # never written to
"""The running call."""


class Command(TyperCommand):
    """Command that takes ``-q`` and ``-v``, and a seed and a time limit even without a use."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name for option in self.params for name in option.opts}
        kept, rest, call = [], list(args), CALL.get()
        call.words = tuple(args)
        while rest:
            word = rest.pop(0)
            name, _, value = word.partition("=")
            if word == "--":
                kept += [word, *rest]
                break
            if word in ("-v", "--verbose"):
                call.verbose = True
            elif word in ("-q", "--quiet"):
                call.quiet = True
            elif name in REMOVED:
                raise UsageProblem(f"there is no {name} any more: {REMOVED[name]}")
            elif name in ("--seed", "--time-limit") and name not in known:
                if not value and not rest:
                    raise UsageProblem(f"{ctx.info_name}: Option {name!r} requires an argument.")
                value = value or rest.pop(0)
            else:
                kept.append(word)
        return super().parse_args(ctx, kept)


class LazyGroup(TyperGroup):
    """Group that shows every command's summary, and loads only the module of the called one."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            if ctx.resilient_parsing:  # a shell asks what could stand there
                return None, None, []
            if args[0] in REMOVED:
                raise UsageProblem(f"there is no {args[0]} any more: {REMOVED[args[0]]}")
            raise InputError("command", "", args[0], one_of(COMMANDS))
        name, command, rest = super().resolve_command(ctx, args)
        if name in COMMANDS:
            command = load_command(name)
        return name, command, rest


def load_command(name: str) -> Any:
    """Return the real command: the function `command` of the module `optgap.cli.<name>`."""
    app = typer.Typer(add_completion=False)
    function = import_module(f"optgap.cli.{name}").command
    lines = "\n".join((COMMON, "", "Example:", *EXAMPLES[name])).replace("[", r"\[")
    app.command(name, cls=Command, help=COMMANDS[name], epilog=lines)(function)
    return typer.main.get_command(app)


def group() -> LazyGroup:
    """Return the whole command line."""
    return LazyGroup(
        name="optgap",
        help="How far is a GPU-cluster scheduler from optimal?",
        epilog="\n\n".join((*FIRST, EXIT_CODES)),
        commands={
            name: TyperCommand(name=name, help=text, rich_help_panel=title)
            for title, table in GROUPS.items()
            for name, text in table.items()
        },
        params=own_options(),
    )


def own_options() -> list[Any]:
    """Return the options before any command: ``--version``, and typer's two for completion."""
    app = typer.Typer(add_completion=True)

    @app.callback()
    def _shown(
        version: Annotated[
            bool,
            typer.Option("--version", help="versions and back ends; as JSON with --json behind it"),
        ] = False,
    ) -> None: ...

    app.command("any")(lambda: None)
    return list(typer.main.get_command(app).params)


def version(given: list[str]) -> int:
    """Answer ``--version [--json [FILE]]``, and return the exit code."""
    from optgap.cli.work import Output
    from optgap.solvers.backends import available, backends
    from optgap.versions import versions

    if given and (given[0] != "--json" or len(given) > 2):
        raise InputError("--version", "", " ".join(given), "nothing, or --json FILE")
    out = Output((given[1:] or ["-"])[0] if given else None)
    block = versions()
    rows: list[dict[str, Any]] = [
        {
            "name": row.name,
            "title": row.title,
            "versions": dict(row.versions),
            "usable": not reason,
            "reason": reason,
        }
        for row in backends()
        for reason in [available(row.name)]
    ]
    out.line(f"optgap {block['optgap']}\n")
    out.pairs([pair for pair in block.items() if pair[0] != "optgap"])
    out.line()
    out.table(
        ("back end", "versions", "usable"),
        [
            (
                row["title"],
                ", ".join(f"{name} {found}" for name, found in row["versions"].items()),
                f"no: {row['reason']}" if row["reason"] else "yes",
            )
            for row in rows
        ],
    )
    out.document({"schema": "optgap.versions/1", "versions": block, "backends": rows})
    return DONE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; let no exception through."""
    with speaking_of_options():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    CALL.set(call := Call())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that cannot show α must not stop us
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == ["--version"]:
            return version(given[1:])
        code = group().main(given or ["--help"], prog_name="optgap", standalone_mode=False)
        sys.stdout.flush()
        if code == TYPERS_INTERRUPT:
            raise KeyboardInterrupt
        return int(code or DONE)
    except InputError as error:
        if call.verbose and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        return complain(str(error), BAD_INPUT)
    except UsageProblem as error:
        return complain(shorten_usage(error), BAD_INPUT)
    except SystemExit as end:  # typer's way out of shell completion, and of a closed pipe
        if isinstance(end.__context__, BrokenPipeError):
            return nobody_reads()
        return end.code if isinstance(end.code, int) else DONE
    except BrokenPipeError:
        return nobody_reads()
    except (KeyboardInterrupt, typer.Abort):
        return complain("interrupted", PARTIAL)
    except MemoryError:
        return complain("out of memory", FAILED)
    except Exception as error:
        if call.verbose:
            traceback.print_exc()
            return FAILED
        return complain(f"{type(error).__name__}: {error} (-v shows where)", FAILED)


def nobody_reads() -> int:
    """Return the exit code when the reader of our output has closed the pipe, and print no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


def complain(message: str, code: int) -> int:
    """Print one line on standard error, and return `code`."""
    print("optgap: " + " ".join(message.split()), file=sys.stderr)
    return code


def shorten_usage(error: Any) -> str:
    """Return a usage error in one line."""
    context = getattr(error, "ctx", None)
    path = context.command_path.removeprefix("optgap").strip() if context else ""
    text = error.format_message()
    if text.startswith("Got unexpected extra argument") and context:
        text = too_many(context, text)
    text = shorten(NoQuote(text), 300)
    return f"{path}: {text}" if path else text


def too_many(context: Any, text: str) -> str:
    """Say what a command expects instead of the extra arguments that click's `text` names."""
    extra = text.partition(" (")[2].removesuffix(")")
    takes = [p.metavar or p.name for p in context.command.params if p.param_type_name == "argument"]
    expected = f"{' '.join(takes)} alone" if takes else "options alone"
    family = " (a problem's file says its family)" if any("PROBLEM" in one for one in takes) else ""
    return f"found {extra} besides, expected {expected}{family}"
