"""Which English words there are."""

from __future__ import annotations

from functools import cache


@cache
def lexicon() -> dict[str, str]:
    """Give the words that TextBlob's tagger knows, each with its tag (Penn Treebank).

    >>> from memlab.language.lexicon import lexicon
    >>> lexicon()["happy"], "bergen" in lexicon()
    ('JJ', False)
    """
    from textblob.en import parser

    return dict(parser.lexicon)
