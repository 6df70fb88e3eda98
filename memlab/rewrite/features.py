"""What the context tells of each of its words, in numbers: whether the question lacks it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from memlab.language.leaning import FUNCTION_WORDS, JOINING, PERSONS_OF, leaning, pattern
from memlab.language.questions import form
from memlab.language.tokens import stem
from memlab.language.words import DEMONSTRATIVES
from memlab.rewrite._context import Context, Text, Word
from memlab.rewrite.signals import is_possessive

_YEAR, _ANY_OTHER = pattern("year"), pattern("any_other")
_BEFORE, _BEFORE_NAMES = leaning("before_content"), leaning("before_names")
_OTHER, _MORE = leaning("other"), leaning("more")

Features = dict[str, float]


def features(context: Context) -> dict[str, Features]:
    """Describe every content word of topics and messages that the question lacks; absent features are zero.

    The features of the question are the same for all of its words and are named ``q.``; a model that has both can
    learn that a question with *she* lacks a name, and one with *else* lacks what was just answered.
    """
    question = context.question
    keys = [word.key for word in question.words]
    whole = _signs(question, keys) | _shape(question, keys) | _ties(context, keys)
    about = {f"q.{name}": float(value) for name, value in whole.items()}
    near = question.stems
    described: dict[str, Features] = {}
    for kind, topic in zip(("title", "section"), context.topics, strict=False):
        _topic(described, topic, kind)
    for text in context.messages:
        _message(described, text, near)
    _names(described, context, near)
    lacking = [word for word in described if word not in keys and word not in FUNCTION_WORDS]
    nouns, asked_nouns = _nouns_pointed_at(question), _nouns_asked_for(context.message(2))
    earlier = {word.key for text in context.messages[1::2] for word in text.words}
    return {
        word: about
        | described[word]
        | {
            "count": math.log1p(described[word].get("count", 0.0)),
            "digits": float(word.isdigit()),
            "year": float(bool(_YEAR.fullmatch(word))),
            "length": min(len(word), 12) / 8,
            "plural": float(word.endswith("s")),
            **{ending: float(word.endswith(ending)) for ending in ("ing", "ed", "ly")},
            "other_form": float(root in near),
            "pointed_at": float(root in nouns),
            "asked_for": float(root in asked_nouns),
            "asked_before": float(word in earlier),
        }
        for word, root in zip(lacking, stem(lacking), strict=True)
    }


def _signs(question: Text, keys: list[str]) -> dict[str, float]:
    """Describe what a question points at."""
    pointing = [i for i, key in enumerate(keys) if key in DEMONSTRATIVES]
    persons = _persons(question.words)
    return {
        **{name: name in persons for name in ("he", "she", "they", "it")},
        **{name: name in keys for name in ("else", "there", "then", "same", "article")},
        "pronoun": bool(persons),
        "possessive": any(is_possessive(question.words, word) for word in question.words),
        "this_noun": any(i + 1 < len(keys) and keys[i + 1] not in FUNCTION_WORDS for i in pointing),
        "this": any(i + 1 >= len(keys) or keys[i + 1] in FUNCTION_WORDS for i in pointing),
        "the_noun": bool(re.search(r"\b[Tt]he [a-z]", question.text)),
        "other": bool(_OTHER & set(keys)),
        "more": bool(_MORE & set(keys)),
        "any_other": bool(_ANY_OTHER.search(question.text)),
    }


def _shape(question: Text, keys: list[str]) -> dict[str, float]:
    content = [word for word in question.words if word.content]
    return {
        f"asks_{form(question.text)}": True,
        "length": min(len(keys), 15) / 10,
        "content": min(len(content), 8) / 4,
        "capital": any(word.capital for word in content if word is not question.words[0]),
        "open_end": bool(keys) and keys[-1] in JOINING,
    }


def _ties(context: Context, keys: list[str]) -> dict[str, float]:
    """Describe how a question hangs together with topic and messages."""
    title, question, answer = context.topic(0), context.message(2), context.message(1)
    pronouns, last, answered = (_persons(text.words) for text in (context.question, question, answer))
    before = _persons(word for text in context.messages[1::2] for word in text.words)
    spoken = sum(word.key in title.keys for text in context.messages for word in text.words)
    fresh = sum(not name <= title.keys for name in answer.names)
    return {
        "topic": bool(title.words),
        "title_share": len(title.keys & set(keys)) / max(1, len(title.keys)),
        "title_any": bool(title.keys & set(keys)),
        "title_length": len(title.keys) / 3,
        "title_the": title.text.lower().startswith("the "),
        "title_spoken": min(5, spoken) / 5,
        "title_asked": bool(title.keys & question.keys),
        "title_answered": bool(title.keys & answer.keys),
        "messages": len(context.messages) / 6,
        "answer_length": min(len(answer.words), 40) / 20,
        "no_answer": bool(context.messages) and not answer.words,
        "pronoun_before": bool(pronouns & before),
        "pronoun_new": bool(pronouns - before),
        "pronoun_again": bool(pronouns & last),
        "pronoun_told": bool(pronouns & answered),
        **{f"told_{name}": name in answered for name in ("he", "she", "they")},
        "asked_with_pronoun": bool(last),
        "asked_other": any(word.key in ("else", "other") for word in question.words),
        "on_asked": bool(context.question.stems & question.stems),
        "on_answered": bool(context.question.stems & answer.stems),
        "names_told": min(fresh, 4) / 2,
        "one_name_told": fresh == 1,
    }


def _persons(words: Iterable[Word]) -> set[str]:
    """Give the pronouns of the third person among words, each in its first form."""
    return {PERSONS_OF[word.key] for word in words if word.key in PERSONS_OF}


def _most(values: Features, **features: float) -> None:
    """Keep the greater of each value."""
    for name, value in features.items():
        name = name.replace("_", ".")
        values[name] = max(values.get(name, 0.0), float(value))


def _topic(described: dict[str, Features], topic: Text, kind: str) -> None:
    content = [i for i, word in enumerate(topic.words) if word.content]
    for i in content:
        word = topic.words[i]
        values = described.setdefault(word.key, {})
        values[kind] = 1.0
        values[f"{kind}.length"] = min(len(content), 8) / 4
        bracket = "(" in topic.text[: word.start]
        its = {"first": i == 0, "last": i == content[-1], "capital": word.capital, "bracket": bracket}
        _most(values, **{f"{kind}.{name}": value for name, value in its.items()})


def _message(described: dict[str, Features], message: Text, near: set[str]) -> None:
    """Note where and how words stand in a message."""
    size = len(message.words)
    roots = stem(word.key for word in message.words)
    shared = [i for i, word in enumerate(message.words) if word.content and roots[i] in near]
    asked = message.age % 2 == 0
    side = "questions" if asked else "answers"
    for i, word in enumerate(message.words):
        if not word.content:
            continue
        values = described.setdefault(word.key, {})
        values[f"age{message.age}"] = 1.0
        values["count"] = values.get("count", 0.0) + 1.0
        values[side] = values.get(side, 0.0) + 1 / 3
        inside = word.capital and not message.opens(i)
        _most(values, capital=word.capital, capital_inside=inside, capital_asked=inside and asked)
        _most(values, lower=word.text[0].islower(), quoted=message.quoted(i))
        if message.age == 1:
            values["place"] = i / size
            values["early"], values["late"], values["short"] = float(i < 3), float(i >= size - 2), float(size <= 5)
        if message.age <= 2:
            _neighbours(values, message, i)
        if shared:
            distance = 1 + min(abs(i - j) for j in shared)
            _most(values, near=1 / distance, near_capital=word.capital / distance)


def _neighbours(values: Features, message: Text, i: int) -> None:
    word = message.words[i]
    before = message.words[i - 1] if i else None
    after = message.words[i + 1] if i + 1 < len(message.words) else None
    if before and before.key in _BEFORE:
        values[f"after.{before.key}"] = 1.0
    closes = message.text[word.end : word.end + 1] in ',.;:!?")'
    _most(
        values,
        after_function=before is not None and not before.content,
        before_function=after is None or not after.content or closes,
        after_capital=before is not None and before.capital and word.capital,
        before_capital=after is not None and after.capital and word.capital,
    )


def _names(described: dict[str, Features], context: Context, near: set[str]) -> None:
    """Note of each word the newest name that it is part of."""
    title, newest = context.topic(0).keys, context.message(1)
    counts = Counter(_run(text, run) for text in context.messages for run in text.runs)
    fresh = [run for run in newest.runs if not set(_run(newest, run)) <= title | FUNCTION_WORDS]
    for text in context.messages:
        for rank, (start, end) in enumerate(text.runs):
            keys = _run(text, (start, end))
            before, after = (text.words[i].key if 0 <= i < len(text.words) else "" for i in (start - 1, end))
            noun_before, noun_after = (root in near for root in stem([before, after]))
            shared = {
                "name": 1 / text.age,
                "name.length": min(end - start, 6) / 3,
                "name.opens": float(text.opens(start)),
                "name.quoted": float(text.quoted(start)),
                "name.rank": rank / 3,
                "name.last": float(rank == len(text.runs) - 1),
                "name.count": min(counts[keys], 4) / 2,
                "name.title": float(bool(title & set(keys))),
                "name.only": float(text.age == 1 and fresh == [(start, end)]),
                "name.noun_before": float(noun_before),
                "name.noun_after": float(noun_after),
            }
            if before in _BEFORE_NAMES:
                shared[f"name.after.{before}"] = 1.0
            for i in range(start, end):
                values = described.setdefault(text.words[i].key, {})
                if "name" not in values:
                    values.update(shared)
                    values["name.offset"], values["name.end"] = (i - start) / 3, float(i == end - 1)


def _run(text: Text, run: tuple[int, int]) -> tuple[str, ...]:
    return tuple(word.key for word in text.words[slice(*run)])


def _nouns_pointed_at(question: Text) -> set[str]:
    """Stems of the words after *this*, *that*, *the*, *same* …, with one between at most."""
    keys = [word.key for word in question.words]
    pointing = [i for i, key in enumerate(keys) if key in DEMONSTRATIVES | {"the", "same"}]
    return set(stem(key for i in pointing for key in keys[i + 1 : i + 3] if key not in FUNCTION_WORDS))


def _nouns_asked_for(question: Text) -> set[str]:
    """Stems of the first content words after *what*, *which*, *how many*."""
    nouns: set[str] = set()
    for i, word in enumerate(question.words):
        if word.key in ("what", "which", "whose", "many"):
            after = [w.key for w in question.words[i + 1 :] if w.content or w.key in JOINING]
            nouns.update(key for key in after[:2] if key not in JOINING)
    return set(stem(nouns))
