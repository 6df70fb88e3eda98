"""The proxy itself: it answers from a recording, or asks a service and writes down what it says."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from memlab.errors import MemlabError, ModelError, warn_user
from memlab.llm.proxy.call_counts import WRITING, Counts, PhaseCounts
from memlab.llm.proxy.openai_replies import read_exchange
from memlab.llm.proxy.prompt_rules import Rules
from memlab.llm.proxy.recorded_exchanges import (
    Exchange,
    Exchanges,
    UnreadableAnswerError,
    deciding_part_of_request,
)
from memlab.llm.response_bodies import JsonObject, JsonValue
from memlab.llm.service_addresses import Service, resolve_service
from memlab.llm.service_client import Client
from memlab.terminal_text import count_noun

if TYPE_CHECKING:
    from memlab.llm.proxy.http_server import ProxyServer

MAX_BYTES = 4_000_000
"""Of one answer of a service."""
NO_KEY = "memlab-proxy"
"""Stands for the key of a framework: none is needed here, and some refuse to start without one."""
_PASSED_BY = "127.0.0.1,localhost,::1"


class TextEncoder(Protocol):
    """What gives vectors, as those of :func:`memlab.embed.load` do."""

    def encode(self, texts: Sequence[str], *, progress: bool = ...) -> np.ndarray:
        """Encode n texts: (n, width)."""
        ...


class ModelProxy:
    """An OpenAI-compatible server on loopback, which runs while its ``with`` block does.

    In the block the variables that frameworks read (``OPENAI_BASE_URL``, ``OPENAI_API_KEY`` and
    others, see :attr:`variables`) name it; at its end they are what they were. Everything else on
    the network is refused to what obeys ``HTTPS_PROXY``, and counted in :attr:`wanted`.

    :param file: of the recording, JSON lines.
    :param service: who is asked for what is not recorded: a service or its name; with ``None``
        nobody is, and what is not recorded is refused with HTTP 404.
    :param encoder: embeds texts for the framework; without one embeddings are refused.
    :param port: to listen on; 0 takes a free one.
    :param rules: what of a prompt is not compared; those of ``rules.toml`` by default.
    :raises ModelError: when the package aiohttp is missing, or the port is taken.

    >>> import os
    >>> with ModelProxy(None) as proxy:
    ...     os.environ["OPENAI_BASE_URL"] == proxy.url
    True
    """

    def __init__(
        self,
        file: str | Path | None,
        *,
        service: str | Service | None = None,
        encoder: TextEncoder | None = None,
        port: int = 0,
        rules: Rules | None = None,
    ) -> None:
        self.exchanges = Exchanges(None if file is None else Path(file), rules)
        self.service = resolve_service(service)
        self.encoder = encoder
        self.phase = WRITING
        self.counts = Counts()
        self._own_counts: Counts | None = None
        self.asked = set[str]()
        self.matched = set[str]()
        self._port = port
        self._lock = threading.Lock()
        self._encoding = threading.Lock()
        self._server: ProxyServer | None = None
        self._locks = dict[str, threading.Lock]()
        self._before = dict[str, str | None]()
        self._n_recorded = len(self.exchanges)
        self._recorded_before = self.exchanges.keys()
        self.digest = self.exchanges.digest()
        if damage := self.exchanges.describe_damage():
            warn_user(damage)

    @property
    def wanted(self) -> dict[str, int]:
        """Addresses that were asked for and are not served, and how often."""
        return self.counts.wanted

    @property
    def prices(self) -> tuple[float | None, float | None]:
        """What the service takes for a million tokens read and written, where that is known."""
        if self.service is None:
            return None, None
        return self.service.input_price, self.service.output_price

    @property
    def url(self) -> str:
        """The address up to and including ``/v1``."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the environment that name the proxy."""
        root_address = self.url.removesuffix("/v1")
        environment = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), self.url)
        environment |= {"OPENAI_API_KEY": NO_KEY}
        environment |= dict.fromkeys(
            ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), root_address
        )
        return environment | dict.fromkeys(("NO_PROXY", "no_proxy"), _PASSED_BY)

    def start(self) -> None:
        """Listen; variables stay as they are."""
        from memlab.llm.proxy.http_server import ProxyServer

        self._server = ProxyServer(self, self._port)
        self._port = self._server.port

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def __enter__(self) -> Self:
        """Listen, and set the variables."""
        self.start()
        for variable_name, value in self.variables.items():
            self._before[variable_name] = os.environ.get(variable_name)
            os.environ[variable_name] = value
        return self

    def __exit__(self, *_: object) -> None:
        """Set the variables back, and stop."""
        for variable_name, value in self._before.items():
            if value is None:
                os.environ.pop(variable_name, None)
            else:
                os.environ[variable_name] = value
        self.stop()

    @contextmanager
    def counting(self, phase: str, also_counts: Counts | None = None) -> Iterator[None]:
        """Count what is asked in a ``with`` block as of a phase.

        :param also_counts: is counted into as well, such as the counts of one of several memories.
        """
        previous_state = self.phase, self._own_counts
        self.phase = phase
        self._own_counts = also_counts
        try:
            yield
        finally:
            self.phase, self._own_counts = previous_state

    def _counts_of_current_phase(self) -> list[PhaseCounts]:
        """Give the counts of the phase: of all, and of the memory that asks."""
        counted = [self.counts.get_or_add_counts_of_phase(self.phase)]
        if self._own_counts is not None:
            counted.append(self._own_counts.get_or_add_counts_of_phase(self.phase))
        return counted

    def answer(self, request_body: Mapping[str, JsonValue]) -> Exchange:
        """Answer a request for a completion; the same question has the same answer each time.

        :raises NotRecordedError: when it is not recorded and there is no service.
        :raises ModelError: when the service fails.
        """
        key = self.exchanges.key(request_body)
        with self._lock:
            request_lock = self._locks.setdefault(key, threading.Lock())
            open_counts = self._counts_of_current_phase()
            self.asked.add(key)
            for counts in open_counts:
                counts.asked.add(key)
        started = time.monotonic()
        with request_lock:  # the same question at the same time is asked once
            try:
                exchange = self._find_recorded_or_ask_and_record(request_body)
            except MemlabError as error:
                with self._lock:
                    for counts in open_counts:
                        counts.refused += 1
                        counts.refusals[key] = str(error)
                raise
        with self._lock:
            self.matched.add(key)
            for counts in open_counts:
                counts.calls += 1
                counts.answered.add(key)
                counts.read += exchange.tokens[0]
                counts.written += exchange.tokens[1]
                counts.estimated += int(exchange.is_estimated)
                counts.seconds += time.monotonic() - started
        return exchange

    def _find_recorded_or_ask_and_record(self, request_body: Mapping[str, JsonValue]) -> Exchange:
        recorded_exchange = self.exchanges.find(request_body)
        if recorded_exchange is not None:
            return recorded_exchange
        if self.service is None:
            raise self.exchanges.refusal(request_body)
        exchange = self._ask_service_for_exchange(self.service, request_body)
        self.exchanges.add(exchange)
        return exchange

    def _ask_service_for_exchange(
        self, service: Service, request_body: Mapping[str, JsonValue]
    ) -> Exchange:
        client = Client(service, limit=MAX_BYTES)
        sent_body = {**request_body, "model": service.model}
        for field_name in ("stream", "stream_options", "user", "metadata", "store"):
            sent_body.pop(field_name, None)

        def make_body(_: Mapping[str, str]) -> JsonObject:
            return dict(sent_body)

        deadline = time.monotonic() + client.longest_wait

        async def post_request() -> bytes:
            return await client.post_adapted("/chat/completions", make_body, deadline=deadline)

        completion_body = client.run_and_close(post_request)
        try:
            return read_exchange(
                completion_body, deciding_part_of_request(request_body), api_key=client.key
            )
        except ValueError as error:
            raise UnreadableAnswerError(str(client.model_error(str(error)))) from None

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Encode texts by the local encoder: (n, width).

        :raises ModelError: when the proxy has no encoder.
        """
        if self.encoder is None:
            raise ModelError(
                "the proxy has no encoder for embeddings; give ModelProxy an "
                "encoder=memlab.embed.load('minilm')"
            )
        with self._lock:
            for counts in self._counts_of_current_phase():
                counts.embedded += len(texts)
                counts.texts += sum(map(len, texts))
        with self._encoding:
            return self.encoder.encode(list(texts), progress=False)

    def describe(self) -> dict[str, JsonValue]:
        """Give what was asked, for a provenance: counts by phase, and how much matched."""
        phases = {
            phase_name: counts.describe(*self.prices)
            for phase_name, counts in self.counts.phases.items()
        }
        return {
            "phases": phases,
            "recorded": len(self.exchanges),
            "recorded_before": self._n_recorded,
            "asked": len(self.asked),
            "matched": len(self.matched),
            "damaged": self.exchanges.damaged,
            "wanted": dict(self.wanted),
        }

    def lines(self) -> list[str]:
        """Say what was asked, a line a phase, and what did not match."""
        summary_lines = list[str]()
        for phase_name, counts in self.counts.phases.items():
            summary_lines.append(
                f"{phase_name}: {describe_phase_counts(counts.describe(*self.prices))}"
            )
        return summary_lines + self.matching_lines()

    def matching_lines(self) -> list[str]:
        """Say how much of the recording was asked for, what was added and what is not served."""
        summary_lines = list[str]()
        n_recorded = self._n_recorded
        if n_recorded:
            n_matched = len(self.matched & self._recorded_before)
            copula = "was" if n_recorded == 1 else "were"
            summary_lines.append(
                f"{n_matched:,} of {count_noun(n_recorded, 'recorded prompts')} {copula} asked for"
            )
        n_new = len(self.exchanges) - n_recorded
        if self.service is not None:
            summary_lines.append(
                f"{count_noun(n_new, 'prompts')} answered by {self.service} and recorded"
            )
        for address, n_requests in self.wanted.items():
            summary_lines.append(
                f"wanted {address}, {count_noun(n_requests, 'times')}: it is not served"
            )
        return summary_lines


def describe_phase_counts(phase_counts: Mapping[str, Any]) -> str:
    """Say what a memory asked in a phase.

    :param phase_counts: as :meth:`PhaseCounts.describe` gives them.

    >>> describe_phase_counts(PhaseCounts(calls=1, read=20, written=5).describe(None, None))
    '1 call, 20 tokens read and 5 written, 0 texts embedded, 0.0 s'
    """
    line = (
        f"{count_noun(phase_counts['calls'], 'calls')}, "
        f"{count_noun(phase_counts['read'], 'tokens')} read and {phase_counts['written']:,} "
        f"written, {count_noun(phase_counts['embedded'], 'texts')} embedded, "
        f"{phase_counts['seconds']:.1f} s"
    )
    if phase_counts["estimated"]:
        line += f", {phase_counts['estimated']:,} counted by characters"
    if phase_counts["refused"]:
        line += f", {phase_counts['refused']:,} refused"
    if phase_counts["price"] is not None:
        line += f", price {phase_counts['price']:.6f}"
    return line
