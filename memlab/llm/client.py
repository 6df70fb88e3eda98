"""Requests to a service over HTTP: retries, a deadline, a size, one origin, and no header that was not asked for."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import httpx

from memlab.errors import ModelError
from memlab.llm.service import Service

RETRIED_STATUSES = (408, 409, 429)  # and 5xx
LONGEST_PAUSE = 60.0  # seconds, whatever a server asks for

Result = TypeVar("Result")


class Client:
    """A connection to a service, for one :meth:`run`.

    It is a transport of httpx without the client around it, so that no redirect is followed, nothing is decompressed,
    and no cookie, proxy or variable of the environment is used.

    :param limit: bytes of one answer that are read; a longer one is an error.
    :raises ModelError: when the address is none, or the key's variable is not set or holds what no header can carry.
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
        self._headers = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "memlab"}
        self._headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        self._transport = httpx.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)

    async def post(self, path: str, body: dict[str, Any]) -> bytes:
        """Post JSON and give the bytes of the answer; a character that has no UTF-8 is sent as a question mark.

        :raises ModelError: when there is none after the retries of the service; says why, and may quote the server.
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
                    pause = min(max(0.0, float(response.headers.get("retry-after", ""))), LONGEST_PAUSE)
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
                raise self.error(f"HTTP {response.status_code}: redirects are not followed; correct base_url")
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

        began: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Result] | None]] = Future()

        async def whole() -> Result:
            began.set_result((asyncio.get_running_loop(), asyncio.current_task()))
            async with self._transport:
                return await function()

        with ThreadPoolExecutor(1) as pool:  # a loop of its own
            running = pool.submit(asyncio.run, whole())
            try:
                return running.result()
            except BaseException:
                loop, task = began.result()
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(task.cancel if task else loop.stop)
                raise


@cache
def _ssl_context() -> ssl.SSLContext:
    """Read the certificates of the authorities once: it takes a tenth of a second."""
    return httpx.create_ssl_context(trust_env=False)
