"""Noun phrases: runs of adjectives and nouns that end in a noun."""

from __future__ import annotations

from functools import lru_cache

from memlab.language.statements import wordlist
from memlab.language.tokens import Token, tokens
from memlab.language.verbs import forms
from memlab.language.words import CONTRACTIONS, COURTESY, MODALS, NUMBERS, POSSESSIVES, PRONOUNS, STOP_WORDS, TIMES

NOT_ABOUT = STOP_WORDS | COURTESY | NUMBERS | TIMES | wordlist("light") | wordlist("vague")
"""Words that no conversation is about."""

_ADVERBS = wordlist("adverbs")
# After these a word that may be a verb is one: "we show emotions".
_BEFORE_VERBS = (PRONOUNS - POSSESSIVES) | MODALS | CONTRACTIONS | {"to"}


@lru_cache(maxsize=50_000)
def noun_phrases(text: str) -> tuple[tuple[Token, ...], ...]:
    """Find the longest noun phrases of an English text, by TextBlob's lexicon of parts of speech.

    A phrase holds adjectives and nouns with nothing but a space or a hyphen between them, and none of
    :data:`NOT_ABOUT`.

    >>> from memlab.language.nouns import noun_phrases
    >>> [" ".join(word.text for word in phrase) for phrase in noun_phrases("I adopted a guinea pig in Oslo.")]
    ['guinea pig', 'Oslo']
    """
    from textblob.en import parser

    words = tokens(text)
    tags = [tag for _, tag in parser.find_tags([_calm(word.text) for word in words])] if words else []
    runs: list[list[int]] = [[]]
    for i, (word, tag) in enumerate(zip(words, tags, strict=True)):
        apart = bool(runs[-1]) and text[words[i - 1].end : word.start] not in (" ", "-")
        before = next((other.key for other in reversed(words[:i]) if other.key not in _ADVERBS), "")
        verb = before in _BEFORE_VERBS and word.key in forms()
        fits = tag.startswith(("NN", "JJ")) and not verb and telling(word)
        if apart or not fits:
            runs.append([])
        if fits:
            runs[-1].append(i)
    phrases = []
    for run in runs:
        while run and not tags[run[-1]].startswith("NN"):
            run = run[:-1]
        if run:
            phrases.append(tuple(words[i] for i in run))
    return tuple(phrases)


def _calm(word: str) -> str:
    """Write what is shouted ("INTENSE") in lower case, as the lexicon has it."""
    return word.lower() if word.isupper() and len(word) > 1 else word


def telling(word: Token) -> bool:
    """Say whether a conversation could be about a word."""
    bare = word.key.rstrip("stndrh") if word.key[0].isdigit() else word.key  # "12th" is a time
    return len(word.key) > 1 and word.key not in NOT_ABOUT and any(map(str.isalpha, bare))
