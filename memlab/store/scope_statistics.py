"""How often words and tokens stand in the documents of a scope, counted once for a large one.

A question of a large scope is compared with some of its turns, and their scores need what holds for
all of them. The counts are kept when the full-text index is filled, and are those of the turns in
it; turns that came or went since then are counted whenever they are read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.embed.encoder import Encoder
from memlab.embed.turn_texts import session_texts
from memlab.records import encode_id_part
from memlab.store.database import Database
from memlab.store.dataset_rows import CURRENT_VERSIONS, read_dataset_entry, read_dataset_rows
from memlab.store.full_text_index import LOOKUP, TextIndex, VersionedReads
from memlab.store.table_schemas import TABLES
from memlab.text.bm25_formula import WordStatistics
from memlab.text.text_analyser import ANALYSER, tokenize

KEPT_FROM = 10_000
"""Turns of a scope from which its counts are kept: to count fewer takes less than a second."""

_log = logging.getLogger(__name__)


TurnsAndTokenCounts = tuple[int, np.ndarray]
"""How many turns were counted, and in how many of them each token of the vocabulary stands."""


class TokenStatistics(NamedTuple):
    """How often an encoder's tokens stand in the turns of a scope.

    :param n: how many turns were counted.
    :param frequency: (v + 1,) in how many of them each token stands; the last for tokens of none.
    """

    n: int
    frequency: np.ndarray


class ScopeStatistics(NamedTuple):
    """What is known of all documents of a scope.

    :param turn: of the words of its turns, ``session`` of those of its sessions.
    :param tokens: ``None`` where they were not counted.
    """

    turn: WordStatistics
    session: WordStatistics
    tokens: TokenStatistics | None = None


class Statistics(VersionedReads):
    """The counts of scopes: ``store.search.statistics``."""

    def __init__(self, database: Database, text: TextIndex) -> None:
        super().__init__(database)
        self.text = text

    def read_or_count_scope_statistics(
        self, dataset: str, scope: str, *, language: str, encoder: Encoder | None = None
    ) -> ScopeStatistics:
        """Give the counts of a scope as it is.

        :param language: that its words are read in.
        :param encoder: whose tokens are counted.
        """
        word_statistics = self._call_once_per_search_state(
            self._turn_and_session_word_statistics, dataset, scope, language
        )
        token_statistics = None
        if encoder is not None:
            token_statistics = self._call_once_per_search_state(
                self._read_token_counts_warning_if_stale, dataset, scope, encoder.identity.key
            )
        return ScopeStatistics(*word_statistics, token_statistics)

    def _turn_and_session_word_statistics(
        self, dataset: str, scope: str, language: str
    ) -> tuple[WordStatistics, WordStatistics]:
        turn_statistics = self._read_word_counts_if_current(dataset, scope, f"turn/{language}")
        session_statistics = self._read_word_counts_if_current(
            dataset, scope, f"session/{language}"
        )
        if (
            turn_statistics is None
            or session_statistics is None
            or not self.text.has_index(language)
        ):
            scope_texts = self.database.read_table(
                "turns", ["content"], dataset=dataset, scope=scope
            )
            split_words = _tokenize_in_parts(scope_texts["content"].to_list(), language)
            return WordStatistics.of(split_words), self._count_words_of_sessions(
                dataset, scope, language
            )
        index_difference = self.text.compare_turns_with_index(dataset, scope)
        added_statistics = WordStatistics.of(index_difference.added["words"])
        removed_statistics = WordStatistics.of(index_difference.removed["words"])
        turn_statistics = turn_statistics.changed(added_statistics, removed_statistics)
        if index_difference.removed.height:  # what their sessions were like is not known
            return turn_statistics, self._count_words_of_sessions(dataset, scope, language)
        if index_difference.added.is_empty():
            return turn_statistics, session_statistics
        grown_sessions = index_difference.added["session_id"].unique()
        added_keys = index_difference.added["key"]
        grown_statistics = self._count_words_of_sessions(
            dataset, scope, language, only_sessions=grown_sessions
        )
        earlier_statistics = self._count_words_of_sessions(
            dataset, scope, language, only_sessions=grown_sessions, without_turn_keys=added_keys
        )
        return turn_statistics, session_statistics.changed(grown_statistics, earlier_statistics)

    def _count_words_of_sessions(
        self,
        dataset: str,
        scope: str,
        language: str,
        *,
        only_sessions: pl.Series | None = None,
        without_turn_keys: pl.Series | None = None,
    ) -> WordStatistics:
        """Count the words of a scope's sessions.

        :param only_sessions: ids of those that are counted; all by default.
        :param without_turn_keys: keys of turns that are not, nor are sessions of such turns alone.
        """
        text_parts = self._compose_session_texts_in_parts(
            dataset, scope, only_sessions, without_turn_keys
        )
        part_words = (tokenize(texts, language=language) for texts in text_parts)
        return WordStatistics.of(chain.from_iterable(part_words))

    def _compose_session_texts_in_parts(
        self,
        dataset: str,
        scope: str,
        only_sessions: pl.Series | None,
        without_turn_keys: pl.Series | None,
    ) -> Iterator[list[str]]:
        """Write the texts of a scope's sessions, some thousand turns at a time."""
        session_rows = read_dataset_rows(
            self.database, "sessions", dataset, scopes=[scope], versions=CURRENT_VERSIONS
        )
        if only_sessions is not None:
            session_rows = session_rows.filter(pl.col("session_id").is_in(only_sessions.implode()))
        part_number = pl.col("n_turns").cum_sum() // LOOKUP
        for sessions in session_rows.with_columns(part=part_number).partition_by(
            "part", include_key=False
        ):
            session_turns = self.database.read_table(
                "turns",
                ["key", "scope", "session_id", "speaker", "text", "caption", "timestamp"],
                dataset=dataset,
                scope=scope,
                session_id=sessions["session_id"],
            )
            if without_turn_keys is not None:
                session_turns = session_turns.filter(
                    ~pl.col("key").is_in(without_turn_keys.implode())
                )
                sessions = sessions.join(
                    session_turns, on="session_id", how="semi", maintain_order="left"
                )
            yield session_texts(session_turns, sessions)

    def count_and_keep_words_of_large_scopes(self, dataset: str) -> None:
        """Keep the counts of the large scopes of a dataset, of the turns in the full-text index."""
        language = read_dataset_entry(self.database, dataset)["language"]
        table_name = self.text.open_or_create_words_table(language).name
        text_state = self.text.state_of_indexed_words_or_empty(dataset)
        session_sizes = read_dataset_rows(
            self.database, "sessions", dataset, versions=CURRENT_VERSIONS
        )
        scope_sizes = session_sizes.group_by("scope").agg(pl.col("n_turns").sum())
        for scope in scope_sizes.filter(pl.col("n_turns") >= KEPT_FROM)["scope"].sort():
            indexed_words = self.database.read_table(
                table_name, ["words"], dataset=dataset, scope=scope
            )
            turn_statistics = WordStatistics.of(indexed_words["words"].str.extract_all(r"\S+"))
            session_statistics = self._count_words_of_sessions(dataset, scope, language)
            for level, level_statistics in (
                ("turn", turn_statistics),
                ("session", session_statistics),
            ):
                self._upsert_scope_counts(
                    dataset,
                    scope,
                    f"{level}/{language}",
                    state=text_state,
                    n=level_statistics.n,
                    length=level_statistics.length,
                    squares=level_statistics.squares,
                    names=list(level_statistics.frequency),
                    frequency=list(level_statistics.frequency.values()),
                )

    def sum_and_keep_token_counts(
        self,
        dataset: str,
        scope: str,
        encoder: Encoder,
        counts_of_parts: Sequence[TurnsAndTokenCounts],
        *,
        part_digests: Sequence[str] = (),
    ) -> None:
        """Keep how often an encoder's tokens stand in the turns of a scope.

        :param counts_of_parts: of the scope: how many turns each has, and in how many of them each
            token of the vocabulary stands.
        :param part_digests: of all parts that these are the sum of, where each says what it is.
        """
        n_turns, frequency = sum_token_counts(counts_of_parts)
        dataset_entry = read_dataset_entry(self.database, dataset)
        fingerprint = dataset_entry["fingerprint"] if dataset_entry["complete"] else ""
        encoder_key = encoder.identity.key
        self._upsert_scope_counts(
            dataset,
            scope,
            encoder_key,
            state=fingerprint,
            n=n_turns,
            names=[*part_digests],
            frequency=frequency.tolist(),
        )

    def read_summed_token_counts(
        self, dataset: str, scope: str, encoder: Encoder
    ) -> tuple[TurnsAndTokenCounts, list[str]] | None:
        """Give what :meth:`sum_and_keep_token_counts` kept: the sum, and the digests of its parts.

        :returns: ``None`` where nothing is kept, or not of which parts it is the sum.
        """
        kept_row = self._read_kept_counts_unchecked_or_empty(dataset, scope, encoder.identity.key)
        if not kept_row or not kept_row["names"]:
            return None
        return (kept_row["n"], np.array(kept_row["frequency"], np.int64)), kept_row["names"]

    def read_counted_part_digests(self, dataset: str, scope: str, counting_recipe: str) -> set[str]:
        """Give the digests of the parts of a scope that were counted.

        :param counting_recipe: what the counts depend on beside the texts.
        """
        part_filter: dict[str, Any] = {"dataset": dataset, "scope": scope, "of": counting_recipe}
        return {*self.database.read_table("statistics", ["state"], **part_filter)["state"]}

    def read_token_counts_by_part_digest(
        self, dataset: str, scope: str, counting_recipe: str, *, digests: Iterable[str]
    ) -> dict[str, TurnsAndTokenCounts]:
        """Give what was counted of some parts of a scope, by a digest of what each says.

        :param counting_recipe: what the counts depend on beside the texts.
        :param digests: of the parts.
        :returns: for each its turns, and in how many of them each token of the vocabulary stands.
        """
        statistics_key = _counts_key(dataset, scope, counting_recipe)
        keys = [f"{statistics_key}/{digest}" for digest in digests]
        columns = ["state", "n", "length", "frequency"]
        rows = self.database.read_table("statistics", columns, key=keys).sort("state")
        parts: dict[str, TurnsAndTokenCounts] = {}
        for row_number, (state, n_turns, length) in enumerate(rows.select(columns[:3]).iter_rows()):
            # Tokens and how often each stands, those that stand nowhere left out.
            tokens, token_counts = rows["frequency"][row_number].to_numpy().reshape(2, -1)
            frequency = np.zeros(length, np.int64)
            frequency[tokens] = token_counts
            parts[state] = n_turns, frequency
        return parts

    def keep_token_counts_by_part(
        self,
        dataset: str,
        scope: str,
        counting_recipe: str,
        counts_by_part_digest: Mapping[str, TurnsAndTokenCounts],
    ) -> None:
        """Keep what was counted of parts of a scope.

        :param counts_by_part_digest: as :meth:`read_token_counts_by_part_digest` gives them.
        """
        part_names = {"dataset": dataset, "scope": scope, "of": counting_recipe}
        statistics_key = _counts_key(dataset, scope, counting_recipe)
        part_rows: list[dict[str, Any]] = []
        for digest, (n_turns, frequency) in counts_by_part_digest.items():
            tokens = np.flatnonzero(frequency)
            part_columns = {"state": digest, "n": n_turns, "length": len(frequency)}
            part_columns["frequency"] = [*tokens.tolist(), *frequency[tokens].tolist()]
            part_rows.append({"key": f"{statistics_key}/{digest}", **part_names, **part_columns})
        with self.database.translating_errors(
            "keeping statistics", refused_write="keeping statistics"
        ):
            if part_rows:
                columns = dict(TABLES["statistics"].columns)
                self.database.upsert_rows("statistics", pl.DataFrame(part_rows, schema=columns))

    def remove_token_counts_of_parts(
        self, dataset: str, scope: str, counting_recipe: str, digests: Iterable[str]
    ) -> None:
        """Remove what was counted of parts that a scope has no more."""
        statistics_key = _counts_key(dataset, scope, counting_recipe)
        with self.database.translating_errors(
            "keeping statistics", refused_write="keeping statistics"
        ):
            keys = [f"{statistics_key}/{digest}" for digest in digests]
            self.database.delete_rows("statistics", key=keys)

    def _upsert_scope_counts(
        self, dataset: str, scope: str, level_or_encoder_key: str, **counts: Any
    ) -> None:
        named_columns = {"dataset": dataset, "scope": scope, "of": level_or_encoder_key}
        with self.database.translating_errors(
            "keeping statistics", refused_write="keeping statistics"
        ):
            self.database.upsert_row(
                "statistics",
                _counts_key(dataset, scope, level_or_encoder_key),
                **named_columns,
                **counts,
            )

    def _read_kept_counts_unchecked_or_empty(
        self, dataset: str, scope: str, level_or_encoder_key: str
    ) -> dict[str, Any]:
        columns = ["n", "length", "squares", "names", "frequency", "state"]
        kept_rows = self.database.read_table(
            "statistics", columns, key=_counts_key(dataset, scope, level_or_encoder_key)
        )
        return kept_rows.row(0, named=True) if kept_rows.height else {}

    def _read_word_counts_if_current(
        self, dataset: str, scope: str, level_and_language: str
    ) -> WordStatistics | None:
        kept_row = self._read_kept_counts_unchecked_or_empty(dataset, scope, level_and_language)
        if (
            not kept_row
            or not kept_row["state"]
            or kept_row["state"] != self.text.state_of_indexed_words_or_empty(dataset)
        ):
            return None
        frequency = Counter(dict(zip(kept_row["names"], kept_row["frequency"], strict=True)))
        return WordStatistics(kept_row["n"], kept_row["length"], kept_row["squares"], frequency)

    def _read_token_counts_warning_if_stale(
        self, dataset: str, scope: str, encoder_key: str
    ) -> TokenStatistics | None:
        dataset_entry = read_dataset_entry(self.database, dataset)
        kept_row = self._read_kept_counts_unchecked_or_empty(dataset, scope, encoder_key)
        if not kept_row:
            _log.warning(
                "tokens of scope %s of %s were not counted; those of the candidates are taken: "
                "`memlab ingest` counts all",
                scope,
                dataset,
            )
            return None
        if not dataset_entry["complete"] or kept_row["state"] != dataset_entry["fingerprint"]:
            _log.warning(
                "scope %s of %s changed since its tokens were counted; `memlab ingest` counts them",
                scope,
                dataset,
            )
        return TokenStatistics(kept_row["n"], np.array(kept_row["frequency"], np.float64))


def sum_token_counts(counts_of_parts: Sequence[TurnsAndTokenCounts]) -> TurnsAndTokenCounts:
    """Add up what was counted of parts.

    >>> import numpy as np
    >>> from memlab.store.scope_statistics import sum_token_counts
    >>> n_turns, frequency = sum_token_counts([(2, np.array([1, 2])), (1, np.array([0, 1, 1]))])
    >>> n_turns, frequency.tolist()
    (3, [1, 3, 1])
    """
    longest = max((len(frequency) for _, frequency in counts_of_parts), default=0)
    summed = np.zeros(longest, np.int64)
    for _, frequency in counts_of_parts:
        summed[: len(frequency)] += frequency
    return sum(n_turns for n_turns, _ in counts_of_parts), summed


def _counts_key(dataset: str, scope: str, level_or_encoder_key: str) -> str:
    return f"{ANALYSER}:{level_or_encoder_key}:{encode_id_part(dataset)}/{scope}"


def _tokenize_in_parts(texts: list[str], language: str) -> Iterator[list[str]]:
    """Give the words of each text; some thousand texts at a time, since lists are large."""
    for part_start in range(0, len(texts), LOOKUP):
        yield from tokenize(texts[part_start : part_start + LOOKUP], language=language)
