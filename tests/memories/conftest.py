"""Two short conversations with questions, and servers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memlab import datasets
from memlab.records import Dataset

SAID = {
    "ann": (
        "My sister Ida adopted a grey cat named Muri.",
        "We walked along the harbour and had coffee by the lighthouse.",
        "The invoice for the dentist was ninety euros.",
        "I moved from Bergen to Oslo in the first week of March.",
        "Muri has learned to open the kitchen cupboard.",
        "The dentist moved my appointment to Thursday afternoon.",
    ),
    "bo": (
        "I started to learn the cello with a teacher called Hana.",
        "My brother Sam bakes bread every Sunday morning.",
        "Hana says that I should practise scales every day.",
        "The train to Lyon was three hours late.",
        "Sam opened a bakery next to the old station.",
        "I sold my bicycle to a colleague for forty euros.",
    ),
}
ASKED = {
    "ann": (("What is Ida's cat called?", "Muri", [1, 5]), ("When is the dentist?", "Thursday", [3, 6])),
    "bo": (("Who teaches the cello?", "Hana", [1]), ("Where is Sam's bakery?", "next to the old station", [2, 5])),
}


@pytest.fixture(scope="session")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chat log: six messages in two sessions, and two questions, of each of two people."""
    lines: list[dict[str, Any]] = []
    for scope, texts in SAID.items():
        for n, text in enumerate(texts):
            time = f"2024-05-0{1 + n // 3}T10:0{n}:00Z"
            about = {"session": f"s{1 + n // 3}", "id": f"m{n + 1}", "timestamp": time}
            lines.append({"scope": scope, "sender": scope.title(), "role": "user", "text": text, **about})
        for n, (question, answer, evidence) in enumerate(ASKED[scope]):
            about = {"timestamp": "2024-06-01T10:00:00Z", "evidence": [f"m{e}" for e in evidence]}
            lines.append({"scope": scope, "question": question, "answer": answer, "query_id": f"{scope}/q{n}", **about})
    place = tmp_path_factory.mktemp("talk") / "talk.jsonl"
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return place


@pytest.fixture(scope="session")
def data(talk: Path) -> Dataset:
    return datasets.load(talk)


@contextmanager
def running(made: ThreadingHTTPServer) -> Iterator[str]:
    with made:
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


@pytest.fixture(scope="session")
def serving() -> Callable[[ThreadingHTTPServer], AbstractContextManager[str]]:
    return running


@pytest.fixture(scope="session")
def answering() -> Callable[[Callable[[BaseHTTPRequestHandler], None]], AbstractContextManager[str]]:
    """Serve what writes an answer to the connection itself, whatever is asked."""

    def serve(answer: Callable[[BaseHTTPRequestHandler], None]) -> AbstractContextManager[str]:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.close_connection = True
                self.rfile.read(int(self.headers["Content-Length"]))
                answer(self)

            def log_message(self, format: str, *arguments: Any) -> None: ...

        made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        made.daemon_threads, made.block_on_close = True, False
        made.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients hang up
        return running(made)

    return serve
