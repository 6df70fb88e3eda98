"""A memory at an address: its verbs as JSON over HTTP.

The contract is ``docs/memory-openapi.json``.
"""

from __future__ import annotations

import json
import os
import re
import time
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl

from memlab.config import TOKEN_VARIABLE
from memlab.errors import DataError
from memlab.memories.returned_rows import (
    JsonValue,
    SearchAnswer,
    Unanswered,
    call_and_time_with_timeout,
)
from memlab.terminal_text import shorten_line

LARGEST_BYTES = 16_000_000
"""The largest answer and the largest request, in bytes."""
TURNS_PER_REQUEST = 500
"""Turns of one request."""


def read_bearer_token(token: str | None = None) -> str:
    """Check a token; empty where there is none.

    :param token: by default the environment variable :data:`memlab.config.TOKEN_VARIABLE`.
    :raises DataError: when no header can carry it; does not show it.
    """
    token = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    if not re.fullmatch(r"[!-~]*", token):
        raise DataError(
            f"the token holds white space, or more than ASCII; set {TOKEN_VARIABLE} without"
        )
    return token


def _is_plain_http_address(url: str) -> bool:
    """Say whether a text is an address without user, query and fragment."""
    import httpx

    if not re.fullmatch(r"https?://[!-~]+", url):
        return False
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    has_more = address.userinfo or address.query or address.fragment
    return bool(address.host) and not has_more and (address.port or 80) <= 65535


class _HttpAnswer(NamedTuple):
    status: int
    content: bytes


class HttpMemory:
    """A memory that answers at an address, by the contract of ``docs/memory-openapi.json``.

    A redirect is an error, so that nothing goes elsewhere; answers are read uncompressed, to
    :data:`LARGEST_BYTES` bytes.

    :param url: under which ``/reset``, ``/ingest``, ``/wait`` and ``/search`` are, and ``/usage``
        may be.
    :param token: sent as a bearer token, see :func:`read_bearer_token`.
    :param timeout: seconds for one request, to the last byte of its answer.
    :raises DataError: when it is no address, or the token cannot be sent.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 600.0) -> None:
        import httpx

        if not _is_plain_http_address(url):
            raise DataError(
                f"{shorten_line(url, 80)!r} is no address of a memory; expected http://HOST:PORT"
            )
        self.url = url.rstrip("/")
        self._token = read_bearer_token(token)
        self._timeout = timeout
        self.settings = {"url": self.url}
        headers = {"Accept-Encoding": "identity"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        self._client = httpx.Client(
            headers=headers, timeout=timeout, follow_redirects=False, trust_env=False
        )

    def reset(self, scope: str) -> None:
        self._post_and_read_json("reset", {"scope": scope})

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        for request_turns in turns.iter_slices(TURNS_PER_REQUEST):
            request_rows = [
                turn_row | {"time": turn_row["time"] and turn_row["time"].isoformat()}
                for turn_row in request_turns.iter_rows(named=True)
            ]
            self._post_and_read_json("ingest", {"scope": scope, "turns": request_rows})

    def wait(self) -> None:
        self._post_and_read_json("wait", {})

    def search(self, scope: str, query: str, k: int, now: datetime | None) -> SearchAnswer:
        asked_at = now and now.isoformat()
        return self._post_and_read_json(
            "search", {"scope": scope, "queries": [query], "k": k, "now": [asked_at]}
        )

    def usage(self, scope: str) -> JsonValue:
        return self._post_and_read_json("usage", {"scope": scope}, is_optional=True)

    def _post_and_read_json(
        self, verb: str, body: dict[str, Any], *, is_optional: bool = False
    ) -> JsonValue:
        verb_address = f"{self.url}/{verb}"
        # A header may trickle too, which no time-out of a single read ends.
        answer, _ = call_and_time_with_timeout(
            self._timeout, verb_address, lambda: self._post_and_read_answer(verb_address, body)
        )
        if 300 <= answer.status < 400:
            raise Unanswered(
                f"{verb_address} redirects elsewhere, which is not followed; give the address "
                "itself"
            )
        if is_optional and answer.status == 404:
            return {}
        answer_text = answer.content.decode("utf-8", "replace")
        if answer.status >= 400:
            raise Unanswered(
                f"{verb_address} answers {answer.status}: "
                f"{self._mask_token_and_shorten(answer_text)}"
            )
        try:
            return json.loads(answer_text) if answer_text.strip() else {}
        except (ValueError, RecursionError):
            raise Unanswered(
                f"{verb_address} answers with no JSON: {self._mask_token_and_shorten(answer_text)}"
            ) from None

    def _post_and_read_answer(self, verb_address: str, body: dict[str, Any]) -> _HttpAnswer:
        import httpx

        end_time = time.monotonic() + self._timeout
        received_bytes = bytearray()
        try:
            with self._client.stream("POST", verb_address, json=body) as response:
                for answer_chunk in response.iter_raw():
                    received_bytes += answer_chunk
                    if len(received_bytes) > LARGEST_BYTES:
                        raise Unanswered(
                            f"{verb_address} answers with more than {LARGEST_BYTES:,} bytes"
                        )
                    if time.monotonic() > end_time:
                        raise httpx.ReadTimeout("a chunk at a time")
        except httpx.TimeoutException:
            raise Unanswered(
                f"{verb_address} gave no whole answer within {self._timeout:g} s"
            ) from None
        except httpx.HTTPError as error:
            error_text = self._mask_token_and_shorten(f"{type(error).__name__}: {error}")
            raise Unanswered(f"{verb_address}: {error_text}") from None
        return _HttpAnswer(response.status_code, bytes(received_bytes))

    def _mask_token_and_shorten(self, text: str) -> str:
        if self._token:
            text = text.replace(self._token, "•••")
        return shorten_line(text, 200)
