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
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import TypeVar

import httpx
from anyio.from_thread import start_blocking_portal

from memlab.atomic_files import let_ctrl_c_end_waits
from memlab.errors import ModelError, warn_user
from memlab.llm.response_bodies import (
    DamagedError,
    JsonObject,
    JsonValue,
    decompress_body,
    join_event_stream,
)
from memlab.llm.retry_pauses import requested_pause_seconds
from memlab.llm.service_addresses import Service
from memlab.llm.service_capabilities import (
    ATTEMPTS,
    SCHEMA,
    describe_replacements,
    drop_or_replace_parameters,
    find_replacement_or_empty_by_parameter,
    remembered_or_new_habits,
)
from memlab.llm.service_faults import (
    FAILURES,
    LASTING,
    SCHEMA_REFUSED,
    Fault,
    RefusedError,
    mask_key_and_shorten_to_one_line,
    read_fault,
)

_LONGEST_PAUSE = 8.0
"""Seconds, where the server does not say how long to wait."""

Result = TypeVar("Result")


class Client:
    """A connection to a service, for one :meth:`run_and_close`.

    It is a transport of httpx without the client around it, so that no redirect is followed, and
    no cookie, proxy or variable of the environment is used.

    :param limit: bytes of one answer that are read, after decompression too; a longer one is an
        error.
    :raises ModelError: when the address is none, or the key's variable is not set or holds what no
        header can carry.
    """

    def __init__(self, service: Service, *, limit: int) -> None:
        self._url = _parse_base_url(service)
        self.service = service
        self._limit = limit
        self.key = _read_api_key_or_empty(service)
        self.habits = remembered_or_new_habits(service)
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
    def replacement_by_name(self) -> dict[str, str]:
        """Parameters that are left out, by the settings or as the service does not take them."""
        return self.habits.replaced | dict.fromkeys(self.service.leave_out, "")

    async def post_adapted(
        self,
        path: str,
        make_body: Callable[[Mapping[str, str]], JsonObject],
        *,
        deadline: float,
    ) -> bytes:
        """Post a request without what the service does not take; what helped once is remembered.

        :param make_body: given :attr:`replacement_by_name`, gives the request.
        :param deadline: the end of all attempts, as of :func:`time.monotonic`.
        :raises RefusedError: when another request in its place may be answered.
        :raises ModelError: when there is no answer after the retries of the service; says why, and
            may quote the server.
        """
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await self._post_with_replacements(path, make_body, deadline)
        except TimeoutError:
            raise self.model_error(f"no answer within {self.longest_wait:g} s") from None

    async def _post_with_replacements(
        self, path: str, make_body: Callable[[Mapping[str, str]], JsonObject], deadline: float
    ) -> bytes:
        """Post a request, and others in its place while the server names what it does not take.

        A schema that is not named is guessed to be why a request is refused. As the server may have
        failed for a moment, the same request goes once more before that.
        """
        found_replacements = dict[str, str]()
        fault_by_parameter = dict[str, str]()
        is_repeated = False
        is_guessed = False
        while True:
            replaced = self.replacement_by_name | found_replacements
            request_body = drop_or_replace_parameters(make_body(replaced), replaced)
            try:
                answer_body, n_attempts = await self._post_and_count_attempts(
                    path, request_body, deadline
                )
            except RefusedError as refused:
                new_replacements = refused.replaced
                http_status = refused.fault.status
                is_guess = (
                    not new_replacements
                    and SCHEMA in request_body
                    and http_status in SCHEMA_REFUSED
                )
                if is_guess and not is_repeated and refused.pause < deadline - time.monotonic():
                    is_repeated = True
                    await asyncio.sleep(refused.pause)
                    continue
                if is_guess:
                    new_replacements = {SCHEMA: ""}
                    is_guessed = True
                if not new_replacements:
                    if is_guessed and http_status in LASTING:
                        self._is_down = True  # what was left out is not why it fails
                    raise
                is_repeated = False
                found_replacements |= new_replacements
                refusal_text = f"HTTP {refused.fault.status}: {refused.fault.message}"
                fault_by_parameter |= dict.fromkeys(
                    new_replacements,
                    mask_key_and_shorten_to_one_line(refusal_text, 160, api_key=self.key),
                )
            except ModelError:
                self._is_down = self._is_down or is_guessed
                raise
            else:
                if is_guessed and n_attempts > 1:
                    del found_replacements[SCHEMA]  # the server failed without it too
                self._remember_replacements(found_replacements, fault_by_parameter)
                return answer_body

    def _remember_replacements(
        self, found_replacements: Mapping[str, str], fault_by_parameter: Mapping[str, str]
    ) -> None:
        """Remember what a request that was answered went without."""
        if found_replacements.keys() - self.habits.replaced.keys():
            self.note_once_in_process(
                f"from here on {describe_replacements(found_replacements, fault_by_parameter)}"
            )
        self.habits.replaced |= found_replacements
        self.habits.is_known = True
        self._is_down = False

    async def _post_and_count_attempts(
        self, path: str, request_body: JsonObject, deadline: float
    ) -> tuple[bytes, int]:
        """Post JSON and give the bytes of the answer; what has no UTF-8 is sent as a question mark.

        :returns: the answer, and which attempt brought it, counted from 1.
        """
        encoded_body = json.dumps(request_body, ensure_ascii=False).encode("utf-8", "replace")
        failure = ""
        for attempt in range(self.service.max_retries + 1):
            pause = min(0.5 * 2**attempt, _LONGEST_PAUSE)
            requested_seconds = None
            try:
                async with asyncio.timeout(self.service.timeout):
                    response, answer_body = await self._post_once(path, encoded_body)
            except TimeoutError:
                failure = f"no whole answer within {self.service.timeout:g} s"
            except DamagedError as error:
                failure = str(error)
            except (httpx.HTTPError, OSError, ValueError) as error:
                failure = f"{type(error).__name__}: {error}"
            else:
                fault = read_fault(response.status_code, answer_body)
                if fault is None:
                    return answer_body, attempt + 1
                failure = _describe_fault(response.status_code, fault)
                requested_seconds = requested_pause_seconds(
                    response.headers, fault.message, status=fault.status
                )
                pause = requested_seconds or pause
                self._raise_if_refused(failure, fault, request_body, pause)
                if not fault.may_be_answered_later:
                    break
            if pause > deadline - time.monotonic():
                if requested_seconds:
                    failure += (
                        f" (to be asked again after {requested_seconds:.0f} s, which is past the "
                        "deadline)"
                    )
                break
            if attempt < self.service.max_retries:
                await asyncio.sleep(pause)
        raise self.model_error(failure)

    def _raise_if_refused(
        self,
        failure: str,
        fault: Fault,
        request_body: Mapping[str, JsonValue],
        pause_seconds: float,
    ) -> None:
        """Raise where another request may be answered in place of this one."""
        replacements = find_replacement_or_empty_by_parameter(fault, request_body)
        is_refusal = fault.may_be_answered_if_changed
        if fault.status in FAILURES:
            is_refusal = bool(replacements) or SCHEMA in request_body
        if self._is_down and fault.status in LASTING and not replacements:
            return
        if is_refusal:
            if not fault.may_be_answered_later:
                pause_seconds = 0.0
            raise RefusedError(str(self.model_error(failure)), fault, replacements, pause_seconds)

    async def _post_once(self, path: str, request_content: bytes) -> tuple[httpx.Response, bytes]:
        """Read one answer whole, without compression, and as one where it came as a stream."""
        path_prefix, query_mark, query_string = self._url.raw_path.partition(b"?")
        raw_path = path_prefix.rstrip(b"/") + path.encode() + query_mark + query_string
        request_url = self._url.copy_with(raw_path=raw_path)
        request = httpx.Request("POST", request_url, headers=self._headers, content=request_content)
        response = await self._transport.handle_async_request(request)
        try:
            if response.is_redirect:
                raise self.model_error(
                    f"HTTP {response.status_code}: redirects are not followed; correct base_url"
                )
            received_body = bytearray()
            async for body_chunk in response.aiter_raw():
                received_body += body_chunk
                if len(received_body) > self._limit:
                    break
        finally:
            await response.aclose()
        return response, self._decompress_and_join_or_empty(response, bytes(received_body))

    def _decompress_and_join_or_empty(
        self, response: httpx.Response, received_body: bytes
    ) -> bytes:
        """Give a body as it was before it was compressed.

        Of a failure, nothing where it cannot be read.
        """
        encoding = response.headers.get("content-encoding", "")
        try:
            if len(received_body) > self._limit:
                raise ValueError(f"the answer has more than {self._limit:,} bytes")
            return join_event_stream(decompress_body(received_body, encoding, self._limit))
        except ValueError as error:
            if not response.is_success:
                return b""  # its status says enough
            if isinstance(error, DamagedError):
                raise
            raise self.model_error(str(error)) from None

    def model_error(self, failure_text: str) -> ModelError:
        """Say in one line what failed; a server may echo anything."""
        return ModelError(
            f"{self.service}: "
            f"{mask_key_and_shorten_to_one_line(failure_text, 400, api_key=self.key)}"
        )

    def note_once_in_process(self, sentence: str) -> None:
        """Have a sentence about the service stated after :meth:`run_and_close`, once in the
        process.
        """
        if sentence not in self.habits.stated:
            self.habits.stated.add(sentence)
            self._notes.append(f"{self.service}: {sentence}")

    def run_and_close(self, coroutine_function: Callable[[], Awaitable[Result]]) -> Result:
        """Run a coroutine function that posts to its end, and close the connection.

        It runs in a notebook's running loop too. An interrupt cancels it. What was found about the
        service is stated afterwards.
        """

        async def run_to_end() -> Result:
            async with self._transport:
                return await coroutine_function()

        try:
            let_ctrl_c_end_waits()
            with start_blocking_portal() as portal:  # a loop of its own, in a thread of its own
                return portal.call(run_to_end)
        finally:
            for note in self._notes:
                warn_user(note)
            self._notes.clear()


