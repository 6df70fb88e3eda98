"""The endpoint encoder: against a local HTTP server, and against a real llama.cpp server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from memlab import ModelError
from memlab.embed import Encoder, load
from memlab.llm import Service

DIM = 8


class Server(BaseHTTPRequestHandler):
    """Embeds a text as counts of its letters; remembers what it was sent."""

    sent: list[str]
    width = DIM

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        type(self).sent += texts
        rows = [[1.0 + sum(ord(c) % self.width == i for c in t) for i in range(self.width)] for t in texts]
        data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
        body = json.dumps({"data": data[::-1]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture
def server() -> Iterator[type[Server]]:
    handler = type("Handler", (Server,), {"sent": []})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
    handler.url = f"http://127.0.0.1:{httpd.server_port}/v1"
    yield handler
    httpd.shutdown()
    httpd.server_close()


def test_vectors_are_units_in_the_order_of_the_texts(server: type[Server]) -> None:
    encoder = load("endpoint:local", services={"local": Service("local", server.url, "letters")})
    texts = [f"text {i} " * (i % 5) for i in range(150)]
    vectors = encoder.encode(texts, progress=False)
    assert vectors.shape == (150, DIM)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for row in (1, 77, 149):
        np.testing.assert_allclose(vectors[row], encoder.encode([texts[row]])[0], atol=1e-6)
    assert encoder.encode([]).shape == (0, DIM)
    assert isinstance(encoder, Encoder)


def test_prompts_limits_and_empty_texts(server: type[Server]) -> None:
    service = Service("s", server.url, "letters", max_input=12, query_prompt="ask: ", document_prompt="doc: ")
    encoder = load("endpoint:s", services={"s": service})
    del server.sent[:]
    encoder.encode(["where is it", " \n"], kind="query")
    encoder.encode([""])
    assert server.sent == ["ask: where i", "ask: (empty)", "doc: (empty)"]


def test_a_server_that_changes_its_model_is_noticed(server: type[Server]) -> None:
    encoder = load("endpoint:s", services={"s": Service("s", server.url, "letters")})
    server.width = 5
    with pytest.raises(ModelError, match="gave vectors of 5 numbers, expected 8"):
        encoder.encode(["a"])
