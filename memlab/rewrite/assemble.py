"""A question and what it leaves out, put together again."""

from __future__ import annotations

from memlab.language.leaning import FUNCTION_WORDS, leaning
from memlab.language.words import HE, SHE
from memlab.rewrite._context import Context
from memlab.rewrite._phrases import Phrase
from memlab.rewrite._words import possessive
from memlab.rewrite.signals import demonstratives, is_possessive, open_pronouns

_WITH_PREPOSITION = leaning("appended")
_PERSON = HE | SHE


def assemble(context: Context, found: list[Phrase], signals: list[str]) -> str:
    """Put phrases into a question: in the place of pronouns, with the rest of a name, or after its end.

    The first pronoun gives way to the name that is most likely meant. A part of the topic's name becomes the whole.
    What is left is appended: after *besides* for a question that asks for something else, with the preposition it had
    where it had one, and in brackets otherwise, as are the things to choose from.
    """
    left = list(found)
    changes = [*_complete_name(context, left), *_replace_pronouns(context, left), *_replace_that(context, left)]
    text = context.question.text
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return _append(text, left, signals)


Change = tuple[int, int, str]


def _complete_name(context: Context, left: list[Phrase]) -> list[Change]:
    """Write the whole title where the question has a part of it."""
    part = next((phrase for phrase in left if phrase.title), None)
    title, question = context.topic(0), context.question
    if part is None:
        return []
    wanted = set(part.keys) | title.keys & question.keys
    span = [i for i, word in enumerate(title.words) if word.key in wanted]
    have = [word for word in question.words if word.key in title.keys and word.content]
    if not have or span != list(range(span[0], span[-1] + 1)) or have[-1].end - have[0].start > 60:
        return []
    inside = [word for word in question.words if have[0].start <= word.start < have[-1].end]
    if not {word.key for word in inside} <= {word.key for word in title.words}:
        return []
    left.remove(part)
    ending = have[-1].text[len(have[-1].key) :] if have[-1].text.endswith(("'s", "’s")) else ""
    whole = title.text[title.words[span[0]].start : title.words[span[-1]].end]
    return [(have[0].start, have[-1].end, whole + ending)]


def _replace_pronouns(context: Context, left: list[Phrase]) -> list[Change]:
    """Replace the first pronoun of each kind by the name that is most likely meant."""
    changes, seen = [], set()
    people = any(word.key in _PERSON for text in [context.question, *context.messages] for word in text.words)
    for word in open_pronouns(context):
        kind = "person" if word.key in _PERSON else "thing"
        if kind in seen:
            continue
        seen.add(kind)
        fitting = [phrase for phrase in left if phrase.name and not phrase.keys[0].isdigit()]
        if not fitting:
            continue
        # Where people are spoken of, a title is a person's name more often than a thing's.
        best = max(fitting, key=lambda p: p.weight - (0.5 if kind == "thing" and people and p.title else 0.0))
        left.remove(best)
        new = possessive(best.text) if is_possessive(context.question.words, word) else best.text
        ending = word.text[len(word.key) :]
        changes.append((word.start, word.end, new + ending))
    return changes


def _replace_that(context: Context, left: list[Phrase]) -> list[Change]:
    """Replace *that* where it stands alone by what the last answer named."""
    found = context.question.words
    for word in demonstratives(found):
        place = found.index(word)
        alone = place + 1 >= len(found) or found[place + 1].key in FUNCTION_WORDS
        spoken = [phrase for phrase in left if phrase.age == 1 and not phrase.title]
        if alone and spoken:
            best = max(spoken, key=lambda p: p.weight)
            left.remove(best)
            return [(word.start, word.end, best.text)]
    return []


def _append(text: str, left: list[Phrase], signals: list[str]) -> str:
    """Put what is left behind the question."""
    if not left:
        return text
    body = text.rstrip()
    stem = body.rstrip("?!. ")
    mark = body[len(stem) :].strip() or "?"
    choice = "choice" in signals
    told = [p for p in left if p.age > 0 and "other" in signals and not choice]
    placed = [p for p in left if p not in told and p.before in _WITH_PREPOSITION and not choice]
    named = [p.text for p in left if p not in told and p not in placed]
    parts = [stem, *(f"{p.before} {p.text}" for p in placed)]
    if named:
        parts.append(f"({', '.join(named)})")
    if told:
        parts.append(f"besides {', '.join(p.text for p in told)}")
    return " ".join(parts) + mark
