"""Asking a language model for answers of a given shape: recorded ones first, then a service."""

from __future__ import annotations

import asyncio
import json
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from tqdm import tqdm

from memlab.llm import recording
from memlab.llm.reply import counts, read
from memlab.llm.request import Answer, Request
from memlab.llm.service import Service, configured

if TYPE_CHECKING:
    from memlab.llm.client import Client

RECORDED = "recorded"
MISFIT = "the answer does not fit"
ATTEMPTS = 2
PATIENCE = 8
MAX_BYTES = 1_000_000  # of one answer, with all that is around it
SHOWN_CHARS = 2_000  # of an answer that does not fit, when the model sees it again


def ask(requests: Sequence[Request], service: str | Service | None, *, progress: str = "") -> list[Answer]:
    """Ask a language model, or read what it answered; requests of one key are asked once.

    :param service: ``recorded`` reads the recordings of the settings and of the checkout, and never the network; a
        name is one of the settings; ``None`` gives no answers. A service with ``record`` reads that file first, asks
        for what is not in it, and appends each answer as it comes.
    :param progress: what a progress bar is called; none without it.
    :returns: an answer for each request, in their order. A request that fails has an ``error`` and raises nothing;
        after :data:`PATIENCE` failures in a row the rest is not asked; its ``error`` begins with ``not asked`` and ends
        with that of the last, and it cost nothing. Where the model answered, and not in the shape, it begins with the
        service and :data:`MISFIT`.
    :raises ModelError: when the service cannot be asked at all: no such name, no address, no key.

    >>> from memlab import llm
    >>> from pydantic import BaseModel
    >>> class Colour(BaseModel):
    ...     name: str
    >>> llm.ask([llm.Request("colour", 1, ("sky",), "Which colour has the sky?", Colour)], None)[0].error
    'no service is named'
    """
    if service is None:
        return [Answer(None, "no service is named")] * len(requests)
    chosen = _chosen(service)
    rows = recording.read(recording.files() if chosen is None else [Path(chosen.record)] if chosen.record else [])
    keys = [request.key for request in requests]
    asked = dict(zip(keys, requests, strict=True))
    answers = {key: answer for key in asked if (answer := _recorded(asked[key], rows.get(key)))}
    new = {key: request for key, request in asked.items() if key not in answers}
    if chosen is not None and new:
        answers |= _fresh(new, chosen, progress)
    missing = Answer(None, "not recorded")
    return [answers.get(key, missing) for key in keys]


def check(service: str | Service | None) -> None:
    """See that a service can be asked, before work begins that needs its answers.

    :raises ModelError: for no such name, no address or no key.
    """
    from memlab.llm.client import Client

    if (chosen := _chosen(service)) is not None:
        Client(chosen, limit=MAX_BYTES)


def cost(answers: Sequence[Answer], service: str | Service | None) -> dict[str, float | None]:
    """Sum what answers cost when they were asked for.

    :returns: ``tokens_read``, ``tokens_written``, ``price`` (``None`` where the service has no prices), ``seconds``.

    >>> from memlab import llm
    >>> llm.cost([llm.Answer(None, tokens=(30, 2))], None)["tokens_read"]
    30
    """
    chosen = _chosen(service)
    read, written = (sum(answer.tokens[side] for answer in answers) for side in (0, 1))
    price = None
    if chosen is not None and chosen.input_price is not None and chosen.output_price is not None:
        price = (read * chosen.input_price + written * chosen.output_price) / 1e6
    seconds = sum(answer.seconds for answer in answers)
    return {"tokens_read": read, "tokens_written": written, "price": price, "seconds": seconds}


def _chosen(service: str | Service | None) -> Service | None:
    """Give the service that is asked; ``None`` where only recordings are read."""
    if isinstance(service, str):
        return None if service == RECORDED else configured(service)
    return service


