"""Token embeddings: one vector for every token of a text, read in the light of what was said
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np

from memlab.embed.encoder import Encoder, Kind

_TOGETHER = 1024
_FEW = 32
_SHARED = 16  # blocks
_COLUMNS = 8
"""A product whose columns are a multiple of it takes half as long as one of 14 or 15."""

_SMALL = 1_000_000
"""Multiplications of a product up to which OpenBLAS may sum in another order, by its shape: such a
one is left as it is.
"""

_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """The token embeddings of some texts, one text after the other.

    :param ids: (t,) int32 numbers of the tokens in the model's vocabulary.
    :param vectors: (t, d) float16 unit rows; or (t, d / 8) uint8, their codes, see
        :func:`compress_tokens`.
    :param start: (n + 1,) where the tokens of each text begin; the last is t. A text without tokens
        has none.
    """

    ids: np.ndarray
    vectors: np.ndarray
    start: np.ndarray

    def __len__(self) -> int:
        return len(self.start) - 1

    def take(self, rows: np.ndarray) -> TokenVectors:
        """Give the tokens of some texts, in the order of ``rows``.

        >>> import numpy as np
        >>> from memlab.embed.token_vectors import TokenVectors
        >>> vectors = np.eye(3, dtype=np.float16)
        >>> two = TokenVectors(np.array([7, 8, 9]), vectors, np.array([0, 1, 3]))
        >>> two.take(np.array([1, 0, 1])).ids.tolist()
        [8, 9, 7, 8, 9]
        """
        counts = np.diff(self.start)[rows]
        start = np.r_[0, np.cumsum(counts)]
        places = np.arange(start[-1]) + np.repeat(self.start[:-1][rows] - start[:-1], counts)
        return TokenVectors(self.ids[places], self.vectors[places], start)


@runtime_checkable
class TokenEncoder(Encoder, Protocol):
    """An encoder that also gives the vectors of single tokens."""

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts.

        Signs that are no word or number, such as commas, may be left out.

        :param before: as many texts that the model reads before each of them, and of which no
            vector is given: a pronoun takes its meaning from there. Its last tokens count, up to
            half of the model's length.
        """
        ...


def concat_tokens(parts: Sequence[TokenVectors], dim: int) -> TokenVectors:
    """Put token embeddings behind each other.

    :param dim: of the vectors, where there is none.
    """
    counts = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.start) for part in parts)])
    ids = np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)])
    vectors = [part.vectors for part in parts if len(part.ids)] or [np.zeros((0, dim), np.float16)]
    return TokenVectors(ids, np.concatenate(vectors), np.r_[0, np.cumsum(counts)])


