"""In which turns of a scope a word or a token stands: ``store.postings``, what looks through a large scope at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.embed.base import Encoder
from memlab.store.database import Database, Part
from memlab.store.registry import matching, text_hashes

Posting = tuple[str, np.ndarray, np.ndarray]
"""A term, the turns that it stands in, and how often in each."""


class Shared(NamedTuple):
    """What every question needs of a scope.

    :param ids: of its n turns, in its order.
    :param turns: (n,) words of each.
    :param sessions: (m,) words of each session.
    :param tokens: (v,) numbers of the tokens that are there.
    :param means: (v, d) float32 mean of the signs of each.
    :param codes: (w, n) uint64, the signs of the turns' vectors, 64 a row.
    """

    ids: pl.Series
    turns: np.ndarray
    sessions: np.ndarray
    tokens: np.ndarray
    means: np.ndarray
    codes: np.ndarray


class Postings(Part):
    """The turns of terms, of a scope as it was when they were kept: of another state of its dataset there are none."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._shared: tuple[tuple[str, str], Shared] | None = None
        self._named: tuple[tuple[Any, ...], str | None] = (), None

    def keep(self, encoder: Encoder, dataset: str, scope: str, terms: Iterable[Posting], shared: Shared) -> None:
        """Keep where the terms of a scope stand, in place of what was kept of it.

        :param terms: each term once.
        :param shared: what :meth:`shared` gives back.
        """
        import pyarrow as pa
        from lancedb.index import BTree

        with self.database.guarded("keeping postings", writes="keeping postings"):
            if (key := self._key(dataset, scope)) is None:
                return
            table = self.database.cache("postings", encoder.identity.key)
            of = text_hashes([f"{dataset}\x1f{scope}"])[0]
            rows: list[tuple[str, Any, Any]] = [
                (f"{key}:{t}", turns.astype(np.int32), counts.astype(np.uint8)) for t, turns, counts in terms
            ]
            rows += [
                (key, "\x1f".join(shared.ids).encode(), shared.means.astype(np.float16)),
                (f"{key}:", shared.turns.astype(np.int32), shared.sessions.astype(np.int32)),
                (f"{key}::", shared.codes, shared.tokens.astype(np.int32)),
            ]
            names, turns, counts = zip(*rows, strict=True)
            columns = [names, [of] * len(names), [bytes(a) for a in turns], [bytes(a) for a in counts]]
            made = pa.table(dict(zip(table.schema.names, columns, strict=True)), schema=table.schema)
            self.database.retried(lambda: table.delete(matching(scope=of)))
            self.database.retried(lambda: table.add(made))
            if not table.list_indices():
                table.create_index("key", config=BTree())
            table.optimize(cleanup_older_than=timedelta(minutes=10))
        self._shared = None

    def shared(self, encoder: Encoder, dataset: str, scope: str) -> Shared | None:
        """Give what every question needs, read once.

        :returns: ``None`` where nothing was kept of the dataset as it is now.
        """
        name = f"postings_{encoder.identity.key}"
        with self.database.guarded("reading postings"):
            if (key := self._key(dataset, scope)) is None:
                return None
            if self._shared is None or self._shared[0] != (name, key):
                if name not in self.database.names():
                    return None
                rows = {k: row for k, *row in self._rows(encoder, [key, f"{key}:", f"{key}::"])}
                if len(rows) < 3:  # not of the dataset as it is now
                    return None
                ids = pl.Series([rows[key][0].decode()]).str.split("\x1f").explode()
                turns, sessions = (np.frombuffer(own, np.int32) for own in rows[f"{key}:"])
                means = np.frombuffer(rows[key][1], np.float16).astype(np.float32)
                codes = np.frombuffer(rows[f"{key}::"][0], np.uint64).reshape(-1, len(turns))
                if len(ids) != len(turns):
                    return None  # an id holds the sign that parts them
                tokens, width = np.frombuffer(rows[f"{key}::"][1], np.int32), 8 * -(-encoder.dim // 8)
                self._shared = (name, key), Shared(ids, turns, sessions, tokens, means.reshape(-1, width), codes)
            return self._shared[1]

    def read(self, encoder: Encoder, dataset: str, scope: str, terms: Sequence[str]) -> dict[str, Posting]:
        """Give the postings of some terms, of those that the scope has."""
        key = self._key(dataset, scope)
        with self.database.guarded("reading postings"):
            rows = self._rows(encoder, [f"{key}:{term}" for term in terms])
            each = (
                (k.removeprefix(f"{key}:"), np.frombuffer(t, np.int32), np.frombuffer(c, np.uint8)) for k, t, c in rows
            )
            return {row[0]: row for row in each}

    def _rows(self, encoder: Encoder, keys: list[str]) -> Iterator[tuple[str, bytes, bytes]]:
        cache = self.database.cache("postings", encoder.identity.key)
        query = cache.search().where(matching(key=keys)).select(["key", "turns", "counts"])
        yield from query.to_polars().iter_rows()

    def _key(self, dataset: str, scope: str) -> str | None:
        """Name a scope as it is now; ``None`` where its dataset is not whole."""
        now = dataset, scope, self.database.table("datasets").version
        if self._named[0] != now:
            listed = self.database.read("datasets", ["fingerprint", "language"], name=dataset).drop_nulls("fingerprint")
            names = ["\x1f".join((dataset, scope, *map(str, row))) for row in listed.iter_rows()]
            self._named = now, next(iter(text_hashes(names)), None)
        return self._named[1]