def _recorded(request: Request, row: dict[str, Any] | None) -> Answer | None:
    """Read a recorded answer; one that does not fit the shape counts as not recorded."""
    if row is None:
        return None
    try:
        value = request.shape.model_validate_json(json.dumps(row["answer"]))
    except ValidationError:
        return None
    tokens = row["tokens"] if isinstance(row["tokens"], list) and len(row["tokens"]) == 2 else (0, 0)
    return Answer(value, tokens=counts(*tokens))


def _fresh(new: Mapping[str, Request], service: Service, progress: str) -> dict[str, Answer]:
    """Ask a service for what is not recorded, and record each answer as it comes."""
    from memlab.llm.client import Client, run

    client = Client(service, limit=MAX_BYTES)
    answers: dict[str, Answer] = {}
    failures: list[Answer] = []  # the last ones in a row

    async def worker() -> None:
        for key, request in waiting:
            if len(failures) < PATIENCE:
                answers[key] = await _answer(client, request)
                failures[:] = [] if answers[key].value is not None else [*failures, answers[key]]
                _record(service, request, answers[key])
            else:
                many = f"not asked after {len(failures)} failures in a row; the last: "
                answers[key] = Answer(None, many + failures[-1].error)
            bar.update()

    async def workers() -> None:
        async with client:
            await asyncio.gather(*(worker() for _ in range(service.concurrency)))

    waiting = iter(new.items())
    with tqdm(total=len(new), unit="answer", desc=progress, disable=not progress) as bar:
        run(workers)
    return answers


async def _answer(client: Client, request: Request) -> Answer:
    """Ask once, and once more where the answer does not fit; whatever comes back, this raises nothing."""
    from memlab.llm.client import NoAnswerError

    service, begun, tokens = client.service, time.perf_counter(), (0, 0)
    limit = service.timeout * (service.max_retries + ATTEMPTS)
    answer = Answer(None)
    try:
        if service.max_input and len(request.prompt) > service.max_input:
            long = f"the prompt has {len(request.prompt):,} characters, max_input allows {service.max_input:,}"
            raise NoAnswerError(long)
        async with asyncio.timeout(limit):
            body = _body(service, request)
            for _ in range(ATTEMPTS):
                answer, text = read(await client.post("/chat/completions", body), request.shape, key=client.key)
                tokens = tokens[0] + answer.tokens[0], tokens[1] + answer.tokens[1]
                if answer.value is not None:
                    break
                again = f"That does not fit: {answer.error}. Answer again, with JSON of the schema and nothing else."
                shown = {"role": "assistant", "content": text[:SHOWN_CHARS]}
                body["messages"] = [*request.messages, shown, {"role": "user", "content": again}]
        failure = f"{MISFIT} {request.shape.__name__} ({answer.error})"
    except TimeoutError:
        failure = f"no answer within {limit:g} s"
    except NoAnswerError as error:
        failure = str(error)
    line = "" if answer.value is not None else client.error(failure)
    return Answer(answer.value, line, tokens, time.perf_counter() - begun)


def _body(service: Service, request: Request) -> dict[str, Any]:
    """Make what is sent: the schema goes with it, for servers that hold the model to it."""
    shape = {"name": request.shape.__name__, "schema": request.shape.model_json_schema(), "strict": True}
    body = {"model": service.model, "messages": request.messages, "temperature": 0, "seed": 0}
    body |= {"response_format": {"type": "json_schema", "json_schema": shape}}
    return body if service.max_output is None else body | {"max_tokens": service.max_output}


def _record(service: Service, request: Request, answer: Answer) -> None:
    """Append an answer to the service's file; a disk that is full costs the recording, not the answer."""
    if not service.record or answer.value is None:
        return
    row = {"task": request.task, "version": request.version, "key": request.key}
    row |= {"answer": answer.value.model_dump(mode="json"), "tokens": answer.tokens}
    try:
        recording.append(Path(service.record), row)
    except OSError as error:
        warnings.warn(f"{service.record} cannot be written ({error.strerror}): answers are not recorded", stacklevel=2)
