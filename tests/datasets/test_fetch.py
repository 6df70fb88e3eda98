"""Downloads against a server of our own on the loopback address; the network is never asked."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memlab.datasets import load
from memlab.datasets.fetch import SOURCES, Published, fetch, resolve_path_or_benchmark_name
from memlab.errors import DataError

CONTENT = np.random.default_rng(0).bytes(300_000)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Serve a file by what the test sets here; ``asked`` lists the ranges that were asked for."""
    state = SimpleNamespace(ranges=True, status=200, drop_after=[], asked=[])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.headers.get("Range"))
            if state.status != 200:
                return self.send_error(state.status)
            wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = int(wanted[1]) if wanted and state.ranges else 0
            if start >= len(CONTENT):
                return self.send_error(416)
            body = CONTENT[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: state.drop_after.pop(0)] if state.drop_after else body)

        def log_message(self, *_: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{listening.server_port}/files/tiny.json"
    published = Published(url, "none", "all", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    monkeypatch.setitem(SOURCES, "tiny", published)
    yield state
    listening.shutdown()
    thread.join()
    listening.server_close()


def test_downloads_once_and_leaves_nothing_else(server: Any, tmp_path: Path) -> None:
    path = fetch("tiny", directory=tmp_path / "new")
    assert path.read_bytes() == CONTENT
    assert [file.name for file in path.parent.iterdir()] == ["tiny.json"]
    assert fetch("tiny", directory=path.parent) == path
    assert server.asked == [None]
    path.write_bytes(b"mine")
    with pytest.raises(DataError, match="move it away"):
        fetch("tiny", directory=path.parent)
    assert path.read_bytes() == b"mine"
    with pytest.raises(DataError, match="cannot write"):
        fetch("tiny", directory=path / "data")


@pytest.mark.parametrize("ranges", [True, False])
def test_a_later_call_goes_on_where_an_earlier_one_stopped(
    server: Any, tmp_path: Path, ranges: bool
) -> None:
    server.ranges, server.drop_after = ranges, [100_000]
    with pytest.raises(DataError, match=r"what came so far is kept in .*tiny\.json\.part"):
        fetch("tiny", directory=tmp_path)
    assert (tmp_path / "tiny.json.part").stat().st_size == 100_000
    assert fetch("tiny", directory=tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-"]
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.json"]


def test_a_refusal_says_what_to_do_instead(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for begun in (CONTENT[::-1], b"of an older file", CONTENT + b"more"):
        (tmp_path / "tiny.json.part").write_bytes(begun)
        with pytest.raises(DataError, match="not the published one"):
            fetch("tiny", directory=tmp_path)
        assert list(tmp_path.iterdir()) == []
    server.status = 503
    with pytest.raises(DataError, match=r"503 .*by hand") as raised:
        fetch("tiny", directory=tmp_path)
    for part in (SOURCES["tiny"].url, str(tmp_path / "tiny.json"), SOURCES["tiny"].sha256 or ""):
        assert part in str(raised.value)
    for url in ("http://127.0.0.1:1/tiny.json", "ftp://127.0.0.1/x"):
        monkeypatch.setitem(SOURCES, "tiny", Published(url, "none", "all", "0" * 64))
        with pytest.raises(DataError, match=re.escape(url)):
            fetch("tiny", directory=tmp_path)


def test_a_fetched_file_is_read_by_its_name(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="memlab fetch tiny"):
        load("tiny")
    fetch("tiny", directory=tmp_path / "data")
    assert resolve_path_or_benchmark_name("tiny") == Path("data/tiny.json")
    (tmp_path / "tiny").write_text('{"scope": "me", "sender": "Ann", "text": "Hello"}')
    assert load("tiny").format == "chatlog", "a file of that name is meant first"


def test_the_sample_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path(__file__).parents[2]
    monkeypatch.chdir(tmp_path)
    for name in ("sample", "data/sample/sample.jsonl"):
        assert resolve_path_or_benchmark_name(name) == here / "data" / "sample" / "sample.jsonl"
    export = "data/sample/exports/chatgpt/conversations.json"
    assert resolve_path_or_benchmark_name(export) == here / export
    for name in ("data/sample/none.jsonl", "data/sample/../../x", "data/other.jsonl"):
        assert resolve_path_or_benchmark_name(name) == Path(name)
    (tmp_path / "sample").write_text("")
    assert resolve_path_or_benchmark_name("sample") == Path("sample"), (
        "a file of that name is meant first"
    )


def test_what_is_not_published_is_told_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"get it from https://.*/BEAM"):
        load("beam")
    with pytest.raises(DataError, match="choose one of locomo"):
        fetch("nosuch", directory=tmp_path)


def test_two_at_once_download_it_once(server: Any, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: fetch("tiny", directory=tmp_path), range(4)))
    assert {*paths} == {tmp_path / "tiny.json"}
    assert paths[0].read_bytes() == CONTENT
    assert server.asked == [None]
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.json"]
