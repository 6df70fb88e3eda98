"""Vectors of texts from a service, in requests as large as it takes."""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, FailFast, Field, FiniteFloat, ValidationError

from memlab.llm.response_bodies import JsonValue
from memlab.llm.service_addresses import Service
from memlab.llm.service_faults import Fault, RefusedError, describe_first_fault

if TYPE_CHECKING:
    from memlab.llm.service_client import Client

MAX_BYTES, MAX_NUMBERS, MAX_TEXTS = 400_000, 16_384, 2_048
"""Of the answer for one text, of its vector, and of the texts of one request."""

_READ_CHARS = 2_000
"""Of what a server says, where numbers are looked for."""
_TOO_MANY = re.compile(
    r"batch|per request|too many|too large|payload|at most|no more than|maximum (?:number|of)"
    r"|max(?:imum)?[ _](?:items|inputs|texts)"
    r"|(?:inputs?|contents?|texts|items|array|list|instances|elements)\b.{0,40}"
    r"(?:length|limit|exceed|larger|more|less|fewer|between|too long|≤|<=)",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(r"context|tokens|sequence length|characters", re.IGNORECASE)
_OF_REQUEST = re.compile(
    r"batch|(?:per|in the|in one) request|total|combined|payload", re.IGNORECASE
)
_BOUND = re.compile(
    r"(?:(?:larger|greater|more|less|fewer) than|at most|up to|exceeds?|maximum|max|limit|<=|≤|>"
    r"|\b1 ?(?:,|-|to|and|\.\.))\D{0,40}?(\d+)",
    re.IGNORECASE,
)


def _decode_if_base64(raw_vector: JsonValue) -> JsonValue:
    """Read a vector in base64, which some servers send though floats were asked for."""
    if not isinstance(raw_vector, str) or len(raw_vector) > MAX_BYTES:
        return raw_vector
    return np.frombuffer(base64.b64decode(raw_vector, validate=True), dtype="<f4").tolist()


class _Vector(BaseModel):
    index: int | None = None
    embedding: Annotated[
        list[FiniteFloat],
        Field(min_length=1, max_length=MAX_NUMBERS),
        FailFast(),
        BeforeValidator(_decode_if_base64),
    ]


class _Vectors(BaseModel):
    data: Annotated[list[_Vector], Field(max_length=MAX_TEXTS), FailFast()]


def embed_texts(
    service: Service, texts: Sequence[str], *, done: Callable[[np.ndarray], object] | None = None
) -> np.ndarray:
    """Embed texts through a service, as many requests at once as ``concurrency`` of the service
    says.

    A request holds as many texts as ``batch`` of the service says. Where the server refuses that
    many, it holds as many as the server names, else half as many, from then on. The first request
    goes alone, so that a server refuses once what it does not take.

    :param texts: n texts that are not empty.
    :param done: is given the vectors of each request as they come, in another thread; what it
        raises ends the work.
    :returns: (n, dim) float32 as the service gave them, in the order of the texts; (0, 0) for no
        texts.
    :raises ModelError: when the service cannot be asked, fails after its retries, or answers with
        missing rows, rows of different width or numbers that are not finite.
    """
    from memlab.llm.service_client import Client

    client = Client(service, limit=MAX_BYTES * min(service.batch, max(1, len(texts))))
    waiting_spans = _WaitingSpans(len(texts))
    vectors_by_start = dict[int, np.ndarray]()

    async def embed_next_span() -> None:
        batch_size = min(client.habits.batch or service.batch, service.batch)
        span_start, span_end = waiting_spans.take_next_start_and_end(batch_size)
        vectors = await _embed_first_texts_and_remember_size(client, texts[span_start:span_end])
        waiting_spans.put_back_span(span_start + len(vectors), span_end)
        expected_width = vectors_by_start[0].shape[1] if vectors_by_start else vectors.shape[1]
        if vectors.shape[1] != expected_width:
            widths = f"{expected_width} and {vectors.shape[1]}"
            raise client.model_error(f"vectors of widths {widths}: is it one model?")
        vectors_by_start[span_start] = vectors
        if done is not None:
            done(vectors)

    async def embed_until_none_wait() -> None:
        while waiting_spans.spans:
            await embed_next_span()

    async def embed_all_spans() -> None:
        if waiting_spans.spans:
            await embed_next_span()
        await _run_workers_concurrently(embed_until_none_wait, service.concurrency)

    client.run_and_close(embed_all_spans)
    if not vectors_by_start:
        return np.empty((0, 0), dtype=np.float32)
    return np.concatenate([vectors_by_start[start] for start in sorted(vectors_by_start)])


class _WaitingSpans:
    """Spans of texts that nobody has taken, the next one last."""

    def __init__(self, n_texts: int) -> None:
        self.spans = [(0, n_texts)]
        self._drop_last_span_if_empty()

    def take_next_start_and_end(self, max_texts: int) -> tuple[int, int]:
        """Take so many of the next texts: from where to where."""
        span_start, span_end = self.spans.pop()
        taken_end = min(span_end, span_start + max_texts)
        self.put_back_span(taken_end, span_end)
        return span_start, taken_end

    def put_back_span(self, span_start: int, span_end: int) -> None:
        """Put texts back, to be taken next, together with those that follow them."""
        if self.spans and self.spans[-1][0] == span_end and span_start < span_end:
            _, span_end = self.spans.pop()
        self.spans.append((span_start, span_end))
        self._drop_last_span_if_empty()

    def _drop_last_span_if_empty(self) -> None:
        start, end = self.spans[-1]
        if start == end:
            self.spans.pop()


async def _run_workers_concurrently(worker: Callable[[], Awaitable[None]], n_workers: int) -> None:
    """Run some workers at once; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(worker()) for _ in range(n_workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _embed_first_texts_and_remember_size(client: Client, texts: Sequence[str]) -> np.ndarray:
    """Embed the first of at least one text, as many as the service takes at once."""
    service = client.service
    refusal_text = ""
    deadline = time.monotonic() + client.longest_wait
    batch_size = min(client.habits.batch or service.batch, service.batch, len(texts))
    while True:
        sent_texts = [*texts[:batch_size]]

        def make_body(_: Any, sent: list[str] = sent_texts) -> dict[str, Any]:
            # Plain floats: base64 is not understood by every server.
            body: dict[str, Any] = {"model": service.model, "input": sent}
            body["encoding_format"] = "float"
            if service.dimensions is not None:
                body["dimensions"] = service.dimensions
            return body

        try:
            answer = await client.post_adapted("/embeddings", make_body, deadline=deadline)
        except RefusedError as error:
            smaller_batch = _smaller_or_same_batch_after_refusal(error.fault, batch_size)
            if smaller_batch == batch_size:
                raise
            batch_size = smaller_batch
            refusal_text = str(error)
            continue
        try:
            vectors = _read_vectors_in_order(answer, batch_size)
        except ValueError as error:
            raise client.model_error(str(error)) from None
        if refusal_text:
            client.habits.batch = batch_size
            client.note_once_in_process(
                f"from here on {batch_size} texts are embedded at once (batch in the settings)"
            )
        return vectors


def _smaller_or_same_batch_after_refusal(fault: Fault, batch_size: int) -> int:
    """Give how many texts a server takes at once, else half; all where their number is not why.

    >>> from memlab.llm.embedding_requests import _smaller_or_same_batch_after_refusal
    >>> from memlab.llm.service_faults import Fault
    >>> refusal = Fault(400, "batch size is invalid, it should not be larger than 10")
    >>> _smaller_or_same_batch_after_refusal(refusal, 32)
    10
    >>> _smaller_or_same_batch_after_refusal(Fault(413, "Payload Too Large"), 32)
    16
    >>> _smaller_or_same_batch_after_refusal(Fault(400, "maximum context length is 512 tokens"), 32)
    32
    """
    message = fault.message
    if _TOO_LONG.search(message) and not _OF_REQUEST.search(message):
        return batch_size  # one text is too long, in whatever company
    if fault.status != 413 and not _TOO_MANY.search(message):
        return batch_size
    smaller_size = 0
    for stated_bound in map(int, _BOUND.findall(message[:_READ_CHARS])):
        if stated_bound < batch_size:
            smaller_size = max(smaller_size, stated_bound)
    return smaller_size or max(1, batch_size // 2)


def _read_vectors_in_order(response_body: bytes, n_expected: int) -> np.ndarray:
    """Read n vectors off an answer, in the order of the request; some servers leave the index out.

    :raises ValueError: for anything else; says what is wrong, without quoting it.
    """
    try:
        vector_rows = _Vectors.model_validate_json(response_body).data
    except ValidationError as error:
        raise ValueError(describe_first_fault(error, _Vectors)) from None
    vector_indexes = [
        place if vector_row.index is None else vector_row.index
        for place, vector_row in enumerate(vector_rows)
    ]
    if (
        sorted(vector_indexes) != list(range(n_expected))
        or len({len(vector_row.embedding) for vector_row in vector_rows}) > 1
    ):
        raise ValueError(
            f"{len(vector_rows)} vectors with indexes {vector_indexes[:8]}; expected {n_expected} "
            "of one width"
        )
    with np.errstate(over="ignore"):
        vectors = np.array([vector_row.embedding for vector_row in vector_rows], dtype=np.float32)[
            np.argsort(vector_indexes)
        ]
    if not np.isfinite(vectors).all():
        raise ValueError("a number is too large")
    return vectors
