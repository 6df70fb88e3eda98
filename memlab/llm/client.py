"""Requests to a service over HTTP, and the bytes of its answers.

Retries, a deadline, a size, one origin, and no header that was not asked for. What the service
names as unknown is left out of requests from then on.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import httpx
from anyio.from_thread import start_blocking_portal

from memlab.errors import ModelError
from memlab.llm.bodies import decompress, join_stream
from memlab.llm.faults import Fault, RefusedError, read_fault
from memlab.llm.habits import adapt_body, describe_replacements, find_replacements, habits_of
from memlab.llm.pauses import requested_pause
from memlab.llm.service import Service

ATTEMPTS = 2
"""At an answer that fits."""
_LONGEST_PAUSE = 8.0
"""Seconds, where the server does not say how long to wait."""

Result = TypeVar("Result")


class Client:
    """A connection to a service, for one :meth:`run`.

    It is a transport of httpx without the client around it, so that no redirect is followed, and
    no cookie, proxy or variable of the environment is used.

    :param limit: bytes of one answer that are read, after decompression too; a longer one is an
        error.
    :raises ModelError: when the address is none, or the key's variable is not set or holds what no
        header can carry.
    """

    def __init__(self, service: Service, *, limit: int) -> None:
        if not service.base_url.lower().startswith(("http://", "https://")):
            raise ModelError(f"{service}: base_url is no address; expected http://… or https://…")
        self.service, self._limit, self.key = service, limit, _read_key(service)
        self.habits = habits_of(service)
        self.longest_wait = service.timeout * (service.max_retries + ATTEMPTS)
        self._notes = list[str]()
        self._is_down = False
        self._headers = {
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "memlab",
        }
        if self.key:
            self._headers["Authorization"] = f"Bearer {self.key}"
        self._transport = httpx.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)

    @property
    def replaced(self) -> dict[str, str]:
        """Parameters that are left out, by the settings or as the service does not take them."""
        return self.habits.replaced | dict.fromkeys(self.service.leave_out, "")

    async def post_adapted(
        self,
        path: str,
        make_body: Callable[[Mapping[str, str]], dict[str, Any]],
        *,
        until: float | None = None,
    ) -> bytes:
        """Post a request without what the service does not take; what helped once is remembered.

        :param make_body: given :attr:`replaced`, gives the request.
        :raises ModelError: see :meth:`post`.
        """
        found, faults = dict[str, str](), dict[str, str]()
        while True:
            replaced = self.replaced | found
            body = adapt_body(make_body(replaced), replaced)
            try:
                answer = await self.post(path, body, until=until)
            except RefusedError as refused:
                more = find_replacements(refused.fault, body)
                if not more:
                    raise
                found |= more
                reason = f"HTTP {refused.fault.status}: {refused.fault.message}"
                faults |= dict.fromkeys(more, self._shorten(reason, 160))
            except ModelError:
                if found:
                    self._is_down = True  # what was left out is not why it fails
                raise
            else:
                if found.keys() - self.habits.replaced.keys():
                    self.state_once(f"from here on {describe_replacements(found, faults)}")
                self.habits.replaced |= found
                self.habits.is_known = True
                self._is_down = False
                return answer

    async def post(self, path: str, body: dict[str, Any], *, until: float | None = None) -> bytes:
        """Post JSON and give the bytes of the answer; what has no UTF-8 is sent as a question mark.

        :param until: the end of all attempts, as of :func:`time.monotonic`.
        :raises RefusedError: when another request in its place may be answered.
        :raises ModelError: when there is none after the retries of the service; says why, and may
            quote the server.
        """
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        if until is None:
            until = time.monotonic() + self.longest_wait
        failure = ""
        for attempt in range(self.service.max_retries + 1):
            pause = min(0.5 * 2**attempt, _LONGEST_PAUSE)
            try:
                async with asyncio.timeout(self.service.timeout):
                    response, answer = await self._attempt(path, content)
            except TimeoutError:
                failure = f"no whole answer within {self.service.timeout:g} s"
            except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
                failure = f"{type(error).__name__}: {error}"
            else:
                fault = read_fault(response.status_code, answer)
                if fault is None:
                    return answer
                failure = _describe_fault(response.status_code, fault)
                is_outage = self._is_down and fault.status >= 500
                if fault.is_refusal_of(body) and not is_outage:
                    raise RefusedError(str(self.error(failure)), fault)
                if not fault.is_passing:
                    break
                pause = requested_pause(response.headers, fault.message) or pause
                if pause > until - time.monotonic():
                    failure += (
                        f" (to be asked again after {pause:.0f} s, which is past the deadline)"
                    )
                    break
            if attempt < self.service.max_retries:
                await asyncio.sleep(pause)
        raise self.error(failure)

    async def _attempt(self, path: str, content: bytes) -> tuple[httpx.Response, bytes]:
        """Read one answer whole, without compression, and as one where it came as a stream."""
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
        encoding = response.headers.get("content-encoding", "")
        try:
            plain = decompress(bytes(body), encoding, self._limit)
        except ValueError as error:
            raise self.error(str(error)) from None
        return response, join_stream(plain)

    def error(self, failure: str) -> ModelError:
        """Say in one line what failed; a server may echo anything."""
        return ModelError(f"{self.service}: {self._shorten(failure, 400)}")

    def state_once(self, sentence: str) -> None:
        """Have a sentence about the service stated after :meth:`run`, once in the process."""
        if sentence not in self.habits.stated:
            self.habits.stated.add(sentence)
            self._notes.append(f"{self.service}: {sentence}")

    def _shorten(self, text: str, length: int) -> str:
        """Write a text in one line, the key taken out first."""
        if self.key:
            text = text.replace(self.key, "***")
        shown = " ".join(text.split())
        if len(shown) > length:
            return shown[: length - 1] + "…"
        return shown

    def run(self, function: Callable[[], Awaitable[Result]]) -> Result:
        """Run a coroutine function that posts to its end, and close the connection.

        It runs in a notebook's running loop too. An interrupt cancels it. What was found about the
        service is stated afterwards.
        """

        async def run_to_end() -> Result:
            async with self._transport:
                return await function()

        try:
            with start_blocking_portal() as portal:  # a loop of its own, in a thread of its own
                return portal.call(run_to_end)
        finally:
            for note in self._notes:
                warnings.warn(note, stacklevel=4)
            self._notes.clear()


def _read_key(service: Service) -> str:
    """Read the key of a service from the environment; an empty one where it has none."""
    name = service.api_key_env
    if not name:
        return ""
    key = os.environ.get(name, "").strip()
    if key and key.isascii() and key.isprintable():
        return key
    wrong = "holds a character that no key has" if key else "is not set"
    raise ModelError(
        f"service {service.name!r} takes its key from the environment variable {name}, "
        f"which {wrong}; set it, or leave api_key_env out for a server without keys"
    )


def _describe_fault(status: int, fault: Fault) -> str:
    """Name the status, and the one that stands inside the answer where it is another."""
    if status == fault.status:
        return f"HTTP {status}: {fault.message}"
    return f"HTTP {status} with error {fault.status}: {fault.message}"


@cache
def _ssl_context() -> ssl.SSLContext:
    """Read the certificates of the authorities once: it takes a tenth of a second."""
    return httpx.create_ssl_context(trust_env=False)
