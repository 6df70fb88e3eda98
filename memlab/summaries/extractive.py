"""Extractive summaries, the fallback without a model: sentences of a group, picked by tf-idf and MMR."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from memlab.embed.turn_texts import ROLES
from memlab.summaries.summary_prompts import Item, Supported, deduplicate_texts
from memlab.text.analysis import tokenize
from memlab.text.tokens import sentences

MAX_SENTENCES, MIN_SENTENCES, SENTENCES_PER_PICK = 6, 2, 4
_MAX_TERMS, _MAX_CONTINUED, _SAME_TOPIC_COSINE = 8, 3, 0.3
_VALUE_WEIGHT, _FIRST_PERSON_WEIGHT, _ASIDE_PENALTY, _DIVERSITY_WEIGHT = 1.5, 0.3, 1.0, 0.5
_VALUE = re.compile(r"(?<=[\w,;] )[A-Z]\w+|\d+")
_SPEAKER = re.compile(r"^[^\W\d][^:]{0,40}: ")
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")


def extract_sentences(items: Sequence[Item], *, most: int = MAX_SENTENCES) -> list[Supported]:
    """Pick at most ``most`` sentences that represent all and are dissimilar (maximal marginal relevance).

    A sentence is worth its cosine with the tf-idf centroid, its different words (up to eight), its
    names and numbers, which later questions ask for, and a little for the first person; what an
    assistant says and images are worth less. Of turns, whose sentences are many, at most one in
    four is picked, and at least two.

    Source: Carbonell and Goldstein, "The use of MMR, diversity-based reranking", SIGIR 1998.
    """
    rows = dict[str, tuple[str, str, Item]]()
    for item in items:
        for text in sentences(item.text):
            # "I went" alone does not say who.
            spoken = text if item.speaker in ("", *ROLES) else f"{item.speaker}: {text}"
            rows.setdefault(spoken.casefold(), (spoken, text, item))
    vectors = _tfidf([spoken for spoken, _, _ in rows.values()])
    central = vectors @ np.asarray(vectors.sum(axis=0)).ravel()
    values = np.array([1 - 0.5 ** len(_VALUE.findall(text)) for _, text, _ in rows.values()])
    personal = np.array([bool(_FIRST_PERSON.search(text)) for _, text, _ in rows.values()])
    aside = np.array(
        [
            item.speaker == "assistant" or text.startswith("[image")
            for _, text, item in rows.values()
        ]
    )
    score = central / max(central.max(initial=0), 1e-9) + np.minimum(
        np.diff(vectors.indptr) / _MAX_TERMS, 1
    )
    score += _VALUE_WEIGHT * values + _FIRST_PERSON_WEIGHT * personal - _ASIDE_PENALTY * aside
    if any(item.speaker for item in items):
        most = min(most, max(MIN_SENTENCES, -(-len(rows) // SENTENCES_PER_PICK)))
    nearest, picked = np.zeros(len(rows)), list[int]()
    for _ in range(min(most, len(rows))):
        picked.append(int((score - _DIVERSITY_WEIGHT * nearest).argmax()))
        nearest = np.maximum(nearest, (vectors @ vectors[[picked[-1]]].T).toarray()[:, 0])
        score[picked[-1]] = -np.inf
    supported = [(spoken, item.turns) for spoken, _, item in rows.values()]
    return [supported[i] for i in sorted(picked)]


def find_continued_sentences(
    before: Sequence[Supported], now: Sequence[Supported]
) -> list[Supported]:
    """Find the sentences of a period that are similar to one of the previous period (cosine of tf-idf)."""
    vectors = _tfidf([_SPEAKER.sub("", text) for text, _ in (*before, *now)])
    likeness = (vectors[len(before) :] @ vectors[: len(before)].T).toarray()
    best = likeness.max(axis=1, initial=0)
    picked = [
        int(i)
        for i in np.argsort(-best, kind="stable")[:_MAX_CONTINUED]
        if best[i] >= _SAME_TOPIC_COSINE
    ]
    return [
        (now[i][0], deduplicate_texts([*before[likeness[i].argmax()][1], *now[i][1]]))
        for i in picked
    ]


def _tfidf(texts: Sequence[str]) -> Any:
    """Give the tf-idf vectors of texts as sparse rows of length 1."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = tokenize(texts)
    if not any(words):
        return csr_array((len(texts), 1))
    return csr_array(TfidfVectorizer(analyzer=list, sublinear_tf=True).fit_transform(words))
