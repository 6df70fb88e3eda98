"""Words of others in a message: lines that are marked as quotes, pasted chats, and what an introduction gives away.

Marks (``>``, quotation marks, the header of a pasted message) count in every language; introductions
("Knut wrote:", "Lyrics:", "Translate to French:") are those of English.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_MARKED = re.compile(r"(?m)^[ \t]*>+[ \t]?(.*\S)[ \t]*$")
_CLOCK = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?"
_DATE = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
_NAME = r"[^\W\d_][\w'’.-]*(?: [\w'’.-]+){0,3}"
_PASTED = re.compile(
    rf"(?m)^[ \t]*(?:"
    rf"\[(?:{_DATE}[, ]+)?{_CLOCK}(?:, {_DATE})?\] ?{_NAME}"  # [10:02] Ingrid: …
    rf"|(?:{_DATE}[, ]+)?{_CLOCK} ?[-–]? {_NAME}"  # 14/01/2026, 09:01 - Ingrid: …
    rf"|{_NAME} ?[\[(](?:{_DATE}[, ]+)?{_CLOCK}[\])]"  # Ingrid [10:02]: …
    rf"):[ \t]+(\S.*?)[ \t]*$"
)
"""A message copied out of a chat, with who wrote it and when."""
_FORWARDED = re.compile(
    r"(?im)^[ \t]*(?:-{3,} ?(?:forwarded|original) message ?-{3,}|begin forwarded message:"
    r"|(?:fwd?|fw|forwarded)(?: message)?:)\s*(?P<said>\S(?s:.*\S)?)"
)
"""What mail programs and people write before a message that they pass on: all that follows is another's."""
_LABELLED = re.compile(
    r"(?m)(?:^|(?<=[.!?…] ))(?P<by>[A-Z][\w'’-]*(?: [A-Z][\w'’.-]*){0,2}):[ \t]+(?P<said>\S.*)$"
)
_IN_MARKS = re.compile(
    r"[“„«](?=\S)([^“”„«»\n]{8,2000})[”“»]|(?<!\w)\"(?=\S)([^\"\n]{8,2000})(?<=\S)\"(?!\w)"
)
MARKS = r'[>:"“„«]|---'
"""What stands in every text that holds a quotation, for those who look through many texts."""
_WORDS_OF_A_QUOTE = 3
_FIRST_PERSON = re.compile(r"\b(?:I|i|[Ii]['’]\w+|[Mm]y|[Ww]e|[Ww]e['’]\w+|[Oo]ur)\b")
_FIRST_SENTENCE = re.compile(r"[^.!?…\n]*")
_OWN_WORDS = re.compile(r"\b(?:I|I['’]\w+)\b")
"""Of an introduction that is the writer's: "I said: …"."""
_WORKED_ON = (
    r"translat\w+|proofread|rephrase|paraphrase|rewrite|reword|summari[sz]e|correct|improve|polish|"
    r"shorten|transcribe|fix (?:the|this|my)"
)
_GENRES = (
    r"lyrics?|songs?|verses?|chorus|poems?|quotes?|quotations?|sayings?|riddles?|memes?|novels?|"
    r"(?<!long )stor(?:y|ies)|scripts?|dialogues?|screenplays?|role-?plays?|translations?|"
    r"transcripts?|excerpts?"
)
_REPORTS = (
    r"wrote|writes|said|says|texted|replied|answered|posted|tweeted|announced|put it|"
    r"told (?:me|us|him|her|them)|sent (?:me|us|him|her|them)"
)
_PEOPLE = (
    r"(?:grand|step|god)?(?:mother|father|mum|mom|dad|son|daughter|ma|pa)|mummy|mommy|daddy|sister|"
    r"brother|wife|husband|aunt|uncle|cousin|niece|nephew|child|kid|boy|girl|boss|manager|friend|"
    r"neighbou?r|colleague|coworker|teacher|doctor|coach|partner|girlfriend|boyfriend|fiancée?|"
    r"landlord|landlady|roommate|flatmate|housemate|therapist|client|customer"
)
_INTRODUCTIONS = (
    rf"(?i:(?:please |can you |could you )*\b(?:{_WORKED_ON})\b[^\n:.!?]{{0,60}})",
    rf"(?i:[^\n:.!?]{{0,60}}\b(?:{_GENRES})\b[^\n:.!?]{{0,40}})",
    rf"[^\n:.!?]{{1,60}}\b(?:{_REPORTS})\b(?: [^\n:.!?]{{1,30}})?",
    r"(?i:[^\n:.!?]{0,30}\b(?:message|text|mail|e-?mail|letter|note|post|card) (?:from|by|of)\b[^\n:.!?]{1,40})",
    rf"(?i:(?:my|our|his|her|their|the) (?:[\w-]+ )?(?:{_PEOPLE}))",
)
_INTRODUCED = re.compile(
    rf"(?m)(?:^|(?<=[.!?…] ))(?P<by>{'|'.join(_INTRODUCTIONS)}):(?=\s)\s*(?P<said>\S.*(?:\n(?!\n).+)*)"
)
_TOLD = re.compile(
    rf"(?i)\b(?:write|tell|make|create|continue|finish|compose|draft)\b[^.!?\n]*\b(?:{_GENRES})\b"
)
"""What makes the labels behind it those of a tale: "Write a story. Hero: …"."""


