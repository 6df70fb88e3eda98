"""What is searched: the documents of a level, what is worked out from them once, and arithmetic on
their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.embed.speaker_centring import SpeakerSums, centre_by_speaker
from memlab.embed.turn_texts import session_texts, turn_texts
from memlab.errors import DataError
from memlab.records import Level
from memlab.retrieve.cosine import scale_to_unit
from memlab.text.bm25_formula import ScopeWords, WordStatistics
from memlab.text.text_analyser import tokenize
from memlab.text.tokens_and_sentences import WORD_OR_SIGN

if TYPE_CHECKING:
    from memlab.store.scope_statistics import ScopeStatistics


Spread = tuple[np.ndarray, np.ndarray]
"""Mean and standard deviation of each row of scores: (q, 1) each."""

Moments = tuple[np.ndarray, np.ndarray]
"""Mean and mean square of each row of scores: (q, 1) each."""

NO_SCORES: Moments = np.zeros((1, 1)), np.zeros((1, 1))
"""Of documents that all score 0."""

HEAD = 200
"""Of the candidates of a large scope, so many score higher than what is not among them."""


def standardise_rows(scores: np.ndarray, spread: Spread | None = None) -> np.ndarray:
    """Give each row mean 0 and standard deviation 1; a row of equal scores gives zeros.

    :param scores: (q, n).
    :param spread: of all scores of each row, where these are some of them.

    >>> import numpy as np
    >>> from memlab.retrieve.documents import standardise_rows
    >>> standardise_rows(np.array([[1.0, 3.0], [5.0, 5.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    centred, deviation = _centre_and_deviation(scores, spread)
    return np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 1e-12)


def lower_scores(scores: np.ndarray, by: np.ndarray, spread: Spread | None = None) -> np.ndarray:
    """Subtract ``by`` (q, n) standard deviations of its row from each score (q, n).

    ``spread`` as above.
    """
    return scores - by * _centre_and_deviation(scores, spread)[1]


def _centre_and_deviation(
    scores: np.ndarray, spread: Spread | None
) -> tuple[np.ndarray, np.ndarray]:
    """Give each row's distances from its mean (q, n), and their standard deviation (q, 1)."""
    if spread is not None:
        return scores - spread[0], spread[1]
    centred = scores - scores.mean(axis=1, keepdims=True, dtype=np.float64)
    return centred, centred.std(axis=1, keepdims=True)


def estimate_spread(
    scores: np.ndarray, absent: int, others: Moments | None = None
) -> Spread | None:
    """Estimate the spread of the scores of all documents of a scope from those of its candidates.

    :param scores: (q, n) of the candidates.
    :param absent: how many documents are not among them.
    :param others: of their scores; by default those of the candidates behind the first 200.
    :returns: ``None`` where all documents are at hand.

    >>> import numpy as np
    >>> from memlab.retrieve.documents import NO_SCORES, estimate_spread
    >>> mean, deviation = estimate_spread(np.array([[2.0, 2.0]]), 2, NO_SCORES)
    >>> mean.tolist(), deviation.tolist()
    ([[1.0]], [[1.0]])
    """
    if not absent:
        return None
    wide, total = scores.astype(np.float64), scores.shape[1] + absent
    if others is None:
        rest = -np.sort(-wide, axis=1)[:, min(HEAD, wide.shape[1] // 2) :]
        others = rest.mean(axis=1, keepdims=True), (rest**2).mean(axis=1, keepdims=True)
    mean = (wide.sum(axis=1, keepdims=True) + absent * others[0]) / total
    square = ((wide**2).sum(axis=1, keepdims=True) + absent * others[1]) / total
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def group_starts(group: np.ndarray) -> np.ndarray:
    """Give where each group of equal neighbours begins; ``[0]`` where there is nothing."""
    return np.flatnonzero(np.r_[True, group[1:] != group[:-1]])


def best_per_group(scores: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Take the best score of each group of neighbouring columns: (q, n) → (q, n_groups).

    An empty group gets −1.
    """
    best = np.full((len(scores), n_groups), -1.0, scores.dtype)
    if scores.size:
        first = group_starts(group)
        best[:, group[first]] = np.maximum.reduceat(scores, first, axis=1)
    return best


def rank_columns(scores: np.ndarray, lot: np.ndarray) -> np.ndarray:
    """Give the columns of each row, the best first: (q, n) → (q, n).

    ``lot`` (n,) is the order of columns that tie.
    """
    order: np.ndarray = np.lexsort((np.broadcast_to(lot, scores.shape), -scores), axis=1)
    return order


TIES = 0
"""Seed of the order of documents that tie."""


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of one level, grouped by scope: each scope's documents are neighbours, in order
    of time.

    :param ids: (n,) document ids.
    :param session: (n,) number of the session that each document belongs to.
    :param spans: scope → (first, last + 1) place of its documents.
    :param write: gives the texts.
    :param embed: gives the embeddings; ``None`` without an encoder.
    :param centre: gives the speaker-centred vectors, where there are embeddings.
    :param language: that the texts are read in.
    :param whole: the statistics of the words of all documents, where these are some of those of one
        scope, see :mod:`memlab.retrieve.large_scope_candidates`.
    :param made: what :func:`memlab.retrieve.bench.cache_per_bench` keeps.
    """

    ids: np.ndarray
    session: np.ndarray
    spans: Mapping[str, tuple[int, int]]
    write: Callable[[], list[str]] = field(repr=False)
    embed: Callable[[], np.ndarray] | None = field(default=None, repr=False)
    centre: Callable[[], np.ndarray] | None = field(default=None, repr=False)
    language: str = "en"
    whole: WordStatistics | None = None
    made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def texts(self) -> list[str]:
        """What BM25 and encoders read: (n,)."""
        return self.write()

    @cached_property
    def embeddings(self) -> Any:
        """(n, d) float32 unit rows; for sessions the normalised mean of their turns.

        ``None`` without an encoder.
        """
        return None if self.embed is None else self.embed()

    @cached_property
    def place(self) -> pl.DataFrame:
        """The place of each id: ``doc_id``, ``at``."""
        return pl.DataFrame(
            {"doc_id": pl.Series(self.ids, dtype=pl.String), "at": np.arange(len(self.ids))}
        )

    @cached_property
    def lot(self) -> np.ndarray:
        """The order in which documents stand that tie: (n,) a permutation, by a seeded hash of
        their texts.

        Not by age, which says where a benchmark put its evidence, and not by id, which in some
        gives the label away. Of equal texts each has a hash of its own.
        """
        seen: dict[str, int] = {}
        hashes = np.zeros(len(self.ids), np.uint64)
        for i, text in enumerate(self.texts):
            seen[text] = seen.get(text, 0) + 1
            read = f"{TIES}:{seen[text]}:{text}".encode("utf-8", "surrogatepass")
            hashes[i] = int.from_bytes(blake2b(read, digest_size=8).digest())
        return np.argsort(np.argsort(hashes, kind="stable"), kind="stable")

    @cached_property
    def n_tokens(self) -> np.ndarray:
        """Each document's words and punctuation marks: (n,) a token count that needs no model."""
        return (
            pl.Series(self.texts, dtype=pl.String)
            .str.count_matches(WORD_OR_SIGN)
            .to_numpy()
            .astype(np.int64)
        )

    @cached_property
    def words(self) -> list[list[str]]:
        """Each document's words, see :func:`memlab.text.text_analyser.tokenize`."""
        return tokenize(self.texts, language=self.language)

    def words_in(self, span: slice) -> ScopeWords:
        """Give the statistics of words of one scope, whose documents are in ``span``."""
        place = ("words", span.start, span.stop)
        if place not in self.made:
            self.made[place] = ScopeWords.of(self.words[span], self.whole)
        words: ScopeWords = self.made[place]
        return words

    @property
    def absent(self) -> int:
        """How many documents the scope has beside these."""
        return 0 if self.whole is None else self.whole.n - len(self.ids)

    def at(self, doc_ids: pl.Series) -> np.ndarray:
        """Give the places of ids.

        :raises DataError: for an id that is not among the documents.
        """
        places = pl.DataFrame({"doc_id": doc_ids}).join(
            self.place, on="doc_id", how="left", maintain_order="left"
        )
        if places["at"].null_count():
            missing = doc_ids.filter(places["at"].is_null())[0]
            raise DataError(
                f"document {missing!r} is not in this bench; rank with the dataset that the bench "
                "holds"
            )
        return places["at"].to_numpy()

    def vectors(self) -> np.ndarray:
        """Give the embeddings: what documents are compared with questions by, (n, d) float32 unit
        rows.

        :raises DataError: when the bench was made without an encoder.
        """
        if self.embeddings is None:
            raise DataError(
                "this stage needs embeddings: make the bench with an encoder, such as "
                "encoder='minilm'"
            )
        vectors: np.ndarray = self.embeddings
        return vectors

    def speaker_centred(self) -> np.ndarray:
        """Give what documents are compared with each other by: (n, d) float32 unit rows.

        Of a turn its embedding less the mean of its speaker's in the scope, see
        :mod:`memlab.embed.speaker_centring`; of a session the normalised mean of those of its
        turns.

        :raises DataError: when the bench was made without an encoder.
        """
        if self.centre is None:
            return self.vectors()
        return self._centred

    @cached_property
    def _centred(self) -> Any:
        return None if self.centre is None else self.centre()


def build_documents(
    turns: pl.DataFrame,
    sessions: pl.DataFrame,
    *,
    embed: Callable[[], np.ndarray] | None = None,
    language: str = "en",
    statistics: ScopeStatistics | None = None,
    speaker_sums: Callable[[], SpeakerSums] | None = None,
) -> dict[Level, Documents]:
    """Put turns and sessions in order of scope and time, as documents of both levels.

    :param embed: gives the embeddings of the turns, in the order of ``turns``.
    :param statistics: of the whole scope, where these are some of its turns and sessions.
    :param speaker_sums: gives those of the whole scope, in the same case.
    :raises DataError: for a turn of a session that is not listed.
    """
    order = sessions.sort("scope", "n", maintain_order=True).with_row_index("session")
    number = order.select("session_id", "session")
    placed = turns.with_row_index("row").join(
        number, on="session_id", how="left", maintain_order="left"
    )
    for turn in placed.filter(pl.col("session").is_null()).head(1).iter_rows(named=True):
        what = f"turn {turn['turn_id']!r} belongs to session {turn['session_id']!r}"
        raise DataError(f"{what}, which the dataset does not list; list it among the sessions")
    placed = placed.sort("session", "n", maintain_order=True)
    rows, session = (placed[column].to_numpy().astype(np.int64) for column in ("row", "session"))
    of_turns = Documents(
        placed["turn_id"].to_numpy(),
        session,
        _scope_spans(placed["scope"]),
        write=lambda: turn_texts(placed.drop("row", "session")),
        embed=embed and (lambda: np.ascontiguousarray(embed()[rows])),
        centre=embed and (lambda: _centre_scopes(of_turns, placed["speaker"], speaker_sums)),
        language=language,
        whole=statistics and statistics.turn,
    )
    of_sessions = Documents(
        order["session_id"].to_numpy(),
        np.arange(order.height),
        _scope_spans(order["scope"]),
        write=lambda: session_texts(placed.drop("row", "session"), order.drop("session")),
        embed=embed and (lambda: _unit_group_means(of_turns.vectors(), session, order.height)),
        centre=embed
        and (lambda: _unit_group_means(of_turns.speaker_centred(), session, order.height)),
        language=language,
        whole=statistics and statistics.session,
    )
    return {"turn": of_turns, "session": of_sessions}


def _scope_spans(scopes: pl.Series) -> dict[str, tuple[int, int]]:
    """Give where each scope's rows begin and end."""
    runs = scopes.rle().struct.unnest()
    ends = runs["len"].cum_sum()
    return dict(zip(runs["value"], zip(ends - runs["len"], ends, strict=True), strict=True))


def _centre_scopes(
    documents: Documents, speakers: pl.Series, sums: Callable[[], SpeakerSums] | None
) -> np.ndarray:
    """Centre the turns of each scope by their speakers: (n, d).

    :param sums: gives those of the whole scope, where these are some turns of one.
    """
    centred, of_scope = np.empty_like(documents.vectors()), sums and sums()
    for start, end in documents.spans.values():
        centred[start:end] = centre_by_speaker(
            documents.vectors()[start:end], speakers[start:end], sums=of_scope
        )
    return centred


def _unit_group_means(vectors: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Average unit rows within groups and normalise: (n_groups, d).

    A group without rows gives zeros.
    """
    from scipy.sparse import csr_array

    member = csr_array(
        (np.ones(len(group), np.float32), (group, np.arange(len(group)))),
        shape=(n_groups, len(group)),
    )
    return scale_to_unit(np.asarray(member @ vectors, dtype=np.float32))
