"""The ``openai`` client with bounds: a deadline, a size, one origin, and no header that was not asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from memlab.errors import ModelError
from memlab.llm.service import Service, api_key, where

try:
    import httpx2
    from anyio.from_thread import start_blocking_portal
    from openai import APIStatusError, AsyncOpenAI, OpenAIError
except ImportError as error:
    raise ModelError(
        'language models need the openai client, which is not installed; run: pip install "memlab[llm]"'
    ) from error

# The client adds headers from OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_CUSTOM_HEADERS and a description of the machine.
HEADERS = ("host", "authorization", "content-type", "content-length", "accept", "user-agent")

Result = TypeVar("Result")


class _Bounded(httpx2.AsyncBaseTransport):
    """Read each answer whole, within a deadline and a size, as the bytes that came: nothing is decompressed."""

    def __init__(self, seconds: float, limit: int) -> None:
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)
        self._seconds, self._limit = seconds, limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        kept = [(name, request.headers[name]) for name in HEADERS if name in request.headers]
        headers = [*kept, ("accept-encoding", "identity")]
        sent = httpx2.Request(request.method, request.url, headers=headers, stream=request.stream)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._read(sent)
        except TimeoutError:
            raise httpx2.ReadTimeout(f"no whole answer within {self._seconds:g} s", request=request) from None

    async def _read(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        body = bytearray()
        try:
            async for part in response.aiter_raw():
                body += part
                if len(body) > self._limit:
                    return httpx2.Response(413, text=f"the answer has more than {self._limit:,} bytes")
        finally:
            await response.aclose()
        if 300 <= response.status_code < 400:
            return httpx2.Response(response.status_code, text="redirects are not followed: set base_url to the address")
        retry = {name: value for name, value in response.headers.items() if name.startswith("retry-after")}
        return httpx2.Response(response.status_code, headers=retry, content=bytes(body))

    async def aclose(self) -> None:
        await self._inner.aclose()


def client(service: Service, *, limit: int) -> AsyncOpenAI:
    """Make the client of a service.

    :param limit: bytes of one answer that are read; a longer one is an error.
    :raises ModelError: when the address is none, or the key's variable is not set.
    """
    if urlsplit(service.base_url).scheme not in ("http", "https"):
        raise ModelError(f"{where(service)}: base_url is no address; expected http://… or https://…")
    return AsyncOpenAI(
        base_url=service.base_url,
        # Never the client's own default, the variable OPENAI_API_KEY: a key goes only where the user sent it.
        api_key=api_key(service),
        max_retries=service.max_retries,
        http_client=httpx2.AsyncClient(transport=_Bounded(service.timeout, limit), trust_env=False),
    )


def explain(error: OpenAIError) -> str:
    """Say what the client's error was, the low-level cause with it."""
    if isinstance(error, APIStatusError):
        return f"HTTP {error.status_code}: {error.response.text}"
    cause = error.__cause__
    return f"{type(error).__name__}: {error}" + ("" if cause is None else f" ({type(cause).__name__}: {cause})")


def run(function: Callable[..., Awaitable[Result]], *args: Any) -> Result:
    """Run a coroutine function to its end, in a notebook's running loop too; an interrupt cancels it."""
    with start_blocking_portal() as portal:
        return portal.call(function, *args)
