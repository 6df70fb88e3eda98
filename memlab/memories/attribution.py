"""From texts that a memory returned back to the turns that they come from."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl

from memlab.embed import Encoder
from memlab.embed.turn_texts import turn_texts
from memlab.memories.collecting import ReturnedTexts
from memlab.records import Dataset, Run, run_from_scores
from memlab.text.analysis import tokenize
from memlab.text.tokens import sentences

LEAST_SIMILARITY = 0.5
"""Least similarity of a sentence and its source; chosen on the observations of LoCoMo, see
``docs/memories.md``."""
NEAR_COPY = 0.9
_FEWEST_WORDS = 4
_SCHEMA: dict[str, Any] = {
    "scope": pl.String(),
    "text": pl.String(),
    "how": pl.Enum(["given", "span", "copy", "matched", "none"]),
    "turn_ids": pl.List(pl.String()),
}


def attribute(returned: ReturnedTexts, data: Dataset, encoder: Encoder | None) -> pl.DataFrame:
    """Find the turns behind each returned text.

    ``given``: the memory named them. ``span``: the text stands in a turn word for word, or turns in
    it; of turns that all say just that, the first. Otherwise the source of each sentence is the
    turn with the highest mean of cosine and share of its words, weighted by rarity, that the turn
    holds, where that is :data:`LEAST_SIMILARITY` or more: ``copy`` where the turns hold
    :data:`NEAR_COPY` of every sentence's words, else ``matched``. ``none``: no turn is similar
    enough, and the text counts as no evidence.

    :param encoder: gives the cosines; with ``None`` sentences are matched by words alone.
    :returns: ``query_id``, ``rank``, ``how`` and ``turn_ids``, in the order of the rows.
    """
    scopes = data.questions.select("query_id", "scope")
    rows = returned.rows.join(scopes, on="query_id", how="left", maintain_order="left")
    unnamed = rows.filter(pl.col("source_ids").is_null()).select("scope", "text")
    texts = unnamed.unique(maintain_order=True)
    by_scope = texts.partition_by("scope", maintain_order=True)
    parts = [_attribute_scope(part, data, encoder) for part in by_scope]
    found = pl.concat([pl.DataFrame(schema=_SCHEMA), *parts])
    named = pl.col("source_ids").is_not_null()
    any_named = pl.col("source_ids").list.len() > 0
    given = pl.when(any_named).then(pl.lit("given")).otherwise(pl.lit("none")).cast(_SCHEMA["how"])
    return rows.join(found, on=["scope", "text"], how="left", maintain_order="left").select(
        "query_id",
        "rank",
        how=pl.when(named).then(given).otherwise("how"),
        turn_ids=pl.when(named).then("source_ids").otherwise("turn_ids"),
    )


def _attribute_scope(texts: pl.DataFrame, data: Dataset, encoder: Encoder | None) -> pl.DataFrame:
    """Attribute the texts of one scope."""
    turns = data.turns.filter(pl.col("scope") == texts["scope"][0])
    ids = turns["turn_id"].to_list()
    spoken = [_space_separated_words(text) for text in turns["text"]]
    hows = list[str]()
    found = list[list[str]]()
    unmatched = list[tuple[int, str]]()
    for row, text in enumerate(texts["text"]):
        spans = _turns_of_span(_space_separated_words(text), ids, spoken)
        found.append(spans)
        hows.append("span" if spans else "none")
        if not spans:
            unmatched += [(row, sentence) for sentence in sentences(text)]
    if unmatched:
        stated = [sentence for _, sentence in unmatched]
        share, score = _similarities(stated, turns, data.language, encoder)
        for at, (row, _) in enumerate(unmatched):
            turn = score[at].argmax()
            if score[at, turn] < LEAST_SIMILARITY:
                continue
            is_copy = share[at, turn] >= NEAR_COPY and hows[row] != "matched"
            hows[row] = "copy" if is_copy else "matched"
            found[row] = list(dict.fromkeys([*found[row], ids[turn]]))
    how = pl.Series("how", hows, _SCHEMA["how"])
    return texts.with_columns(how, pl.Series("turn_ids", found, _SCHEMA["turn_ids"]))


def _turns_of_span(plain: str, ids: list[str], spoken: list[str]) -> list[str]:
    """Give the turns that a text stands in word for word, or that stand in it."""
    spans = dict[str, str]()
    for turn, other in zip(ids, spoken, strict=True):
        if _contains_verbatim(plain, other):
            spans[turn] = other
    if set(spans.values()) == {plain}:  # all say just that
        return [next(iter(spans))]
    return [*spans]


def _similarities(
    stated: list[str], turns: pl.DataFrame, language: str, encoder: Encoder | None
) -> tuple[np.ndarray, np.ndarray]:
    """Give the share of words and the score of each sentence and turn: (sentences, turns) both."""
    share = weighted_word_overlap(stated, turns["text"].to_list(), language)
    if encoder is None:
        return share, share
    embedded = encoder.encode(turn_texts(turns), progress=False)
    cosines = encoder.encode(stated, progress=False) @ embedded.T
    return share, (share + cosines) / 2


def _space_separated_words(text: str) -> str:
    return " " + " ".join(re.findall(r"[^\W_]+", text.lower())) + " "


def _contains_verbatim(text: str, turn: str) -> bool:
    """Say whether one stands in the other word for word, whole or by enough words.

    Those are :data:`_FEWEST_WORDS` or more.
    """
    short, long = sorted((turn, text), key=len)
    if short == long:
        return True
    return short.count(" ") > _FEWEST_WORDS and short in long


def weighted_word_overlap(texts: list[str], turns: list[str], language: str) -> np.ndarray:
    """Give the share of each text's words that each turn holds: (texts, turns).

    Words are weighted by rarity among the turns.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    table = CountVectorizer(analyzer=lambda words: words, binary=True, dtype=np.float64)
    try:
        counts = table.fit_transform(tokenize([*texts, *turns], language=language))
    except ValueError:  # no word anywhere
        return np.zeros((len(texts), len(turns)))
    wanted = counts[: len(texts)]
    spoken = counts[len(texts) :]
    rarity = np.log1p(len(turns) / (1 + np.asarray(spoken.sum(0)).ravel()))
    weighted = wanted.multiply(rarity).tocsr()
    return (weighted @ spoken.T).toarray() / np.maximum(np.asarray(weighted.sum(1)), 1e-9)


def rank_source_turns(returned: ReturnedTexts, attributed: pl.DataFrame) -> Run:
    """Give the turns in the order in which the returned texts bring them: what measures read.

    :param attributed: what :func:`attribute` gave.
    """
    each = (
        attributed.explode("turn_ids").drop_nulls("turn_ids").select("query_id", doc_id="turn_ids")
    )
    each = each.unique(maintain_order=True)
    place = each.select(pl.int_range(pl.len()).over("query_id"))[:, 0].to_numpy()
    run = run_from_scores(
        each["query_id"], each["doc_id"], -place.astype(float), level="turn", k=max(1, each.height)
    )
    return Run(run.frame, "turn", name=returned.name, provenance=returned.provenance)
