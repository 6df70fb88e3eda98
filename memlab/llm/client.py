"""Requests to a service over HTTP (completions, embeddings) and what is read of its replies.

Retries, a deadline, a size, one origin, and no header that was not asked for.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar

import httpx
import numpy as np
from anyio.from_thread import start_blocking_portal
from pydantic import BaseModel, FailFast, Field, FiniteFloat, ValidationError, WrapValidator

from memlab.errors import ModelError
from memlab.llm.service import Service

_SHORTEST_SECRET = (
    12  # characters: what is shorter, such as "ollama", is a word that an answer may hold
)


class Reply(NamedTuple):
    """An answer or what does not fit, the text that it was read from, and tokens read and written."""

    value: BaseModel | None = None
    fault: str = ""
    text: str = ""
    tokens: tuple[int, int] = (0, 0)


class _Message(BaseModel):
    content: str


class _Choice(BaseModel):
    message: _Message
    finish_reason: Any = None


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: Any = None


def read_completion(body: bytes, shape: type[BaseModel], *, key: str = "") -> Reply:
    """Read a completion, without a fence or words around the JSON.

    :param key: of the service. An answer that repeats it would carry it into recordings and stores:
        it becomes ``***``.

    >>> from memlab.llm.client import read_completion
    >>> read_completion(b'{"choices": []}', BaseModel).fault
    'choices: List should have at least 1 item after validation, not 0'
    """
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        return Reply(fault=describe_first_fault(error))
    choice, usage = completion.choices[0], completion.usage
    text, tokens = choice.message.content, token_counts(usage)
    if choice.finish_reason == "length":
        return Reply(None, "cut at the longest output: raise max_output", text, tokens)
    first, last = text.find("{"), text.rfind("}")
    try:
        value = shape.model_validate_json(text[first : last + 1] if 0 <= first < last else text)
        secret, written = json.dumps(key, ensure_ascii=False)[1:-1], value.model_dump_json()
        if len(key) >= _SHORTEST_SECRET and secret in written:
            value = shape.model_validate_json(written.replace(secret, "***"))
    except ValidationError as error:
        return Reply(None, describe_first_fault(error), text, tokens)
    return Reply(value, "", text, tokens)


def fitting_items(most: int) -> WrapValidator:
    """Read of a list what fits, up to a bound, which not every model keeps; one in which nothing fits is refused."""

    def read_items(items: Any, read: Callable[[Any], Any]) -> Any:
        good: list[Any] = []
        for item in items if isinstance(items, list) else ():
            with suppress(ValidationError):
                good += read([item])
        return good[:most] or read(items)

    return WrapValidator(read_items)


def describe_first_fault(error: ValidationError) -> str:
    """Say what the first fault is and where, never the input itself: it may echo the request with its key."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def token_counts(usage: Any) -> tuple[int, int]:
    """Take the tokens read and written of a usage, or of a recording; what is no sensible count is 0."""
    if isinstance(usage, dict):
        usage = usage.get("prompt_tokens"), usage.get("completion_tokens")
    read, written = usage if isinstance(usage, list | tuple) and len(usage) == 2 else (0, 0)
    sensible = [n if type(n) is int and 0 <= n < 2**40 else 0 for n in (read, written)]
    return sensible[0], sensible[1]


RETRIED_STATUSES = (408, 409, 429)  # and 5xx
LONGEST_PAUSE = 60.0  # seconds, whatever a server asks for

Result = TypeVar("Result")


