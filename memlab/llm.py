"""Language-model services: any OpenAI-compatible HTTP endpoint, and nothing unless the user named one."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from memlab.errors import ModelError

# What one request holds: servers refuse bodies that are much larger.
BATCH_TEXTS = 64
BATCH_CHARS = 100_000

# Sent where a service has no key: the client insists on one.
NO_KEY = "none"


@dataclass(frozen=True)
class Service:
    """Where a model is served, without its secret: the key stays in the environment.

    :param name: how settings and ``endpoint:NAME`` call it.
    :param base_url: the address up to and including ``/v1``.
    :param model: the model's name at the server.
    :param api_key_env: *name* of the environment variable that holds the key; ``None`` for a server without one.
    :param timeout: seconds for one request.
    :param max_retries: further attempts after 408, 409, 429, 5xx, a time-out or a lost connection, with back-off.
    :param max_input: longest text sent, in characters; the rest of a longer text is left out.
    :param query_prompt: text put before a query that is embedded.
    :param document_prompt: text put before a document that is embedded.

    >>> from memlab.llm import Service
    >>> Service("local", "http://127.0.0.1:8080/v1", "nomic-embed-text").api_key_env is None
    True
    """

    name: str
    base_url: str
    model: str
    api_key_env: str | None = None
    timeout: float = 60.0
    max_retries: int = 3
    max_input: int | None = None
    query_prompt: str = ""
    document_prompt: str = ""


def client(service: Service) -> Any:
    """Make the ``openai`` client of a service.

    :raises ModelError: when the client is not installed, the address is none, or the key's variable is not set.
    """
    try:
        from openai import OpenAI
    except ImportError as error:
        raise ModelError(
            f'service {service.name!r} needs the openai client, which is not installed; run: pip install "memlab[llm]"'
        ) from error
    if urlsplit(service.base_url).scheme not in ("http", "https"):
        raise ModelError(f"{_where(service)}: base_url is no address; expected http://… or https://…")
    return OpenAI(
        base_url=service.base_url,
        # Never the client's own default, the variable OPENAI_API_KEY: a key goes only where the user sent it.
        api_key=_key(service) or NO_KEY,
        timeout=service.timeout,
        max_retries=service.max_retries,
    )


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
            raise ModelError(f"{_where(service)} gave vectors of {widths}; expected one width: is it one model?")
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
        failure = _explain(error)
    except ValueError as error:
        failure = f"an answer that is no JSON ({error})"
    # Outside the handlers, so that no chained exception shows the request with its key.
    raise ModelError(f"{_where(service)} failed on {len(batch)} texts: {_redact(opened.api_key, failure)}")


def _rows(service: Service, answer: Any, batch: list[str]) -> np.ndarray:
    """Read the vectors off an answer, in the order of the request."""
    n = len(batch)
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(d, dict) for d in data):
        # Not the answer itself, which may echo the request with its key.
        found = f"an object with {sorted(answer)[:5]}" if isinstance(answer, dict) else type(answer).__name__
        raise ModelError(f"{_where(service)} answered {found}; expected an object with a list 'data' of embeddings")
    # Some servers leave the index out; their rows are in order.
    place = [d.get("index", i) for i, d in enumerate(data)]
    if len(data) != n or sorted(place, key=repr) != sorted(range(n), key=repr):
        raise ModelError(
            f"{_where(service)} gave {len(data)} vectors, with indexes {place[:8]}, for {n} texts; "
            "expected one for each text"
        )
    rows = [data[i].get("embedding") for i in np.argsort(place)]
    widths = {len(r) if isinstance(r, list) else None for r in rows}
    if len(widths) != 1 or not next(iter(widths)):
        raise ModelError(f"{_where(service)} gave vectors of widths {sorted(map(str, widths))}; expected one width")
    try:
        with np.errstate(over="ignore"):
            vectors = np.array(rows, dtype=np.float32)
    except (TypeError, ValueError):
        vectors = np.full((n, 1), math.nan, dtype=np.float32)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ModelError(f"{_where(service)} gave a vector with NaN, infinity or no number; expected finite numbers")
    return vectors


def _explain(error: Exception) -> str:
    """Say what the client's error was, the low-level cause with it."""
    text = f"{type(error).__name__}: {error}"
    cause = error.__cause__
    return text if cause is None or str(cause) in text else f"{text} ({type(cause).__name__}: {cause})"


def _where(service: Service) -> str:
    """Name a service in a message, without what an address may carry besides the host: user, password, query."""
    url = urlsplit(service.base_url)
    host = url.netloc.rpartition("@")[2]
    return f"service {service.name!r} ({url.scheme}://{host}{url.path}, model {service.model!r})"


def _key(service: Service) -> str | None:
    if service.api_key_env is None:
        return None
    key = os.environ.get(service.api_key_env, "").strip()
    if not key:
        raise ModelError(
            f"service {service.name!r} takes its key from the environment variable {service.api_key_env}, which is not "
            "set; set it, or leave api_key_env out for a server without keys"
        )
    return key


def _redact(key: str, text: str) -> str:
    """Take the key out of a text, and bound the text: a server may echo anything."""
    shown = text if key == NO_KEY else text.replace(key, "***")
    return shown if len(shown) <= 500 else shown[:499] + "…"
