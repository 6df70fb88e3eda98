"""llm.embed_texts: order, bounds, and a server that misbehaves."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest
from model_server import KEY, UNUSABLE, ModelServer, fitting, send

from memlab import ModelError
from memlab.llm import Service, embed_texts
from memlab.llm.client import BATCH


def rows(*vectors: Any, index: bool = True) -> Any:
    """Answer with these vectors, in reverse where they have an index."""
    listed = [{"embedding": vector, **({"index": i} if index else {})} for i, vector in enumerate(vectors)]
    return send(200, {"data": listed[::-1] if index else listed})


def test_vectors_come_in_the_order_of_the_texts_by_bounded_requests(server: ModelServer) -> None:
    server.modes = [rows([1.0], [3.0], [2.0]), rows([2.0], [1.0], index=False), fitting]
    assert embed_texts(server.service(), ["a", "bbb", "cc"]).tolist() == [[1], [3], [2]]
    found = embed_texts(server.service(), ["aa", "b"])
    assert (found.tolist(), found.dtype) == ([[2], [1]], np.float32)
    assert server.requests[0]["encoding_format"] == "float"
    assert embed_texts(server.service(), []).shape == (0, 0)
    texts = ["x" * n for n in range(1, 3 * BATCH)]
    assert embed_texts(server.service(), texts)[:, 0].tolist() == [*range(1, 3 * BATCH)]
    assert [len(request["input"]) for request in server.requests[2:]] == [BATCH, BATCH, BATCH - 1]


FAULTS: dict[str, Any] = {
    **{name: UNUSABLE[name] for name in ("429", "deep body", "a list", "gzip bomb")},
    "too few": rows([1.0]),
    "too many": rows([1.0], [1.0], [1.0]),
    "one twice": send(200, {"data": [{"index": 0, "embedding": [1.0]}] * 2}),
    "a word for a place": send(200, {"data": [{"index": "a", "embedding": [1.0]}] * 2}),
    "two widths": rows([1.0], [1.0, 2.0]),
    "base64": rows("AAAA", "AAAA"),
    "NaN": send(200, b'{"data": [{"embedding": [NaN]}, {"embedding": [1]}]}'),
    "infinity": rows([1e99], [1.0]),
    "a million rows": send(200, b'{"data": [' + b"{}," * 1_000_000 + b"{}]}"),
    "a million numbers": rows([1.0] * 1_000_000, [1.0]),
    "echoed key": send(200, {"data": [{"embedding": f"Bearer {KEY}"}], KEY: KEY}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_is_one_clear_error(server: ModelServer, caplog: Any, fault: str) -> None:
    server.modes = [FAULTS[fault]]
    with caplog.at_level("DEBUG"), pytest.raises(ModelError, match=r"service 'lab'.*model 'm'") as caught:
        embed_texts(server.service(), ["abc", "d"])
    assert KEY[:12] not in "".join(traceback.format_exception(caught.value)) + caplog.text


def test_a_width_that_changes_is_noticed_and_what_an_address_may_hide_is_not_shown(server: ModelServer) -> None:
    server.modes = [fitting, rows([1.0, 2.0, 3.0])]
    with pytest.raises(ModelError, match="widths"):
        embed_texts(server.service(), ["a"] * (BATCH + 1))
    hidden = Service("off", f"http://me:{KEY}@127.0.0.1:9/v1?token={KEY}", "m", timeout=60, max_retries=0)
    with pytest.raises(ModelError, match=r"\(http://127\.0\.0\.1:9/v1, model 'm'\)") as caught:
        embed_texts(hidden, ["a"])
    assert KEY not in str(caught.value)
