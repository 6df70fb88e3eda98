"""Embeddings through a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from memlab.errors import ModelError
from memlab.llm.reply import fault
from memlab.llm.service import Service

# What one request holds: servers refuse bodies that are much larger.
BATCH_TEXTS = 64
BATCH_CHARS = 100_000
MAX_BYTES = 32_000_000  # of one answer: 64 vectors of some 20,000 numbers


class _Vector(BaseModel):
    index: int | None = None
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)]


class _Vectors(BaseModel):
    data: list[_Vector]


def embeddings(
    service: Service, texts: Sequence[str], *, done: Callable[[np.ndarray], object] | None = None
) -> np.ndarray:
    """Embed texts through a service, over one connection.

    :param texts: n texts that are not empty.
    :param done: is given the vectors of each request as they come, in another thread; what it raises ends the work.
    :returns: (n, dim) float32 as the service gave them, in the order of the texts; (0, 0) for no texts.
    :raises ModelError: when the service cannot be asked, fails after its retries, or answers with missing rows, rows
        of different width or numbers that are not finite.
    """
    from memlab.llm.client import Client, NoAnswerError, run

    if not texts:
        return np.empty((0, 0), dtype=np.float32)
    client = Client(service, limit=MAX_BYTES)
    parts: list[np.ndarray] = []

    async def ask() -> None:
        async with client:
            for batch in batches(texts):
                # Plain floats: base64 is not understood by every server.
                body = {"model": service.model, "input": batch, "encoding_format": "float"}
                parts.append(_vectors(await client.post("/embeddings", body), len(batch)))
                if done is not None:
                    done(parts[-1])

    try:
        run(ask)
    except NoAnswerError as error:
        raise ModelError(client.error(f"no embeddings of {len(texts)} texts: {error}")) from None
    if len(widths := {part.shape[1] for part in parts}) > 1:
        raise ModelError(f"{service} gave vectors of widths {sorted(widths)}; expected one: is it one model?")
    return np.concatenate(parts)


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Cut texts into requests of at most :data:`BATCH_TEXTS` texts and :data:`BATCH_CHARS` characters.

    >>> from memlab.llm import batches
    >>> [len(batch) for batch in batches(["a"] * 100)]
    [64, 36]
    """
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == BATCH_TEXTS or size + len(text) > BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _vectors(body: bytes, n: int) -> np.ndarray:
    """Read n vectors off an answer, in the order of the request; some servers leave the index out."""
    from memlab.llm.client import NoAnswerError

    try:
        rows = _Vectors.model_validate_json(body).data
        with np.errstate(over="ignore"):
            vectors = np.array([row.embedding for row in rows], dtype=np.float32)
    except ValidationError as error:
        raise NoAnswerError(fault(error)) from None
    except ValueError:
        raise NoAnswerError("vectors of different widths in one answer") from None
    order = [i if row.index is None else row.index for i, row in enumerate(rows)]
    if sorted(order) != list(range(n)) or not np.isfinite(vectors).all():
        wrong = f"{len(rows)} vectors with indexes {order[:8]}"
        raise NoAnswerError(f"{wrong}; expected {n} of finite numbers")
    return vectors[np.argsort(order)]
