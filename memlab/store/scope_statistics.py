"""How often words and tokens stand in the documents of a scope, counted once for a large one.

A question of a large scope is compared with some of its turns, and their scores need what holds for
all of them. The counts are kept when the full-text index is filled, and are those of the turns in
it; turns that came or went since then are counted whenever they are read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.embed.encoder import Encoder
from memlab.embed.turn_texts import session_texts
from memlab.records import encode_id_part
from memlab.store.database import Database
from memlab.store.dataset_rows import CURRENT_VERSIONS, read_dataset_entry, read_rows
from memlab.store.schemas import TABLES
from memlab.store.text_index import LOOKUP, TextIndex, VersionedReads
from memlab.text.analysis import ANALYSER, tokenize
from memlab.text.bm25_formula import WordStatistics

KEPT_FROM = 10_000
"""Turns of a scope from which its counts are kept: to count fewer takes less than a second."""

_log = logging.getLogger(__name__)


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

    def read(
        self, dataset: str, scope: str, *, language: str, encoder: Encoder | None = None
    ) -> ScopeStatistics:
        """Give the counts of a scope as it is.

        :param language: that its words are read in.
        :param encoder: whose tokens are counted.
        """
        words = self._known(self._words, dataset, scope, language)
        tokens = None
        if encoder is not None:
            tokens = self._known(self._tokens, dataset, scope, encoder.identity.key)
        return ScopeStatistics(*words, tokens)

    def _words(
        self, dataset: str, scope: str, language: str
    ) -> tuple[WordStatistics, WordStatistics]:
        turn = self._kept_words(dataset, scope, f"turn/{language}")
        session = self._kept_words(dataset, scope, f"session/{language}")
        if turn is None or session is None or not self.text.there(language):
            texts = self.database.read("turns", ["content"], dataset=dataset, scope=scope)
            words = _split_in_parts(texts["content"].to_list(), language)
            return WordStatistics.of(words), self._count_sessions(dataset, scope, language)
        delta = self.text.delta(dataset, scope)
        came = WordStatistics.of(delta.added["words"])
        went = WordStatistics.of(delta.removed["words"])
        turn = turn.changed(came, went)
        if delta.removed.height:  # what their sessions were like is not known
            return turn, self._count_sessions(dataset, scope, language)
        if delta.added.is_empty():
            return turn, session
        grown, came_keys = delta.added["session_id"].unique(), delta.added["key"]
        now = self._count_sessions(dataset, scope, language, only=grown)
        was = self._count_sessions(dataset, scope, language, only=grown, without=came_keys)
        return turn, session.changed(now, was)

    def _count_sessions(
        self,
        dataset: str,
        scope: str,
        language: str,
        *,
        only: pl.Series | None = None,
        without: pl.Series | None = None,
    ) -> WordStatistics:
        """Count the words of a scope's sessions.

        :param only: ids of those that are counted; all by default.
        :param without: keys of turns that are not, nor are sessions of such turns alone.
        """
        parts = self._session_texts(dataset, scope, only, without)
        words = (tokenize(texts, language=language) for texts in parts)
        return WordStatistics.of(chain.from_iterable(words))

    def _session_texts(
        self, dataset: str, scope: str, only: pl.Series | None, without: pl.Series | None
    ) -> Iterator[list[str]]:
        """Write the texts of a scope's sessions, some thousand turns at a time."""
        listed = read_rows(self.database, "sessions", dataset, scopes=[scope], at=CURRENT_VERSIONS)
        if only is not None:
            listed = listed.filter(pl.col("session_id").is_in(only.implode()))
        part = pl.col("n_turns").cum_sum() // LOOKUP
        for sessions in listed.with_columns(part=part).partition_by("part", include_key=False):
            turns = self.database.read(
                "turns",
                ["key", "scope", "session_id", "speaker", "text", "caption", "timestamp"],
                dataset=dataset,
                scope=scope,
                session_id=sessions["session_id"],
            )
            if without is not None:
                turns = turns.filter(~pl.col("key").is_in(without.implode()))
                sessions = sessions.join(turns, on="session_id", how="semi", maintain_order="left")
            yield session_texts(turns, sessions)

    def keep(self, dataset: str) -> None:
        """Keep the counts of the large scopes of a dataset, of the turns in the full-text index."""
        language = read_dataset_entry(self.database, dataset)["language"]
        name, state = self.text.table(language).name, self.text.state(dataset)
        sizes = read_rows(self.database, "sessions", dataset, at=CURRENT_VERSIONS)
        large = sizes.group_by("scope").agg(pl.col("n_turns").sum())
        for scope in large.filter(pl.col("n_turns") >= KEPT_FROM)["scope"].sort():
            filled = self.database.read(name, ["words"], dataset=dataset, scope=scope)
            turn = WordStatistics.of(filled["words"].str.extract_all(r"\S+"))
            session = self._count_sessions(dataset, scope, language)
            for level, counted in (("turn", turn), ("session", session)):
                self._keep(
                    dataset,
                    scope,
                    f"{level}/{language}",
                    state=state,
                    n=counted.n,
                    length=counted.length,
                    squares=counted.squares,
                    names=list(counted.frequency),
                    frequency=list(counted.frequency.values()),
                )

    def keep_tokens(
        self,
        dataset: str,
        scope: str,
        encoder: Encoder,
        parts: Sequence[tuple[int, np.ndarray]],
    ) -> None:
        """Keep how often an encoder's tokens stand in the turns of a scope.

        :param parts: of the scope: how many turns each has, and in how many of them each token of
            the vocabulary stands.
        """
        frequency = np.zeros(max(len(each) for _, each in parts), np.int64)
        for _, each in parts:
            frequency[: len(each)] += each
        n = sum(turns for turns, _ in parts)
        about = read_dataset_entry(self.database, dataset)
        state = about["fingerprint"] if about["complete"] else ""
        of = encoder.identity.key
        self._keep(dataset, scope, of, state=state, n=n, frequency=frequency.tolist())

    def kept_parts(self, dataset: str, scope: str, of: str) -> dict[str, tuple[int, np.ndarray]]:
        """Give what was counted of the parts of a scope, by a digest of what each says.

        :param of: what the counts depend on beside the texts.
        :returns: for each its turns, and in how many of them each token of the vocabulary stands.
        """
        where: dict[str, Any] = {"dataset": dataset, "scope": scope, "of": of}
        columns = ["state", "n", "length", "frequency"]
        rows = self.database.read("statistics", columns, **where).sort("state")
        parts: dict[str, tuple[int, np.ndarray]] = {}
        for row, (state, n, length) in enumerate(rows.select(columns[:3]).iter_rows()):
            # Tokens and how often each stands, those that stand nowhere left out.
            tokens, often = rows["frequency"][row].to_numpy().reshape(2, -1)
            frequency = np.zeros(length, np.int64)
            frequency[tokens] = often
            parts[state] = n, frequency
        return parts

    def keep_parts(
        self, dataset: str, scope: str, of: str, parts: Mapping[str, tuple[int, np.ndarray]]
    ) -> None:
        """Keep what was counted of the parts of a scope, and nothing of other parts.

        :param parts: as :meth:`kept_parts` gives them.
        """
        known = self.kept_parts(dataset, scope, of)
        where = {"dataset": dataset, "scope": scope, "of": of}
        key = _key(dataset, scope, of)
        rows: list[dict[str, Any]] = []
        for digest in parts.keys() - known.keys():
            n, frequency = parts[digest]
            tokens = np.flatnonzero(frequency)
            counted = {"state": digest, "n": n, "length": len(frequency)}
            counted["frequency"] = [*tokens.tolist(), *frequency[tokens].tolist()]
            rows.append({"key": f"{key}/{digest}", **where, **counted})
        gone = [f"{key}/{digest}" for digest in known.keys() - parts.keys()]
        with self.database.guarded("keeping statistics", writes="keeping statistics"):
            if rows:
                columns = dict(TABLES["statistics"].columns)
                self.database.write("statistics", pl.DataFrame(rows, schema=columns))
            self.database.delete("statistics", key=gone)

    def _keep(self, dataset: str, scope: str, of: str, **values: Any) -> None:
        named = {"dataset": dataset, "scope": scope, "of": of}
        with self.database.guarded("keeping statistics", writes="keeping statistics"):
            self.database.write_row("statistics", _key(dataset, scope, of), **named, **values)

    def _kept(self, dataset: str, scope: str, of: str) -> dict[str, Any]:
        columns = ["n", "length", "squares", "names", "frequency", "state"]
        rows = self.database.read("statistics", columns, key=_key(dataset, scope, of))
        return rows.row(0, named=True) if rows.height else {}

    def _kept_words(self, dataset: str, scope: str, of: str) -> WordStatistics | None:
        row = self._kept(dataset, scope, of)
        if not row or not row["state"] or row["state"] != self.text.state(dataset):
            return None
        frequency = Counter(dict(zip(row["names"], row["frequency"], strict=True)))
        return WordStatistics(row["n"], row["length"], row["squares"], frequency)

    def _tokens(self, dataset: str, scope: str, encoder: str) -> TokenStatistics | None:
        about, row = read_dataset_entry(self.database, dataset), self._kept(dataset, scope, encoder)
        if not row:
            _log.warning(
                "tokens of scope %s of %s were not counted; those of the candidates are taken: "
                "`memlab ingest` counts all",
                scope,
                dataset,
            )
            return None
        if not about["complete"] or row["state"] != about["fingerprint"]:
            _log.warning(
                "scope %s of %s changed since its tokens were counted; `memlab ingest` counts them",
                scope,
                dataset,
            )
        return TokenStatistics(row["n"], np.array(row["frequency"], np.float64))


def _key(dataset: str, scope: str, of: str) -> str:
    return f"{ANALYSER}:{of}:{encode_id_part(dataset)}/{scope}"


def _split_in_parts(texts: list[str], language: str) -> Iterator[list[str]]:
    """Give the words of each text; some thousand texts at a time, since lists are large."""
    for start in range(0, len(texts), LOOKUP):
        yield from tokenize(texts[start : start + LOOKUP], language=language)
