"""What clusters, sessions and weeks are about, in a few of their own noun phrases."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
from tqdm import tqdm

from memlab.cluster.density import NOISE
from memlab.errors import DataError
from memlab.language.names import called
from memlab.language.nouns import noun_phrases, telling
from memlab.language.tokens import Token, stem, stems, tokens

# What a word that every group has is worth, each further word of a phrase, and a word that several speakers say.
# Chosen on three conversations of LoCoMo; see the changelog.
_COMMON, _PER_WORD, _TOGETHER = 0.2, 0.5, 3.0
_MOST_WORDS, _MOST_CHARS = 4, 60
_SMALL = re.compile(r"\b[a-z]+\b")
_POSSESSIVE = re.compile(r"['’]s$")


def cluster_terms(
    texts: Sequence[str], labels: np.ndarray, *, n_terms: int = 3, speakers: Sequence[str] | None = None
) -> pl.DataFrame:
    """Name each cluster by the noun phrases that set it apart: class-based TF-IDF.

    A cluster's texts count as one document; a word is worth how often the cluster says it, by how few other clusters
    do, three times as much where several speakers say it. A phrase of up to four words is worth the mean of its words,
    more with each further word and with the root of how often it is said; one noun alone is written with what stands
    before it most often ("clothing store"). Of phrases that share a word the best stays. Courtesy, time and words that
    no conversation is about are left out, and so is noise.

    :param texts: n texts.
    :param labels: (n,) integers, ``NOISE`` = −1 for noise.
    :param n_terms: how many terms to give; fewer where a cluster has fewer.
    :param speakers: who says each text; their names are no terms.
    :returns: ``label``, ``size``, ``terms`` (the best first), one row a cluster in order of label.
    :raises DataError: when the lengths differ.

    Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", 2022, section 3.3.

    >>> import numpy as np
    >>> from memlab.cluster import cluster_terms
    >>> texts = ["The cat sat.", "A cat and a dog.", "Old steam trains run late.", "I take steam trains!", "noise"]
    >>> cluster_terms(texts, np.array([0, 0, 1, 1, -1]), n_terms=1)["terms"].to_list()
    [['cat'], ['steam trains']]
    """
    labels = np.asarray(labels)
    if len(texts) != len(labels) or (speakers is not None and len(speakers) != len(texts)):
        counts = f"{len(texts)} texts but {len(labels)} labels" + (f" and {len(speakers)} speakers" if speakers else "")
        raise DataError(f"{counts}; expected one label (and speaker) for each text")
    rows = pl.DataFrame(
        {"label": labels.tolist(), "text": list(texts), "speaker": list(speakers or [""] * len(texts))},
        schema={"label": pl.Int64, "text": pl.String, "speaker": pl.String},
    ).filter(pl.col("label") != NOISE)
    sizes = rows.group_by("label").agg(size=pl.len()).sort("label")
    said, phrases = _words_and_phrases(rows, called(speakers or ()))
    valued = _valued(said, phrases)
    best = {label: _distinct(group, n_terms) for (label,), group in valued.group_by("label", maintain_order=True)}
    terms = pl.Series([best.get(label, []) for label in sizes["label"]], dtype=pl.List(pl.String))
    return sizes.select("label", pl.col("size").cast(pl.UInt32), terms=terms)


def _words_and_phrases(rows: pl.DataFrame, speakers: frozenset[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """List the telling words (``label``, ``speaker``, ``stem``) and the phrases (``label``, ``key``, ``written``)."""

    def fits(word: Token) -> bool:
        return telling(word) and not (word.text[0].isupper() and word.key in speakers)

    said, phrases = list[tuple[int, str, str]](), list[tuple[int, str, str]]()
    small = {word for text in rows["text"] for word in _SMALL.findall(text)}
    for label, text, speaker in tqdm(rows.iter_rows(), "naming", len(rows), unit=" texts", delay=2, leave=False):
        said += [(label, speaker, word.key) for word in tokens(text) if fits(word)]
        for phrase in noun_phrases(text):
            for start in range(max(len(phrase) - _MOST_WORDS, 0), len(phrase)):
                part, written = phrase[start:], _POSSESSIVE.sub("", text[phrase[start].start : phrase[-1].end])
                whole = text[max(phrase[start].start - 1, 0)] != "-"
                if not phrase[start].start and phrase[start].key in small:  # a capital that begins a text names nobody
                    written = written[0].lower() + written[1:]
                if whole and len(written) <= _MOST_CHARS and all(map(fits, part)):
                    phrases.append((label, " ".join(stem([word.key for word in part])), written))
    words = pl.DataFrame(said, {"label": pl.Int64, "speaker": pl.String, "stem": pl.String}, orient="row")
    found = pl.DataFrame(phrases, {"label": pl.Int64, "key": pl.String, "written": pl.String}, orient="row")
    return words.with_columns(stem=stems(words["stem"])), found


def _valued(said: pl.DataFrame, phrases: pl.DataFrame) -> pl.DataFrame:
    """Give each phrase of a label its ``value``, best first: ``label``, ``words``, ``n`` (times said), ``written``."""
    together = pl.when(pl.col("voices") > 1).then(_TOGETHER).otherwise(1.0)
    rare = ((pl.lit(said["label"].n_unique()) + 1) / (pl.col("df") + 0.5)).log() + _COMMON
    worth = (
        said.group_by("label", "stem")
        .agg(tf=pl.len(), voices=pl.col("speaker").n_unique())
        .with_columns(df=pl.len().over("stem"))
        .select("label", "stem", worth=(pl.col("tf") - 0.5) * rare * together)
    )
    forms = (
        phrases.group_by("label", "key", "written", maintain_order=True)
        .len("n")
        .sort("n", descending=True, maintain_order=True)
    )
    whole = forms.group_by("label", "key").agg(pl.col("written").first(), pl.col("n").sum())
    whole = whole.with_columns(words=pl.col("key").str.split(" ")).filter(
        ~pl.col("words").list.eval(pl.element().is_duplicated()).list.any()
    )
    value = pl.col("worth").mean() * (1 + _PER_WORD * (pl.len() - 1))
    repeated = pl.when(pl.col("words").list.len() > 1).then(pl.col("n").sqrt()).otherwise(1)
    valued = (
        whole.explode("words").rename({"words": "stem"}).join(worth, on=["label", "stem"])
        .group_by("label", "key").agg(value=value)
        .join(whole, on=["label", "key"])
        .with_columns(value=pl.col("value") * repeated)
    )  # fmt: skip
    return valued.sort("label", -pl.col("value").round(9), "key")


def _distinct(ranked: pl.DataFrame, n_terms: int) -> list[str]:
    """Keep the first of the phrases that share a word, one noun with what mostly stands before it."""
    rows = [(tuple(words), n, written) for words, n, written in ranked.select("words", "n", "written").iter_rows()]
    chosen, taken = list[str](), set[str]()
    for words, _, written in rows:
        if len(chosen) == n_terms:
            break
        if taken.isdisjoint(words):
            longer = [row for row in rows if row[0][-1:] == words and len(row[0]) > 1 and taken.isdisjoint(row[0])]
            words, _, written = max(longer, key=lambda row: row[1], default=(words, 0, written))
            chosen.append(written)
            taken |= set(words)
    return chosen
