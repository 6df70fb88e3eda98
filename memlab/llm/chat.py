"""Asking a language model for answers of a given shape."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError
from tqdm import tqdm

from memlab.errors import DataError, ModelError
from memlab.llm.service import Service, api_key, redact, where

THREADS = 4
ATTEMPTS = 2
PATIENCE = 8
SEED = 0

# Of a bad answer, when it is shown to the model again: one that never ended may be long.
SHOWN_CHARS = 2_000

# Longer than any answer that was asked for; a schema bounds its own texts.
MAX_CHARS = 200_000

_PROGRESS_FROM = 32
_SECRET = 12  # characters: what is shorter, such as "ollama", is a word that an answer may hold
_LOCK = Lock()

Answer = TypeVar("Answer", bound=BaseModel)


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
        raise ModelError(f"{where(service)}: base_url is no address; expected http://… or https://…")
    key = api_key(service)
    return OpenAI(base_url=service.base_url, api_key=key, timeout=service.timeout, max_retries=service.max_retries)


def explain(error: Exception) -> str:
    """Say what the client's error was, the low-level cause with it."""
    text = f"{type(error).__name__}: {error}"
    cause = error.__cause__
    return text if cause is None or str(cause) in text else f"{text} ({type(cause).__name__}: {cause})"


@dataclass(frozen=True)
class Cost:
    """What one prompt cost, over all attempts.

    :param seconds: until the answer was there, retries included.
    :param prompt_tokens: as the server counts them, and ``output_tokens``; ``None`` where it does not say.
    """

    seconds: float = 0.0
    prompt_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True)
class Outcome(Generic[Answer]):
    """What came of one prompt.

    :param answer: the answer, or ``None``.
    :param failure: why there is none.
    :param kind: ``content`` where the model answered badly, also when asked again; ``timeout`` or ``service`` where no
        answer came: those are worth another try later.
    :param cost: of an answer that was kept, what it cost when it was asked for.
    """

    answer: Answer | None
    failure: str = ""
    kind: str = ""
    cost: Cost = Cost()


def chat(
    service: Service, prompts: Sequence[str], schema: type[Answer], *, system: str = "", required: bool = True
) -> list[Answer | None]:
    """Ask a model for JSON of a schema, many prompts at once, as :func:`answers` does, and give the answers alone.

    :param required: whether a prompt without a good answer, or one that takes too long, is an error; otherwise its
        answer is ``None``, and one warning says how many there are.
    :returns: an answer for each prompt, in their order.
    :raises ModelError: when the service fails after its retries, or an answer that is required is not good.
    """
    stops = ("service", "timeout", "content") if required else ("service",)
    outcomes = _outcomes(service, prompts, schema, system, most=1, stops=stops)
    failed = {prompt: outcome for prompt, outcome in zip(prompts, outcomes, strict=True) if outcome.answer is None}
    for outcome in failed.values():
        if required or outcome.kind == "service":
            raise ModelError(f"{where(service)}: {outcome.failure}")
    if failed:
        first = next(iter(failed.values())).failure
        counted = f"{len(failed):,} of {len(set(prompts)):,} prompts have no answer; the first: {first}"
        warnings.warn(f"{where(service)}: {counted}", stacklevel=2)
    return [outcome.answer for outcome in outcomes]


def answers(
    service: Service, prompts: Sequence[str], schema: type[Answer], *, system: str = ""
) -> list[Outcome[Answer]]:
    """Ask a model for JSON of a schema, many prompts at once; temperature 0 and a fixed seed.

    The schema goes with the request, for servers that hold the model to it, and the answer is checked against it. A
    bad answer is shown to the model with what is wrong, and asked for once more. Equal prompts are asked once. With
    ``service.cache``, good answers are kept as they come, so that an experiment that stops goes on where it was, and
    one that is repeated reads the same answers.

    :param prompts: n texts; of a longer one than ``service.max_input``, the beginning is sent.
    :param schema: a pydantic model; ``extra="forbid"`` and no defaults suit servers that are strict.
    :param system: what the model is told before each prompt.
    :returns: an outcome for each prompt, in their order. After :data:`PATIENCE` failures of the service in a row the
        rest is not asked, and has the last failure.
    :raises ModelError: when the service cannot be asked at all: no client, no address, no key.
    """
    return _outcomes(service, prompts, schema, system, most=PATIENCE, stops=("service", "timeout"))


