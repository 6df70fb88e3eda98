"""Key phrases: what a text could be about, in any language that there is a list of stop words for."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache

from memlab.text.analysis import LANGUAGES, stop_words
from memlab.text.lemmas import forms
from memlab.text.tokens import Token, tokens
from memlab.text.words import CONTRACTIONS, MODALS, NUMBERS, POSSESSIVES, PRONOUNS, STOP_WORDS, TIMES, lists

MOST_WORDS = 4
SHORTEST_NICKNAME = 3
_NOT_ABOUT = STOP_WORDS.union(NUMBERS, TIMES, lists()["not_about"].split())
_ADVERBS = frozenset(lists()["adverbs"].split())
# After these a word that may be a verb is one: "we show emotions".
_BEFORE_VERBS = (PRONOUNS - POSSESSIVES) | MODALS | CONTRACTIONS | {"to"}
_log = logging.getLogger("memlab")


@cache
def content_words(language: str) -> Callable[[Token], bool]:
    """Give what says whether a text in a language could be about a word.

    English leaves out function words, courtesy, times and vague words, other languages the stop words of
    ``stopwordsiso``. Without such a list there are no content words, and a line in the log says so.

    >>> from memlab.text.phrases import content_words
    >>> from memlab.text.tokens import tokens
    >>> [word.text for word in tokens("Ich trinke jetzt jeden Tag Wasser") if content_words("de")(word)]
    ['trinke', 'Wasser']
    """
    if language == "en":
        return _english
    import stopwordsiso

    stop = stopwordsiso.stopwords(language) | stop_words(language)
    if not stopwordsiso.has_lang(language):
        _log.warning("no list of stop words in %s: clusters and topics stay without names", LANGUAGES[language])
        return lambda word: False
    return lambda word: len(word.key) > 1 and word.key not in stop and word.text.isalpha()


def _english(word: Token) -> bool:
    bare = word.key.rstrip("stndrh") if word.key[0].isdigit() else word.key  # "12th" is a time
    return len(word.key) > 1 and word.key not in _NOT_ABOUT and any(map(str.isalpha, bare))


def phrases(text: str, *, language: str = "en") -> Iterator[tuple[Token, ...]]:
    """Give the phrases of up to four words in a text, and the phrases within them that end as they do.

    English has noun phrases; another language has runs of content words with nothing but a space or a hyphen between.

    >>> from memlab.text.phrases import phrases
    >>> [" ".join(word.text for word in phrase) for phrase in phrases("I adopted a guinea pig.")]
    ['guinea pig', 'pig']
    """
    if language == "en":
        for phrase in _noun_phrases(text):
            yield from (phrase[start:] for start in range(max(len(phrase) - MOST_WORDS, 0), len(phrase)))
        return
    fits, run = content_words(language), list[Token]()
    for word in tokens(text):
        run = [*(run[1 - MOST_WORDS :] if _adjacent(text, run, word) else []), word] if fits(word) else []
        yield from (tuple(run[start:]) for start in range(len(run)))


def _adjacent(text: str, run: list[Token], word: Token) -> bool:
    return bool(run) and text[run[-1].end : word.start] in (" ", "-")


@lru_cache(maxsize=50_000)
def _noun_phrases(text: str) -> tuple[tuple[Token, ...], ...]:
    """Find the longest runs of adjectives and nouns that end in a noun, by TextBlob's lexicon of parts of speech."""
    from textblob.en import parser

    words = tokens(text)
    # What is shouted ("INTENSE") stands in the lexicon in lower case.
    calm = [word.text.lower() if word.text.isupper() and len(word.text) > 1 else word.text for word in words]
    found: list[tuple[Token, ...]] = []
    run: list[Token] = []
    ends = 0  # how many words of the run there are up to its last noun
    before = ""  # the last word that is no adverb
    for word, (_, tag) in zip(words, parser.find_tags(calm) if words else (), strict=True):
        verb = before in _BEFORE_VERBS and word.key in forms()
        fits = tag.startswith(("NN", "JJ")) and not verb and _english(word)
        if not fits or not _adjacent(text, run, word):
            found.append(tuple(run[:ends]))
            run, ends = [], 0
        if fits:
            run.append(word)
            ends = len(run) if tag.startswith("NN") else ends
        before = before if word.key in _ADVERBS else word.key
    return tuple(filter(None, [*found, tuple(run[:ends])]))


def written(text: str, phrase: tuple[Token, ...]) -> str:
    """Give a phrase as it stands in its text, without a possessive ending; nothing for the end of a hyphened word."""
    start = phrase[0].start
    return "" if text[max(start - 1, 0)] == "-" else re.sub(r"['’]s$", "", text[start : phrase[-1].end])


def called(names: Iterable[str]) -> frozenset[str]:
    """Give what people are called: the words of their names in lower case, and how these begin ("joan" of "Joanna")."""
    words = {word for name in set(names) for word in re.findall(r"[^\W\d_]+", name.lower())}
    return frozenset(words | {word[:n] for word in words for n in range(SHORTEST_NICKNAME, len(word))})
