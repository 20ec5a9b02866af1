"""``optgap data``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from optgap.cli import BAD_INPUT, DONE, completing
from optgap.cli import options as opt

if TYPE_CHECKING:
    from pathlib import Path

    from optgap.cli.work import Output
    from optgap.datasets import Dataset, File

ACTIONS = ("list", "fetch", "verify", "path")
SCHEMA = "optgap.data/1"


def command(
    action: Annotated[
        str,
        opt.argument("list|fetch|verify|path", "what to do", completing.one_of(lambda: ACTIONS)),
    ] = "list",
    names: Annotated[
        list[str] | None, opt.argument("NAME", "datasets; `list` shows them", completing.datasets)
    ] = None,
    data: Annotated[
        str | None, opt.option("--data", "DIR", "the folder; $OPTGAP_DATA without it")
    ] = None,
    known: Annotated[
        str | None, opt.option("--catalogue", "TOML", "other datasets than the built-in ones")
    ] = None,
    json: opt.JsonFile = None,
    time_limit: opt.TimeLimit = None,
    quiet: opt.Quiet = False,
) -> int:
    from optgap.cli.work import Output
    from optgap.datasets import catalogue, choose, data_folder
    from optgap.models.errors import InputError, NoQuote, one_of

    opt.require_writable(json)
    out = Output(json, quiet)
    if action not in ACTIONS:
        raise InputError("data", "", action, one_of(ACTIONS))
    datasets = catalogue(known)
    if action == "fetch":
        if not names:
            raise InputError("data fetch", "", NoQuote("no name"), "names that `list` shows")
        return _fetch(names, data, known, time_limit, quiet, out)
    chosen = choose(datasets, names or ["all"])
    if action == "list":
        return _list(chosen, data_folder(data), bool(names), out)
    if action == "verify":
        return _verify(chosen, data_folder(data), bool(names), out)
    return _path(names or [], data, known, out)


def _list(chosen: list[Dataset], folder: Path, full: bool, out: Output) -> int:
    rows, documents = [], []
    for item in chosen:
        there = sum((folder / file.path).is_file() for file in item.files)
        state = {0: "no", len(item.files): "yes"}.get(there, f"{there} of {len(item.files)}")
        rows.append((item.name, item.title, f"{item.bytes / 1e6:.2f} MB", item.source, state))
        sizes = {"bytes": item.bytes, "there": there}
        documents.append({**asdict(item), **sizes, "files": _files(item)})
    if full:
        for item in chosen:
            _tell_all(item, folder, out)
    else:
        out.table(("name", "what", "size", "from", "there"), rows, (2,))
        out.line(f"\nfolder: {folder}; `optgap data list NAME` shows licence, citation and files")
    out.document({"schema": SCHEMA, "folder": str(folder), "datasets": documents})
    return DONE


def _tell_all(item: Dataset, folder: Path, out: Output) -> None:
    """All there is to say of one dataset."""
    from optgap.datasets import verify

    states = verify(item, folder)
    head = [("name", item.name), ("what", item.title), ("licence", item.licence)]
    out.pairs([*head, ("cite", item.cite), ("from", item.home)])
    rows = [(f.path, f"{f.bytes:,}", str(states[f.path]), _origin(f)) for f in item.files]
    out.table(("file", "bytes", "state", "from"), rows, (1,))
    out.line()


def _origin(file: File) -> str:
    """Where a file is from: an address, how it is converted, or from what it was derived."""
    if file.url is None:
        return f"derived, not for download: {file.made}"
    return f"{file.url}; converted: {file.made}" if file.made else file.url


def _files(item: Dataset) -> list[dict[str, Any]]:
    return [
        {"path": f.path, "sha256": f.sha256, "bytes": f.bytes, "url": f.url, "made": f.made}
        for f in item.files
    ]


def _fetch(
    names: list[str],
    data: str | None,
    known: str | None,
    time_limit: float | None,
    quiet: bool,
    out: Output,
) -> int:
    from optgap.cli.work import exit_code, interruptible
    from optgap.datasets import data_folder, fetch

    done = interruptible(lambda limits: fetch(names, data, known, limits), time_limit, quiet)
    folder = data_folder(data)
    for item in done:
        text = f"{item.dataset.name}: {len(item.came)} downloaded, {len(item.there)} there before"
        if item.left:
            text += f", {len(item.left)} not for download ({item.dataset.source})"
        out.line(text)
        out.line(f"  licence: {item.dataset.licence}")
        out.line(f"  cite: {item.dataset.cite}")
    out.line(f"folder: {folder}")
    documents = [
        {
            "name": item.dataset.name,
            "came": list(item.came),
            "there": list(item.there),
            "left": list(item.left),
            "termination": str(item.termination),
        }
        for item in done
    ]
    out.document({"schema": SCHEMA, "folder": str(folder), "datasets": documents})
    return exit_code(item.termination for item in done)


def _verify(chosen: list[Dataset], folder: Path, named: bool, out: Output) -> int:
    from optgap.cli import complain
    from optgap.datasets import State, verify

    documents, rows, bad = [], [], []
    derived = {f.path: f for item in chosen for f in item.files if f.url is None}
    for item in chosen:
        states = verify(item, folder)
        counts = {state: sum(s is state for s in states.values()) for state in State}
        if not named and counts[State.MISSING] == len(states):
            continue
        rows.append((item.name, *(str(counts[state]) for state in State)))
        documents.append({"name": item.name, "files": {p: str(s) for p, s in states.items()}})
        amiss = (State.WRONG, State.MISSING) if named else (State.WRONG,)
        bad += [(p, s) for p, s in states.items() if s in amiss]
    out.table(("name", *(str(state) for state in State)), rows, (1, 2, 3))
    out.line(f"\nfolder: {folder}")
    out.document({"schema": SCHEMA, "folder": str(folder), "datasets": documents})
    for place, state in bad:
        expected = "the catalogue's file"
        if state is State.MISSING and place in derived:
            expected += f"; {_origin(derived[place])}"
        complain(f"{folder / place}: found it {state}, expected {expected}", BAD_INPUT)
    return BAD_INPUT if bad else DONE


def _path(names: list[str], data: str | None, known: str | None, out: Output) -> int:
    from optgap.datasets import data_folder, path

    found = {name: str(path(name, data, known)) for name in names}
    for place in found.values() if names else [str(data_folder(data))]:
        out.line(place)
    out.document({"schema": SCHEMA, "folder": str(data_folder(data)), "paths": found})
    return DONE
