"""How close rewritten questions come to what people wrote: words added rightly, and overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.rewrite._context import words


def content_words(text: str) -> list[str]:
    """Give the words of a text that carry meaning, in lower case, without accents and possessive endings.

    >>> from memlab.rewrite import content_words
    >>> content_words("What was Zoë's best season, and why?")
    ['zoe', 'best', 'season']
    """
    return [word.key for word in words(text) if word.content]


def score(questions: Sequence[str], rewritten: Sequence[str], references: Sequence[str]) -> pl.DataFrame:
    """Measure rewritten questions against references written by people.

    A question *needs* a rewrite when its reference has a content word that it lacks. Over these: ``recall`` is the
    share of the lacking words that were added, ``precision`` the share of the added words that were lacking, each a
    mean over questions; precision is over questions to which something was added. ``recall_micro`` and
    ``precision_micro`` count words over all of them. ``rouge1_f`` is the overlap of all words with the reference.
    A question is *self-contained* when its reference is the question itself, but for case and punctuation:
    ``damaged`` is the share of these whose content words changed.

    :param questions: n texts as they were asked.
    :param rewritten: n texts as they were rewritten.
    :param references: n texts as people rewrote them.
    :returns: a row of ``n``, ``needed``, ``recall``, ``precision``, ``recall_micro``, ``precision_micro``,
        ``rouge1_f``, ``added`` (share of needed that got a word), ``self_contained``, ``damaged``; NaN where nothing
        counts.
    :raises DataError: when the three differ in length.

    Source: recall and precision of terms are those of query resolution (Voskarides et al., SIGIR 2020); ROUGE-1 is
    Lin's (2004).

    >>> from memlab.rewrite import score
    >>> score(["Was he tall?"], ["Was Ben Hecht tall?"], ["Was Hecht tall?"]).select("recall", "precision").row(0)
    (1.0, 0.5)
    """
    if not len(questions) == len(rewritten) == len(references):
        counts = f"{len(questions)} questions, {len(rewritten)} rewritten, {len(references)} references"
        raise DataError(f"score was given {counts}; give one of each for every item")
    needed, damaged = [], []
    for question, new, reference in zip(questions, rewritten, references, strict=True):
        had, has, wanted = (set(content_words(text)) for text in (question, new, reference))
        if wanted - had:
            needed.append((len((has - had) & wanted), len(has - had), len(wanted - had), rouge1(new, reference)))
        elif _plain(question) == _plain(reference):
            damaged.append(had != has)
    right, added, lacking, overlap = np.array(needed, float).reshape(-1, 4).T
    some = added > 0
    return pl.DataFrame(
        {
            "n": [len(questions)],
            "needed": [len(needed)],
            "recall": [_mean(right / lacking)],
            "precision": [_mean(right[some] / added[some])],
            "recall_micro": [_ratio(right, lacking)],
            "precision_micro": [_ratio(right, added)],
            "rouge1_f": [_mean(overlap)],
            "added": [_mean(some)],
            "self_contained": [len(damaged)],
            "damaged": [_mean(np.array(damaged))],
        }
    )


def rouge1(text: str, reference: str) -> float:
    """Give the F score of the words that two texts share, each as often as in both."""
    one, two = Counter(_plain(text)), Counter(_plain(reference))
    shared = (one & two).total()
    return 2 * shared / (one.total() + two.total()) if shared else 0.0


def _plain(text: str) -> list[str]:
    # The parts of "Hecht's" are two words, as in Lin's own count.
    return [part for word in words(text) for part in word.text.lower().replace("’", "'").split("'")]


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _ratio(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / whole.sum()) if whole.sum() else float("nan")
