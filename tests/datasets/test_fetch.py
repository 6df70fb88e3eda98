"""Downloads against a server of our own on the loopback address; the network is never asked."""

import errno
import hashlib
import re
import shutil
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from memlab.datasets import fetch as fetching
from memlab.datasets import load
from memlab.datasets.fetch import SOURCES, Published, fetch, place, published
from memlab.errors import DataError

CONTENT = np.random.default_rng(0).bytes(3_000_000)


@dataclass
class Server:
    """What the server does, request by request, and what it was asked."""

    url: str = ""
    content: bytes = CONTENT
    ranges: bool = True
    statuses: list[int] = field(default_factory=list)
    drop_after: list[int] = field(default_factory=list)
    redirect: bool = False
    asked: list[dict[str, str]] = field(default_factory=list)
    sent: int = 0


def _answer(handler: BaseHTTPRequestHandler, server: Server) -> None:
    if server.redirect and not handler.path.startswith("/moved"):
        handler.send_response(302)
        handler.send_header("Location", "/moved" + handler.path)
        handler.end_headers()
        return
    server.asked.append(dict(handler.headers))
    status = server.statuses.pop(0) if server.statuses else 200
    if status != 200:
        handler.send_error(status)
        return
    start, wanted = 0, re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    if wanted and server.ranges:
        start = int(wanted[1])
        if start >= len(server.content):
            handler.send_error(416)
            return
    body = server.content[start:]
    handler.send_response(206 if start else 200)
    handler.send_header("Content-Length", str(len(body)))
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
    handler.end_headers()
    part = body[: server.drop_after.pop(0)] if server.drop_after else body
    server.sent += len(part)
    handler.wfile.write(part)


@pytest.fixture
def server(monkeypatch):
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            _answer(self, state)

        def log_message(self, *_):
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{listening.server_port}/files/tiny.json"
    published = Published(state.url, hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "none")
    monkeypatch.setitem(SOURCES, "tiny", published)
    monkeypatch.setattr(fetching, "BACKOFF_SECONDS", 0.001)
    yield state
    listening.shutdown()
    thread.join()
    listening.server_close()


def names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir())


def get(directory: Path, **options) -> Path:
    return fetch("tiny", directory=directory, progress=False, **options)


