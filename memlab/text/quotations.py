"""Words of others in a message.

They stand in lines that are marked as quotes, in pasted chats, and behind an introduction. Marks
(``>``, quotation marks, the header of a pasted message) count in every language; introductions
("Knut wrote:", "Lyrics:", "Translate to French:") are those of English.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

Span = tuple[int, int]
"""Where a part of a text begins and ends."""
_MARKED = re.compile(r"(?m)^[ \t]*>+[ \t]?(.*\S)")
_CLOCK = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?"
_DATE = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
_NAME = r"[^\W\d_][\w'’.-]*(?: [\w'’.-]+){0,3}"
_PASTED = re.compile(
    rf"(?m)^[ \t]*(?:"
    rf"\[(?:{_DATE}[, ]+)?{_CLOCK}(?:, {_DATE})?\] ?{_NAME}"  # [10:02] Ingrid: …
    rf"|(?:{_DATE}[, ]+)?{_CLOCK} ?[-–]? {_NAME}"  # 14/01/2026, 09:01 - Ingrid: …
    rf"|{_NAME} ?[\[(](?:{_DATE}[, ]+)?{_CLOCK}[\])]"  # Ingrid [10:02]: …
    rf"):[ \t]+(\S.*)$"
)
"""A message copied out of a chat, with who wrote it and when."""
_COPIED = re.compile(
    rf"(?m)^[ \t]*{_NAME}, \[(?:{_DATE}[, ]+)?{_CLOCK}\]:?[ \t]*(?:\n|$)"
    r"(?P<said>\S.*(?:\n(?!\n).+)*)"
)
"""Messages copied out of Telegram: who wrote them and when stands in a line above."""
_RETWEETED = re.compile(r"(?m)^[ \t]*RT @\w{1,30}:?[ \t]+(\S.*)$")
_BLOCK = re.compile(
    r"(?m)^[ \t]*(?P<mark>\"{3}|`{3,})[^\n]*\n(?P<said>\S(?s:.{0,2000}?\S)?)\s*"
    r"^[ \t]*(?P=mark)[ \t]*$"
)
"""A text pasted between lines of three quotation marks or backticks."""
_FORWARDED = re.compile(
    r"(?im)^[ \t]*(?:-{3,} ?(?:forwarded|original) message ?-{3,}|begin forwarded message:"
    r"|(?:fwd?|fw|forwarded)(?: message)?:|(?-i:[Ff]orwarded)(?: many times| message)?[ \t]*\n)"
    r"\s*(?P<said>\S(?s:.*\S)?)"
)
"""What mail programs and people write before a message that they pass on.

All that follows is another's.
"""
_LABELLED = re.compile(
    r"(?m)(?:^|(?<=[.!?…] ))(?P<by>[A-Z][\w'’-]*(?: [A-Z][\w'’.-]*){0,2}):[ \t]+(?P<said>\S.*)$"
)
_IN_MARKS = re.compile(
    r"[“„«](?=\S)([^“”„«»\n]{8,2000})[”“»]|(?<!\w)\"(?=\S)([^\"\n]{8,2000})(?<=\S)\"(?!\w)"
)
_QUOTED_FIRST = re.compile(r"[“„«]([^“”„«»\n]+)[”“»]|\"([^\"\n]+)\"")
"""What stands in marks behind an introduction: the rest is the writer's."""
MARKS = r'[>:"“„«`@\[]|---|orwarded'
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
    r"(?i:[^\n:.!?]{0,30}\b(?:message|text|mail|e-?mail|letter|note|post|card) (?:from|by|of)\b"
    r"[^\n:.!?]{1,40})",
    rf"(?i:(?:my|our|his|her|their|the) (?:[\w-]+ )?(?:{_PEOPLE}))",
)
_INTRODUCED = re.compile(
    rf"(?m)(?:^|(?<=[.!?…] ))(?P<by>{'|'.join(_INTRODUCTIONS)}):(?=\s)\s*"
    r"(?P<said>\S.*(?:\n(?!\n).+)*)"
)
_FORMS = (
    *(_MARKED, _PASTED, _COPIED, _RETWEETED, _BLOCK),
    *(_FORWARDED, _IN_MARKS, _LABELLED, _INTRODUCED),
)
"""All forms that words of others have; the last group of each holds these words."""
_SENTENCE = re.compile(r"[^.!?\n]+")
_TELL = re.compile(r"(?i)\b(?:write|tell|make|create|continue|finish|compose|draft)\b")
_TALE = re.compile(rf"(?i)\b(?:{_GENRES})\b")


