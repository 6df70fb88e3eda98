"""How the entities of a scope are called, and which of them a text names: whole words, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache

import polars as pl

from memlab.knowledge import _text
from memlab.knowledge.matching import _norm
from memlab.language.statements import wordlist
from memlab.language.words import ARTICLES, STOP_WORDS

Tokens = tuple[str, ...]
# Longer objects are clauses, not names.
_LONGEST = 4
_SPAN = 6
_TITLES = wordlist("titles")
_PERSON = re.compile(r"^(?:[A-Z]\w*\.? )+[A-Z][\w'’-]+$")
_INITIALS = re.compile(r"^(?:[A-Z]\.?){2,6}$")
_WORD = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")
# What a question is asked with says nothing of what it asks for.
_FORM = re.compile(
    r"\bhow (?:long|many|much|often|old|far|likely)(?: (?:times?|ago))?\b|\b(?:what|which) (?:kind|type|sort)s? of\b"
    r"|\bas of\b|\b(?:what|which|at what) time\b",
    re.I,
)
_NOT_INITIALS = {"a", "an", "the", "of", "and", "for", "in"}


@dataclass
class Phrases:
    """The entities and words of one scope by their place: entities first, then words.

    :param names: as they are shown.
    :param own: phrase → entities of that very name.
    :param parts: phrase → entities of whose name it is a part or the initials.
    :param terms: stem → place.
    :param links: for each fact, the places that it is joined to, with the kind of the edge.
    :param aliases: pairs of entities that share a part of a name.
    """

    names: list[str] = field(default_factory=list)
    n_entities: int = 0
    own: dict[Tokens, list[int]] = field(default_factory=dict)
    parts: dict[Tokens, list[int]] = field(default_factory=dict)
    terms: dict[str, int] = field(default_factory=dict)
    links: list[list[tuple[int, str]]] = field(default_factory=list)
    aliases: list[tuple[int, int]] = field(default_factory=list)
    keys: dict[str, int] = field(default_factory=dict)

    def place(self, name: str) -> int | None:
        """Find the entity of a name."""
        return self.keys.get(_norm(name))

    def named(self, words: Tokens) -> list[int]:
        """Find the entities that a phrase stands for: those of the very name before those of whom it is a part."""
        return self.own.get(words) or self.parts.get(words, [])

    def asked(self, question: str) -> list[int]:
        """List the places that a question names, the longest names first, each once."""
        raw = _WORD.findall(_FORM.sub(" ", question))
        words = [_self(word) for word in raw]
        stems = [_stem(word) for word in words]
        free = [True] * len(stems)
        asked: dict[int, None] = {}
        for length in range(min(_SPAN, len(stems)), 0, -1):
            for at in range(len(stems) - length + 1):
                if not all(free[at : at + length]):
                    continue
                places = self.named(tuple(stems[at : at + length])) or self._initialled(raw[at : at + length])
                if places:
                    free[at : at + length] = [False] * length
                    asked |= dict.fromkeys(places)
        asked |= {self.terms[stem]: None for stem, left in zip(stems, free, strict=True) if left and stem in self.terms}
        return list(asked)

    def _initialled(self, raw: list[str]) -> list[int]:
        """Find "NYC" for "New York City"."""
        if len(raw) < 2 or not (raw[0][0].isupper() and raw[-1][0].isupper()):
            return []
        initials = "".join(word[0] for word in raw if word.casefold() not in _NOT_INITIALS)
        places = self.own.get((initials.casefold(),), []) if initials.isupper() else []
        return [place for place in places if _INITIALS.match(self.names[place])]

    def add(self, key: str, name: str) -> int:
        """Note an entity under a name."""
        place = self.keys.setdefault(key, len(self.names))
        if place == len(self.names):
            self.names.append(name)
        words = tokens(name)
        if words and not all(map(_is_stop, words)):
            places = self.own.setdefault(words, [])
            if place not in places:
                places.append(place)
        return place


def collect(facts: pl.DataFrame, entities: pl.DataFrame | None, relations: pl.DataFrame | None) -> Phrases:
    """Note the entities and words of one scope, and what each of its facts is joined to."""
    phrases = Phrases()
    statements: list[tuple[list[tuple[int, str]], str]] = []
    for subject, predicate, obj, speaker, subject_key, object_key in _statements(facts):
        holder, relation = _text.owner(subject, predicate, speaker)
        links = [(phrases.add(subject_key or _norm(holder), holder), "subject")]
        if 0 < len(tokens(obj)) <= _LONGEST and object_key != "":
            links.append((phrases.add(object_key or _norm(obj), obj), "object"))
        if speaker:
            phrases.add(_norm(speaker), speaker)
        statements.append((links, f"{holder} {relation} {obj}"))
    people = set() if entities is None else set(entities.filter(pl.col("type") == "person")["name"])
    for frame, columns in ((entities, ("name",)), (relations, ("subject", "object"))):
        for column in columns if frame is not None else ():
            for name in frame[column].to_list():  # type: ignore[index]
                phrases.add(_norm(name), name)
    phrases.n_entities = len(phrases.names)
    _name_parts(phrases, people | {name for name in phrases.names[: phrases.n_entities] if _PERSON.match(name)})
    for links, text in statements:
        linked = {place for place, _ in links}
        words = tokens(text)
        mentioned = dict.fromkeys(place for span in _spans(words) for place in phrases.named(span))
        links += [(place, "mentions") for place in mentioned if place not in linked]
        links += [(place, "term") for place in _terms(phrases, text)]
        phrases.links.append(list(dict.fromkeys(links)))
    return phrases


def tokens(text: str) -> Tokens:
    """Split a text into stems without articles and possessive endings."""
    return tuple(stem for word in _WORD.findall(text) if (stem := _stem(word)) and word.casefold() not in ARTICLES)


def _statements(facts: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    optional = [n for n in ("speaker", "subject_key", "object_key") if n not in facts.columns]
    filled = facts.with_columns(pl.lit(None, pl.String).alias(name) for name in optional)
    return filled.select("subject", "predicate", "object", "speaker", "subject_key", "object_key").iter_rows()


def _name_parts(phrases: Phrases, people: set[str]) -> None:
    """Let first and last names, and initials, stand for the name; join those who share one."""
    for name in phrases.names[: phrases.n_entities]:
        place = phrases.keys.get(_norm(name))
        raw = _WORD.findall(name)
        if place is None or len(raw) < 2:
            continue
        parts = [(_stem(raw[0]),), (_stem(raw[-1]),)] if name in people else []
        if all(word[0].isupper() for word in raw if word.casefold() not in _NOT_INITIALS):
            parts.append(("".join(w[0] for w in raw if w.casefold() not in _NOT_INITIALS).casefold(),))
        for part in parts:
            if part[0] in _TITLES or len(part[0]) < 2 or _is_stop(part[0]):
                continue
            places = phrases.parts.setdefault(part, [])
            places += [place] if place not in places else []
            phrases.aliases += [(min(o, place), max(o, place)) for o in phrases.own.get(part, []) if o != place]


def _terms(phrases: Phrases, text: str) -> list[int]:
    """Give the places of the content words that are no entity of their own; each is shown as it was first written."""
    places: dict[int, None] = {}
    for word in _WORD.findall(text):
        stem = _stem(word)
        if not stem or _is_stop(stem) or (stem,) in phrases.own:
            continue
        place = phrases.terms.setdefault(stem, len(phrases.names))
        if place == len(phrases.names):
            phrases.names.append(word.casefold())
        places[place] = None
    return list(places)


def _spans(words: Tokens) -> Iterator[Tokens]:
    for length in range(1, _SPAN + 1):
        yield from (words[at : at + length] for at in range(len(words) - length + 1))


def _self(word: str) -> str:
    return _text.USER if word.casefold() in _text.SELF else word


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    plain = re.sub(r"['’]s?$", "", word.casefold()).replace("’", "'").replace(".", "")
    return _text.stems([plain])[0] if plain else ""


def _is_stop(stem: str) -> bool:
    return stem in _stop_stems()


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(map(_stem, {*STOP_WORDS, "s", "t", "don"}))


def statement() -> pl.Expr:
    """Write a fact as one sentence."""
    # "is described by" only says that the object is a whole sentence.
    whole = pl.col("predicate") == "is described by"
    return pl.when(whole).then("object").otherwise(pl.concat_str("subject", "predicate", "object", separator=" "))


def holds(text: str, name: Tokens) -> bool:
    """Say whether a name stands in a text, word for word."""
    words = tokens(text)
    return any(words[at : at + len(name)] == name for at in range(len(words) - len(name) + 1))
