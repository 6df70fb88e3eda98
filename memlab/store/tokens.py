"""The cache of token embeddings: what was read once is not read again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.base import Kind, check_texts
from memlab.embed.tokens import TokenEncoder, TokenVectors, compressed, joined
from memlab.store import caches
from memlab.store.database import Database, Part
from memlab.store.registry import text_hashes
from memlab.store.rows import Rows

CHUNK = 512
"""Texts that an interruption can lose: about ten seconds of a small model on two cores."""

RECENT = 8_192
"""Texts whose tokens are kept in memory, and as many that were asked for before: 1.5 kB each for a turn of LoCoMo."""

_READING = timedelta(minutes=10)  # that somebody may still read an earlier version
_VERSION = 2  # of what is kept of a text


class Tokens(Part):
    """Token embeddings through the cache of a store: ``store.tokens``."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._rows = Rows(database)
        self._recent: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        self._before: dict[tuple[str, str], tuple[bytes, bytes]] = {}

    def encode(
        self,
        encoder: TokenEncoder,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts; see :class:`memlab.embed.tokens.TokenEncoder`.

        :param texts: n texts; what stands in the cache, or twice among them, is not encoded again.
        :returns: of questions the vectors, of documents their codes: see :func:`memlab.embed.tokens.compressed`.
        """
        from tqdm.auto import tqdm

        database = self.database
        texts = check_texts(texts, kind)
        context = [""] * len(texts) if before is None else check_texts(before, kind)
        keys = text_hashes(f"{_VERSION}:{kind}:{lead}\x1e{text}" for lead, text in zip(context, texts, strict=True))
        first = {key: row for row, key in reversed(list(enumerate(keys)))}
        cache = None
        with database.remembering("tokens"):
            cache = database.cache("tokens", encoder.identity.key)
        with database.guarded("reading the token cache"):
            order, parts = self._read(cache, encoder, list(first), kind) if cache is not None else ([], [])
        present = set(order)
        missing = [key for key in dict.fromkeys(keys) if key not in present]
        label = f"tokens {encoder.identity.key}"
        with tqdm(total=len(missing), desc=label, unit=" texts", disable=not progress or len(missing) < 256) as bar:
            step = getattr(encoder, "together", CHUNK) if missing else CHUNK
            for at in range(0, len(missing), step):
                chunk = missing[at : at + step]
                asked, leads = [texts[first[key]] for key in chunk], [context[first[key]] for key in chunk]
                made = encoder.encode_tokens(asked, before=leads, kind=kind, progress=False)
                made = compressed(made) if kind == "document" else made
                if cache is not None and not database.read_only:
                    with database.remembering("tokens"):
                        columns = (_bytes(rows, made.start) for rows in (made.ids, made.vectors))
                        caches.remember(database, cache, chunk, *columns)
                parts.append(made)
                bar.update(len(chunk))
        place = {key: i for i, key in enumerate((*order, *missing))}
        return joined(parts, encoder.dim).take(np.array([place[key] for key in keys], np.int64))

    def arrange(self, encoder: TokenEncoder) -> None:
        """Join the small files that tokens were written to and index them, so that a lookup opens few."""
        from lancedb.index import BTree

        database = self.database
        with database.guarded("arranging the token cache", writes="arranging tokens"):
            cache = database.cache("tokens", encoder.identity.key)
            if cache.count_rows():
                if not cache.list_indices():
                    cache.create_index("key", config=BTree())
                cache.optimize(cleanup_older_than=_READING)

    def _read(
        self, cache: Any, encoder: TokenEncoder, keys: list[str], kind: Kind
    ) -> tuple[list[str], list[TokenVectors]]:
        """Read what the cache has of some keys: which, and their tokens, as columns.

        Of a few, what was read lately is not read again: what stands under a key never changes.
        """
        if len(keys) > caches.LOOKUP:
            read = [part for part in caches.read(cache, keys) if part.height]
            rows = pl.concat(read).unique("key", maintain_order=True) if read else pl.DataFrame()
            return _columns(rows["key"], rows["ids"], rows["vectors"], kind) if read else ([], [])
        of, before = encoder.identity.key, self._before
        known = {key: self._recent.get((of, key)) or before.get((of, key)) for key in keys}
        found = {key: row for key, row in known.items() if row is not None}
        if len(found) < len(keys):
            rows = self._rows.read(cache, "key", [key for key in keys if key not in found], ("key", "ids", "vectors"))
            found |= {key: (ids, vectors) for key, ids, vectors in rows.iter_rows()}
        if len(self._recent) > RECENT:
            self._recent, self._before = {}, self._recent
        self._recent |= {(of, key): row for key, row in found.items()}
        if not found:
            return [], []
        ids, vectors = zip(*found.values(), strict=True)
        return _columns(list(found), ids, vectors, kind)


def _columns(
    keys: Iterable[str], ids: Iterable[bytes], vectors: Iterable[bytes], kind: Kind
) -> tuple[list[str], list[TokenVectors]]:
    """Put the tokens of texts behind each other."""
    numbers, stored = np.frombuffer(b"".join(ids), np.int32), np.frombuffer(b"".join(vectors), np.uint8)
    stored = stored if kind == "document" else stored.view(np.float16)
    start = np.r_[0, np.cumsum([len(row) // numbers.itemsize for row in ids], dtype=np.int64)]
    return list(keys), [TokenVectors(numbers, stored.reshape(len(numbers), -1 if len(numbers) else 0), start)]


def _bytes(rows: np.ndarray, start: np.ndarray) -> list[bytes]:
    """Give the rows of each text as bytes."""
    return [rows[slice(*ends)].tobytes() for ends in pairwise(start.tolist())]