def _outcomes(
    service: Service, prompts: Sequence[str], schema: type[Answer], system: str, *, most: int, stops: tuple[str, ...]
) -> list[Outcome[Answer]]:
    keys = [_key(service, prompt, schema, system) for prompt in prompts]
    asked = {key: prompt[: service.max_input] for key, prompt in zip(keys, prompts, strict=True)}
    known = _remembered(service.cache, schema) if service.cache and asked else {}
    outcomes = {key: known[key] for key in asked if key in known}
    new = {key: prompt for key, prompt in asked.items() if key not in known}
    if new:
        request = _Request(service, client(service), schema, system, most, stops)
        with (
            ThreadPoolExecutor(THREADS) as threads,
            tqdm(total=len(new), unit="answer", desc=service.model, disable=len(new) < _PROGRESS_FROM) as bar,
        ):
            for key, outcome in zip(new, threads.map(request.answer, new, new.values()), strict=True):
                outcomes[key] = outcome
                bar.update()
    return [outcomes[key] for key in keys]


@dataclass
class _Request(Generic[Answer]):
    """What all prompts of a batch share; after the ``most`` failures of the kinds ``stops`` in a row, none is asked."""

    service: Service
    client: Any
    schema: type[Answer]
    system: str
    most: int
    stops: tuple[str, ...]
    failures: int = 0
    last: Outcome[Answer] | None = None

    def answer(self, key: str, prompt: str) -> Outcome[Answer]:
        """Ask one prompt and keep the answer."""
        if self.last is not None and self.failures >= self.most:
            return self.last
        outcome = self._attempts(prompt)
        with _LOCK:
            failed = outcome.kind in self.stops
            self.failures = self.failures + 1 if failed else 0
            self.last = outcome if failed else self.last
        _remember(self.service, key, prompt, outcome)
        return outcome

    def _attempts(self, prompt: str) -> Outcome[Answer]:
        begun = time.perf_counter()
        usages: list[tuple[int | None, int | None]] = []

        def cost() -> Cost:
            counts = (_total(column) for column in zip(*usages, strict=True)) if usages else (None, None)
            return Cost(time.perf_counter() - begun, *counts)

        messages = [{"role": "system", "content": self.system}] if self.system else []
        messages.append({"role": "user", "content": prompt})
        failure = ""
        for _ in range(ATTEMPTS):
            try:
                text, odd, usage = self._ask(messages)
            except _Unanswered as error:
                return Outcome(None, redact(self.client.api_key, str(error)), error.kind, cost())
            usages.append(usage)
            answer, wrong = _read(text, self.schema)
            if answer is not None:
                answer, wrong = _without_key(answer, self.client.api_key)
            if answer is not None:
                return Outcome(answer, cost=cost())
            failure = f"the answer does not fit {self.schema.__name__} ({odd or wrong})"
            again = f"That does not fit: {odd or wrong}. Answer again, with JSON of the schema and nothing else."
            shown = {"role": "assistant", "content": text[:SHOWN_CHARS]}
            messages = [*messages, shown, {"role": "user", "content": again}]
        return Outcome(None, redact(self.client.api_key, failure), "content", cost())

    def _ask(self, messages: list[dict[str, str]]) -> tuple[str, str, tuple[int | None, int | None]]:
        """Send one request: the text of the answer, what is odd about it, and its tokens.

        :raises _Unanswered: when no answer came.
        """
        from openai import APITimeoutError, OpenAIError

        shape = {"name": self.schema.__name__, "schema": _shape(self.schema), "strict": True}
        bound = {} if self.service.max_output is None else {"max_tokens": self.service.max_output}
        try:
            raw = self.client.chat.completions.with_raw_response.create(
                model=self.service.model,
                messages=messages,
                response_format={"type": "json_schema", "json_schema": shape},
                temperature=0,
                seed=SEED,
                **bound,
            )
            body = raw.http_response.json()
            return *_content(body), _usage(body)
        except APITimeoutError as error:
            failure, kind = explain(error), "timeout"
        except OpenAIError as error:
            failure, kind = explain(error), "service"
        except ValueError as error:
            failure, kind = f"an answer that is no JSON ({error})", "service"
        # Outside the handlers, so that no chained exception shows the request with its key.
        raise _Unanswered(failure, kind)


