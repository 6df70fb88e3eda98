"""What services were found to take and not to take, remembered while the process runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from memlab.llm.response_bodies import JsonObject, JsonValue
from memlab.llm.service_addresses import PARAMETERS, Service
from memlab.llm.service_faults import Fault, refused_parameters

SYSTEM = "system message"
"""What stands for it among the parameters; it is written above the prompt instead."""

_SYSTEM_REFUSED = re.compile(
    r"(?:system|developer) (?:role|message|prompt|instruction)s?\b.{0,60}(?:not|unsupported|only)"
    r"|(?:unsupported|unknown|invalid).{0,20}role\W{1,3}system",
    re.IGNORECASE | re.DOTALL,
)
_SHORTEST_ECHO = 20
"""Characters of a question that are known again; fewer may be a word of the server's own."""
ATTEMPTS = 2
"""At an answer that fits."""
SCHEMA, LONGEST, LONGEST_NOW = "response_format", "max_tokens", "max_completion_tokens"


@dataclass
class ServiceHabits:
    """What one service was found to take.

    :param replaced: parameters that it does not take, and what it takes instead; an empty name for
        those that are left out.
    :param batch: how many texts it embeds at once; ``None`` where it did not say.
    :param stated: what was already stated of it.
    :param is_known: whether it has answered a request.
    """

    replaced: dict[str, str] = field(default_factory=dict)
    batch: int | None = None
    stated: set[str] = field(default_factory=set)
    is_known: bool = False


_HABITS: dict[tuple[str, str], ServiceHabits] = {}


def remembered_or_new_habits(service: Service) -> ServiceHabits:
    """Give what is known of a service, by its address and model; the same object each time."""
    return _HABITS.setdefault((service.base_url, service.model), ServiceHabits())


def forget_habits() -> None:
    """Forget what all services were found to take."""
    _HABITS.clear()


def drop_or_replace_parameters(
    request_body: Mapping[str, JsonValue], replacement_or_empty_by_name: Mapping[str, str]
) -> JsonObject:
    """Give a request without what its service does not take.

    >>> from memlab.llm.service_capabilities import drop_or_replace_parameters
    >>> replaced = {"seed": "", "max_tokens": "max_completion_tokens"}
    >>> drop_or_replace_parameters({"seed": 0, "max_tokens": 9}, replaced)
    {'max_completion_tokens': 9}
    """
    adapted = JsonObject()
    for name, value in request_body.items():
        sent_name = replacement_or_empty_by_name.get(name, name)
        if sent_name in replacement_or_empty_by_name:  # what stood for it is not taken either
            sent_name = replacement_or_empty_by_name[sent_name]
        if sent_name:
            adapted[sent_name] = value
    return adapted


def find_replacement_or_empty_by_parameter(
    fault: Fault, request_body: Mapping[str, JsonValue]
) -> dict[str, str]:
    """Give what a server names, in a refusal, as what to leave out of the request, or to replace.

    >>> from memlab.llm.service_faults import Fault
    >>> from memlab.llm.service_capabilities import find_replacement_or_empty_by_parameter
    >>> find_replacement_or_empty_by_parameter(Fault(400, "Unknown name 'seed'"), {"seed": 0})
    {'seed': ''}
    >>> find_replacement_or_empty_by_parameter(Fault(500, "Internal Server Error"), {"seed": 0})
    {}
    """
    fault = replace(fault, message=_remove_echoed_question(fault.message, request_body))
    roles = {message["role"] for message in request_body.get("messages", ())}
    if "system" in roles and _SYSTEM_REFUSED.search(fault.message):
        return {SYSTEM: ""}
    refused_names = refused_parameters(fault, request_body, (*PARAMETERS, LONGEST_NOW))
    replacements = dict.fromkeys(refused_names, "")
    if LONGEST in replacements and LONGEST_NOW in fault.message:
        replacements[LONGEST] = LONGEST_NOW
    return replacements


def _remove_echoed_question(message: str, request_body: Mapping[str, JsonValue]) -> str:
    """Take what was asked out of what a server says: "seed" is a word of gardeners too."""
    for sent_message in request_body.get("messages", ()):
        content = sent_message["content"]
        escaped_forms = json.dumps(content)[1:-1], json.dumps(content, ensure_ascii=False)[1:-1]
        for written_form in (content, *escaped_forms):
            squeezed_form = " ".join(written_form.split())  # as a fault's message is
            if len(squeezed_form) >= _SHORTEST_ECHO:
                message = message.replace(squeezed_form, "")
    return message


def describe_replacements(
    replacement_or_empty_by_name: Mapping[str, str], fault_by_name: Mapping[str, str]
) -> str:
    """Say in one line what is left out from here on, and what the server said to it."""
    descriptions = list[str]()
    for name, replacement in replacement_or_empty_by_name.items():
        if replacement:
            description = f"{replacement} stands for {name}"
        elif name == SYSTEM:
            description = "the system message stands above the prompt"
        elif name == SCHEMA:
            description = "the schema stands in the prompt instead of response_format"
        elif name in (LONGEST, LONGEST_NOW):
            description = f"{name} is left out, so that no longest output is set"
        else:
            description = f"{name} is left out"
        descriptions.append(f"{description} ({fault_by_name[name]})")
    return "; ".join(descriptions)