def _parse_base_url(service: Service) -> httpx.URL:
    with suppress(httpx.InvalidURL):
        address = httpx.URL(service.base_url)
        if address.scheme in ("http", "https") and address.host:
            return address
    raise ModelError(f"{service}: base_url is no address; expected http://… or https://…")


def _read_api_key_or_empty(service: Service) -> str:
    """Read the key of a service from the environment; an empty one where it has none."""
    variable_name = service.api_key_env
    if not variable_name:
        return ""
    key = os.environ.get(variable_name, "").strip()
    if key and key.isascii() and key.isprintable():
        return key
    key_fault = "holds a character that no key has" if key else "is not set"
    raise ModelError(
        f"service {service.name!r} takes its key from the environment variable {variable_name}, "
        f"which {key_fault}; set it, or leave api_key_env out for a server without keys"
    )


def _describe_fault(http_status: int, fault: Fault) -> str:
    """Name the status, and the one that stands inside the answer where it is another."""
    if http_status == fault.status:
        return f"HTTP {http_status}: {fault.message}"
    return f"HTTP {http_status} with error {fault.status}: {fault.message}"


@cache
def _ssl_context() -> ssl.SSLContext:
    """Read the certificates of the authorities once: it takes a tenth of a second."""
    return httpx.create_ssl_context(trust_env=False)
