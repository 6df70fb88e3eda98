"""Asking a language model for answers of a given shape: recorded ones first, then a service.

Judgements are asked for in lists and kept one by one, so that a changed list asks only for what is
new.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from tqdm import tqdm

from memlab.errors import ModelError
from memlab.llm import recording
from memlab.llm.completions import NO_COMPLETION, Reply, read_completion, token_counts
from memlab.llm.habits import ATTEMPTS, LONGEST, SCHEMA, SYSTEM
from memlab.llm.service import Service, resolve_service
from memlab.llm.spending import CHARS, WRITTEN, add_to_spending, is_estimating

if TYPE_CHECKING:
    from memlab.llm.client import Client

MISFIT = "the answer does not fit"
PATIENCE = 8
"""Failures in a row after which a service is left alone."""
MAX_BYTES, SHOWN_CHARS = 1_000_000, 2_000
"""Of one answer with all that is around it.

And of one that does not fit, when the model sees it again.
"""


@dataclass(frozen=True)
class Request:
    """What is asked, once.

    :param task: such as ``summary``, ``facts``, ``rewrite``, ``answer``, ``judge``.
    :param version: raised when what is asked changes, not when its wording does.
    :param about: ids and texts of what is asked about; with task and version the key of a recorded
        answer.
    :param prompt: the user message; text of conversations stands in it as JSON.
    :param shape: the answer's shape; ``extra="forbid"`` and no defaults suit servers that are
        strict.
    :param system: the system message.
    """

    task: str
    version: int
    about: tuple[str, ...]
    prompt: str
    shape: type[BaseModel]
    system: str = ""

    @property
    def key(self) -> str:
        """The key of its recorded answer."""
        return recording.recording_key(self.task, self.version, self.about)


@dataclass(frozen=True)
class Answer:
    """What came of a request.

    :param value: an instance of its shape, or ``None``.
    :param error: why there is none, in one line.
    :param tokens: read and written over all attempts, as the server counts them.
    :param seconds: until the answer was there; 0 for a recorded one.
    :param is_estimated: whether the server did not count all tokens, so that they are estimated by
        characters.
    """

    value: Any | None
    error: str = ""
    tokens: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    is_estimated: bool = False


def describe_unanswered(answers: Sequence[Answer], what: str) -> str:
    """Say in one line how many requests have no answer, why the first has none, and what to do.

    Nothing if all have.

    :param what: what was asked for, in the plural, such as ``rewrites``.

    >>> from memlab.llm import Answer, describe_unanswered
    >>> describe_unanswered([Answer("yes"), Answer(None, "not recorded")], "rewrites")
    '1 of 2 rewrites came from no model (not recorded); service="NAME" or --service NAME asks one'
    """
    errors = [answer.error for answer in answers if answer.value is None]
    if not errors:
        return ""
    counted = f"{len(errors):,} of {len(answers):,} {what} came from no model ({errors[0]})"
    advice = (
        ""
        if errors[0].startswith(("service", "not asked"))
        else '; service="NAME" or --service NAME asks one'
    )
    return counted + advice


def ask(
    requests: Sequence[Request],
    service: str | Service | None,
    *,
    progress: str = "",
    done: Callable[[Request, Answer], object] | None = None,
) -> list[Answer]:
    """Ask a language model, or read what it answered; requests of one key are asked once.

    :param service: ``recorded`` reads the recordings of the settings and of the checkout, and never
        the network; a name is one of the settings; ``None`` gives no answers. A service with
        ``record`` reads that file first, asks for what is not in it, and appends each answer as it
        comes.
    :param progress: what a progress bar is called; none without it.
    :param done: is given each answer of the service as it comes, in another thread, and keeps it
        instead of the recording.
    :returns: an answer for each request, in their order. A request that fails has an ``error`` and
        raises nothing; after :data:`PATIENCE` failures in a row the rest is not asked; its
        ``error`` begins with ``not asked`` and ends with that of the last, and it cost nothing.
        Where the model answered, and not in the shape, it begins with the service and
        :data:`MISFIT`.
    :raises ModelError: when the service cannot be asked at all: no such name, no address, no key.

    >>> from memlab import llm
    >>> from pydantic import BaseModel
    >>> class Colour(BaseModel):
    ...     name: str
    >>> request = llm.Request("colour", 1, ("sky",), "Which colour has the sky?", Colour)
    >>> llm.ask([request], None)[0].error
    'no service is named'
    """
    if service is None:
        return [Answer(None, "no service is named")] * len(requests)
    model, rows = resolve_service(service), recording.recorded_rows(service)
    unique = {request.key: request for request in requests}
    answers = {key: _read_recorded(each, rows.get(key)) for key, each in unique.items()}
    new = {key: each for key, each in unique.items() if answers[key].value is None}
    counted = unique
    if is_estimating():
        counted = new  # what is recorded costs nothing more
        for key, each in new.items():
            tokens = ((len(each.system) + len(each.prompt)) // CHARS, WRITTEN.get(each.task, 100))
            answers[key] = Answer(None, "not asked: an estimate", tokens)
    elif model and new:
        answers |= _ask_service(new, model, progress, done)
    paid = {(each.task, key): answers[key] for key, each in counted.items()}
    add_to_spending(
        {
            name: answer.tokens
            for name, answer in paid.items()
            if answer.value is not None or any(answer.tokens)
        },
        unanswered=sum(answer.value is None for answer in answers.values()),
        seconds=sum(answer.seconds for answer in answers.values()),
        uncounted=[name for name, answer in paid.items() if answer.is_estimated],
    )
    return [answers[request.key] for request in requests]


def check_service(service: str | Service | None) -> None:
    """See that a service can be asked, before work begins that needs its answers.

    :raises ModelError: for no such name, no address or no key.
    """
    if (model := resolve_service(service)) is not None:
        from memlab.llm.client import Client

        Client(model, limit=MAX_BYTES)


def _read_recorded(request: Request, row: Mapping[str, Any] | None) -> Answer:
    """Read a recorded answer; one that does not fit the shape counts as not recorded."""
    with suppress(ValidationError):
        if row is not None:
            value = request.shape.model_validate_json(json.dumps(row["answer"]))
            tokens = token_counts(row["tokens"])
            return Answer(value, tokens=tokens, is_estimated=row["estimated"])
    return Answer(None, "not recorded")


def _ask_service(
    new: Mapping[str, Request],
    service: Service,
    progress: str,
    done: Callable[[Request, Answer], object] | None,
) -> dict[str, Answer]:
    """Ask a service for what is not recorded, and keep each answer as it comes."""
    # It takes httpx, which nobody needs to whom recorded answers suffice.
    from memlab.llm.client import Client

    client, waiting = Client(service, limit=MAX_BYTES), iter(new.items())
    answers: dict[str, Answer] = {}
    failures: list[str] = []  # the last ones in a row

    def record_answer(request: Request, answer: Answer) -> None:
        value = answer.value.model_dump(mode="json")  # type: ignore[union-attr]
        named = (request.task, request.version, request.key)
        recording.record(service, named, value, answer.tokens, is_estimated=answer.is_estimated)

    async def worker(most: int | None = None) -> None:
        for key, request in islice(waiting, most):
            if len(failures) >= PATIENCE:
                reason = (
                    f"not asked after {len(failures)} failures in a row; the last: {failures[-1]}"
                )
                answers[key] = Answer(None, reason)
            elif (answer := await _ask_with_repair(client, request)).value is None:
                answers[key] = answer
                failures.append(answer.error)
            else:
                answers[key] = answer
                failures.clear()
                (done or record_answer)(request, answer)
            bar.update()

    async def ask_all() -> None:
        if not client.habits.is_known:
            await worker(1)  # what the service does not take, it refuses once
        await asyncio.gather(*(worker() for _ in range(service.concurrency)))

    with tqdm(total=len(new), unit="answer", desc=progress, disable=not progress) as bar:
        client.run(ask_all)
    return answers


async def _ask_with_repair(client: Client, request: Request) -> Answer:
    """Ask once, and once more where the answer does not fit.

    Whatever comes back, this raises nothing.
    """
    begun, reply, failure = time.monotonic(), Reply(), ""
    tokens, is_estimated = (0, 0), False
    try:
        for _ in range(ATTEMPTS):
            reply = await ask_attempt(client, request, reply, begun + client.longest_wait)
            tokens = tokens[0] + reply.tokens[0], tokens[1] + reply.tokens[1]
            is_estimated = is_estimated or reply.is_estimated
            if reply.value is not None or reply.is_final:
                break
        if reply.value is None:
            failure = str(client.error(_describe_misfit(reply, request)))
    except ModelError as error:
        failure = str(error)
    value = None if failure else reply.value
    if value is not None and reply.fault:
        client.state_once(reply.fault)
    if is_estimated:
        client.state_once("it does not count tokens; they are estimated by characters")
    return Answer(value, failure, tokens, time.monotonic() - begun, is_estimated)


def _describe_misfit(reply: Reply, request: Request) -> str:
    if reply.fault == NO_COMPLETION:
        return reply.fault
    return f"{MISFIT} {request.shape.__name__} ({reply.fault})"


async def ask_attempt(client: Client, request: Request, before: Reply, until: float) -> Reply:
    """Ask, after an answer that did not fit with what is wrong with it."""
    service = client.service
    if service.max_input and len(request.prompt) > service.max_input:
        long = (
            f"the prompt has {len(request.prompt):,} characters, "
            f"max_input allows {service.max_input:,}"
        )
        raise ModelError(f"{service}: {long}")
    sent_chars = 0

    def make_body(replaced: Mapping[str, str]) -> dict[str, Any]:
        nonlocal sent_chars
        body = _request_body(service, request, before, replaced)
        sent_chars = sum(len(message["content"]) for message in body["messages"])
        return body

    answer = await client.post_adapted("/chat/completions", make_body, until=until)
    return read_completion(answer, request.shape, key=client.key, sent_chars=sent_chars)


def _request_body(
    service: Service, request: Request, before: Reply, replaced: Mapping[str, str]
) -> dict[str, Any]:
    """Write a request; what is not taken stands in the prompt: schema below, system above."""
    schema, prompt, system = request.shape.model_json_schema(), request.prompt, request.system
    if SYSTEM in replaced:
        prompt, system = f"{system}\n\n{prompt}".lstrip(), ""
    if SCHEMA in replaced:
        prompt += f"\n\nAnswer with JSON of this schema and nothing else: {json.dumps(schema)}"
    repair = list[dict[str, str]]()
    if before.fault:
        again = (
            f"That does not fit: {before.fault}. "
            "Answer again, with JSON of the schema and nothing else."
        )
        if before.text.strip():
            shown = {"role": "assistant", "content": before.text[:SHOWN_CHARS]}
            repair = [shown, {"role": "user", "content": again}]
        else:  # some servers refuse a message without text
            prompt += f"\n\n{again}"
    texts = {"system": system, "user": prompt}
    messages = [{"role": role, "content": text} for role, text in texts.items() if text]
    body = {"model": service.model, "messages": [*messages, *repair], "temperature": 0, "seed": 0}
    if SCHEMA not in replaced:
        named = {"name": request.shape.__name__, "schema": schema, "strict": True}
        body[SCHEMA] = {"type": "json_schema", "json_schema": named}
    if service.max_output is not None:
        body[LONGEST] = service.max_output
    return body


def collect_judgements(
    items: Sequence[tuple[str, int, tuple[str, ...]]],
    lists: Callable[[list[int]], Iterable[tuple[list[int], Request]]],
    read: Callable[[Any, int], list[Any]],
    service: str | Service,
) -> tuple[list[Any | None], str]:
    """Read recorded judgements, and ask a model for those that are missing.

    :param items: task, version and what is asked about of each judgement, as of
        :class:`memlab.llm.Request`.
    :param lists: given the items that are missing, gives the lists in which to ask for them: the
        items of each list and its request.
    :param read: given a list's answer and its length, gives the judgement of each of its items, as
        JSON values.
    :param service: see :func:`memlab.llm.ask`; each judgement is recorded for itself.
    :returns: a judgement for each item, ``None`` where there is none; and why the first of those
        has none.
    """
    model, rows = resolve_service(service), recording.recorded_rows(service)
    keys = [recording.recording_key(*item) for item in items]
    known = {
        (item[0], key): rows[key] for item, key in zip(items, keys, strict=True) if key in rows
    }
    found = {key: row["answer"] for (_, key), row in known.items()}
    missing = [at for at, key in enumerate(keys) if key not in found]
    if not is_estimating():
        lacking = len(missing) if model is None else 0  # lists are counted where they are asked
        add_to_spending(
            {name: token_counts(row["tokens"]) for name, row in known.items()},
            unanswered=lacking,
            uncounted=[name for name, row in known.items() if row["estimated"]],
        )
    error = "not recorded"
    if missing and (model is not None or is_estimating()):
        members = defaultdict[str, list[list[int]]](list)
        requests = []
        for listed, request in lists(missing):
            members[request.key].append(listed)
            requests.append(request)

        def keep(request: Request, answer: Answer) -> None:
            # Not the list itself: another ranking would make others. Each as it comes, so that
            # nothing is asked twice.
            for listed in members[request.key]:
                n = len(listed)
                for i, (at, judgement) in enumerate(
                    zip(listed, read(answer.value, n), strict=True)
                ):
                    found[keys[at]] = judgement
                    tokens_read, written = (t * (i + 1) // n - t * i // n for t in answer.tokens)
                    if model is not None:
                        recording.record(
                            model,
                            (*items[at][:2], keys[at]),
                            judgement,
                            (tokens_read, written),
                            is_estimated=answer.is_estimated,
                        )

        answers = ask(requests, service, progress="judgements", done=keep)
        error = next((answer.error for answer in answers if answer.value is None), error)
    return [found.get(key) for key in keys], error
