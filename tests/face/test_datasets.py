"""Fetching public data, from a server on loopback."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, refused

from optgap import datasets
from optgap.models.errors import InputError

CONTENT = bytes(range(256)) * 2000


@dataclass
class Server:
    """What is served, how, and what was asked."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            content = state.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{httpd.server_port}"
    threading.Thread(target=httpd.serve_forever, args=(0.05,), daemon=True).start()
    yield state
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    place = tmp_path / "data"
    place.mkdir()
    monkeypatch.setenv("OPTGAP_DATA", str(place))
    monkeypatch.chdir(tmp_path)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return place


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def known(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets a catalogue with one dataset `one` of one file."""

    def set_(**change: Any) -> None:
        server.files.setdefault("/b.bin", CONTENT)
        given = {"path": "a/b.bin", "sha256": sha256(CONTENT), "bytes": len(CONTENT)}
        file = datasets.File(**{**given, "url": server.address + "/b.bin", **change})
        one = datasets.Dataset("one", "t", "MIT", "c", "h", (file,))
        monkeypatch.setattr(datasets, "catalogue", lambda: {"one": one})

    return set_


def left_over(folder: Path) -> list[str]:
    """Every file in the folder."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_what_is_fetched_is_the_publishers_file_and_is_fetched_once(
    known: Callable[..., None], server: Server, folder: Path
) -> None:
    known()
    assert [file.path for file in datasets.fetch(["one"])] == ["a/b.bin"]
    assert (folder / "a/b.bin").read_bytes() == CONTENT
    assert left_over(folder) == ["a/b.bin"]
    assert datasets.path("one") == folder / "a"
    assert datasets.fetch(["one"]) == []
    assert server.asked == ["/b.bin"]


def test_a_file_that_is_another_is_refused(
    known: Callable[..., None], server: Server, folder: Path
) -> None:
    server.files["/b.bin"] = CONTENT[:-1]
    known()
    with pytest.raises(InputError, match="another SHA-256"):
        datasets.fetch(["one"])
    assert left_over(folder) == []


def test_a_file_of_the_users_is_never_overwritten(known: Callable[..., None], folder: Path) -> None:
    known()
    (folder / "a").mkdir()
    (folder / "a/b.bin").write_bytes(b"mine")
    with pytest.raises(InputError, match="move it away"):
        datasets.fetch(["one"])
    assert (folder / "a/b.bin").read_bytes() == b"mine"


def test_what_was_converted_is_not_for_download(known: Callable[..., None], folder: Path) -> None:
    known(url=None, made="columns chosen")
    with pytest.raises(InputError, match="which nobody offers for download"):
        datasets.fetch(["one"])
    with pytest.raises(InputError, match="optgap generate --fetch one"):
        datasets.path("one")


ORIGINAL = b"window__ZeusDataLoader_power_limit_100\n"
MADE = b"window__GlobalPowerLimitOptimizer_100\n"


@pytest.mark.parametrize("into", [MADE, b"other"])
def test_a_publishers_file_is_converted_to_the_catalogues(
    known: Callable[..., None], server: Server, folder: Path, into: bytes
) -> None:
    server.files["/b.bin"] = ORIGINAL
    original = {"sha256": sha256(ORIGINAL), "convert": "zeus-windows"}
    known(sha256=sha256(into), bytes=len(into), original=original)
    if into == MADE:
        datasets.fetch(["one"])
        assert (folder / "a/b.bin").read_bytes() == MADE
        return
    with pytest.raises(InputError, match="another SHA-256 inside"):
        datasets.fetch(["one"])
    assert left_over(folder) == []


def test_without_a_folder_named_downloads_go_to_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPTGAP_DATA", raising=False)
    monkeypatch.setattr(datasets.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.data_folder() == tmp_path / "optgap" / "data"
    assert datasets.present_folder() is None


def test_the_catalogue_is_whole() -> None:
    known, seen = datasets.catalogue(), set()
    assert len(known) >= 10
    for item in known.values():
        assert item.licence
        assert item.cite
        assert item.home.startswith("https://")
        for file in item.files:
            assert file.path not in seen
            assert not {"", "..", "."} & set(file.path.split("/"))
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)
            seen.add(file.path)
            assert file.made if file.original or not file.url else not file.made
            assert file.original is None or file.original["convert"] in datasets.CONVERSIONS
            if file.url:  # an address that cannot move
                assert re.search(r"/[0-9a-f]{40}/", file.url), file.url


def test_the_local_data_is_that_of_the_catalogue(data_dir: Path) -> None:
    for item in datasets.catalogue().values():
        for file in item.files:
            place = data_dir / file.path
            assert not place.exists() or sha256(place.read_bytes()) == file.sha256, file.path


# -- the command -------------------------------------------------------------------------


def test_generate_lists_and_fetches(known: Callable[..., None], folder: Path, cli: Cli) -> None:
    known()
    shown = cli("generate", "--fetch", "list", "--json", "i.json").out
    assert "0 of 1" in shown
    assert str(folder) in shown
    (one,) = json.loads(Path("i.json").read_text())["datasets"]
    assert (one["licence"], one["there"], one["files"]) == ("MIT", 0, ["a/b.bin"])
    answer = cli("generate", "--fetch", "one")
    assert (answer.code, answer.err) == (0, "")
    assert "licence: MIT" in answer.out
    assert "1 of 1" in cli("generate", "--fetch", "list").out


def test_what_goes_wrong_is_said_in_one_line(
    known: Callable[..., None], server: Server, folder: Path, cli: Cli
) -> None:
    for url, said in (
        (server.address + "/gone", "404"),
        ("http://127.0.0.1:9/b.bin", "no connection"),
    ):
        known(url=url)
        refused(cli("generate", "--fetch", "one"), said)
    refused(cli("generate", "--fetch", "two"))
    refused(cli("data", "list"), "optgap generate --fetch")
    assert left_over(folder) == []
