"""The endpoint encoder against a local HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from model_server import ModelServer, running, send

from memlab import ModelError
from memlab.embed import Encoder, load
from memlab.llm import Service


def letters(width: int = 8) -> Any:
    """Embed a text as counts of its letters, and give the rows in another order."""

    def mode(handler: Any, request: dict[str, Any]) -> None:
        rows = [[1.0 + sum(ord(c) % width == i for c in t) for i in range(width)] for t in request["input"]]
        data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
        send(200, {"data": data[::-1]})(handler, request)

    return mode


@pytest.fixture
def server() -> Iterator[ModelServer]:
    yield from running(letters())


def encoder(server: ModelServer, **options: Any) -> Encoder:
    return load("endpoint:s", services={"s": Service("s", server.url, "letters", **options)})


def test_vectors_are_units_in_the_order_of_the_texts(server: ModelServer) -> None:
    ours, texts = encoder(server), [f"text {i} " * (i % 5) for i in range(150)]
    vectors = ours.encode(texts, progress=False)
    assert (vectors.shape, vectors.dtype) == ((150, 8), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for row in (1, 77, 149):
        np.testing.assert_allclose(vectors[row], ours.encode([texts[row]])[0], atol=1e-6)
    assert ours.encode([]).shape == (0, 8)
    assert isinstance(ours, Encoder)


def test_prompts_limits_and_empty_texts_and_a_server_that_changes_its_model(server: ModelServer) -> None:
    ours = encoder(server, max_input=12, query_prompt="ask: ", document_prompt="doc: ")
    del server.requests[:]
    ours.encode(["where is it", " \n"], kind="query")
    ours.encode([""])
    sent = [text for request in server.requests for text in request["input"]]
    assert sent == ["ask: where i", "ask: (empty)", "doc: (empty)"]
    server.modes = [letters(5)]
    with pytest.raises(ModelError, match="gave vectors of 5 numbers, expected 8"):
        ours.encode(["a"])
