"""The cache of token embeddings: what was encoded once is not encoded again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

import numpy as np
import polars as pl

from memlab.embed.base import Kind, check_texts
from memlab.embed.token_vectors import TokenEncoder, TokenVectors, compress_tokens, concat_tokens
from memlab.store.caches import Cache
from memlab.store.database import TableGroup
from memlab.store.schemas import text_hashes

CHUNK = 512
"""Texts that an encoder is asked for at a time: about ten seconds of a small model on two cores."""

_READING = timedelta(minutes=10)  # that somebody may still read an earlier version
_VERSION = 2  # of what is kept of a text


class Tokens(TableGroup):
    """Token embeddings through the cache of a store: ``store.tokens``."""

    def encode(
        self,
        encoder: TokenEncoder,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts; see :class:`memlab.embed.token_vectors.TokenEncoder`.

        :param texts: n texts; what stands in the cache, or twice among them, is not encoded again.
        :returns: of questions vectors, of documents codes: see :func:`memlab.embed.token_vectors.compress_tokens`.
        """
        texts = check_texts(texts, kind)
        context = [""] * len(texts) if before is None else check_texts(before, kind)
        keys = text_hashes(f"{_VERSION}:{kind}:{lead}\x1e{text}" for lead, text in zip(context, texts, strict=True))

        def make(places: list[int]) -> pl.DataFrame:
            asked, leads = ([of[place] for place in places] for of in (texts, context))
            made = encoder.encode_tokens(asked, before=leads, kind=kind, progress=False)
            made = compress_tokens(made) if kind == "document" else made
            columns = {"ids": made.ids, "vectors": made.vectors}
            ends = list(pairwise(made.start.tolist()))
            return pl.DataFrame({c: [rows[a:b].tobytes() for a, b in ends] for c, rows in columns.items()})

        cache = Cache(self.database, "tokens", encoder.identity.key)
        rows, _ = cache.fill(keys, make, step=getattr(encoder, "together", CHUNK), progress=progress)
        if rows.is_empty():
            return concat_tokens([], encoder.dim)
        ids, numbers = np.frombuffer(b"".join(rows["ids"]), np.int32), np.uint8 if kind == "document" else np.float16
        vectors = np.frombuffer(b"".join(rows["vectors"]), numbers).reshape(len(ids), -1 if len(ids) else 0)
        start = np.r_[0, np.cumsum(rows["ids"].bin.size().to_numpy().astype(np.int64) // ids.itemsize)]
        return TokenVectors(ids, vectors, start)

    def arrange(self, encoder: TokenEncoder) -> None:
        """Join the small files that tokens were written to and index their keys, so that a lookup opens few."""
        from lancedb.index import BTree

        with self.database.guarded("arranging the token cache", writes="arranging tokens"):
            table = Cache(self.database, "tokens", encoder.identity.key).table
            if table is not None and table.count_rows():
                if not table.list_indices():
                    table.create_index("key", config=BTree())
                table.optimize(cleanup_older_than=_READING)
