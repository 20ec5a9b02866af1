"""Fetching public data: from a server on loopback that does everything a server may do wrong."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

from optgap import datasets
from optgap.datasets.store import PARTS
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Termination

CONTENT = bytes(range(256)) * 2000


@dataclass
class Server:
    """What is served, how, and what was asked."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: dict[str, list[int]] = field(default_factory=dict)
    ranges: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append((self.path, wanted))
            content = state.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = 0
            if wanted and state.ranges:
                start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # type: ignore[index]
                if start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206)
                span = f"bytes {start}-{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", span)
            else:
                self.send_response(200)
            body = content[start:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cuts = state.cut_after.get(self.path, [])
            self.wfile.write(body[: cuts.pop(0)] if cuts else body)

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


def catalogue(server: Server, *files: str) -> str:
    """A catalogue with one dataset `one` of these ``[[one.files]]`` bodies."""
    head = '[one]\ntitle = "t"\nlicence = "MIT"\ncite = "c"\nhome = "h"\n'
    Path("known.toml").write_text(head + "".join(f"[[one.files]]\n{body}\n" for body in files))
    return "known.toml"


def plain(server: Server, content: bytes = CONTENT, path: str = "a/b.bin", **other: Any) -> str:
    """A file that the server has."""
    server.files.setdefault("/b.bin", content)
    given = {"url": server.address + "/b.bin", "sha256": sha256(content), "bytes": len(content)}
    lines = {"path": path, **given, **other}
    return "\n".join(f"{key} = {value!r}".replace("'", '"') for key, value in lines.items())


def left_over(folder: Path) -> list[str]:
    """Every file in the folder."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_what_is_fetched_is_the_publishers_file(server: Server, folder: Path) -> None:
    known = catalogue(server, plain(server))
    (done,) = datasets.fetch(["one"], known=known)
    assert done.came == ("a/b.bin",)
    assert (folder / "a/b.bin").read_bytes() == CONTENT
    assert left_over(folder) == ["a/b.bin"]
    assert datasets.path("one", known=known) == folder / "a"


def test_what_is_there_is_not_fetched_again(server: Server, folder: Path) -> None:
    known = catalogue(server, plain(server))
    datasets.fetch(["one"], known=known)
    (again,) = datasets.fetch(["one"], known=known)
    assert again.there == ("a/b.bin",)
    assert len(server.asked) == 1


def test_a_transfer_that_breaks_off_goes_on_where_it_ended(server: Server, folder: Path) -> None:
    known = catalogue(server, plain(server))
    server.cut_after["/b.bin"] = [204_800]
    datasets.fetch(["one"], known=known)
    assert (folder / "a/b.bin").read_bytes() == CONTENT
    assert server.asked == [("/b.bin", None), ("/b.bin", "bytes=204800-")]


def test_a_transfer_that_keeps_breaking_off_leaves_nothing_but_its_part(
    server: Server, folder: Path
) -> None:
    known = catalogue(server, plain(server))
    server.cut_after["/b.bin"] = [81_920, 81_920, 81_920]
    with pytest.raises(InputError, match="245760 bytes, expected 512000 bytes; try again"):
        datasets.fetch(["one"], known=known)
    assert left_over(folder) == [f"{PARTS}/{sha256(CONTENT)}.part"]
    datasets.fetch(["one"], known=known)
    assert server.asked[-1] == ("/b.bin", "bytes=245760-")
    assert left_over(folder) == ["a/b.bin"]
    assert (folder / "a/b.bin").read_bytes() == CONTENT


def test_an_interrupted_fetch_is_resumed(server: Server, folder: Path) -> None:
    known = catalogue(server, plain(server))
    stop = threading.Event()

    def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
        if int(phase.split()[-2]) >= 40:
            stop.set()

    limits = Limits(interrupted=stop, progress=tell)
    (first,) = datasets.fetch(["one"], known=known, limits=limits)
    assert first.termination is Termination.INTERRUPTED
    (part,) = left_over(folder)
    size = (folder / part).stat().st_size
    assert 0 < size < len(CONTENT)
    (second,) = datasets.fetch(["one"], known=known)
    assert second.came == ("a/b.bin",)
    assert server.asked[-1] == ("/b.bin", f"bytes={size}-")
    assert (folder / "a/b.bin").read_bytes() == CONTENT


def test_a_server_without_ranges_is_asked_for_everything_again(
    server: Server, folder: Path
) -> None:
    server.ranges = False
    known = catalogue(server, plain(server))
    server.cut_after["/b.bin"] = [204_800]
    datasets.fetch(["one"], known=known)
    assert (folder / "a/b.bin").read_bytes() == CONTENT


def test_a_part_of_another_file_does_not_survive(server: Server, folder: Path) -> None:
    known = catalogue(server, plain(server))
    (folder / PARTS).mkdir()
    (folder / PARTS / f"{sha256(CONTENT)}.part").write_bytes(b"x" * 1000)
    with pytest.raises(InputError, match="another SHA-256"):
        datasets.fetch(["one"], known=known)
    assert left_over(folder) == []
    datasets.fetch(["one"], known=known)
    assert (folder / "a/b.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "served",
    [CONTENT[:-1] + b"!", CONTENT + b"more", b""],
    ids=["another byte", "more", "nothing"],
)
def test_a_file_that_is_another_is_refused(server: Server, folder: Path, served: bytes) -> None:
    known = catalogue(server, plain(server))
    server.files["/b.bin"] = served
    with pytest.raises(InputError):
        datasets.fetch(["one"], known=known)
    assert [name for name in left_over(folder) if not name.startswith(PARTS)] == []


def test_a_file_of_the_users_is_never_overwritten(server: Server, folder: Path) -> None:
    known = catalogue(server, plain(server))
    (folder / "a").mkdir()
    (folder / "a/b.bin").write_bytes(b"mine")
    with pytest.raises(InputError, match="move it away"):
        datasets.fetch(["one"], known=known)
    assert (folder / "a/b.bin").read_bytes() == b"mine"
    assert server.asked == []


def zipped(names: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in names.items():
            file.writestr(name, content)
    return buffer.getvalue()


def tarred(names: dict[str, bytes], link: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for name, content in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
        if link:
            info = tarfile.TarInfo("link")
            info.type, info.linkname = tarfile.SYMTYPE, link
            file.addfile(info)
    return buffer.getvalue()


def member(server: Server, packed: bytes, name: str, path: str, content: bytes = b"hello") -> str:
    server.files["/all"] = packed
    return (
        f'path = "{path}"\nurl = "{server.address}/all"\nsha256 = "{sha256(content)}"\n'
        f"bytes = {len(content)}\n"
        f'archive = {{ sha256 = "{sha256(packed)}", bytes = {len(packed)}, member = "{name}" }}'
    )


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_members_come_out_of_an_archive_that_is_fetched_once(
    server: Server, folder: Path, pack: Any
) -> None:
    packed = pack({"in/x.csv": b"hello", "in/y.csv": b"hello", "other": b""})
    known = catalogue(
        server,
        member(server, packed, "in/x.csv", "x.csv"),
        member(server, packed, "in/y.csv", "y/y.csv"),
    )
    datasets.fetch(["one"], known=known)
    assert left_over(folder) == ["x.csv", "y/y.csv"]
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "packed",
    [
        zipped({"x.csv": b"hello", "../../evil.csv": b"evil"}),
        zipped({"x.csv": b"hello", "/tmp/evil.csv": b"evil"}),
        zipped({"x.csv": b"hello", "..\\evil.csv": b"evil"}),
        tarred({"x.csv": b"hello", "../evil.csv": b"evil"}),
        tarred({"x.csv": b"hello"}, link="/etc/passwd"),
        tarred({"x.csv": b"hello"}, link="x.csv"),
    ],
    ids=["zip-slip", "absolute", "backslashes", "tar-slip", "link out", "link"],
)
def test_nothing_comes_out_of_an_archive_that_leads_outside(
    server: Server, folder: Path, packed: bytes
) -> None:
    known = catalogue(server, member(server, packed, "x.csv", "x.csv"))
    with pytest.raises(InputError, match="outside the archive"):
        datasets.fetch(["one"], known=known)
    assert left_over(folder) == []
    assert not list(folder.parent.rglob("*evil*"))


def test_an_archive_that_unpacks_to_more_than_it_says_is_refused(
    server: Server, folder: Path
) -> None:
    known = catalogue(server, member(server, zipped({"x": b"0" * 10_000_000}), "x", "x.csv"))
    with pytest.raises(InputError, match="more than 5 bytes"):
        datasets.fetch(["one"], known=known)
    assert left_over(folder) == []


@pytest.mark.parametrize(
    "packed",
    [b"no archive", zipped({"x": b"hello"})[:-30], b"\x1f\x8b00"],
    ids=["text", "half a zip", "no gzip"],
)
def test_what_is_no_archive_is_bad_input(server: Server, folder: Path, packed: bytes) -> None:
    known = catalogue(server, member(server, packed, "x", "x.csv"))
    with pytest.raises(InputError):
        datasets.fetch(["one"], known=known)
    assert left_over(folder) == []


@pytest.mark.parametrize("path", ["../out", "/abs", "a/../../b", "C:/x", "a\\b", "~/x", ""])
def test_a_catalogue_cannot_name_places_outside_the_folder(
    server: Server, folder: Path, path: str
) -> None:
    body = plain(server).replace('path = "a/b.bin"', f"path = '{path}'")
    with pytest.raises(InputError, match="inside the data folder"):
        datasets.catalogue(catalogue(server, body))


def test_verify_tells_right_wrong_and_missing_apart(server: Server, folder: Path) -> None:
    known = catalogue(server, *(plain(server, path=p) for p in ("a.bin", "b.bin", "c.bin", "d")))
    (folder / "a.bin").write_bytes(CONTENT)
    (folder / "b.bin").write_bytes(CONTENT[:-1])
    (folder / "c.bin").write_bytes(CONTENT[:-1] + b"!")
    states = datasets.verify(datasets.catalogue(known)["one"], folder)
    assert [str(s) for s in states.values()] == ["right", "wrong", "wrong", "missing"]


def test_what_was_converted_is_not_for_download(server: Server, folder: Path) -> None:
    made = f'path = "m.csv"\nmade = "from x"\nsha256 = "{sha256(b"m")}"\nbytes = 1'
    known = catalogue(server, made)
    with pytest.raises(InputError, match="made from x"):
        datasets.fetch(["one"], known=known)
    known = catalogue(server, made, plain(server))
    (done,) = datasets.fetch(["one"], known=known)
    assert (done.came, done.left) == (("a/b.bin",), ("m.csv",))


SWEEP = b"start_time,window_name\n5.5,__ZeusDataLoader_power_limit_250\n"
RENAMED = b"start_time,window_name\n5.5,__GlobalPowerLimitOptimizer_250\n"


def converted(server: Server, into: bytes = RENAMED, convert: str = "zeus-windows") -> str:
    """A catalogue with a file that is made from one of the server's; both made up."""
    about = f'sha256 = "{sha256(SWEEP)}", bytes = {len(SWEEP)}, convert = "{convert}"'
    body = plain(server, SWEEP, sha256=sha256(into), bytes=len(into), made="renamed")
    return catalogue(server, f"{body}\noriginal = {{ {about} }}")


def test_a_publishers_file_is_converted_to_the_catalogues(server: Server, folder: Path) -> None:
    known = converted(server)
    (done,) = datasets.fetch(["one"], known=known)
    assert done.came == ("a/b.bin",)
    assert (folder / "a" / "b.bin").read_bytes() == RENAMED
    assert not (folder / PARTS).exists()
    assert set(datasets.verify(done.dataset, folder).values()) == {datasets.State.RIGHT}


def test_a_conversion_that_makes_something_else_leaves_nothing(
    server: Server, folder: Path
) -> None:
    with pytest.raises(InputError, match="after zeus-windows"):
        datasets.fetch(["one"], known=converted(server, into=b"other"))
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_a_conversion_that_nobody_knows_is_bad_input(server: Server, folder: Path) -> None:
    with pytest.raises(InputError, match="one of zeus-windows"):
        datasets.fetch(["one"], known=converted(server, convert="os.system"))


def test_what_is_derived_is_explained_where_it_is_missed(
    server: Server, folder: Path, cli: Cli
) -> None:
    body = f'path = "a.csv"\nsha256 = "{sha256(b"")}"\nbytes = 0\nmade = "columns chosen"'
    known = catalogue(server, body)
    assert "derived, not for download: columns chosen" in cli(
        "data", "list", "one", "--catalogue", known
    ).out.replace("\n", " ")
    answer = cli("data", "verify", "one", "--catalogue", known)
    assert answer.code == 2
    assert "derived, not for download: columns chosen" in answer.err


def test_without_a_folder_named_downloads_go_to_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPTGAP_DATA", raising=False)
    monkeypatch.setattr(datasets.places.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.data_folder() == tmp_path / "optgap" / "data"
    assert datasets.present_folder() is None


def test_the_catalogue_is_whole() -> None:
    known = datasets.catalogue()
    assert len(known) >= 10
    for item in known.values():
        assert item.licence
        assert item.cite
        assert item.home.startswith("https://")
        for file in item.files:
            converted = file.published is not None and file.published.convert
            assert file.made if converted or not file.url else not file.made
            if file.url:  # an address that cannot move
                assert re.search(r"/[0-9a-f]{40}/", file.url), file.url


def test_the_local_data_is_that_of_the_catalogue(data_dir: Path) -> None:
    for item in datasets.catalogue().values():
        states = datasets.verify(item, data_dir)
        assert datasets.State.WRONG not in states.values(), item.name


# -- the command -------------------------------------------------------------------------


def test_list_fetch_verify_and_path(server: Server, folder: Path, cli: Cli) -> None:
    known = ("--catalogue", catalogue(server, plain(server)))
    assert "no" in cli("data", "list", *known).out.splitlines()[2].split()
    assert "MIT" in cli("data", "list", "one", *known).out
    answer = cli("data", "fetch", "one", *known)
    assert (answer.code, answer.err) == (0, "")
    assert "licence: MIT" in answer.out
    assert cli("data", "verify", *known).code == 0
    assert cli("data", "path", "one", *known).out == f"{folder / 'a'}\n"
    (folder / "a/b.bin").write_bytes(b"")
    broken = cli("data", "verify", *known)
    assert broken.code == 2
    assert "wrong" in broken.err


def test_what_goes_wrong_is_said_in_one_line(server: Server, folder: Path, cli: Cli) -> None:
    gone = catalogue(server, plain(server, url=server.address + "/gone"))
    answers = [cli("data", "fetch", "one", "--catalogue", gone)]
    nobody = catalogue(server, plain(server, url="http://127.0.0.1:9/b.bin"))
    answers.append(cli("data", "fetch", "one", "--catalogue", nobody))
    answers += [
        cli("data", "fetch", "two"),
        cli("data", "fetch"),
        cli("data", "burn"),
        cli("data", "list", "--catalogue", "nowhere.toml"),
        cli("data", "list", "--data", "nowhere"),
        cli("data", "path", "openb"),
        cli("data", "fetch", "ecosched"),
    ]
    for answer in answers:
        assert answer.code == 2
        assert len(answer.err.splitlines()) == 1, answer.err
    assert "404 Not Found" in answers[0].err
    assert "no connection" in answers[1].err
    assert left_over(folder) == []


def test_the_built_in_list_fits_a_reader(folder: Path, cli: Cli) -> None:
    answer = cli("data", "list")
    assert answer.code == 0
    assert "openb" in answer.out