def find_quotations(
    text: str, *, speaker: str = "", people: Collection[str] = (), language: str = "en"
) -> list[str]:
    """Find the parts of a message that are somebody else's words, each as it stands in the message.

    :param speaker: who wrote the message: a line that begins with their own name is theirs.
    :param people: who else takes part, in lower case: a line that begins with such a name is
        theirs.

    >>> find_quotations("> I live in Narvik.\\nReally? That far north!")
    ['I live in Narvik.']
    >>> find_quotations("Knut wrote this: I live in Hamar.", speaker="Tove")
    ['I live in Hamar.']
    >>> find_quotations("Update: I live in Hamar now.", speaker="Tove")
    []
    >>> find_quotations('Mum says: "I am off to Ballina." So we have the hens.')
    ['I am off to Ballina.']
    """
    spans = list(map(_span_of_last_group, _MARKED.finditer(text)))
    spans += _spans_of_copied_messages(_PASTED, text, speaker)
    spans += _spans_of_copied_messages(_COPIED, text, speaker)
    for header_form in (_RETWEETED, _FORWARDED):
        spans += map(_span_of_last_group, header_form.finditer(text))
    spans += _first_person_spans_in_marks(text)
    for quoted_block in _BLOCK.finditer(text):
        if _FIRST_PERSON.search(quoted_block["said"]):
            spans.append(_span_of_last_group(quoted_block))
    if ":" in text:
        spans += _spans_behind_names(text, speaker, people)
    if ":" in text and language == "en":
        spans += _first_person_spans_behind_colons(text)
    quotations = [
        text[span_start:span_end] for span_start, span_end in _without_spans_inside_others(spans)
    ]
    return list(dict.fromkeys(quotations))


def remove_quotations(text: str, quotations: list[str]) -> str:
    """Give what is left of a text without its quotations.

    An introduction stays, which tells whose they are.

    >>> remove_quotations("> I live in Narvik.\\nReally?", ["I live in Narvik."])
    'Really?'
    """
    kept_parts = list[str]()
    kept_until = 0
    for span_start, span_end in sorted(_spans_of_quotations(text, set(quotations))):
        if span_start >= kept_until:
            kept_parts.append(text[kept_until:span_start])
        kept_until = max(kept_until, span_end)
    own_text = " ".join([*kept_parts, text[kept_until:]])
    own_lines = [line.strip().lstrip(">").strip() for line in own_text.splitlines()]
    return "\n".join(filter(None, own_lines))


def _spans_of_quotations(text: str, quotations: set[str]) -> list[Span]:
    """Find where quotations stand in a text: where they look like some, else everywhere."""
    located_spans = []
    other_quotations = set(quotations)
    for pattern in _FORMS:
        for form_match in pattern.finditer(text):
            span_start, span_end = _span_of_last_group(form_match)
            if text[span_start:span_end] in quotations:
                located_spans.append((span_start, span_end))
                other_quotations.discard(text[span_start:span_end])
    for quotation in other_quotations:
        located_spans += map(re.Match.span, re.finditer(re.escape(quotation), text))
    return located_spans


def _span_of_last_group(quoted_match: re.Match[str]) -> Span:
    """Give where the last group of a match stands, without the white space behind it."""
    group_number = quoted_match.lastindex or 0
    span_start = quoted_match.start(group_number)
    return span_start, span_start + len(quoted_match[group_number].rstrip())


