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


MeanAndDeviation = tuple[np.ndarray, np.ndarray]
"""Mean and standard deviation of each row of scores: (q, 1) each."""

MeanAndMeanSquare = tuple[np.ndarray, np.ndarray]
"""Mean and mean square of each row of scores: (q, 1) each."""

NO_SCORES: MeanAndMeanSquare = np.zeros((1, 1)), np.zeros((1, 1))
"""Of documents that all score 0."""

HEAD = 200
"""Of the candidates of a large scope, so many score higher than what is not among them."""


def standardise_rows(scores: np.ndarray, spread: MeanAndDeviation | None = None) -> np.ndarray:
    """Give each row mean 0 and standard deviation 1; a row of equal scores gives zeros.

    :param scores: (q, n).
    :param spread: of all scores of each row, where these are some of them.

    >>> import numpy as np
    >>> from memlab.retrieve.documents import standardise_rows
    >>> standardise_rows(np.array([[1.0, 3.0], [5.0, 5.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    centred_scores, deviation = _distances_from_mean_and_deviations(scores, spread)
    return np.divide(
        centred_scores, deviation, out=np.zeros_like(centred_scores), where=deviation > 1e-12
    )


def lower_by_deviations(
    scores: np.ndarray, n_deviations: np.ndarray, spread: MeanAndDeviation | None = None
) -> np.ndarray:
    """Subtract ``n_deviations`` (q, n) standard deviations of its row from each score (q, n).

    ``spread`` as above.
    """
    return scores - n_deviations * _distances_from_mean_and_deviations(scores, spread)[1]


def _distances_from_mean_and_deviations(
    scores: np.ndarray, mean_and_deviation_or_none: MeanAndDeviation | None
) -> tuple[np.ndarray, np.ndarray]:
    """Give each row's distances from its mean (q, n), and their standard deviation (q, 1)."""
    if mean_and_deviation_or_none is not None:
        return scores - mean_and_deviation_or_none[0], mean_and_deviation_or_none[1]
    centred_scores = scores - scores.mean(axis=1, keepdims=True, dtype=np.float64)
    return centred_scores, centred_scores.std(axis=1, keepdims=True)


