"""What clusters, sessions and weeks are about, in a few of their own phrases."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import log, sqrt

import numpy as np
import polars as pl
from tqdm import tqdm

from memlab.cluster.clusterers import NOISE
from memlab.errors import DataError
from memlab.text.phrases import called, content_words, phrases, written
from memlab.text.tokens import Token, stem, tokens

# Weights of a word that every cluster has, of each further word of a phrase, and of a word that several speakers use:
# chosen on three conversations of LoCoMo.
_COMMON, _PER_WORD, _SHARED = 0.2, 0.5, 3.0
_MOST_CHARS = 60


def cluster_terms(
    texts: Sequence[str],
    labels: np.ndarray,
    *,
    n_terms: int = 3,
    speakers: Sequence[str] | None = None,
    language: str = "en",
) -> pl.DataFrame:
    """Name each cluster by the phrases that set it apart: class-based TF-IDF.

    A cluster's texts count as one document; a word weighs how often the cluster has it, by how few other clusters do,
    three times as much where several speakers use it. A phrase (:mod:`memlab.text.phrases`) weighs the mean of its
    words, more with each further word and with the root of how often it occurs; in other languages than English, one of
    several words counts only where it occurs twice. Of phrases that share a word the best stays.

    :param labels: (n,) integers, ``NOISE`` = −1 for noise, which gets no name.
    :param n_terms: how many terms to give; fewer where a cluster has fewer.
    :param speakers: of each text; their names are no terms.
    :param language: of the texts, ISO 639-1.
    :returns: ``label``, ``size``, ``terms`` (the best first), one row a cluster in order of label.
    :raises DataError: when the lengths differ.

    Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", 2022, section 3.3.

    >>> import numpy as np
    >>> from memlab.cluster import cluster_terms
    >>> texts = ["The cat sat.", "A cat and a dog.", "Old steam trains run late.", "I take steam trains!", "noise"]
    >>> cluster_terms(texts, np.array([0, 0, 1, 1, -1]), n_terms=1)["terms"].to_list()
    [['cat'], ['steam trains']]
    """
    numbers, who = np.asarray(labels).tolist(), list(speakers if speakers is not None else [""] * len(texts))
    if not len(texts) == len(numbers) == len(who):
        raise DataError(f"{len(texts)} texts but {len(numbers)} labels and {len(who)} speakers; give one for each text")
    about, names = content_words(language), called(speakers or ())
    split = [tokens(text) for text in texts]
    keys = list({word.key for words in split for word in words})
    stems = dict(zip(keys, stem(keys, language), strict=True))
    lower = {word.text for words in split for word in words if word.text.islower()}

    def fits(word: Token) -> bool:
        return about(word) and not (word.text[0].isupper() and word.key in names)

    sizes = Counter(number for number in numbers if number != NOISE)
    clusters = {number: _Cluster() for number in sorted(sizes)}
    rows = zip(numbers, who, texts, split, strict=True)
    for number, speaker, text, words in tqdm(rows, "naming", len(texts), unit=" texts", delay=2, leave=False):
        if number == NOISE:
            continue
        for word in filter(fits, words):
            clusters[number].words[stems[word.key]] += 1
            clusters[number].speakers[stems[word.key]].add(speaker)
        for phrase in phrases(text, language=language):
            form = written(text, phrase)
            if not phrase[0].start and phrase[0].text.lower() in lower:  # a capital that begins a text is no name
                form = form[:1].lower() + form[1:]
            if 0 < len(form) <= _MOST_CHARS and all(map(fits, phrase)):
                clusters[number].forms[tuple(stems[word.key] for word in phrase)][form] += 1
    frequency = Counter(word for cluster in clusters.values() for word in cluster.words)
    rarity = {word: log((len(clusters) + 1) / (df + 0.5)) + _COMMON for word, df in frequency.items()}
    least = 1 if language == "en" else 2
    named = [(number, sizes[number], cluster.terms(rarity, n_terms, least)) for number, cluster in clusters.items()]
    return pl.DataFrame(named, {"label": pl.Int64, "size": pl.UInt32, "terms": pl.List(pl.String)}, orient="row")


class _Cluster:
    """The stems of one cluster's words and who uses them, and its phrases in the forms in which they are written."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.speakers: defaultdict[str, set[str]] = defaultdict(set)
        self.forms: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)

    def terms(self, rarity: Mapping[str, float], n_terms: int, least: int) -> list[str]:
        """Give the best phrases that share no word; one word alone is written with what mostly stands before it."""

        def weight(phrase: tuple[str, ...]) -> float:
            shared = [_SHARED if len(self.speakers[word]) > 1 else 1.0 for word in phrase]
            of_words = [(self.words[w] - 0.5) * rarity[w] * s for w, s in zip(phrase, shared, strict=True)]
            repeated = sqrt(count[phrase]) if len(phrase) > 1 else 1.0
            return sum(of_words) / len(phrase) * (1 + _PER_WORD * (len(phrase) - 1)) * repeated

        count = {phrase: forms.total() for phrase, forms in self.forms.items() if len(set(phrase)) == len(phrase)}
        known = [phrase for phrase, n in count.items() if len(phrase) == 1 or n >= least]
        ranked = sorted(known, key=lambda phrase: (-round(weight(phrase), 9), phrase))
        chosen, taken = list[str](), set[str]()
        for phrase in ranked:
            if len(chosen) < n_terms and taken.isdisjoint(phrase):
                longer = [p for p in ranked if len(p) > 1 and p[-1:] == phrase and taken.isdisjoint(p)]
                best = max(longer, key=lambda p: count[p], default=phrase)
                chosen.append(self.forms[best].most_common(1)[0][0])
                taken |= set(best)
        return chosen
