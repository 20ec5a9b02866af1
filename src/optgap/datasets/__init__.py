"""Public traces and measurements by name, with their places, owners and downloads.

>>> from optgap import datasets
>>> datasets.fetch(["openb"])  # doctest: +SKIP
>>> datasets.path("openb")  # doctest: +SKIP

Nothing in optgap needs them: every family has embedded defaults. pooch downloads them.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optgap.models.errors import InputError, NoQuote, Said, one_of
from optgap.models.jsonio import write_bytes
from optgap.models.reading import file_sha256

BUILT_IN = Path(__file__).with_name("catalogue.toml")
VARIABLE = "OPTGAP_DATA"


def _zeus_windows(original: bytes) -> bytes:
    """Return Zeus's power-limit sweeps with their windows named as at commit 75b0960."""
    return original.replace(b"__ZeusDataLoader_power_limit_", b"__GlobalPowerLimitOptimizer_")


CONVERSIONS: Mapping[str, Callable[[bytes], bytes]] = {"zeus-windows": _zeus_windows}
"""Functions that make tables from publishers' files; results are checked like downloads."""


@dataclass(frozen=True, slots=True)
class File:
    """File of a dataset.

    Parameters
    ----------
    path: path inside the data folder, with forward slashes.
    sha256, bytes: checksum and size of the file itself.
    url: the publisher's address of the file or of its source; None if nobody offers it.
    made: how the file was made from the publisher's, if nobody offers it.
    original: ``sha256`` and ``bytes`` of the source at `url`, and the name in `CONVERSIONS` of
        the function (``convert``) that makes the file.
    """

    path: str
    sha256: str
    bytes: int
    url: str | None = None
    made: str = ""
    original: Mapping[str, Any] | None = None


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
        """Size of all files, bytes."""
        return sum(file.bytes for file in self.files)

    def there(self, folder: Path) -> int:
        """Return the number of the dataset's files in a folder."""
        return sum((folder / file.path).is_file() for file in self.files)


def catalogue() -> dict[str, Dataset]:
    """Return every dataset by name."""
    document = tomllib.loads(BUILT_IN.read_text(encoding="utf-8"))
    return {
        name: Dataset(name=name, **{**item, "files": tuple(File(**f) for f in item["files"])})
        for name, item in document.items()
    }


def choose(names: Iterable[str]) -> list[Dataset]:
    """Return the datasets of these names, or all of them for ``all``.

    Raises
    ------
    InputError: for an unknown name, listing those there are.
    """
    known, wanted = catalogue(), list(dict.fromkeys(names))
    if wanted == ["all"]:
        return list(known.values())
    for name in wanted:
        if name not in known:
            raise InputError("--fetch", "", name, one_of(known, "all, or some of {}"))
    return [known[name] for name in wanted]


def home() -> Path:
    """Return the user's folder for downloads, unless another is named."""
    # the same places that platformdirs gives, without importing it to show a path
    if sys.platform == "win32":
        place = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local"))
    elif sys.platform == "darwin":
        place = Path.home() / "Library/Caches"
    else:
        place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return place / "optgap" / "data"


def data_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Return `given`, or the folder in ``OPTGAP_DATA``, or `home`; the first two must exist.

    Raises
    ------
    InputError: for a named folder that does not exist.
    """
    named = given or os.environ.get(VARIABLE)
    if not named:
        return home()
    if not Path(named).is_dir():
        source = "--data" if given else VARIABLE
        raise InputError(source, str(named), Said("no such folder"), "name a folder")
    return Path(named)


def present_folder(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Return `data_folder`, or None when nobody named a folder and nothing has been downloaded.

    Raises
    ------
    InputError: as `data_folder` does.
    """
    folder = data_folder(given)
    return folder if folder.is_dir() else None


def path(name: str) -> Path:
    """Return the folder that holds all files of a dataset.

    Raises
    ------
    InputError: for an unknown name, or a dataset with a missing file.
    """
    (dataset,) = choose([name])
    place = data_folder()
    for file in dataset.files:
        if not (place / file.path).is_file():
            remedy = f"run optgap generate --fetch {name}"
            raise InputError(str(place / file.path), "", Said("no such file"), remedy)
    return place / os.path.commonpath([os.path.dirname(file.path) for file in dataset.files])


def fetch(names: Iterable[str]) -> list[File]:
    """Download the missing files of the datasets of these names, and return these files.

    Raises
    ------
    InputError: for an unknown name, an existing file with another content (which stays), an
        address that does not answer, or a download that differs from the catalogue.
    """
    place, came = data_folder(), []
    for dataset in choose(names):
        for file in dataset.files:
            target = place / file.path
            if target.is_file():
                if file_sha256(target) != file.sha256:
                    found = NoQuote(f"a file with another SHA-256 than {dataset.name}'s")
                    raise InputError(str(target), "", found, f"{file.sha256}; move it away first")
            elif file.url is not None:
                _download(file, file.url, target)
                came.append(file)
        if not dataset.there(place):
            found = NoQuote("a converted copy, which nobody offers for download")
            raise InputError(dataset.name, "", found, f"it in {place}; see {dataset.home}")
    return came


def _download(file: File, url: str, target: Path) -> None:
    """Have pooch download from the address, and write the file or the one made from it."""
    import logging

    import pooch
    import requests

    pooch.get_logger().setLevel(logging.WARNING)  # the command line says what is going on
    expected = file.original["sha256"] if file.original else file.sha256
    with tempfile.TemporaryDirectory(prefix="optgap-data-") as folder:
        try:
            content = Path(pooch.retrieve(url, f"sha256:{expected}", "came", folder)).read_bytes()
        except requests.RequestException as error:
            raise InputError(
                url, "", Said(_reason(error)), "check the network and try again"
            ) from None
        except ValueError:  # pooch says in several lines that the hash is another
            found = NoQuote("a file with another SHA-256")
            raise InputError(url, "", found, expected) from None
        if file.original is not None:
            content = CONVERSIONS[file.original["convert"]](content)
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise InputError(url, file.path, NoQuote("another SHA-256 inside"), file.sha256)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(target, content)


def _reason(error: Exception) -> str:
    """Return the reason why a download failed, without the libraries' names."""
    answer = getattr(error, "response", None)
    if answer is not None:
        return f"{answer.status_code} {answer.reason}"
    return "no answer in time" if "Timeout" in type(error).__name__ else "no connection"