def estimate_mean_and_deviation_of_scope(
    candidate_scores: np.ndarray, n_absent: int, absent_moments: MeanAndMeanSquare | None = None
) -> MeanAndDeviation | None:
    """Estimate the spread of the scores of all documents of a scope from those of its candidates.

    :param candidate_scores: (q, n) of the candidates.
    :param n_absent: how many documents are not among them.
    :param absent_moments: of their scores; by default those of the candidates behind the first 200.
    :returns: ``None`` where all documents are at hand.

    >>> import numpy as np
    >>> from memlab.retrieve.documents import NO_SCORES, estimate_mean_and_deviation_of_scope
    >>> mean, deviation = estimate_mean_and_deviation_of_scope(np.array([[2.0, 2.0]]), 2, NO_SCORES)
    >>> mean.tolist(), deviation.tolist()
    ([[1.0]], [[1.0]])
    """
    if not n_absent:
        return None
    wide_scores = candidate_scores.astype(np.float64)
    n_documents = candidate_scores.shape[1] + n_absent
    if absent_moments is None:
        low_scores = -np.sort(-wide_scores, axis=1)[:, min(HEAD, wide_scores.shape[1] // 2) :]
        absent_moments = (
            low_scores.mean(axis=1, keepdims=True),
            (low_scores**2).mean(axis=1, keepdims=True),
        )
    row_means = (
        wide_scores.sum(axis=1, keepdims=True) + n_absent * absent_moments[0]
    ) / n_documents
    mean_squares = (
        (wide_scores**2).sum(axis=1, keepdims=True) + n_absent * absent_moments[1]
    ) / n_documents
    return row_means, np.sqrt(np.maximum(mean_squares - row_means**2, 0.0))


def first_row_of_each_group(group_of_row: np.ndarray) -> np.ndarray:
    """Give where each group of equal neighbours begins; ``[0]`` where there is nothing."""
    return np.flatnonzero(np.r_[True, group_of_row[1:] != group_of_row[:-1]])


def best_score_per_group(
    scores: np.ndarray, group_of_column: np.ndarray, n_groups: int
) -> np.ndarray:
    """Take the best score of each group of neighbouring columns: (q, n) → (q, n_groups).

    An empty group gets −1.
    """
    best_scores = np.full((len(scores), n_groups), -1.0, scores.dtype)
    if scores.size:
        first_columns = first_row_of_each_group(group_of_column)
        best_scores[:, group_of_column[first_columns]] = np.maximum.reduceat(
            scores, first_columns, axis=1
        )
    return best_scores


def columns_best_first(scores: np.ndarray, tie_order: np.ndarray) -> np.ndarray:
    """Give the columns of each row, the best first: (q, n) → (q, n).

    ``tie_order`` (n,) is the order of columns that tie.
    """
    best_first: np.ndarray = np.lexsort((np.broadcast_to(tie_order, scores.shape), -scores), axis=1)
    return best_first


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
    :param cache: what :func:`memlab.retrieve.bench.cache_per_bench` keeps.
    """

    ids: np.ndarray
    session: np.ndarray
    spans: Mapping[str, tuple[int, int]]
    write: Callable[[], list[str]] = field(repr=False)
    embed: Callable[[], np.ndarray] | None = field(default=None, repr=False)
    centre: Callable[[], np.ndarray] | None = field(default=None, repr=False)
    language: str = "en"
    whole: WordStatistics | None = None
    cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def texts(self) -> list[str]:
        """What BM25 and encoders read: (n,)."""
        return self.write()

    @cached_property
    def embeddings(self) -> np.ndarray | None:
        """(n, d) float32 unit rows; for sessions the normalised mean of their turns.

        ``None`` without an encoder.
        """
        return None if self.embed is None else self.embed()

    @cached_property
    def place_of_id(self) -> pl.DataFrame:
        """The place of each id: ``doc_id``, ``at``."""
        return pl.DataFrame(
            {"doc_id": pl.Series(self.ids, dtype=pl.String), "at": np.arange(len(self.ids))}
        )

    @cached_property
    def tie_order(self) -> np.ndarray:
        """The order in which documents stand that tie: (n,) a permutation, by a seeded hash of
        their texts.

        Not by age, which says where a benchmark put its evidence, and not by id, which in some
        gives the label away. Of equal texts each has a hash of its own.
        """
        copies_by_text: dict[str, int] = {}
        hashes = np.zeros(len(self.ids), np.uint64)
        for place, document_text in enumerate(self.texts):
            copies_by_text[document_text] = copies_by_text.get(document_text, 0) + 1
            hashed_text = f"{TIES}:{copies_by_text[document_text]}:{document_text}".encode(
                "utf-8", "surrogatepass"
            )
            hashes[place] = int.from_bytes(blake2b(hashed_text, digest_size=8).digest())
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

    def words_in(self, scope_span: slice) -> ScopeWords:
        """Give the statistics of words of one scope, whose documents are in ``scope_span``."""
        cache_key = ("words", scope_span.start, scope_span.stop)
        if cache_key not in self.cache:
            self.cache[cache_key] = ScopeWords.of(self.words[scope_span], self.whole)
        scope_words: ScopeWords = self.cache[cache_key]
        return scope_words

    @property
    def n_absent(self) -> int:
        """How many documents the scope has beside these."""
        return 0 if self.whole is None else self.whole.n - len(self.ids)

    def at(self, doc_ids: pl.Series) -> np.ndarray:
        """Give the places of ids.

        :raises DataError: for an id that is not among the documents.
        """
        placed_documents = pl.DataFrame({"doc_id": doc_ids}).join(
            self.place_of_id, on="doc_id", how="left", maintain_order="left"
        )
        if placed_documents["at"].null_count():
            missing_id = doc_ids.filter(placed_documents["at"].is_null())[0]
            raise DataError(
                f"document {missing_id!r} is not in this bench; rank with the dataset that the "
                "bench holds"
            )
        return placed_documents["at"].to_numpy()

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
        return self.embeddings

    def speaker_centred(self) -> np.ndarray:
        """Give what documents are compared with each other by: (n, d) float32 unit rows.

        Of a turn its embedding less the mean of its speaker's in the scope, see
        :mod:`memlab.embed.speaker_centring`; of a session the normalised mean of those of its
        turns.

        :raises DataError: when the bench was made without an encoder.
        """
        centred_vectors = self._cached_speaker_centred
        return self.vectors() if centred_vectors is None else centred_vectors

    @cached_property
    def _cached_speaker_centred(self) -> np.ndarray | None:
        return None if self.centre is None else self.centre()


def build_documents_by_level(
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
    ordered_sessions = sessions.sort("scope", "n", maintain_order=True).with_row_index("session")
    session_numbers = ordered_sessions.select("session_id", "session")
    placed_turns = turns.with_row_index("row").join(
        session_numbers, on="session_id", how="left", maintain_order="left"
    )
    for turn_row in placed_turns.filter(pl.col("session").is_null()).head(1).iter_rows(named=True):
        unlisted_turn = (
            f"turn {turn_row['turn_id']!r} belongs to session {turn_row['session_id']!r}"
        )
        raise DataError(
            f"{unlisted_turn}, which the dataset does not list; list it among the sessions"
        )
    placed_turns = placed_turns.sort("session", "n", maintain_order=True)
    turn_rows, session_of_turn = (
        placed_turns[column_name].to_numpy().astype(np.int64) for column_name in ("row", "session")
    )
    turn_documents = Documents(
        placed_turns["turn_id"].to_numpy(),
        session_of_turn,
        _row_span_by_scope(placed_turns["scope"]),
        write=lambda: turn_texts(placed_turns.drop("row", "session")),
        embed=embed and (lambda: np.ascontiguousarray(embed()[turn_rows])),
        centre=embed
        and (
            lambda: _centre_turns_by_speaker(turn_documents, placed_turns["speaker"], speaker_sums)
        ),
        language=language,
        whole=statistics and statistics.turn,
    )
    session_documents = Documents(
        ordered_sessions["session_id"].to_numpy(),
        np.arange(ordered_sessions.height),
        _row_span_by_scope(ordered_sessions["scope"]),
        write=lambda: session_texts(
            placed_turns.drop("row", "session"), ordered_sessions.drop("session")
        ),
        embed=embed
        and (
            lambda: _unit_group_means(
                turn_documents.vectors(), session_of_turn, ordered_sessions.height
            )
        ),
        centre=embed
        and (
            lambda: _unit_group_means(
                turn_documents.speaker_centred(), session_of_turn, ordered_sessions.height
            )
        ),
        language=language,
        whole=statistics and statistics.session,
    )
    return {"turn": turn_documents, "session": session_documents}


def _row_span_by_scope(scope_of_row: pl.Series) -> dict[str, tuple[int, int]]:
    """Give where each scope's rows begin and end."""
    scope_runs = scope_of_row.rle().struct.unnest()
    span_ends = scope_runs["len"].cum_sum()
    return dict(
        zip(
            scope_runs["value"],
            zip(span_ends - scope_runs["len"], span_ends, strict=True),
            strict=True,
        )
    )


def _centre_turns_by_speaker(
    turn_documents: Documents,
    speaker_of_turn: pl.Series,
    read_scope_sums: Callable[[], SpeakerSums] | None,
) -> np.ndarray:
    """Centre the turns of each scope by their speakers: (n, d).

    :param read_scope_sums: gives those of the whole scope, where these are some turns of one.
    """
    centred_vectors = np.empty_like(turn_documents.vectors())
    scope_sums = read_scope_sums and read_scope_sums()
    for scope_start, scope_end in turn_documents.spans.values():
        centred_vectors[scope_start:scope_end] = centre_by_speaker(
            turn_documents.vectors()[scope_start:scope_end],
            speaker_of_turn[scope_start:scope_end],
            sums=scope_sums,
        )
    return centred_vectors


def _unit_group_means(unit_rows: np.ndarray, group_of_row: np.ndarray, n_groups: int) -> np.ndarray:
    """Average unit rows within groups and normalise: (n_groups, d).

    A group without rows gives zeros.
    """
    from scipy.sparse import csr_array

    membership = csr_array(
        (np.ones(len(group_of_row), np.float32), (group_of_row, np.arange(len(group_of_row)))),
        shape=(n_groups, len(group_of_row)),
    )
    return scale_to_unit(np.asarray(membership @ unit_rows, dtype=np.float32))
