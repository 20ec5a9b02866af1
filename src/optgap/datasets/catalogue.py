"""What there is: names, licences, citations, addresses and hashes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from optgap.datasets.converting import CONVERSIONS
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields
from optgap.tomlio import load_toml

BUILT_IN = Path(__file__).with_name("catalogue.toml")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Published:
    """What is behind an address that is not the file itself.

    Parameters
    ----------
    sha256, bytes: of it.
    member: the file's name in it, for an archive.
    convert: the name of the function that makes the file of it, for an original.
    """

    sha256: str
    bytes: int
    member: str = ""
    convert: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a dataset.

    Parameters
    ----------
    path: inside the data folder, with forward slashes.
    sha256, bytes: of the file itself.
    url: the publisher's address, of the file or of the archive that it is in; None when
        the file was made from the publisher's.
    made: how, then.
    published: what is behind `url`, where that is an archive, or an original of another form.
    """

    path: str
    sha256: str
    bytes: int
    url: str | None = None
    made: str = ""
    published: Published | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Files that belong together."""

    name: str
    title: str
    licence: str
    cite: str
    home: str
    files: tuple[File, ...]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def source(self) -> str:
        """Whether its files can be downloaded."""
        can = sum(file.url is not None for file in self.files)
        if can == len(self.files):
            return "publisher"
        return f"publisher: {can} of {len(self.files)} files" if can else "converted copy only"


def catalogue(path: str | os.PathLike[str] | None = None) -> dict[str, Dataset]:
    """Every dataset by name, from the built-in catalogue or from a file of the same form.

    Raises
    ------
    InputError: naming the file, the field, what was found and what was expected.
    """
    source = str(path or BUILT_IN)
    document = load_toml(source)
    fields = Fields(document, source)
    found = {name: _dataset(name, fields.object(name)) for name in document}
    _refuse_shared_paths(found, source)
    return found


def choose(known: Mapping[str, Dataset], names: Iterable[str]) -> list[Dataset]:
    """The datasets of these names; all of them for ``all``.

    Raises
    ------
    InputError: for an unknown name, listing those there are.
    """
    wanted = list(dict.fromkeys(names))
    if wanted == ["all"]:
        return list(known.values())
    for name in wanted:
        if name not in known:
            raise InputError("data", "", name, one_of(known, "all, or some of {}"))
    return [known[name] for name in wanted]


def _dataset(name: str, fields: Fields) -> Dataset:
    return Dataset(
        name,
        fields.text("title"),
        fields.text("licence"),
        fields.text("cite"),
        fields.text("home"),
        tuple(_file(item) for item in fields.objects("files")),
    )


def _file(fields: Fields) -> File:
    url = fields.text("url") if "url" in fields.document else None
    if url is not None and not url.startswith(("https://", "http://")):
        raise fields.fail("url", url, "an address that starts with https://")
    published = None
    if "archive" in fields.document:
        inner = fields.object("archive")
        published = Published(_sha256(inner), inner.integer("bytes"), inner.text("member"))
    elif "original" in fields.document:
        inner = fields.object("original")
        name = inner.choice("convert", CONVERSIONS)
        published = Published(_sha256(inner), inner.integer("bytes"), convert=name)
    return File(
        _path(fields),
        _sha256(fields),
        fields.integer("bytes"),
        url,
        fields.text("made", "") if url else fields.text("made"),
        published,
    )


def _sha256(fields: Fields) -> str:
    text = fields.text("sha256")
    if not _HASH.fullmatch(text):
        raise fields.fail("sha256", text, "64 hexadecimal digits")
    return text


def _path(fields: Fields) -> str:
    """A path that stays inside the data folder, whoever wrote the catalogue."""
    text = fields.text("path")
    parts = PurePosixPath(text).parts
    if (
        not parts
        or text.startswith(("/", "~"))
        or {"..", "."} & set(parts)
        or re.search(r"[\\:]", text)
    ):
        raise fields.fail("path", text, "a path inside the data folder")
    return text


def _refuse_shared_paths(found: Mapping[str, Dataset], source: str) -> None:
    seen: dict[str, str] = {}
    for dataset in found.values():
        for file in dataset.files:
            if file.path in seen:
                what = NoQuote(f"{file.path} in {seen[file.path]}, too")
                raise InputError(source, dataset.name, what, "each path once")
            seen[file.path] = dataset.name