class Client:
    """A connection to a service, for one :meth:`run`.

    It is a transport of httpx without the client around it, so that no redirect is followed,
    nothing is decompressed, and no cookie, proxy or variable of the environment is used.

    :param limit: bytes of one answer that are read; a longer one is an error.
    :raises ModelError: when the address is none, or the key's variable is not set or holds what no
        header can carry.
    """

    def __init__(self, service: Service, *, limit: int) -> None:
        if not service.base_url.lower().startswith(("http://", "https://")):
            raise ModelError(f"{service}: base_url is no address; expected http://… or https://…")
        name = service.api_key_env
        self.key = os.environ.get(name, "").strip() if name else ""
        if name and not (self.key and self.key.isascii() and self.key.isprintable()):
            wrong = "holds a character that no key has" if self.key else "is not set"
            raise ModelError(
                f"service {service.name!r} takes its key from the environment variable {name}, which {wrong}; set it, "
                "or leave api_key_env out for a server without keys"
            )
        self.service, self._limit, self.takes_schema = service, limit, True
        self._headers = {
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "memlab",
        }
        self._headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        self._transport = httpx.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)

    async def post(self, path: str, body: dict[str, Any]) -> bytes:
        """Post JSON and give the bytes of the answer; a character that has no UTF-8 is sent as a question mark.

        :raises ModelError: when there is none after the retries of the service; says why, and may
            quote the server.
        """
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        failure = ""
        for attempt in range(self.service.max_retries + 1):
            pause = min(0.5 * 2**attempt, 8.0)
            try:
                async with asyncio.timeout(self.service.timeout):
                    response, answer = await self._attempt(path, content)
            except TimeoutError:
                failure = f"no whole answer within {self.service.timeout:g} s"
            except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
                failure = f"{type(error).__name__}: {error}"
            else:
                if response.is_success:
                    return answer
                failure = f"HTTP {response.status_code}: {answer.decode('utf-8', 'replace')}"
                if response.status_code not in RETRIED_STATUSES and not response.is_server_error:
                    break
                with suppress(ValueError):
                    pause = min(
                        max(0.0, float(response.headers.get("retry-after", ""))), LONGEST_PAUSE
                    )
            if attempt < self.service.max_retries:
                await asyncio.sleep(pause)
        raise self.error(failure)

    async def _attempt(self, path: str, content: bytes) -> tuple[httpx.Response, bytes]:
        """Read one answer whole, as the bytes that came."""
        url = self.service.base_url.rstrip("/") + path
        request = httpx.Request("POST", url, headers=self._headers, content=content)
        response = await self._transport.handle_async_request(request)
        try:
            if response.is_redirect:
                raise self.error(
                    f"HTTP {response.status_code}: redirects are not followed; correct base_url"
                )
            body = bytearray()
            async for part in response.aiter_raw():
                body += part
                if len(body) > self._limit:
                    raise self.error(f"the answer has more than {self._limit:,} bytes")
        finally:
            await response.aclose()
        return response, bytes(body)

    def error(self, failure: str) -> ModelError:
        """Say in one line what failed: the key taken out first, then shortened; a server may echo anything."""
        shown = " ".join((failure.replace(self.key, "***") if self.key else failure).split())
        return ModelError(f"{self.service}: {shown if len(shown) <= 400 else shown[:399] + '…'}")

    def run(self, function: Callable[[], Awaitable[Result]]) -> Result:
        """Run a coroutine function that posts to its end, in a notebook's running loop too, and close the connection.

        An interrupt cancels it.
        """

        async def run_to_end() -> Result:
            async with self._transport:
                return await function()

        with start_blocking_portal() as portal:  # a loop of its own, in a thread of its own
            return portal.call(run_to_end)


@cache
def _ssl_context() -> ssl.SSLContext:
    """Read the certificates of the authorities once: it takes a tenth of a second."""
    return httpx.create_ssl_context(trust_env=False)


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
    :param done: is given the vectors of each request as they come, in another thread; what it
        raises ends the work.
    :returns: (n, dim) float32 as the service gave them, in the order of the texts; (0, 0) for no
        texts.
    :raises ModelError: when the service cannot be asked, fails after its retries, or answers with
        missing rows, rows of different width or numbers that are not finite.
    """

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
                raise client.error(
                    f"vectors of widths {parts[0].shape[1]} and {parts[-1].shape[1]}: is it one model?"
                )
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
