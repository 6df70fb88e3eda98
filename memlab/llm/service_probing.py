"""What a service takes and does not take, found by asking it one tiny question."""

from __future__ import annotations

import time
from typing import Literal

from pydantic import BaseModel, ConfigDict

from memlab.errors import ModelError
from memlab.llm.chat_completions import NO_COMPLETION, Reply
from memlab.llm.embedding_requests import embed_texts
from memlab.llm.service_addresses import PARAMETERS, Service
from memlab.llm.service_capabilities import LONGEST, SCHEMA
from memlab.llm.service_client import Client
from memlab.llm.structured_answers import MAX_BYTES, MISFIT, Request, ask_once_showing_earlier_fault


class Drink(BaseModel):
    """What a model answers that was given the schema, and hardly one that was not."""

    model_config = ConfigDict(extra="forbid")

    drink: Literal["tea", "coffee"]


_QUESTION = Request("probe", 1, (), "Which of the two is it? Choose one.", Drink)


def probe_and_describe_service(service: Service) -> list[str]:
    """Ask a service one tiny question, and say in five lines what it takes and does not take.

    A service that answers no question is asked for a vector; two lines then say what it answers to
    each.

    :raises ModelError: when it answers neither.
    """
    client = Client(service, limit=MAX_BYTES)
    started_at = time.monotonic()

    async def ask_once() -> Reply:
        return await ask_once_showing_earlier_fault(
            client, _QUESTION, Reply(), started_at + client.longest_wait
        )

    try:
        reply = client.run_and_close(ask_once)
    except ModelError as error:
        return _describe_embeddings_or_raise(service, error)
    if reply.fault == NO_COMPLETION:
        raise client.model_error(reply.fault)
    seconds = time.monotonic() - started_at
    return [
        f"{service}: {_describe_whether_answer_fits(reply)}, after {seconds:.1f} s",
        f"schema: {_describe_whether_schema_is_taken(client, reply)}",
        f"parameters: {_describe_which_parameters_are_taken(client)}",
        f"thinking: {_describe_thinking(reply)}",
        f"tokens: {_describe_tokens(reply)}",
    ]


def _describe_embeddings_or_raise(service: Service, error: ModelError) -> list[str]:
    try:
        vectors = embed_texts(service, ["tea"])
    except ModelError:
        raise error from None
    return [
        f"no questions: {error}",
        f"embeddings: vectors of {vectors.shape[1]:,} numbers",
    ]


def _describe_whether_answer_fits(reply: Reply) -> str:
    if reply.value is None:
        return f"{MISFIT} ({reply.fault})"
    return "an answer that fits"


def _describe_whether_schema_is_taken(client: Client, reply: Reply) -> str:
    if SCHEMA in client.replacement_by_name:
        return "not taken, it stands in the prompt"
    if reply.value is None and reply.text.strip():
        return "taken, and not kept to"
    return "taken"


def _describe_which_parameters_are_taken(client: Client) -> str:
    accepted = list[str]()
    not_accepted = list[str]()
    for name in PARAMETERS:
        if name in (SCHEMA, "encoding_format"):
            continue
        replacement = client.replacement_by_name.get(name)
        if name == LONGEST and client.service.max_output is None:
            not_accepted.append(f"{name} is not set")
        elif replacement is None:
            accepted.append(name)
        elif replacement:
            accepted.append(f"{replacement} for {name}")
        else:
            not_accepted.append(f"{name} is left out")
    return "; ".join([f"{', '.join(accepted) or 'none'} taken", *not_accepted])


def _describe_thinking(reply: Reply) -> str:
    if reply.thought == 0:
        return "none is sent"
    return f"{reply.thought:,} characters before the answer, which are left out"


def _describe_tokens(reply: Reply) -> str:
    tokens_read, tokens_written = reply.tokens
    counts_text = f"{tokens_read:,} read and {tokens_written:,} written"
    if reply.is_estimated:
        return f"about {counts_text}, estimated by characters, as it does not count them"
    return f"{counts_text}, as it counts them"
