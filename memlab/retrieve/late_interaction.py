"""Late interaction: each word of the question looks for its best match among those of a turn."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from memlab.embed.encoder_wrapper import token_encoder_of
from memlab.embed.token_vectors import (
    TokenEncoder,
    TokenVectors,
    best_token_cosine_per_text,
    compress_tokens,
)
from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.registry import Count, stage
from memlab.retrieve.bench import Bench, cache_per_bench
from memlab.retrieve.documents import best_score_per_group
from memlab.retrieve.passages import best_passage_scores, cut_long_turns_into_passages
from memlab.retrieve.rankings_from_scores import ScopeScores, rank_scope_scores
from memlab.text.bm25_formula import idf

CONTEXT = 2
"""Turns of the session, or passages of long ones, that the model reads before each."""

BLOCK, TOKENS = 200_000, 256
"""Pairs of question and passage, and tokens of questions, that are compared at a time."""


@stage
def late(bench: Bench, *, level: Level = "turn", k: Count = 200) -> Run:
    """Rank by late interaction: the mean, over the question's tokens, of each one's best cosine
    with a turn's token.

    One vector for a whole turn blurs what it says; a vector for each token keeps "three turtles"
    apart from "three books". Tokens of a turn are embedded after the two turns before it, so that
    "they" and "it" mean something, and tokens of the question weigh as much as they are rare in the
    scope; those of a ColBERT weigh the same, as it was trained. A long turn ranks by its best
    passage, see :mod:`memlab.retrieve.passages`, and a session by its best turn.

    :raises DataError: without an encoder that gives token embeddings.

    Source: MaxSim: Khattab and Zaharia, ColBERT (SIGIR 2020), section 3.2; tokens read in context:
    Günther et al., Late Chunking (2024); weights by rarity: Zhang et al., BERTScore (ICLR 2020),
    section 3.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=50), encoder="minilm", progress=False)
    >>> retrieve.late(bench, k=3).frame["rank"].max()
    3
    """
    return rank_scope_scores(bench, late_scores(bench, level=level), level=level, k=k)


def late_scores(bench: Bench, *, level: Level) -> Iterator[ScopeScores]:
    """Score the documents of each scope by late interaction: a block of scores each."""
    question_tokens = query_tokens(bench)
    session_of_turn = bench.documents("turn").session
    for (query_rows, document_span), (_, turn_span) in zip(
        bench.by_scope(level), bench.by_scope("turn"), strict=True
    ):
        tokens_of_scope = scope_tokens(bench, turn_span)
        block_size = max(1, BLOCK // len(tokens_of_scope.inverse))
        token_blocks = (
            question_tokens.take(query_rows[block_start : block_start + block_size])
            for block_start in range(0, len(query_rows), block_size)
        )
        scores = np.concatenate(
            [
                sum_weighted_cosines_per_question(
                    tokens_of_scope.best_cosine_per_turn(token_block),
                    tokens_of_scope.token_weights(token_block),
                    token_block,
                )
                for token_block in token_blocks
            ]
        )
        if level == "session":
            scores = best_score_per_group(
                scores,
                session_of_turn[turn_span] - document_span.start,
                document_span.stop - document_span.start,
            )
        yield ScopeScores(query_rows, document_span, scores)


@dataclass(frozen=True, eq=False)
class ScopeTokens:
    """The token embeddings of the turns of one scope.

    :param texts: of the distinct texts, compressed.
    :param inverse: (p,) which of them each passage is.
    :param start: (n,) where the passages of each turn begin.
    :param idf: (v,) weight of each token of the vocabulary; (1,) where all weigh the same.
    """

    texts: TokenVectors
    inverse: np.ndarray
    start: np.ndarray
    idf: np.ndarray
    _last: dict[Hashable, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def best_cosine_per_turn(self, question_tokens: TokenVectors) -> np.ndarray:
        """Give the best cosine of each token of some questions with a token of each turn: (t, n)
        float32.

        Of a long turn, with a token of the one passage that matches the question best. What one
        question found is remembered, for the stage after.
        """
        if len(question_tokens) != 1:
            return self._best_passage_per_turn(
                self._best_cosine_per_text(question_tokens), question_tokens
            )
        tokens_key = question_tokens.ids.tobytes(), question_tokens.vectors.tobytes()
        if tokens_key not in self._last:
            self._last.clear()
            self._last[tokens_key] = self._best_passage_per_turn(
                self._best_cosine_per_text(question_tokens), question_tokens
            )
        return self._last[tokens_key]

    def _best_cosine_per_text(self, question_tokens: TokenVectors) -> np.ndarray:
        """Give the best cosine of each token of the questions with a token of each text: (t, n
        texts).
        """
        best_cosines = np.zeros((len(question_tokens.ids), len(self.texts)), np.float32)
        for block_start in range(0, len(question_tokens.ids), TOKENS):
            token_block = slice(block_start, block_start + TOKENS)
            best_cosines[token_block] = best_token_cosine_per_text(
                question_tokens.vectors[token_block], self.texts.vectors, self.texts.start
            )
        return best_cosines

    def _best_passage_per_turn(
        self, cosines_of_texts: np.ndarray, question_tokens: TokenVectors
    ) -> np.ndarray:
        """Choose for each turn and question the passage of the highest score: (t, n texts) → (t,
        n).
        """
        cosines_of_texts = cosines_of_texts[:, self.inverse]
        if cosines_of_texts.shape[1] == len(self.start):
            return cosines_of_texts
        passage_scores = sum_weighted_cosines_per_question(
            cosines_of_texts, self.token_weights(question_tokens), question_tokens
        )
        passage_numbers = np.arange(cosines_of_texts.shape[1])
        turn_of_passage = np.repeat(
            np.arange(len(self.start)), np.diff(self.start, append=len(passage_numbers))
        )
        first_best = np.where(
            passage_scores == best_passage_scores(passage_scores, self.start)[:, turn_of_passage],
            passage_numbers,
            len(passage_numbers),
        )
        best_passage = np.minimum.reduceat(first_best, self.start, axis=1)
        chosen_cosines: np.ndarray = np.take_along_axis(
            cosines_of_texts, best_passage[question_of_each_token(question_tokens)], axis=1
        )
        return chosen_cosines

    def token_weights(self, question_tokens: TokenVectors) -> np.ndarray:
        """Weigh the tokens of questions by their idf in the scope: (t,), 1 in all for each
        question.
        """
        token_weights = self.idf[np.minimum(question_tokens.ids, len(self.idf) - 1)]
        question_of_token = question_of_each_token(question_tokens)
        return (
            token_weights
            / np.bincount(question_of_token, token_weights, minlength=len(question_tokens))[
                question_of_token
            ]
        ).astype(np.float32)


def question_of_each_token(question_tokens: TokenVectors) -> np.ndarray:
    """Say which question each token is of: (t,)."""
    return np.repeat(np.arange(len(question_tokens)), np.diff(question_tokens.start))


def sum_weighted_cosines_per_question(
    best_cosines: np.ndarray, token_weights: np.ndarray, question_tokens: TokenVectors
) -> np.ndarray:
    """Add up what the tokens of each question found: (t, n) → (q, n).

    A question without tokens gets 0.
    """
    scores = np.zeros((len(question_tokens), best_cosines.shape[1]), np.float32)
    filled_questions = np.flatnonzero(np.diff(question_tokens.start))
    if len(filled_questions):
        scores[filled_questions] = np.add.reduceat(
            token_weights[:, None] * best_cosines, question_tokens.start[filled_questions], axis=0
        )
    return scores


def scope_tokens(bench: Bench, turn_span: slice) -> ScopeTokens:
    """Give the token embeddings of a scope's turns, each read after those before it.

    :raises DataError: without an encoder that gives token embeddings.
    """
    return _scope_tokens_by_first_turn(bench)[turn_span.start]


@cache_per_bench
def _scope_tokens_by_first_turn(bench: Bench) -> dict[int, ScopeTokens]:
    """Embed the tokens of all passages, each distinct text once.

    By the place where the scope's turns begin.
    """
    documents, passages_of_bench = bench.documents("turn"), cut_long_turns_into_passages(bench)
    # What is read before a passage: those before it in its session.
    earlier_texts = [
        pl.col("text").shift(distance).over("session").fill_null("")
        for distance in range(CONTEXT, 0, -1)
    ]
    texts_in_context = pl.DataFrame(
        {
            "text": passages_of_bench.texts,
            "session": documents.session[passages_of_bench.turn_of_passage],
        }
    ).select("text", before=pl.concat_str(earlier_texts, separator=" ").str.strip_chars_start())
    distinct_texts = texts_in_context.unique(maintain_order=True).with_row_index("number")
    number_of_passage = texts_in_context.join(
        distinct_texts, on=["text", "before"], how="left", maintain_order="left"
    )["number"].to_numpy()
    texts_to_read = distinct_texts["text"].to_list()
    texts_before = distinct_texts["before"].to_list()
    encoder = _require_token_encoder(bench)
    tokens = compress_tokens(
        encoder.encode_tokens(texts_to_read, before=texts_before, kind="document")
    )
    # The scores of a ColBERT are plain sums, and the tokens that expand its queries, which stand in
    # no turn, would be the rarest of all.
    token_encoder = token_encoder_of(encoder) or encoder
    is_weighed = token_encoder.identity.kind != "multi-vector"
    tokens_by_scope = {}
    scope_statistics = bench.statistics and bench.statistics.tokens
    for turn_span in documents.spans.values():
        passage_span, passage_starts = passages_of_bench.passage_span_and_starts(slice(*turn_span))
        distinct_rows, text_of_passage = np.unique(
            number_of_passage[passage_span].astype(np.int64), return_inverse=True
        )
        scope_texts = tokens.take(distinct_rows)
        token_weights = np.ones(1, np.float32)
        if is_weighed:
            n_turns, turns_per_token = scope_statistics or (
                len(passage_starts),
                _count_turns_per_vocabulary_token(scope_texts, text_of_passage, passage_starts),
            )
            token_weights = idf(turns_per_token, n_turns).astype(np.float32)
        tokens_by_scope[turn_span[0]] = ScopeTokens(
            scope_texts, text_of_passage, passage_starts, token_weights
        )
    return tokens_by_scope


def count_turns_and_turns_per_token(bench: Bench) -> tuple[int, np.ndarray]:
    """Count the turns of a bench of one scope, and in how many of them each token stands: n, (v +
    1,).

    :raises DataError: without an encoder that gives token embeddings.
    """
    tokens_of_scope = scope_tokens(bench, slice(0, bench.turns.height))
    turns_per_token = _count_turns_per_vocabulary_token(
        tokens_of_scope.texts, tokens_of_scope.inverse, tokens_of_scope.start
    )
    return len(tokens_of_scope.start), turns_per_token


def _count_turns_per_vocabulary_token(
    text_tokens: TokenVectors, text_of_passage: np.ndarray, passage_starts: np.ndarray
) -> np.ndarray:
    """Say in how many turns each token of the vocabulary stands: (v + 1,), the last for tokens of
    no turn.

    :param text_of_passage: and ``passage_starts`` as :class:`ScopeTokens` has them.
    """
    turn_of_passage = np.repeat(
        np.arange(len(passage_starts)), np.diff(passage_starts, append=len(text_of_passage))
    )
    vocabulary_size = 2 + int(text_tokens.ids.max(initial=-1))
    n_tokens = np.diff(text_tokens.start)[text_of_passage]
    token_shift = text_tokens.start[text_of_passage] - np.cumsum(n_tokens) + n_tokens
    token_ids = text_tokens.ids[np.arange(n_tokens.sum()) + np.repeat(token_shift, n_tokens)]
    # A token of a turn counts once. np.unique, by a table of hashes, takes ten times as long.
    turn_token_pairs = np.sort(np.repeat(turn_of_passage, n_tokens) * vocabulary_size + token_ids)
    is_first = np.diff(turn_token_pairs, prepend=-1) > 0
    return np.bincount(turn_token_pairs[is_first] % vocabulary_size, minlength=vocabulary_size)


def query_tokens(bench: Bench) -> TokenVectors:
    """Embed the tokens of the questions, once for a bench.

    :raises DataError: without an encoder that gives token embeddings.
    """
    cached_values = vars(bench)
    if "query_tokens" not in cached_values:
        cached_values["query_tokens"] = _require_token_encoder(bench).encode_tokens(
            bench.queries["text"].to_list(), kind="query"
        )
    question_tokens: TokenVectors = cached_values["query_tokens"]
    return question_tokens


def _require_token_encoder(bench: Bench) -> TokenEncoder:
    encoder = bench.encoder
    if isinstance(encoder, TokenEncoder):
        return encoder
    encoder_name = (
        "none" if encoder is None else f"{encoder.identity.key}, which gives one vector a text"
    )
    raise DataError(
        f"late interaction needs token embeddings and the bench's encoder is {encoder_name}; use "
        "encoder='minilm', or "
        "token_encoder='minilm' beside it"
    )
