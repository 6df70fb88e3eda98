"""The cache of token embeddings: what was read once is not read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab.embed.base import check_texts
from memlab.embed.tokens import TokenVectors, joined
from memlab.store.database import Part, retried
from memlab.store.registry import TABLES, text_hashes

if TYPE_CHECKING:
    from memlab.embed.base import Kind
    from memlab.embed.tokens import TokenEncoder

CHUNK = 512
"""Texts that an interruption can lose: about ten seconds of a small model on two cores."""

_LOOKUP = 4000
_COLUMNS = tuple(TABLES["tokens"].columns)


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
        """
        from tqdm.auto import tqdm

        database = self.database
        texts = check_texts(texts, kind)
        context = [""] * len(texts) if before is None else check_texts(before, kind)
        keys = text_hashes(f"{kind}:{lead}\x1e{text}" for lead, text in zip(context, texts, strict=True))
        first = {key: row for row, key in reversed(list(enumerate(keys)))}
        with database.guarded("reading the token cache"):
            cache = database.cache("tokens", encoder.identity.key)
            encoded = _read(cache, list(first), encoder.dim) if cache is not None else {}
        missing = [key for key in dict.fromkeys(keys) if key not in encoded]
        label = f"tokens {encoder.identity.key}"
        with tqdm(total=len(missing), desc=label, unit=" texts", disable=not progress or len(missing) < 256) as bar:
            for at in range(0, len(missing), CHUNK):
                chunk = missing[at : at + CHUNK]
                asked, leads = [texts[first[key]] for key in chunk], [context[first[key]] for key in chunk]
                made = encoder.encode_tokens(asked, before=leads, kind=kind, progress=False)
                new = {key: made.take(np.array([i])) for i, key in enumerate(chunk)}
                if cache is not None and not database.read_only:
                    with database.guarded("remembering tokens"):
                        _remember(cache, new)
                encoded |= new
                bar.update(len(chunk))
        place = {key: i for i, key in enumerate(encoded)}
        vectors = joined(list(encoded.values()), encoder.dim)
        return vectors.take(np.array([place[key] for key in keys], np.int64))


def _read(cache: Any, keys: list[str], dim: int) -> dict[str, TokenVectors]:
    from lancedb.expr import col

    query = cache.search().select(list(_COLUMNS))
    if len(keys) <= _LOOKUP:
        query = query.where(col("key").isin(keys))
    wanted, read = set(keys), {}
    for batch in query.to_batches():
        for key, ids, vectors in zip(*(batch.column(c).to_pylist() for c in _COLUMNS), strict=True):
            if key in wanted:
                tokens = np.frombuffer(ids, np.int32)
                # An encoder with two poolings has texts wider than its tokens.
                rows = np.frombuffer(vectors, np.float16).reshape(len(tokens), -1 if len(tokens) else dim)
                read[key] = TokenVectors(tokens, rows, np.array([0, len(tokens)]))
    return read


def _remember(cache: Any, made: dict[str, TokenVectors]) -> None:
    """Append to the cache. Two writers may append the same text twice: the same vectors, so no harm."""
    import pyarrow as pa

    columns = {
        "key": list(made),
        "ids": [tokens.ids.tobytes() for tokens in made.values()],
        "vectors": [tokens.vectors.tobytes() for tokens in made.values()],
    }
    retried(lambda: cache.add(pa.table(columns, schema=cache.schema)))
