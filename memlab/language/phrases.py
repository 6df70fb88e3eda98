"""Key phrases: what a text could be about, in any language that there is a list of stop words for."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from memlab.language.analysis import LANGUAGES, stop_words
from memlab.language.nouns import noun_phrases, telling
from memlab.language.tokens import Token, tokens

MOST_WORDS = 4
_POSSESSIVE = re.compile(r"['’]s$")
_log = logging.getLogger("memlab")


@lru_cache
def content_words(language: str) -> Callable[[Token], bool]:
    """Give what says whether a text in a language could be about a word.

    English leaves out function words, courtesy, times and vague words, other languages the stop words of
    ``stopwordsiso``. Without such a list there are no content words, and a line in the log says so.

    >>> from memlab.language.phrases import content_words
    >>> from memlab.language.tokens import tokens
    >>> [word.text for word in tokens("Ich trinke jetzt jeden Tag Wasser") if content_words("de")(word)]
    ['trinke', 'Wasser']
    """
    if language == "en":
        return telling
    import stopwordsiso

    stop = stopwordsiso.stopwords(language) | stop_words(language)
    if not stopwordsiso.has_lang(language):
        _log.warning("no list of stop words in %s: clusters and topics stay without names", LANGUAGES[language])
        return lambda word: False
    return lambda word: len(word.key) > 1 and word.key not in stop and word.text.isalpha()


def phrases(text: str, *, language: str = "en") -> Iterator[tuple[Token, ...]]:
    """Give the phrases of up to four words in a text, and the phrases within them that end as they do.

    English has noun phrases; another language has runs of content words with nothing but a space or a hyphen between.

    >>> from memlab.language.phrases import phrases
    >>> [" ".join(word.text for word in phrase) for phrase in phrases("I adopted a guinea pig.")]
    ['guinea pig', 'pig']
    """
    if language == "en":
        for phrase in noun_phrases(text):
            yield from (phrase[start:] for start in range(max(len(phrase) - MOST_WORDS, 0), len(phrase)))
        return
    fits, run = content_words(language), list[Token]()
    for word in tokens(text):
        beside = bool(run) and text[run[-1].end : word.start] in (" ", "-")
        run = [*(run[1 - MOST_WORDS :] if beside else []), word] if fits(word) else []
        yield from (tuple(run[start:]) for start in range(len(run)))


def written(text: str, phrase: tuple[Token, ...]) -> str:
    """Give a phrase as it stands in its text, without a possessive ending; nothing for the end of a hyphened word."""
    start = phrase[0].start
    return "" if text[max(start - 1, 0)] == "-" else _POSSESSIVE.sub("", text[start : phrase[-1].end])
