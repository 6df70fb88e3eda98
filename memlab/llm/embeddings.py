"""Embeddings through a service."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from memlab.errors import ModelError
from memlab.llm.service import Service, client, explain, redact, where

# What one request holds: servers refuse bodies that are much larger.
BATCH_TEXTS = 64
BATCH_CHARS = 100_000


def embeddings(service: Service, texts: Sequence[str], *, using: Any | None = None) -> np.ndarray:
    """Embed texts through a service.

    :param texts: n texts that are not empty.
    :param using: a client of this service, from :func:`client`, to use again.
    :returns: (n, dim) float32 as the service gave them, in the order of the texts; (0, 0) for no texts.
    :raises ModelError: when the service fails after its retries, or answers with missing rows, rows of different
        width or numbers that are not finite.
    """
    if not texts:
        return np.empty((0, 0), dtype=np.float32)
    opened = using if using is not None else client(service)
    parts: list[np.ndarray] = []
    for batch in batches(texts):
        parts.append(_rows(service, _request(service, opened, batch), batch))
        if parts[-1].shape[1] != parts[0].shape[1]:
            widths = f"{parts[0].shape[1]} numbers, then {parts[-1].shape[1]}"
            raise ModelError(f"{where(service)} gave vectors of {widths}; expected one width: is it one model?")
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


def _request(service: Service, opened: Any, batch: list[str]) -> Any:
    from openai import OpenAIError

    try:
        # Plain floats: the client's own default, base64, is not understood by every server.
        raw = opened.embeddings.with_raw_response.create(model=service.model, input=batch, encoding_format="float")
        return raw.http_response.json()
    except OpenAIError as error:
        failure = explain(error)
    except ValueError as error:
        failure = f"an answer that is no JSON ({error})"
    # Outside the handlers, so that no chained exception shows the request with its key.
    raise ModelError(f"{where(service)} failed on {len(batch)} texts: {redact(opened.api_key, failure)}")


def _rows(service: Service, answer: Any, batch: list[str]) -> np.ndarray:
    """Read the vectors off an answer, in the order of the request."""
    n = len(batch)
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(d, dict) for d in data):
        # Not the answer itself, which may echo the request with its key.
        shape = f"an object with {sorted(answer)[:5]}" if isinstance(answer, dict) else type(answer).__name__
        raise ModelError(f"{where(service)} answered {shape}; expected an object with a list 'data' of embeddings")
    # Some servers leave the index out; their rows are in order.
    place = [d.get("index", i) for i, d in enumerate(data)]
    if len(data) != n or sorted(place, key=repr) != sorted(range(n), key=repr):
        raise ModelError(
            f"{where(service)} gave {len(data)} vectors, with indexes {place[:8]}, for {n} texts; "
            "expected one for each text"
        )
    rows = [data[i].get("embedding") for i in np.argsort(place)]
    widths = {len(r) if isinstance(r, list) else None for r in rows}
    if len(widths) != 1 or not next(iter(widths)):
        raise ModelError(f"{where(service)} gave vectors of widths {sorted(map(str, widths))}; expected one width")
    try:
        with np.errstate(over="ignore"):
            vectors = np.array(rows, dtype=np.float32)
    except (TypeError, ValueError):
        vectors = np.full((n, 1), math.nan, dtype=np.float32)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ModelError(f"{where(service)} gave a vector with NaN, infinity or no number; expected finite numbers")
    return vectors
