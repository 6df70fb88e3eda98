"""Late interaction: each word of the question looks for its best match among those of a turn."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from memlab.embed.encoder_wrapper import token_encoder_of
from memlab.embed.token_vectors import (
    TokenEncoder,
    TokenVectors,
    best_token_cosines,
    compress_tokens,
)
from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench, cache_per_bench
from memlab.retrieve.documents import best_per_group
from memlab.retrieve.passages import best_passage_scores, cut_passages
from memlab.retrieve.rankings_from_scores import Scored, rank
from memlab.text.bm25_formula import idf

CONTEXT = 2
"""Turns of the session, or passages of long ones, that the model reads before each."""

BLOCK, TOKENS = 200_000, 256
"""Pairs of question and passage, and tokens of questions, that are compared at a time."""


@stage
def late(bench: Bench, *, level: Level = "turn", k: int = 200) -> Run:
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
    return rank(bench, late_scores(bench, level=level), level=level, k=k)


def late_scores(bench: Bench, *, level: Level) -> Scored:
    """Score the documents of each scope by late interaction: a block of scores each."""
    queries, session = query_tokens(bench), bench.documents("turn").session
    for (rows, span), (_, turns) in zip(bench.by_scope(level), bench.by_scope("turn"), strict=True):
        scope = scope_tokens(bench, turns)
        size = max(1, BLOCK // len(scope.inverse))
        parts = (queries.take(rows[start : start + size]) for start in range(0, len(rows), size))
        scores = np.concatenate(
            [sum_per_question(scope.best(part), scope.weights(part), part) for part in parts]
        )
        if level == "session":
            scores = best_per_group(scores, session[turns] - span.start, span.stop - span.start)
        yield rows, span, scores


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

    def best(self, asked: TokenVectors) -> np.ndarray:
        """Give the best cosine of each token of some questions with a token of each turn: (t, n)
        float32.

        Of a long turn, with a token of the one passage that matches the question best. What one
        question found is remembered, for the stage after.
        """
        if len(asked) != 1:
            return self._of_turns(self._matched(asked), asked)
        key = asked.ids.tobytes(), asked.vectors.tobytes()
        if key not in self._last:
            self._last.clear()
            self._last[key] = self._of_turns(self._matched(asked), asked)
        return self._last[key]

    def _matched(self, asked: TokenVectors) -> np.ndarray:
        """Give the best cosine of each token of the questions with a token of each text: (t, n
        texts).
        """
        best = np.zeros((len(asked.ids), len(self.texts)), np.float32)
        for row in range(0, len(asked.ids), TOKENS):
            part = slice(row, row + TOKENS)
            best[part] = best_token_cosines(
                asked.vectors[part], self.texts.vectors, self.texts.start
            )
        return best

    def _of_turns(self, best: np.ndarray, asked: TokenVectors) -> np.ndarray:
        """Choose for each turn and question the passage of the highest score: (t, n texts) → (t,
        n).
        """
        best = best[:, self.inverse]
        if best.shape[1] == len(self.start):
            return best
        scores, place = sum_per_question(best, self.weights(asked), asked), np.arange(best.shape[1])
        turn = np.repeat(np.arange(len(self.start)), np.diff(self.start, append=len(place)))
        first = np.where(
            scores == best_passage_scores(scores, self.start)[:, turn], place, len(place)
        )
        passage = np.minimum.reduceat(first, self.start, axis=1)
        chosen: np.ndarray = np.take_along_axis(best, passage[question_per_token(asked)], axis=1)
        return chosen

    def weights(self, asked: TokenVectors) -> np.ndarray:
        """Weigh the tokens of questions by their idf in the scope: (t,), 1 in all for each
        question.
        """
        weights, question = (
            self.idf[np.minimum(asked.ids, len(self.idf) - 1)],
            question_per_token(asked),
        )
        return (weights / np.bincount(question, weights, minlength=len(asked))[question]).astype(
            np.float32
        )


def question_per_token(asked: TokenVectors) -> np.ndarray:
    """Say which question each token is of: (t,)."""
    return np.repeat(np.arange(len(asked)), np.diff(asked.start))


def sum_per_question(best: np.ndarray, weights: np.ndarray, asked: TokenVectors) -> np.ndarray:
    """Add up what the tokens of each question found: (t, n) → (q, n).

    A question without tokens gets 0.
    """
    scores = np.zeros((len(asked), best.shape[1]), np.float32)
    filled = np.flatnonzero(np.diff(asked.start))
    if len(filled):
        scores[filled] = np.add.reduceat(weights[:, None] * best, asked.start[filled], axis=0)
    return scores


def scope_tokens(bench: Bench, turns: slice) -> ScopeTokens:
    """Give the token embeddings of a scope's turns, each read after those before it.

    :raises DataError: without an encoder that gives token embeddings.
    """
    return _embed_scope_tokens(bench)[turns.start]


@cache_per_bench
def _embed_scope_tokens(bench: Bench) -> dict[int, ScopeTokens]:
    """Embed the tokens of all passages, each distinct text once.

    By the place where the scope's turns begin.
    """
    documents, cut = bench.documents("turn"), cut_passages(bench)
    # What is read before a passage: those before it in its session.
    earlier = [pl.col("text").shift(i).over("session").fill_null("") for i in range(CONTEXT, 0, -1)]
    pairs = pl.DataFrame({"text": cut.texts, "session": documents.session[cut.of]}).select(
        "text", before=pl.concat_str(earlier, separator=" ").str.strip_chars_start()
    )
    distinct = pairs.unique(maintain_order=True).with_row_index("number")
    number = pairs.join(distinct, on=["text", "before"], how="left", maintain_order="left")[
        "number"
    ].to_numpy()
    read, before = distinct["text"].to_list(), distinct["before"].to_list()
    encoder = _token_encoder(bench)
    tokens = compress_tokens(encoder.encode_tokens(read, before=before, kind="document"))
    # The scores of a ColBERT are plain sums, and the tokens that expand its queries, which stand in
    # no turn, would be the rarest of all.
    tokens_by = token_encoder_of(encoder) or encoder
    is_weighed = tokens_by.identity.kind != "multi-vector"
    scopes, whole = {}, bench.statistics and bench.statistics.tokens
    for span in documents.spans.values():
        place, start = cut.within(slice(*span))
        rows, inverse = np.unique(number[place].astype(np.int64), return_inverse=True)
        texts = tokens.take(rows)
        weights = np.ones(1, np.float32)
        if is_weighed:
            n, frequency = whole or (len(start), _token_document_frequency(texts, inverse, start))
            weights = idf(frequency, n).astype(np.float32)
        scopes[span[0]] = ScopeTokens(texts, inverse, start, weights)
    return scopes


def count_tokens(bench: Bench) -> tuple[int, np.ndarray]:
    """Count the turns of a bench of one scope, and in how many of them each token stands: n, (v +
    1,).

    :raises DataError: without an encoder that gives token embeddings.
    """
    tokens = scope_tokens(bench, slice(0, bench.turns.height))
    frequency = _token_document_frequency(tokens.texts, tokens.inverse, tokens.start)
    return len(tokens.start), frequency


def _token_document_frequency(
    texts: TokenVectors, inverse: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Say in how many turns each token of the vocabulary stands: (v + 1,), the last for tokens of
    no turn.

    :param inverse: and ``start`` as :class:`ScopeTokens` has them.
    """
    turn = np.repeat(np.arange(len(start)), np.diff(start, append=len(inverse)))
    size, lengths = 2 + int(texts.ids.max(initial=-1)), np.diff(texts.start)[inverse]
    begin = texts.start[inverse] - np.cumsum(lengths) + lengths
    ids = texts.ids[np.arange(lengths.sum()) + np.repeat(begin, lengths)]
    # A token of a turn counts once. np.unique, by a table of hashes, takes ten times as long.
    pairs = np.sort(np.repeat(turn, lengths) * size + ids)
    is_first = np.diff(pairs, prepend=-1) > 0
    return np.bincount(pairs[is_first] % size, minlength=size)


def query_tokens(bench: Bench) -> TokenVectors:
    """Embed the tokens of the questions, once for a bench.

    :raises DataError: without an encoder that gives token embeddings.
    """
    kept = vars(bench)
    if "query_tokens" not in kept:
        kept["query_tokens"] = _token_encoder(bench).encode_tokens(
            bench.queries["text"].to_list(), kind="query"
        )
    tokens: TokenVectors = kept["query_tokens"]
    return tokens


def _token_encoder(bench: Bench) -> TokenEncoder:
    encoder = bench.encoder
    if isinstance(encoder, TokenEncoder):
        return encoder
    kind = "none" if encoder is None else f"{encoder.identity.key}, which gives one vector a text"
    raise DataError(
        f"late interaction needs token embeddings and the bench's encoder is {kind}; use "
        "encoder='minilm', or "
        "token_encoder='minilm' beside it"
    )
