"""Token embeddings: one vector for every token of a text, read in the light of what was said before."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from memlab.embed.encoder import Encoder, Kind

_TOGETHER = 1024
_FEW = 32
_SHARED = 16  # blocks
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
        >>> two = TokenVectors(np.array([7, 8, 9]), np.eye(3, dtype=np.float16), np.array([0, 1, 3]))
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
        """Embed the tokens of texts; signs that are no word or number, such as commas, may be left out.

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
    """Keep one bit a dimension: the signs of the vectors after a rotation that is the same for all of one width.

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
    dim, width = asked.shape[1], 8 * codes.shape[1]
    # A rotated unit vector has dimensions of mean size √(2/π)/√d, so that its signs keep √(2/π) of
    # a cosine of 1.
    turned = asked.astype(np.float32) @ _rotation(dim).T * np.float32(np.sqrt(np.pi / 2 / dim))
    filled = np.pad(2 * turned, ((0, 0), (0, width - dim)))
    cosines = np.empty((len(asked), len(codes)), np.float32)

    def compare_blocks(blocks: range) -> None:
        signs = np.empty((_TOGETHER, codes.shape[1], 8), np.float32)
        for start in blocks:  # few enough that they stay in the processor's cache
            part = codes[start : start + _TOGETHER]
            read = np.take(_BITS, part, axis=0, out=signs[: len(part)], mode="clip").reshape(
                len(part), width
            )
            cosines[:, start : start + _TOGETHER] = (read @ filled.T).T  # sooner than this way

    # The products of a question are small, and their threads wait for each other where another
    # process multiplies too: two threads take every other block instead.
    few, blocks = len(asked) <= _FEW, range(0, len(codes), _TOGETHER)
    with _thread_controller().limit(limits=1 if few else None, user_api="blas"):
        if few and len(blocks) > _SHARED:
            with ThreadPoolExecutor(2) as beside:
                list(beside.map(compare_blocks, (blocks[::2], blocks[1::2])))
        else:
            compare_blocks(blocks)
    cosines -= turned.sum(axis=1, keepdims=True)
    return cosines


@cache
def _thread_controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _rotation(dim: int) -> np.ndarray:
    """Give a random rotation, the same in every process: (dim, dim) float32."""
    basis, upper = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))
    rotation: np.ndarray = (basis * np.sign(np.diag(upper))).astype(np.float32)
    return rotation