class _Unanswered(Exception):
    def __init__(self, failure: str, kind: str) -> None:
        super().__init__(failure)
        self.kind = kind


def _content(body: Any) -> tuple[str, str]:
    """Take the text out of a completion."""
    try:
        choice = body["choices"][0]
        text, reason = choice["message"].get("content"), choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        return "", "the server sent no choices with a message"
    if not isinstance(text, str):
        return "", "the message has no text"
    if len(text) > MAX_CHARS:
        return "", f"the message has {len(text):,} characters"
    return text, "cut at the longest output: raise max_output" if reason == "length" else ""


def _usage(body: Any) -> tuple[int | None, int | None]:
    """Read how many tokens went in and came out, where the server says so."""
    usage = body.get("usage") if isinstance(body, dict) else None
    counts = [usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")]
    sent, came = (n if isinstance(n, int) and not isinstance(n, bool) and n >= 0 else None for n in counts)
    return sent, came


def _total(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(n for n in counts if n is not None)


def _read(text: str, schema: type[Answer]) -> tuple[Answer | None, str]:
    """Read an answer, or say what is wrong; models that are not held to JSON put words or a fence around it."""
    first, last = text.find("{"), text.rfind("}")
    try:
        return schema.model_validate_json(text[first : last + 1] if 0 <= first < last else text), ""
    except ValidationError as error:
        # Never the answer itself, which may echo the request.
        wrong = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(map(str, wrong["loc"]))
        return None, f"{place}: {wrong['msg']}" if place else wrong["msg"]


def _without_key(answer: Answer, key: str) -> tuple[Answer | None, str]:
    """Take the key out of an answer that repeats it: answers are kept, in a cache and in the store."""
    text, secret = answer.model_dump_json(), json.dumps(key, ensure_ascii=False)[1:-1]
    if len(key) < _SECRET or secret not in text:
        return answer, ""
    return _read(text.replace(secret, "***"), type(answer))


@cache
def _shape(schema: type[BaseModel]) -> dict[str, Any]:
    return schema.model_json_schema()


def _key(service: Service, prompt: str, schema: type[BaseModel], system: str) -> str:
    """Name what an answer depends on."""
    sent = (prompt[: service.max_input], system, _shape(schema), service.max_output)
    text = json.dumps([service.name, service.model, *sent], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _remembered(file: str, schema: type[Answer]) -> dict[str, Outcome[Answer]]:
    """Read the answers that are kept; a line that was cut when a run was killed is skipped."""
    try:
        lines = Path(file).read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(f"the answers in {file} cannot be read ({error.strerror}); set another cache") from error
    known = {}
    for line in lines:
        try:
            row = json.loads(line)
            known[row["key"]] = Outcome(_read(row["answer"], schema)[0], cost=Cost(**row.get("cost", {})))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return {key: outcome for key, outcome in known.items() if outcome.answer is not None}


def _remember(service: Service, key: str, prompt: str, outcome: Outcome[Answer]) -> None:
    """Keep a good answer, where the service has a file for them."""
    if not service.cache or outcome.answer is None:
        return
    answer, cost = outcome.answer.model_dump_json(), asdict(outcome.cost)
    row = {"key": key, "model": service.model, "prompt": prompt, "answer": answer, "cost": cost}
    with _LOCK:
        Path(service.cache).parent.mkdir(parents=True, exist_ok=True)
        with Path(service.cache).open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
