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

from memlab.errors import ModelError
from memlab.llm import recorded_answers
from memlab.llm.chat_completions import NO_COMPLETION, Reply, read_completion, token_counts_or_zeros
from memlab.llm.recorded_answers import RecordedRow
from memlab.llm.response_bodies import JsonObject, JsonValue
from memlab.llm.service_addresses import Service, resolve_service
from memlab.llm.service_capabilities import ATTEMPTS, LONGEST, SCHEMA, SYSTEM
from memlab.llm.token_spending import (
    CHARS,
    WRITTEN,
    TokensReadAndWritten,
    add_to_spending,
    is_estimating,
)
from memlab.progress_bars import progress_bar

if TYPE_CHECKING:
    from memlab.llm.service_client import Client

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
        return recorded_answers.recording_key(self.task, self.version, self.about)


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
    tokens: TokensReadAndWritten = (0, 0)
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
    unanswered_text = f"{len(errors):,} of {len(answers):,} {what} came from no model ({errors[0]})"
    return unanswered_text + service_advice_or_empty(errors[0])


def service_advice_or_empty(error: str) -> str:
    """Say how a model is asked, behind an error that does not say itself what to do."""
    if error.startswith(("service", "not asked")):
        return ""
    return '; service="NAME" or --service NAME asks one'


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
    model = resolve_service(service)
    recorded_rows = recorded_answers.recorded_rows_by_key_or_warn(service)
    distinct_requests = {request.key: request for request in requests}
    answer_by_key = {
        key: _read_recorded_answer(distinct_request, recorded_rows.get(key))
        for key, distinct_request in distinct_requests.items()
    }
    unrecorded_requests = {
        key: distinct_request
        for key, distinct_request in distinct_requests.items()
        if answer_by_key[key].value is None
    }
    counted_requests = distinct_requests
    if is_estimating():
        counted_requests = unrecorded_requests  # what is recorded costs nothing more
        for key, distinct_request in unrecorded_requests.items():
            estimated_tokens = (
                (len(distinct_request.system) + len(distinct_request.prompt)) // CHARS,
                WRITTEN.get(distinct_request.task, 100),
            )
            answer_by_key[key] = Answer(None, "not asked: an estimate", estimated_tokens)
    elif model and unrecorded_requests:
        answer_by_key |= _ask_service_and_record(unrecorded_requests, model, progress, done)
    counted_answers = {
        (distinct_request.task, key): answer_by_key[key]
        for key, distinct_request in counted_requests.items()
    }
    add_to_spending(
        {
            task_and_key: answer.tokens
            for task_and_key, answer in counted_answers.items()
            if answer.value is not None or any(answer.tokens)
        },
        unanswered=sum(answer.value is None for answer in answer_by_key.values()),
        seconds=sum(answer.seconds for answer in answer_by_key.values()),
        uncounted=[
            task_and_key for task_and_key, answer in counted_answers.items() if answer.is_estimated
        ],
    )
    return [answer_by_key[request.key] for request in requests]


def check_service(service: str | Service | None) -> None:
    """See that a service can be asked, before work begins that needs its answers.

    :raises ModelError: for no such name, no address or no key.
    """
    if (model := resolve_service(service)) is not None:
        from memlab.llm.service_client import Client

        Client(model, limit=MAX_BYTES)


def _read_recorded_answer(request: Request, recorded_row: RecordedRow | None) -> Answer:
    """Read a recorded answer; one that does not fit the shape counts as not recorded."""
    with suppress(ValidationError):
        if recorded_row is not None:
            shaped_value = request.shape.model_validate_json(json.dumps(recorded_row["answer"]))
            counted_tokens = token_counts_or_zeros(recorded_row["tokens"])
            return Answer(
                shaped_value, tokens=counted_tokens, is_estimated=recorded_row["estimated"]
            )
    return Answer(None, "not recorded")


