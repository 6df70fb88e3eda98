"""Conversations that are written as one text, with a mark before what each says.

So they stand in data sets of preferences (HH-RLHF: ``\\n\\nHuman: … \\n\\nAssistant: …``), in
prompts of older models, and in data sets for training (``### Human: … ### Assistant: …``).
"""

from __future__ import annotations

import re

from memlab.datasets.importers.loose_json import JsonValue
from memlab.datasets.importers.unknown_message_layouts import SPEAKERS

_SPEAKER = "(Human|User|Assistant|AI|System)"
_MARKS = (
    re.compile(rf"\s*###[ \t]?{_SPEAKER}:[ \t]*"),
    re.compile(rf"(?:\A\s*|\n\n+){_SPEAKER}:[ \t]*"),
)
_PARTNERS = (("Human", "User"), ("Assistant", "AI"))
BEGINS = re.compile(r'"(?:\\n|\s)*(?:### ?)?(?:Human|System): [^"]*?(?:### ?|\\n\\n)Assistant:')
"""The beginning of such a text in JSON."""
_OF_CALLS = frozenset(("prompt", "chosen", "rejected", "completion", "input", "response", "output"))
"""Keys of a logged call that keep their place; what stands under another is a conversation."""


def split_transcript_into_messages(text: str) -> list[dict[str, str]]:
    """Give the messages of a conversation that is written as one text; none of any other.

    It begins with a mark, and both a person and an assistant have one. A mark at the end, after
    which the answer was to come, is no message.

    >>> split_transcript_into_messages("\\n\\nHuman: Which bus?\\n\\nAssistant: Line 4.")[1]
    {'role': 'assistant', 'content': 'Line 4.'}
    >>> split_transcript_into_messages("Human: is he?")
    []
    """
    for speaker_mark in _MARKS:
        if not speaker_mark.match(text):
            continue
        _, *split_texts = speaker_mark.split(text)
        speakers = split_texts[::2]
        contents = split_texts[1::2]
        if not all(map(set(speakers).intersection, _PARTNERS)):
            continue
        messages = list[dict[str, str]]()
        for speaker, content in zip(speakers, contents, strict=True):
            if content.strip():
                messages.append({"role": speaker.lower(), "content": content.strip()})
        return messages
    return []


def replace_transcripts_by_messages(raw_record: JsonValue) -> JsonValue:
    """Give a record with the conversations in its texts as messages.

    >>> record = replace_transcripts_by_messages({"text": "### Human: Hi### Assistant: Hello"})
    >>> record["messages"][0]
    {'role': 'human', 'content': 'Hi'}
    """
    if not isinstance(raw_record, dict) or not SPEAKERS.isdisjoint(raw_record):
        return raw_record
    decoded_fields = dict(raw_record)
    is_taken = "messages" in raw_record
    for key, value in raw_record.items():
        messages = list[dict[str, str]]()
        if isinstance(value, str):
            messages = split_transcript_into_messages(value)
        if not messages:
            continue
        if key in _OF_CALLS:
            decoded_fields[key] = messages
        elif not is_taken:
            is_taken = True
            del decoded_fields[key]
            decoded_fields["messages"] = messages
    return decoded_fields