def compress_tokens(tokens: TokenVectors) -> TokenVectors:
    """Keep one bit a dimension: the signs of the vectors after a rotation that is the same for all
    of one width.

    A random rotation spreads what a vector says evenly over its dimensions, so that signs alone
    keep its direction: 48 bytes for the 384 numbers of MiniLM, and no codebook that would depend on
    what was read first.

    Source: random rotation and one bit: Gao and Long, RaBitQ (SIGMOD 2024), section 3.

    >>> import numpy as np
    >>> from memlab.embed.token_vectors import TokenVectors, compress_tokens, token_cosines
    >>> rows = np.random.default_rng(1).standard_normal((2, 384))
    >>> rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    >>> codes = compress_tokens(TokenVectors(np.array([7, 8]), rows, np.array([0, 2]))).vectors
    >>> codes.shape, token_cosines(rows, codes).round().tolist()
    ((2, 48), [[1.0, 0.0], [0.0, 1.0]])
    """
    if tokens.vectors.dtype == np.uint8:
        return tokens
    n, dim = tokens.vectors.shape
    codes, step = np.empty((n, -(-dim // 8)), np.uint8), 16 * _TOGETHER
    for start in range(0, n, step):  # in parts, since wide copies of a whole memory take gigabytes
        turned = tokens.vectors[start : start + step].astype(np.float32) @ _rotation(dim).T
        codes[start : start + step] = np.packbits(turned >= 0, axis=1)
    return TokenVectors(tokens.ids, codes, tokens.start)


def token_cosines(asked: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Compare tokens with compressed ones: about their cosines, (t asked, t) float32.

    :param asked: (t asked, d) unit rows.
    :param codes: (t, d / 8) uint8 vectors of compressed tokens.
    """
    return best_token_cosines(asked, codes, np.arange(len(codes) + 1))


def best_token_cosines(asked: np.ndarray, codes: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Compare tokens with those of texts: the best cosine with a token of each, (t asked, n texts)
    float32.

    :param asked: (t asked, d) unit rows.
    :param codes: (t, d / 8) uint8 vectors of compressed tokens.
    :param start: (n + 1,) where the codes of each text begin; one that has none gets 0.

    >>> import numpy as np
    >>> from memlab.embed.token_vectors import TokenVectors, best_token_cosines, compress_tokens
    >>> rows = np.random.default_rng(1).standard_normal((3, 384))
    >>> rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    >>> codes = compress_tokens(TokenVectors(np.array([7, 8, 9]), rows, np.array([0, 3]))).vectors
    >>> best_token_cosines(rows[1:2], codes, np.array([0, 1, 1, 3])).round().tolist()
    [[0.0, 0.0, 1.0]]
    """
    dim, width = asked.shape[1], 8 * codes.shape[1]
    # A rotated unit vector has dimensions of mean size √(2/π)/√d, so that its signs keep √(2/π) of
    # a cosine of 1.
    scale = np.float32(np.sqrt(np.pi / 2 / dim))
    with _thread_controller().limit(limits=1, user_api="blas"):
        turned = asked.astype(np.float32) @ _rotation(dim).T * scale
    zeros = -len(asked) % _COLUMNS
    wide_weights = np.pad(2 * turned, ((0, zeros), (0, width - dim))).T
    weights = wide_weights[:, : len(asked)]
    filled = np.flatnonzero(np.diff(start))
    begin, end = start[filled], start[filled + 1]
    best = np.zeros((len(start) - 1, len(asked)), np.float32)
    blocks = list(pairwise(_block_edges(begin, end)))

    def compare_blocks(blocks: Sequence[tuple[int, int]]) -> None:
        longest = max((int(end[last - 1] - begin[first]) for first, last in blocks), default=0)
        signs = np.empty((longest, codes.shape[1], 8), np.float32)
        cosines = np.empty((longest, wide_weights.shape[1]), np.float32)
        for first, last in blocks:
            part = codes[begin[first] : end[last - 1]]
            if 8 * part.size * len(asked) > _SMALL:
                for rows in _divide_rows(len(part), wide_weights.size):
                    np.matmul(_read_signs(part[rows], signs), wide_weights, out=cosines[rows])
                found = cosines[: len(part), : len(asked)]
            else:
                found = _read_signs(part, signs) @ weights
            within = begin[first:last] - begin[first]
            best[filled[first:last]] = np.maximum.reduceat(found, within, axis=0)

    # The products of a question are small, and their threads wait for each other where another
    # process multiplies too: two threads take every other block instead.
    few = len(asked) <= _FEW
    with _thread_controller().limit(limits=1 if few else None, user_api="blas"):
        if few and len(blocks) > _SHARED:
            with ThreadPoolExecutor(2) as beside:
                list(beside.map(compare_blocks, (blocks[::2], blocks[1::2])))
        else:
            compare_blocks(blocks)
    # From the best alone: what is the same for all tokens does not change which is the best.
    best[filled] -= turned.sum(axis=1)
    return np.ascontiguousarray(best.T)


def _read_signs(codes: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Write out the signs of tokens as 0 and 1: (t, d / 8) → (t, d) float32, in ``signs``."""
    read = np.take(_BITS, codes, axis=0, out=signs[: len(codes)], mode="clip")
    return read.reshape(len(codes), -1)


def _divide_rows(n_rows: int, size: int) -> list[slice]:
    """Divide rows in two, which the cache holds better, unless their products would be small ones.

    :param size: of the matrix that they are multiplied by.
    """
    half = -(-n_rows // 2)
    if (n_rows - half) * size <= _SMALL:
        return [slice(0, n_rows)]
    return [slice(0, half), slice(half, n_rows)]


def _block_edges(begin: np.ndarray, end: np.ndarray) -> list[int]:
    """Divide texts into blocks whose signs stay in the processor's cache: the first text of each,
    and n.

    :param begin: (n,) places of the tokens of texts that have some; ``end`` (n,) of the next ones.
    """
    if not len(begin):
        return []
    wanted = np.arange(begin[0], end[-1], _TOGETHER)
    # Where a block would end within the last text, all of them end.
    edges: list[int] = np.unique([*np.searchsorted(begin, wanted), len(begin)]).tolist()
    return edges


@cache
def _thread_controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _rotation(dim: int) -> np.ndarray:
    """Give a random rotation, the same in every process: (dim, dim) float32."""
    drawn = np.random.default_rng(0).standard_normal((dim, dim))
    # Of one thread: two give the same numbers, and take ten times as long where they have to wait
    # for each other.
    with _thread_controller().limit(limits=1, user_api="blas"):
        basis, upper = np.linalg.qr(drawn)
    rotation: np.ndarray = (basis * np.sign(np.diag(upper))).astype(np.float32)
    return rotation
