"""Embeddings through a service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, FailFast, Field, FiniteFloat, ValidationError

from memlab.llm.reply import describe_first_fault
from memlab.llm.service import Service

BATCH = 32
"""Texts of one request: with the longest input of usual models, 8,192 tokens, servers take them."""

MAX_BYTES, MAX_NUMBERS = 400_000, 16_384
"""Of the answer for one text, and of its vector."""


class _Vector(BaseModel):
    index: int | None = None
    embedding: Annotated[list[FiniteFloat], Field(min_length=1, max_length=MAX_NUMBERS), FailFast()]


class _Vectors(BaseModel):
    data: Annotated[list[_Vector], Field(max_length=BATCH), FailFast()]


def embed_texts(
    service: Service, texts: Sequence[str], *, done: Callable[[np.ndarray], object] | None = None
) -> np.ndarray:
    """Embed texts through a service, over one connection.

    :param texts: n texts that are not empty.
    :param done: is given the vectors of each request as they come, in another thread; what it raises ends the work.
    :returns: (n, dim) float32 as the service gave them, in the order of the texts; (0, 0) for no texts.
    :raises ModelError: when the service cannot be asked, fails after its retries, or answers with missing rows, rows
        of different width or numbers that are not finite.
    """
    from memlab.llm.client import Client

    client = Client(service, limit=MAX_BYTES * min(BATCH, max(1, len(texts))))
    parts = list[np.ndarray]()

    async def ask() -> None:
        for start in range(0, len(texts), BATCH):
            batch = [*texts[start : start + BATCH]]
            # Plain floats: base64 is not understood by every server.
            body = {"model": service.model, "input": batch, "encoding_format": "float"}
            answer = await client.post("/embeddings", body)
            try:
                parts.append(_read_vectors(answer, len(batch)))
            except ValueError as error:
                raise client.error(str(error)) from None
            if parts[-1].shape[1] != parts[0].shape[1]:
                raise client.error(f"vectors of widths {parts[0].shape[1]} and {parts[-1].shape[1]}: is it one model?")
            if done is not None:
                done(parts[-1])

    client.run(ask)
    return np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.float32)


def _read_vectors(body: bytes, n: int) -> np.ndarray:
    """Read n vectors off an answer, in the order of the request; some servers leave the index out.

    :raises ValueError: for anything else; says what is wrong, without quoting it.
    """
    try:
        rows = _Vectors.model_validate_json(body).data
    except ValidationError as error:
        raise ValueError(describe_first_fault(error)) from None
    order = [i if row.index is None else row.index for i, row in enumerate(rows)]
    if sorted(order) != list(range(n)) or len({len(row.embedding) for row in rows}) > 1:
        raise ValueError(f"{len(rows)} vectors with indexes {order[:8]}; expected {n} of one width")
    with np.errstate(over="ignore"):
        vectors = np.array([row.embedding for row in rows], dtype=np.float32)[np.argsort(order)]
    if not np.isfinite(vectors).all():
        raise ValueError("a number is too large")
    return vectors