def _spans_of_copied_messages(
    header_pattern: re.Pattern[str], text: str, speaker: str
) -> Iterator[Span]:
    """Find messages copied out of a chat, but for those that the speaker wrote."""
    own_name = speaker.strip().casefold()
    for header in header_pattern.finditer(text):
        heading_text = text[header.start() : _span_of_last_group(header)[0]].casefold()
        if not own_name or own_name not in heading_text:
            yield _span_of_last_group(header)


def _first_person_spans_in_marks(text: str) -> Iterator[Span]:
    """Find sentences between quotation marks in which somebody speaks of themselves."""
    for marked_text in _IN_MARKS.finditer(text):
        span_start, span_end = _span_of_last_group(marked_text)
        sentence = text[span_start:span_end]
        if len(sentence.split()) >= _WORDS_OF_A_QUOTE and _FIRST_PERSON.search(sentence):
            yield span_start, span_end


def _spans_behind_names(text: str, speaker: str, people: Collection[str]) -> Iterator[Span]:
    """Find what stands behind the names of others.

    These are names of who takes part, of a pasted dialogue, or of a tale's people.
    """
    labelled_lines = list(_LABELLED.finditer(text))
    if not labelled_lines:
        return
    own_name = speaker.strip().casefold()
    speaker_labels = {labelled_line["by"].casefold() for labelled_line in labelled_lines}
    is_dialogue = len(speaker_labels) > 1 and len(labelled_lines) == len(text.strip().splitlines())
    tale_start = _start_of_tale_or_end(text)
    for labelled_line in labelled_lines:
        line_label = labelled_line["by"].casefold()
        if line_label != own_name and (
            line_label in people or is_dialogue or labelled_line.start() >= tale_start
        ):
            yield _span_of_introduced_words(text, labelled_line)


def _start_of_tale_or_end(text: str) -> int:
    """Give from where on labels are those of a tale ("Write a story. Hero: …").

    It is the end of a text without one.
    """
    for sentence in _SENTENCE.finditer(text):
        telling_verb = _TELL.search(text, *sentence.span())
        if telling_verb is None:
            continue
        tale_genre = _TALE.search(text, telling_verb.end(), sentence.end())
        if tale_genre is not None:
            return tale_genre.end()
    return len(text)


def _first_person_spans_behind_colons(text: str) -> Iterator[Span]:
    """Find what stands behind the colon of an introduction.

    It begins with a sentence in the first person.
    """
    for introduction in _INTRODUCED.finditer(text):
        first_sentence = _FIRST_SENTENCE.match(introduction["said"])
        is_own = _OWN_WORDS.search(introduction["by"])
        if first_sentence and _FIRST_PERSON.search(first_sentence[0]) and not is_own:
            yield _span_of_introduced_words(text, introduction)


def _span_of_introduced_words(text: str, introduction: re.Match[str]) -> Span:
    """Find where introduced words stand.

    That is all that follows, or what is in quotation marks where more follows them.
    """
    span_start, span_end = _span_of_last_group(introduction)
    marked_text = _QUOTED_FIRST.match(text, span_start, span_end)
    if marked_text is None or not text[marked_text.end() : span_end].strip():
        return span_start, span_end
    return _span_of_last_group(marked_text)


def _without_spans_inside_others(found_spans: Iterable[Span]) -> list[Span]:
    """Give each span once, in order, but for those that lie within another."""
    distinct_spans = list(dict.fromkeys(found_spans))
    outer_spans = set[Span]()
    covered_until = 0
    # Of those with one beginning the longest comes first, so that each is compared with one only.
    for span_start, span_end in sorted(distinct_spans, key=lambda span: (span[0], -span[1])):
        if span_end > covered_until:
            outer_spans.add((span_start, span_end))
            covered_until = span_end
    return list(filter(outer_spans.__contains__, distinct_spans))