def find_quotations(
    text: str, *, speaker: str = "", people: Collection[str] = (), language: str = "en"
) -> list[str]:
    """Find the parts of a message that are somebody else's words, each as it stands in the message.

    :param speaker: who wrote the message: a line that begins with their own name is theirs.
    :param people: who else takes part, in lower case: a line that begins with such a name is theirs.

    >>> find_quotations("> I live in Narvik.\\nReally? That far north!")
    ['I live in Narvik.']
    >>> find_quotations("Knut wrote this: I live in Hamar.", speaker="Tove")
    ['I live in Hamar.']
    >>> find_quotations("Update: I live in Hamar now.", speaker="Tove")
    []
    """
    found = [*_MARKED.findall(text), *_pasted_messages(text, speaker)]
    found += [part["said"] for part in _FORWARDED.finditer(text)]
    found += _in_quotation_marks(text)
    if ":" in text:
        found += _labelled(text, speaker, people)
    if ":" in text and language == "en":
        found += _introduced(text)
    return _without_parts_of_others(found)


def remove_quotations(text: str, quoted: list[str]) -> str:
    """Give what is left of a text without its quotations; an introduction stays, which tells whose they are.

    >>> remove_quotations("> I live in Narvik.\\nReally?", ["I live in Narvik."])
    'Really?'
    """
    for part in sorted(quoted, key=len, reverse=True):
        text = text.replace(part, " ")
    lines = [line.strip().lstrip(">").strip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line)


def _pasted_messages(text: str, speaker: str) -> list[str]:
    own = speaker.strip().casefold()
    found = []
    for header in _PASTED.finditer(text):
        before = text[header.start() : header.start(1)].casefold()
        if not own or own not in before:
            found.append(header[1])
    return found


def _in_quotation_marks(text: str) -> list[str]:
    """Find sentences between quotation marks in which somebody speaks of themselves."""
    found = []
    for paired, straight in _IN_MARKS.findall(text):
        part = (paired or straight).strip()
        if len(part.split()) >= _WORDS_OF_A_QUOTE and _FIRST_PERSON.search(part):
            found.append(part)
    return found


def _labelled(text: str, speaker: str, people: Collection[str]) -> list[str]:
    """Find what stands behind the names of others: of who takes part, of a pasted dialogue, or of a tale's people."""
    lines = list(_LABELLED.finditer(text))
    own = speaker.strip().casefold()
    names = {line["by"].casefold() for line in lines}
    is_dialogue = len(names) > 1 and len(lines) == len(text.strip().splitlines())
    found = []
    for line in lines:
        name = line["by"].casefold()
        is_in_tale = _TOLD.search(text, 0, line.start()) is not None
        if name != own and (name in people or is_dialogue or is_in_tale):
            found.append(line["said"].strip())
    return found


def _introduced(text: str) -> list[str]:
    """Find what stands behind the colon of an introduction and begins with a sentence in the first person."""
    found = []
    for part in _INTRODUCED.finditer(text):
        first = _FIRST_SENTENCE.match(part["said"])
        is_own = _OWN_WORDS.search(part["by"])
        if first and _FIRST_PERSON.search(first[0]) and not is_own:
            found.append(part["said"].strip())
    return found


def _without_parts_of_others(found: list[str]) -> list[str]:
    """Give each part once, in order, but for those that lie within another."""
    kept = []
    for part in dict.fromkeys(found):
        others = (other for other in found if other != part)
        if part and not any(part in other for other in others):
            kept.append(part)
    return kept
