"""Late interaction: every word of the question looks for its best match among the words of a turn."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import polars as pl

from memlab.embed.tokens import TokenEncoder, TokenVectors, compressed, token_cosines
from memlab.errors import DataError, at_least
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.arrays import best_of
from memlab.retrieve.bench import Bench, once
from memlab.retrieve.index import rarity
from memlab.retrieve.passages import best_passages, passages
from memlab.retrieve.ranking import rank

T = TypeVar("T")

BLOCK = 200_000
"""Pairs of question and passage that are compared at a time, so that the matrices stay small."""

TOKENS = 256
"""Tokens of questions that are compared at a time with all tokens of a scope."""

TEXTS = 4_000
"""Texts that are compared at a time with all these."""

REMEMBERED = 4


@stage
def late(bench: Bench, *, level: Level = "turn", k: int = 200, context: int = 2) -> Run:
    """Rank by late interaction: the mean, over the question's tokens, of each one's best cosine with a turn's token.

    One vector for a whole turn blurs what it says; a vector for each token keeps "three turtles" apart from "three
    books". Tokens of a turn are embedded after the turns before it, so that "they" and "it" mean something, and
    tokens of the question weigh as much as they are rare in the scope. A long turn ranks by its best passage, see
    :mod:`memlab.retrieve.passages`, and a session by its best turn.

    :param context: how many turns of the session, or passages of long ones, the model reads before each.
    :raises DataError: without an encoder that gives token embeddings, or for a negative ``context``.

    Source: MaxSim: Khattab and Zaharia, ColBERT (SIGIR 2020), section 3.2; tokens read in context: Günther et al.,
    Late Chunking (2024); weights by rarity: Zhang et al., BERTScore (ICLR 2020), section 3.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=50), encoder="minilm", progress=False)
    >>> retrieve.late(bench, k=3).frame["rank"].max()
    3
    """
    return rank(bench, late_scores(bench, level=level, context=context), level=level, k=k)


def late_scores(bench: Bench, *, level: Level, context: int = 2) -> Iterator[tuple[np.ndarray, slice, np.ndarray]]:
    """Give the scores of each scope: rows of the queries, place of the documents, scores (q, n) float32."""
    queries = query_tokens(bench)
    session = bench.documents("turn").session
    for (rows, span), (_, turns) in zip(bench.by_scope(level), bench.by_scope("turn"), strict=True):
        scope = scope_tokens(bench, turns, context=context)
        size = max(1, BLOCK // len(scope.inverse))
        parts = (queries.take(rows[start : start + size]) for start in range(0, len(rows), size))
        scores = np.concatenate([totals(scope.best(part), scope.weights(part), part) for part in parts])
        if level == "session":
            scores = best_of(scores, session[turns] - span.start, span.stop - span.start)
        yield rows, span, scores


@dataclass(frozen=True, eq=False)
class ScopeTokens:
    """The token embeddings of the turns of one scope.

    :param texts: of the distinct texts, compressed.
    :param inverse: (p,) which of them each passage is.
    :param start: (n,) where the passages of each turn begin.
    :param rarity: (v,) weight of each token of the vocabulary.
    """

    texts: TokenVectors
    inverse: np.ndarray
    start: np.ndarray
    rarity: np.ndarray
    _matched: dict[Hashable, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def best(self, asked: TokenVectors) -> np.ndarray:
        """Give the best cosine of each token of some questions with a token of each turn: (t, n) float32.

        Of a long turn, with a token of the one passage that matches the question best. What one question found is
        remembered, for the stage after.
        """
        if len(asked) > 1:
            return self._best(asked)
        return _recent(self._matched, (asked.ids.tobytes(), asked.vectors.tobytes()), lambda: self._best(asked))

    def _best(self, asked: TokenVectors) -> np.ndarray:
        best = np.zeros((len(asked.ids), len(self.texts)), np.float32)
        for first in range(0, len(self.texts), TEXTS):
            texts = slice(first, min(first + TEXTS, len(self.texts)))
            starts, end = self.texts.start[texts], self.texts.start[texts.stop]
            filled = np.flatnonzero(np.diff(starts, append=end))
            if not len(filled):
                continue
            codes = self.texts.vectors[starts[0] : end]
            for start in range(0, len(asked.ids), TOKENS):
                part = slice(start, start + TOKENS)
                cosines = token_cosines(asked.vectors[part], codes)
                best[part, first + filled] = np.maximum.reduceat(cosines, starts[filled] - starts[0], axis=1)
        best = best[:, self.inverse]
        if best.shape[1] == len(self.start):
            return best
        scores = totals(best, self.weights(asked), asked)
        turn = np.repeat(np.arange(len(self.start)), np.diff(self.start, append=best.shape[1]))
        top = np.where(scores == best_passages(scores, self.start)[:, turn], np.arange(best.shape[1]), best.shape[1])
        passage = np.minimum.reduceat(top, self.start, axis=1)
        question = np.repeat(np.arange(len(asked)), np.diff(asked.start))
        chosen: np.ndarray = np.take_along_axis(best, passage[question], axis=1)
        return chosen

    def weights(self, asked: TokenVectors) -> np.ndarray:
        """Weigh the tokens of questions by their rarity in the scope: (t,), 1 in all for each question."""
        weights = self.rarity[np.minimum(asked.ids, len(self.rarity) - 1)]
        question = np.repeat(np.arange(len(asked)), np.diff(asked.start))
        return (weights / np.bincount(question, weights, minlength=len(asked))[question]).astype(np.float32)


def totals(best: np.ndarray, weights: np.ndarray, asked: TokenVectors) -> np.ndarray:
    """Add up what the tokens of each question found: (t, n) → (q, n); a question without tokens gets 0."""
    scores = np.zeros((len(asked), best.shape[1]), np.float32)
    filled = np.flatnonzero(np.diff(asked.start))
    if len(filled):
        scores[filled] = np.add.reduceat(weights[:, None] * best, asked.start[filled], axis=0)
    return scores


def scope_tokens(bench: Bench, turns: slice, *, context: int = 2) -> ScopeTokens:
    """Give the token embeddings of a scope's turns, each read after ``context`` turns before it."""
    at_least(0, context=context)
    documents, of = _document_tokens(bench, context)

    def scope() -> ScopeTokens:
        place, start = passages(bench).within(turns)
        distinct, inverse = np.unique(of[place], return_inverse=True)
        texts = documents.take(distinct)
        frequency, n = token_frequency(texts, inverse, start, bench.documents("turn").weight_in(turns))
        return ScopeTokens(texts, inverse, start, rarity(frequency, n).astype(np.float32))

    return _recent(_scopes(bench), (turns.start, turns.stop, context), scope)


