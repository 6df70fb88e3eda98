"""Extractive summaries, the fallback without a model: sentences of a group, picked by tf-idf and
MMR.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memlab.embed.turn_texts import ROLES
from memlab.summaries.summary_prompts import SentenceWithTurns, SourceItem, deduplicate_texts
from memlab.text.text_analyser import tokenize
from memlab.text.tokens_and_sentences import sentences

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_SENTENCES = 6
MIN_SENTENCES = 2
SENTENCES_PER_PICK = 4
_MAX_TERMS = 8
_MAX_CONTINUED = 3
_SAME_TOPIC_COSINE = 0.3
_VALUE_WEIGHT = 1.5
_FIRST_PERSON_WEIGHT = 0.3
_ASIDE_PENALTY = 1.0
_DIVERSITY_WEIGHT = 0.5
_VALUE = re.compile(r"(?<=[\w,;] )[A-Z]\w+|\d+")
_SPEAKER = re.compile(r"^[^\W\d][^:]{0,40}: ")
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")


def extract_sentences(
    items: Sequence[SourceItem], *, max_sentences: int = MAX_SENTENCES
) -> list[SentenceWithTurns]:
    """Pick at most ``max_sentences`` sentences that represent all and are dissimilar (maximal
    marginal relevance).

    A sentence is worth its cosine with the tf-idf centroid, its different words (up to eight), its
    names and numbers, which later questions ask for, and a little for the first person; what an
    assistant says and images are worth less. Of turns, whose sentences are many, at most one in
    four is picked, and at least two.

    Source: Carbonell and Goldstein, "The use of MMR, diversity-based reranking", SIGIR 1998.
    """
    candidates = _distinct_sentences(items)
    vectors = _tfidf_vectors([candidate.spoken for candidate in candidates])
    scores = _score_sentences(candidates, vectors)
    if any(item.speaker for item in items):
        quarter = math.ceil(len(candidates) / SENTENCES_PER_PICK)
        max_sentences = min(max_sentences, max(MIN_SENTENCES, quarter))
    picked: list[int] = []
    nearest = np.zeros(len(candidates))
    for _ in range(min(max_sentences, len(candidates))):
        best = int((scores - _DIVERSITY_WEIGHT * nearest).argmax())
        picked.append(best)
        similarity = (vectors @ vectors[[best]].T).toarray()[:, 0]
        nearest = np.maximum(nearest, similarity)
        scores[best] = -np.inf
    return [(candidates[place].spoken, candidates[place].item.turns) for place in sorted(picked)]


class _Sentence(NamedTuple):
    """A sentence as it may stand in a summary, as it was written, and where it is from."""

    spoken: str
    text: str
    item: SourceItem


def _distinct_sentences(source_items: Sequence[SourceItem]) -> list[_Sentence]:
    """Split items into sentences, the same but for capitals once."""
    distinct: dict[str, _Sentence] = {}
    for item in source_items:
        for sentence_text in sentences(item.text):
            spoken = sentence_text
            # "I went" alone does not say who.
            if item.speaker not in ("", *ROLES):
                spoken = f"{item.speaker}: {sentence_text}"
            distinct.setdefault(spoken.casefold(), _Sentence(spoken, sentence_text, item))
    return list(distinct.values())


def _score_sentences(candidates: Sequence[_Sentence], tfidf_vectors: csr_array) -> np.ndarray:
    """Score what each sentence is worth alone, see :func:`extract_sentences`: (n,)."""
    central = tfidf_vectors @ np.asarray(tfidf_vectors.sum(axis=0)).ravel()
    centrality = central / max(central.max(initial=0), 1e-9)
    n_terms = np.diff(tfidf_vectors.indptr)
    n_values = np.array(
        [len(_VALUE.findall(candidate.text)) for candidate in candidates], dtype=np.int64
    )
    is_personal = np.array([_is_in_first_person(candidate) for candidate in candidates], dtype=bool)
    is_aside = np.array([_is_assistant_or_image(candidate) for candidate in candidates], dtype=bool)

    scores = centrality + np.minimum(n_terms / _MAX_TERMS, 1)
    value_score = _VALUE_WEIGHT * (1 - 0.5**n_values)
    scores += value_score + _FIRST_PERSON_WEIGHT * is_personal - _ASIDE_PENALTY * is_aside
    return scores


def _is_in_first_person(sentence: _Sentence) -> bool:
    return _FIRST_PERSON.search(sentence.text) is not None


def _is_assistant_or_image(sentence: _Sentence) -> bool:
    return sentence.item.speaker == "assistant" or sentence.text.startswith("[image")


def find_continued_sentences(
    earlier_sentences: Sequence[SentenceWithTurns], sentences_now: Sequence[SentenceWithTurns]
) -> list[SentenceWithTurns]:
    """Find the sentences of a period that are similar to one of the previous period (cosine of
    tf-idf).
    """
    vectors = _tfidf_vectors(
        [
            _SPEAKER.sub("", sentence_text)
            for sentence_text, _ in (*earlier_sentences, *sentences_now)
        ]
    )
    similarity = (vectors[len(earlier_sentences) :] @ vectors[: len(earlier_sentences)].T).toarray()
    highest = similarity.max(axis=1, initial=0)
    continued = []
    for place in np.argsort(-highest, kind="stable")[:_MAX_CONTINUED].tolist():
        if highest[place] < _SAME_TOPIC_COSINE:
            break
        sentence_text, turns = sentences_now[place]
        _, earlier_turns = earlier_sentences[similarity[place].argmax()]
        continued.append((sentence_text, deduplicate_texts([*earlier_turns, *turns])))
    return continued


def _tfidf_vectors(sentence_texts: Sequence[str]) -> csr_array:
    """Weigh the words of texts by tf-idf: sparse rows of length 1."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    words_of_sentences = tokenize(sentence_texts)
    if not any(words_of_sentences):
        return csr_array((len(sentence_texts), 1))
    return csr_array(
        TfidfVectorizer(analyzer=list, sublinear_tf=True).fit_transform(words_of_sentences)
    )