def _ask_service_and_record(
    requests_by_key: Mapping[str, Request],
    service: Service,
    progress: str,
    keep_answer: Callable[[Request, Answer], object] | None,
) -> dict[str, Answer]:
    """Ask a service for what is not recorded, and keep each answer as it comes."""
    # It takes httpx, which nobody needs to whom recorded answers suffice.
    from memlab.llm.service_client import Client

    client = Client(service, limit=MAX_BYTES)
    waiting_requests = iter(requests_by_key.items())
    answer_by_key: dict[str, Answer] = {}
    recent_failures: list[str] = []  # the last ones in a row

    def record_answer(request: Request, answer: Answer) -> None:
        json_value = answer.value.model_dump(mode="json")  # type: ignore[union-attr]
        recording_name = (request.task, request.version, request.key)
        recorded_answers.append_to_recording_or_warn(
            service, recording_name, json_value, answer.tokens, is_estimated=answer.is_estimated
        )

    async def ask_waiting_requests(max_requests: int | None = None) -> None:
        for key, request in islice(waiting_requests, max_requests):
            if len(recent_failures) >= PATIENCE:
                reason = (
                    f"not asked after {len(recent_failures)} failures in a row; the last: "
                    f"{recent_failures[-1]}"
                )
                answer_by_key[key] = Answer(None, reason)
            elif (answer := await _ask_with_repair(client, request)).value is None:
                answer_by_key[key] = answer
                recent_failures.append(answer.error)
            else:
                answer_by_key[key] = answer
                recent_failures.clear()
                (keep_answer or record_answer)(request, answer)
            answer_bar.update()

    async def ask_all() -> None:
        if not client.habits.is_known:
            await ask_waiting_requests(1)  # what the service does not take, it refuses once
        await asyncio.gather(*(ask_waiting_requests() for _ in range(service.concurrency)))

    n_requests = len(requests_by_key)
    with progress_bar(
        what=progress, total=n_requests, unit="answers", hidden=not progress
    ) as answer_bar:
        client.run_and_close(ask_all)
    return answer_by_key


async def _ask_with_repair(client: Client, request: Request) -> Answer:
    """Ask once, and once more where the answer does not fit.

    Whatever comes back, this raises nothing.
    """
    started_at = time.monotonic()
    reply = Reply()
    failure = ""
    token_totals = (0, 0)
    is_estimated = False
    try:
        for _ in range(ATTEMPTS):
            reply = await ask_once_showing_earlier_fault(
                client, request, reply, started_at + client.longest_wait
            )
            token_totals = token_totals[0] + reply.tokens[0], token_totals[1] + reply.tokens[1]
            is_estimated = is_estimated or reply.is_estimated
            if reply.value is not None or reply.is_final:
                break
        if reply.value is None:
            failure = str(client.model_error(_describe_misfit(reply, request)))
    except ModelError as error:
        failure = str(error)
    answer_value = None if failure else reply.value
    if answer_value is not None and reply.fault:
        client.note_once_in_process(reply.fault)
    if is_estimated:
        client.note_once_in_process("it does not count tokens; they are estimated by characters")
    return Answer(answer_value, failure, token_totals, time.monotonic() - started_at, is_estimated)


def _describe_misfit(reply: Reply, request: Request) -> str:
    if reply.fault == NO_COMPLETION:
        return reply.fault
    return f"{MISFIT} {request.shape.__name__} ({reply.fault})"


async def ask_once_showing_earlier_fault(
    client: Client, request: Request, earlier_reply: Reply, deadline: float
) -> Reply:
    """Ask, after an answer that did not fit with what is wrong with it."""
    service = client.service
    if service.max_input and len(request.prompt) > service.max_input:
        length_fault = (
            f"the prompt has {len(request.prompt):,} characters, "
            f"max_input allows {service.max_input:,}"
        )
        raise ModelError(f"{service}: {length_fault}")
    sent_chars = 0

    def make_body(replaced: Mapping[str, str]) -> dict[str, Any]:
        nonlocal sent_chars
        body = _make_chat_request_body(service, request, earlier_reply, replaced)
        sent_chars = sum(len(message["content"]) for message in body["messages"])
        return body

    answer = await client.post_adapted("/chat/completions", make_body, deadline=deadline)
    return read_completion(answer, request.shape, api_key=client.key, sent_chars=sent_chars)


