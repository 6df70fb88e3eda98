"""The cache of token embeddings: what was read once is not read again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.base import Kind, check_texts
from memlab.embed.tokens import TokenEncoder, TokenVectors, compressed, joined
from memlab.store import caches
from memlab.store.database import Part
from memlab.store.registry import text_hashes

CHUNK = 512
"""Texts that an interruption can lose: about ten seconds of a small model on two cores."""

_VERSION = 2  # of what is kept of a text


class Tokens(Part):
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
        with database.guarded("reading the token cache"):
            cache = database.cache("tokens", encoder.identity.key)
            order, parts = _read(cache, list(first), kind) if cache is not None else ([], [])
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
                    with database.guarded("remembering tokens"):
                        caches.remember(cache, chunk, *(_bytes(rows, made.start) for rows in (made.ids, made.vectors)))
                parts.append(made)
                bar.update(len(chunk))
        place = {key: i for i, key in enumerate((*order, *missing))}
        return joined(parts, encoder.dim).take(np.array([place[key] for key in keys], np.int64))


def _read(cache: Any, keys: list[str], kind: Kind) -> tuple[list[str], list[TokenVectors]]:
    """Read what the cache has of some keys: which, and their tokens, as columns."""
    read = [part for part in caches.read(cache, keys) if part.height]
    if not read:
        return [], []
    rows = pl.concat(read).unique("key", maintain_order=True)
    ids, vectors = (np.frombuffer(b"".join(rows[name]), np.uint8) for name in ("ids", "vectors"))
    ids = ids.view(np.int32)
    stored = vectors if kind == "document" else vectors.view(np.float16)
    start = np.r_[0, np.cumsum(rows["ids"].bin.size().to_numpy().astype(np.int64) // ids.itemsize)]
    return rows["key"].to_list(), [TokenVectors(ids, stored.reshape(len(ids), -1 if len(ids) else 0), start)]


def _bytes(rows: np.ndarray, start: np.ndarray) -> list[bytes]:
    """Give the rows of each text as bytes."""
    return [rows[slice(*ends)].tobytes() for ends in pairwise(start.tolist())]
