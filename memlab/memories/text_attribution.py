"""From texts that a memory returned back to the turns that they come from."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl

from memlab.embed import Encoder
from memlab.embed.turn_texts import turn_texts
from memlab.memories.running_a_memory import ReturnedTexts
from memlab.records import Dataset, Run, run_from_scores
from memlab.text.text_analyser import tokenize
from memlab.text.tokens_and_sentences import sentences

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
    question_scopes = data.questions.select("query_id", "scope")
    returned_rows = returned.rows.join(
        question_scopes, on="query_id", how="left", maintain_order="left"
    )
    unnamed = returned_rows.filter(pl.col("source_ids").is_null()).select("scope", "text")
    unnamed_texts = unnamed.unique(maintain_order=True)
    by_scope = unnamed_texts.partition_by("scope", maintain_order=True)
    scope_parts = [
        _attribute_texts_of_scope(scope_texts, data, encoder) for scope_texts in by_scope
    ]
    found_sources = pl.concat([pl.DataFrame(schema=_SCHEMA), *scope_parts])
    is_named = pl.col("source_ids").is_not_null()
    any_named = pl.col("source_ids").list.len() > 0
    origin_named = (
        pl.when(any_named).then(pl.lit("given")).otherwise(pl.lit("none")).cast(_SCHEMA["how"])
    )
    return returned_rows.join(
        found_sources, on=["scope", "text"], how="left", maintain_order="left"
    ).select(
        "query_id",
        "rank",
        how=pl.when(is_named).then(origin_named).otherwise("how"),
        turn_ids=pl.when(is_named).then("source_ids").otherwise("turn_ids"),
    )


def _attribute_texts_of_scope(
    returned_texts: pl.DataFrame, data: Dataset, encoder: Encoder | None
) -> pl.DataFrame:
    """Attribute the texts of one scope."""
    scope_turns = data.turns.filter(pl.col("scope") == returned_texts["scope"][0])
    turn_ids = scope_turns["turn_id"].to_list()
    turn_words = [
        _lower_words_between_spaces(returned_text) for returned_text in scope_turns["text"]
    ]
    origins = list[str]()
    found_turns = list[list[str]]()
    unmatched = list[tuple[int, str]]()
    for text_row, returned_text in enumerate(returned_texts["text"]):
        span_turns = _turn_ids_sharing_verbatim_span(
            _lower_words_between_spaces(returned_text), turn_ids, turn_words
        )
        found_turns.append(span_turns)
        origins.append("span" if span_turns else "none")
        if not span_turns:
            unmatched += [(text_row, sentence) for sentence in sentences(returned_text)]
    if unmatched:
        stated_sentences = [sentence for _, sentence in unmatched]
        word_shares, similarity = _word_shares_and_similarities(
            stated_sentences, scope_turns, data.language, encoder
        )
        for sentence_number, (text_row, _) in enumerate(unmatched):
            best_turn = similarity[sentence_number].argmax()
            if similarity[sentence_number, best_turn] < LEAST_SIMILARITY:
                continue
            is_copy = (
                word_shares[sentence_number, best_turn] >= NEAR_COPY
                and origins[text_row] != "matched"
            )
            origins[text_row] = "copy" if is_copy else "matched"
            found_turns[text_row] = list(
                dict.fromkeys([*found_turns[text_row], turn_ids[best_turn]])
            )
    origin_column = pl.Series("how", origins, _SCHEMA["how"])
    return returned_texts.with_columns(
        origin_column, pl.Series("turn_ids", found_turns, _SCHEMA["turn_ids"])
    )


def _turn_ids_sharing_verbatim_span(
    text_words: str, turn_ids: list[str], words_of_turns: list[str]
) -> list[str]:
    """Give the turns that a text stands in word for word, or that stand in it."""
    words_by_turn = dict[str, str]()
    for turn_id, other_words in zip(turn_ids, words_of_turns, strict=True):
        if _is_one_verbatim_in_other(text_words, other_words):
            words_by_turn[turn_id] = other_words
    if set(words_by_turn.values()) == {text_words}:  # all say just that
        return [next(iter(words_by_turn))]
    return [*words_by_turn]


def _word_shares_and_similarities(
    stated_sentences: list[str], turns: pl.DataFrame, language: str, encoder: Encoder | None
) -> tuple[np.ndarray, np.ndarray]:
    """Give the share of words and the score of each sentence and turn: (sentences, turns) both."""
    word_shares = rarity_weighted_word_shares(stated_sentences, turns["text"].to_list(), language)
    if encoder is None:
        return word_shares, word_shares
    embedded = encoder.encode(turn_texts(turns), progress=False)
    cosines = encoder.encode(stated_sentences, progress=False) @ embedded.T
    return word_shares, (word_shares + cosines) / 2


def _lower_words_between_spaces(text: str) -> str:
    return " " + " ".join(re.findall(r"[^\W_]+", text.lower())) + " "


def _is_one_verbatim_in_other(text_words: str, turn_words: str) -> bool:
    """Say whether one stands in the other word for word, whole or by enough words.

    Those are :data:`_FEWEST_WORDS` or more.
    """
    shorter_text, longer_text = sorted((turn_words, text_words), key=len)
    if shorter_text == longer_text:
        return True
    return shorter_text.count(" ") > _FEWEST_WORDS and shorter_text in longer_text


def rarity_weighted_word_shares(
    stated_texts: list[str], turn_texts: list[str], language: str
) -> np.ndarray:
    """Give the share of each text's words that each turn holds: (texts, turns).

    Words are weighted by rarity among the turns.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    word_counter = CountVectorizer(analyzer=lambda words: words, binary=True, dtype=np.float64)
    try:
        word_counts = word_counter.fit_transform(
            tokenize([*stated_texts, *turn_texts], language=language)
        )
    except ValueError:  # no word anywhere
        return np.zeros((len(stated_texts), len(turn_texts)))
    text_words = word_counts[: len(stated_texts)]
    turn_words = word_counts[len(stated_texts) :]
    word_rarity = np.log1p(len(turn_texts) / (1 + np.asarray(turn_words.sum(0)).ravel()))
    weighted_words = text_words.multiply(word_rarity).tocsr()
    return (weighted_words @ turn_words.T).toarray() / np.maximum(
        np.asarray(weighted_words.sum(1)), 1e-9
    )


def rank_source_turns(returned: ReturnedTexts, attributed: pl.DataFrame) -> Run:
    """Give the turns in the order in which the returned texts bring them: what measures read.

    :param attributed: what :func:`attribute` gave.
    """
    source_turns = (
        attributed.explode("turn_ids").drop_nulls("turn_ids").select("query_id", doc_id="turn_ids")
    )
    source_turns = source_turns.unique(maintain_order=True)
    turn_places = source_turns.select(pl.int_range(pl.len()).over("query_id"))[:, 0].to_numpy()
    turn_ranking = run_from_scores(
        source_turns["query_id"],
        source_turns["doc_id"],
        -turn_places.astype(float),
        level="turn",
        k=max(1, source_turns.height),
    )
    return Run(turn_ranking.frame, "turn", name=returned.name, provenance=returned.provenance)