def _make_chat_request_body(
    service: Service, request: Request, earlier_reply: Reply, replacement_by_name: Mapping[str, str]
) -> JsonObject:
    """Write a request; what is not taken stands in the prompt: schema below, system above."""
    schema = request.shape.model_json_schema()
    prompt = request.prompt
    system = request.system
    if SYSTEM in replacement_by_name:
        prompt = f"{system}\n\n{prompt}".lstrip()
        system = ""
    if SCHEMA in replacement_by_name:
        prompt += f"\n\nAnswer with JSON of this schema and nothing else: {json.dumps(schema)}"
    repair_messages = list[dict[str, str]]()
    if earlier_reply.fault:
        repair_text = (
            f"That does not fit: {earlier_reply.fault}. "
            "Answer again, with JSON of the schema and nothing else."
        )
        if earlier_reply.text.strip():
            shown_answer = {"role": "assistant", "content": earlier_reply.text[:SHOWN_CHARS]}
            repair_messages = [shown_answer, {"role": "user", "content": repair_text}]
        else:  # some servers refuse a message without text
            prompt += f"\n\n{repair_text}"
    text_by_role = {"system": system, "user": prompt}
    messages = [
        {"role": role, "content": message_text}
        for role, message_text in text_by_role.items()
        if message_text
    ]
    body = {
        "model": service.model,
        "messages": [*messages, *repair_messages],
        "temperature": 0,
        "seed": 0,
    }
    if SCHEMA not in replacement_by_name:
        named_schema = {"name": request.shape.__name__, "schema": schema, "strict": True}
        body[SCHEMA] = {"type": "json_schema", "json_schema": named_schema}
    if service.max_output is not None:
        body[LONGEST] = service.max_output
    return body


JudgementName = tuple[str, int, tuple[str, ...]]
"""Task, version and what is asked about of a judgement, as of :class:`Request`."""


def collect_judgements_and_first_error(
    items: Sequence[JudgementName],
    make_lists: Callable[[list[int]], Iterable[tuple[list[int], Request]]],
    read_list_answer: Callable[[Any, int], list[JsonValue]],
    service: str | Service,
) -> tuple[list[JsonValue | None], str]:
    """Read recorded judgements, and ask a model for those that are missing.

    :param items: task, version and what is asked about of each judgement, as of
        :class:`memlab.llm.Request`.
    :param make_lists: given the items that are missing, gives the lists in which to ask for them:
        the items of each list and its request.
    :param read_list_answer: given a list's answer and its length, gives the judgement of each of
        its items, as JSON values.
    :param service: see :func:`memlab.llm.ask`; each judgement is recorded for itself.
    :returns: a judgement for each item, ``None`` where there is none; and why the first of those
        has none.
    """
    model = resolve_service(service)
    recorded_rows = recorded_answers.recorded_rows_by_key_or_warn(service)
    item_keys = [recorded_answers.recording_key(*judged_item) for judged_item in items]
    known_rows = {
        (judged_item[0], item_key): recorded_rows[item_key]
        for judged_item, item_key in zip(items, item_keys, strict=True)
        if item_key in recorded_rows
    }
    judgement_by_key = {
        item_key: known_row["answer"] for (_, item_key), known_row in known_rows.items()
    }
    missing_places = [
        item_place
        for item_place, item_key in enumerate(item_keys)
        if item_key not in judgement_by_key
    ]
    if not is_estimating():
        n_unanswered = (
            len(missing_places) if model is None else 0
        )  # lists are counted where they are asked
        add_to_spending(
            {
                task_and_key: token_counts_or_zeros(known_row["tokens"])
                for task_and_key, known_row in known_rows.items()
            },
            unanswered=n_unanswered,
            uncounted=[
                task_and_key
                for task_and_key, known_row in known_rows.items()
                if known_row["estimated"]
            ],
        )
    first_error = "not recorded"
    if missing_places and (model is not None or is_estimating()):
        places_by_request = defaultdict[str, list[list[int]]](list)
        requests = []
        for listed_places, request in make_lists(missing_places):
            places_by_request[request.key].append(listed_places)
            requests.append(request)

        def record_listed_judgements(request: Request, answer: Answer) -> None:
            # Not the list itself: another ranking would make others. Each as it comes, so that
            # nothing is asked twice.
            for listed in places_by_request[request.key]:
                n_listed = len(listed)
                for list_place, (at, judgement) in enumerate(
                    zip(listed, read_list_answer(answer.value, n_listed), strict=True)
                ):
                    judgement_by_key[item_keys[at]] = judgement
                    tokens_read, tokens_written = (
                        token_count * (list_place + 1) // n_listed
                        - token_count * list_place // n_listed
                        for token_count in answer.tokens
                    )
                    if model is not None:
                        recorded_answers.append_to_recording_or_warn(
                            model,
                            (*items[at][:2], item_keys[at]),
                            judgement,
                            (tokens_read, tokens_written),
                            is_estimated=answer.is_estimated,
                        )

        answers = ask(requests, service, progress="judgements", done=record_listed_judgements)
        first_error = next(
            (answer.error for answer in answers if answer.value is None), first_error
        )
    return [judgement_by_key.get(item_key) for item_key in item_keys], first_error