def test_downloads_once_and_leaves_nothing_else(server, tmp_path):
    path = get(tmp_path / "new" / "data")
    assert path == tmp_path / "new" / "data" / "tiny.json"
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["tiny.json"]
    assert get(path.parent) == path
    assert len(server.asked) == 1
    assert server.asked[0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("redirect", [False, True])
def test_goes_on_after_a_dropped_connection(server, tmp_path, redirect):
    server.redirect = redirect
    server.drop_after = [1_000_000, 500_000]
    assert get(tmp_path).read_bytes() == CONTENT
    assert [a.get("Range") for a in server.asked] == [None, "bytes=1000000-", "bytes=1500000-"]
    assert server.sent == len(CONTENT)


def test_many_drops_are_survived_while_each_brings_something(server, tmp_path):
    server.drop_after = [200_000] * 12
    assert get(tmp_path).read_bytes() == CONTENT
    assert server.sent == len(CONTENT)


def test_a_later_call_goes_on_where_an_earlier_one_stopped(server, tmp_path):
    server.drop_after = [1_000_000] + [0] * 20
    with pytest.raises(DataError, match=r"What came so far is kept in .*tiny\.json\.part"):
        get(tmp_path)
    assert names(tmp_path) == ["tiny.json.part"]
    server.drop_after = []
    asked = len(server.asked)
    assert get(tmp_path).read_bytes() == CONTENT
    assert server.asked[asked]["Range"] == "bytes=1000000-"
    assert names(tmp_path) == ["tiny.json"]


def test_begins_again_where_the_server_knows_no_ranges(server, tmp_path):
    server.ranges = False
    server.drop_after = [1_000_000]
    assert get(tmp_path).read_bytes() == CONTENT
    assert server.sent == len(CONTENT) + 1_000_000


def test_gives_up_on_a_server_that_always_stops_at_the_same_place(server, tmp_path):
    server.ranges = False
    server.drop_after = [1_000_000] * 50
    with pytest.raises(DataError, match="tried 5 times in a row"):
        get(tmp_path)


def test_begins_again_when_the_file_changed_between(server, tmp_path):
    (tmp_path / "tiny.json.part").write_bytes(b"of an older file")
    assert get(tmp_path).read_bytes() == CONTENT
    assert [a.get("Range") for a in server.asked] == ["bytes=16-", None]
    (tmp_path / "tiny.json").unlink()
    (tmp_path / "tiny.json.part").write_bytes(CONTENT[::-1])
    assert get(tmp_path).read_bytes() == CONTENT


def test_a_complete_part_is_verified_and_not_loaded_again(server, tmp_path):
    (tmp_path / "tiny.json.part").write_bytes(CONTENT)
    assert get(tmp_path).read_bytes() == CONTENT
    assert server.asked == []


def test_a_part_longer_than_the_file_is_thrown_away(server, tmp_path):
    (tmp_path / "tiny.json.part").write_bytes(CONTENT + b"more")
    assert get(tmp_path).read_bytes() == CONTENT
    assert [a.get("Range") for a in server.asked] == [f"bytes={len(CONTENT) + 4}-", None]


@pytest.mark.parametrize("status", [500, 503, 429])
def test_tries_again_when_the_server_is_busy(server, tmp_path, status):
    server.statuses = [status, status, 200]
    assert get(tmp_path).read_bytes() == CONTENT
    assert len(server.asked) == 3


def test_gives_up_on_a_server_that_stays_busy(server, tmp_path):
    server.statuses = [500] * 20
    with pytest.raises(DataError, match=r"tried 5 times in a row, last .*HTTP status 500") as raised:
        get(tmp_path)
    assert hashlib.sha256(CONTENT).hexdigest() in str(raised.value)
    assert str(tmp_path / "tiny.json") in str(raised.value)
    assert len(server.asked) == 5
    assert names(tmp_path) == []


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_final(server, tmp_path, status):
    server.statuses = [status]
    with pytest.raises(DataError, match=rf"{re.escape(server.url)} answered HTTP status {status}"):
        get(tmp_path)
    assert len(server.asked) == 1


def test_wrong_bytes_are_named_and_removed(server, tmp_path):
    server.content = b"<html>please log in</html>"
    with pytest.raises(DataError) as raised:
        get(tmp_path)
    message = str(raised.value)
    assert hashlib.sha256(server.content).hexdigest() in message
    assert hashlib.sha256(CONTENT).hexdigest() in message
    assert "was removed" in message
    assert names(tmp_path) == []


def test_another_file_under_that_name_is_left_alone(server, tmp_path):
    (tmp_path / "tiny.json").write_bytes(b"mine")
    with pytest.raises(DataError, match="left as it is"):
        get(tmp_path)
    assert (tmp_path / "tiny.json").read_bytes() == b"mine"
    assert server.asked == []


def test_offline_says_what_was_tried_and_where_to_put_the_file(server, tmp_path):
    closed = "http://127.0.0.1:1/files/tiny.json"
    with pytest.raises(DataError) as raised:
        get(tmp_path, url=closed)
    message = str(raised.value)
    for part in (closed, "tried 5 times", str(tmp_path / "tiny.json"), SOURCES["tiny"].sha256, "3,000,000 bytes"):
        assert part in message


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/tiny.json", "no address", "http://[broken/tiny.json"])
def test_an_address_that_is_none(server, tmp_path, url):
    with pytest.raises(DataError, match=re.escape(url)):
        get(tmp_path, url=url)


def test_a_mirror_must_serve_the_published_bytes(server, tmp_path):
    mirror = server.url.replace("tiny.json", "renamed?token=1")
    assert get(tmp_path, url=mirror).name == "tiny.json"


def test_too_little_space_is_said_before_anything_is_written(server, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DataError, match=r"has 1 MB free and 3 MB are still to come"):
        get(tmp_path)
    assert not (tmp_path / "tiny.json.part").exists()


def test_a_full_disk_keeps_what_came(server, tmp_path):
    resource = pytest.importorskip("resource")
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
    try:
        with pytest.raises(DataError, match=r"cannot write .*tiny\.json.*goes on from there"):
            get(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    kept = (tmp_path / "tiny.json.part").stat().st_size
    assert 0 < kept <= 1_500_000
    assert get(tmp_path).read_bytes() == CONTENT
    assert server.asked[-1]["Range"] == f"bytes={kept}-"


def test_a_directory_that_cannot_be_written(server, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(DataError, match="cannot write"):
        get(tmp_path / "file" / "data")

    def read_only(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path))

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(DataError, match="Read-only file system"):
        get(tmp_path)


def test_shows_progress_only_when_asked(server, tmp_path, capsys):
    get(tmp_path / "a")
    assert capsys.readouterr().err == ""
    fetch("tiny", directory=tmp_path / "b")
    assert "tiny.json" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(name for name, source in SOURCES.items() if source.sha256))
def test_published_sources_are_pinned(name):
    source = SOURCES[name]
    assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
    assert re.search(r"/[0-9a-f]{40}/", source.url), "a fixed revision, not a branch"
    assert source.url.startswith("https://")
    assert source.filename.endswith(".json")


def test_a_fetched_file_is_read_by_its_name(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"tiny is not at data.tiny.json; `memlab fetch tiny` downloads it"):
        load("tiny")
    get(tmp_path / "data")
    assert place("tiny") == Path("data/tiny.json")
    (tmp_path / "tiny").write_text('{"scope": "me", "sender": "Ann", "text": "Hello"}')
    assert load("tiny").format == "chatlog", "a file of that name is meant first"


def test_what_has_no_checksum_is_told_where_it_is(tmp_path):
    for call in (load, lambda name: fetch(name, directory=tmp_path)):
        with pytest.raises(
            DataError, match=r"beam is not downloaded by memlab.*: get it from https://.*/BEAM and give"
        ):
            call("beam")
    assert published()["name"].to_list() == list(SOURCES)


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(DataError, match="no published data set 'nosuch'; choose one of locomo"):
        fetch("nosuch", directory=tmp_path)