def token_frequency(
    documents: TokenVectors, inverse: np.ndarray, start: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Say in how many turns each token of the vocabulary stands, and how many turns there are.

    :param inverse: and ``start`` as :class:`ScopeTokens` has them.
    :param weight: (n,) how many turns each stands for.
    :returns: (v + 1,), the last for tokens of no turn, and n.
    """
    turn = np.repeat(np.arange(len(start)), np.diff(start, append=len(inverse)))
    size = 2 + int(documents.ids.max(initial=-1))
    lengths = np.diff(documents.start)[inverse]
    begin = documents.start[inverse] - np.cumsum(lengths) + lengths
    ids = documents.ids[np.arange(lengths.sum()) + np.repeat(begin, lengths)]
    pairs = np.unique(np.repeat(turn, lengths) * size + ids)  # a token of a turn counts once
    each = np.ones(len(start)) if weight is None else weight
    return np.bincount(pairs % size, each[pairs // size], minlength=size), each.sum()


@once
def _document_tokens(bench: Bench, context: int) -> tuple[TokenVectors, np.ndarray]:
    """Embed the tokens of all passages: of the distinct texts, and which of them each passage is."""
    encoder, pairs = _token_encoder(bench), in_context(bench, context)
    distinct = pairs.unique(maintain_order=True).with_row_index("at")
    of = pairs.join(distinct, on=["text", "before"], how="left", maintain_order="left")["at"].to_numpy()
    tokens = encoder.encode_tokens(distinct["text"].to_list(), before=distinct["before"].to_list(), kind="document")
    return compressed(tokens), of.astype(np.int64)


def in_context(bench: Bench, context: int = 2) -> pl.DataFrame:
    """Give what is read of each passage: ``text``, and ``before``, the passages of its session before it."""
    parts = passages(bench)
    earlier = [pl.col("text").shift(i).over("session").fill_null("") for i in range(context, 0, -1)]
    return pl.DataFrame({"text": parts.texts, "session": bench.documents("turn").session[parts.of]}).select(
        "text", before=pl.concat_str(earlier, separator=" ").str.strip_chars_start() if earlier else pl.lit("")
    )


def query_tokens(bench: Bench) -> TokenVectors:
    """Embed the tokens of the questions; the last ones asked are remembered."""
    texts = bench.queries["text"].to_list()
    encoder = _token_encoder(bench)
    return _recent(_asked(bench), tuple(texts), lambda: encoder.encode_tokens(texts, kind="query"))


@once
def _asked(bench: Bench) -> dict[Hashable, TokenVectors]:
    return {}


@once
def _scopes(bench: Bench) -> dict[Hashable, ScopeTokens]:
    return {}


def _recent(kept: dict[Hashable, T], key: Hashable, make: Callable[[], T]) -> T:
    """Give what was made last for a key, or make it; the last few are kept."""
    if key not in kept:
        while len(kept) >= REMEMBERED:
            del kept[next(iter(kept))]
        kept[key] = make()
    return kept[key]


def _token_encoder(bench: Bench) -> TokenEncoder:
    encoder = bench.encoder
    if isinstance(encoder, TokenEncoder):
        return encoder
    kind = "none" if encoder is None else f"{encoder.identity.key}, which gives one vector a text"
    raise DataError(f"late interaction needs token embeddings and the bench's encoder is {kind}; use encoder='minilm'")
