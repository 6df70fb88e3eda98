"""Token embeddings: one vector for every token of a text, read in the light of what was said
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from memlab.embed.encoder import Encoder, Kind

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

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

    def take(self, text_numbers: np.ndarray) -> TokenVectors:
        """Give the tokens of some texts, in the order of ``text_numbers``.

        >>> import numpy as np
        >>> from memlab.embed.token_vectors import TokenVectors
        >>> vectors = np.eye(3, dtype=np.float16)
        >>> two = TokenVectors(np.array([7, 8, 9]), vectors, np.array([0, 1, 3]))
        >>> two.take(np.array([1, 0, 1])).ids.tolist()
        [8, 9, 7, 8, 9]
        """
        token_counts = np.diff(self.start)[text_numbers]
        new_starts = np.r_[0, np.cumsum(token_counts)]
        token_places = np.arange(new_starts[-1]) + np.repeat(
            self.start[:-1][text_numbers] - new_starts[:-1], token_counts
        )
        return TokenVectors(self.ids[token_places], self.vectors[token_places], new_starts)


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
    token_counts = np.concatenate(
        [np.zeros(0, np.int64), *(np.diff(token_part.start) for token_part in parts)]
    )
    token_ids = np.concatenate([np.zeros(0, np.int32), *(token_part.ids for token_part in parts)])
    vectors = [token_part.vectors for token_part in parts if len(token_part.ids)] or [
        np.zeros((0, dim), np.float16)
    ]
    return TokenVectors(token_ids, np.concatenate(vectors), np.r_[0, np.cumsum(token_counts)])


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
    n_tokens, dim = tokens.vectors.shape
    sign_codes = np.empty((n_tokens, -(-dim // 8)), np.uint8)
    part_size = 16 * _TOGETHER
    for part_start in range(
        0, n_tokens, part_size
    ):  # in parts, since wide copies of a whole memory take gigabytes
        rotated_vectors = (
            tokens.vectors[part_start : part_start + part_size].astype(np.float32)
            @ _random_rotation(dim).T
        )
        sign_codes[part_start : part_start + part_size] = np.packbits(rotated_vectors >= 0, axis=1)
    return TokenVectors(tokens.ids, sign_codes, tokens.start)


def token_cosines(question_vectors: np.ndarray, token_codes: np.ndarray) -> np.ndarray:
    """Compare tokens with compressed ones: about their cosines, (t asked, t) float32.

    :param question_vectors: (t asked, d) unit rows.
    :param token_codes: (t, d / 8) uint8 vectors of compressed tokens.
    """
    return best_token_cosine_per_text(
        question_vectors, token_codes, np.arange(len(token_codes) + 1)
    )


def best_token_cosine_per_text(
    question_vectors: np.ndarray, token_codes: np.ndarray, text_starts: np.ndarray
) -> np.ndarray:
    """Compare tokens with those of texts: the best cosine with a token of each, (t asked, n texts)
    float32.

    :param question_vectors: (t asked, d) unit rows.
    :param token_codes: (t, d / 8) uint8 vectors of compressed tokens.
    :param text_starts: (n + 1,) where the codes of each text begin; one that has none gets 0.

    >>> import numpy as np
    >>> from memlab.embed.token_vectors import TokenVectors, compress_tokens
    >>> from memlab.embed.token_vectors import best_token_cosine_per_text
    >>> rows = np.random.default_rng(1).standard_normal((3, 384))
    >>> rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    >>> codes = compress_tokens(TokenVectors(np.array([7, 8, 9]), rows, np.array([0, 3]))).vectors
    >>> best_token_cosine_per_text(rows[1:2], codes, np.array([0, 1, 1, 3])).round().tolist()
    [[0.0, 0.0, 1.0]]
    """
    dim = question_vectors.shape[1]
    code_width = 8 * token_codes.shape[1]
    # A rotated unit vector has dimensions of mean size √(2/π)/√d, so that its signs keep √(2/π) of
    # a cosine of 1.
    scale = np.float32(np.sqrt(np.pi / 2 / dim))
    with _cached_thread_controller().limit(limits=1, user_api="blas"):
        rotated_questions = question_vectors.astype(np.float32) @ _random_rotation(dim).T * scale
    zero_columns = -len(question_vectors) % _COLUMNS
    wide_weights = np.pad(2 * rotated_questions, ((0, zero_columns), (0, code_width - dim))).T
    weights = wide_weights[:, : len(question_vectors)]
    filled_texts = np.flatnonzero(np.diff(text_starts))
    begins_of_filled = text_starts[filled_texts]
    ends_of_filled = text_starts[filled_texts + 1]
    best_cosines = np.zeros((len(text_starts) - 1, len(question_vectors)), np.float32)
    blocks = list(pairwise(_text_block_edges(begins_of_filled, ends_of_filled)))

    def fill_best_cosines_of_blocks(blocks: Sequence[tuple[int, int]]) -> None:
        longest_block = 0
        for first_text, last_text in blocks:
            n_codes = int(ends_of_filled[last_text - 1] - begins_of_filled[first_text])
            longest_block = max(longest_block, n_codes)
        signs = np.empty((longest_block, token_codes.shape[1], 8), np.float32)
        products = np.empty((longest_block, wide_weights.shape[1]), np.float32)
        for first_text, last_text in blocks:
            block_codes = token_codes[begins_of_filled[first_text] : ends_of_filled[last_text - 1]]
            if 8 * block_codes.size * len(question_vectors) > _SMALL:
                for rows in _halve_rows_unless_small(len(block_codes), wide_weights.size):
                    row_signs = _unpack_signs_into(block_codes[rows], signs)
                    np.matmul(row_signs, wide_weights, out=products[rows])
                cosines = products[: len(block_codes), : len(question_vectors)]
            else:
                cosines = _unpack_signs_into(block_codes, signs) @ weights
            block_begins = begins_of_filled[first_text:last_text] - begins_of_filled[first_text]
            best_cosines[filled_texts[first_text:last_text]] = np.maximum.reduceat(
                cosines, block_begins, axis=0
            )

    # The products of a question are small, and their threads wait for each other where another
    # process multiplies too: two threads take every other block instead.
    are_few = len(question_vectors) <= _FEW
    with _cached_thread_controller().limit(limits=1 if are_few else None, user_api="blas"):
        if are_few and len(blocks) > _SHARED:
            with ThreadPoolExecutor(2) as thread_pool:
                list(thread_pool.map(fill_best_cosines_of_blocks, (blocks[::2], blocks[1::2])))
        else:
            fill_best_cosines_of_blocks(blocks)
    # From the best alone: what is the same for all tokens does not change which is the best.
    best_cosines[filled_texts] -= rotated_questions.sum(axis=1)
    return np.ascontiguousarray(best_cosines.T)


def _unpack_signs_into(token_codes: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write out the signs of tokens as 0 and 1: (t, d / 8) → (t, d) float32, in ``out``."""
    written = np.take(_BITS, token_codes, axis=0, out=out[: len(token_codes)], mode="clip")
    return written.reshape(len(token_codes), -1)


def _halve_rows_unless_small(n_rows: int, matrix_size: int) -> list[slice]:
    """Divide rows in two, which the cache holds better, unless their products would be small ones.

    :param matrix_size: of the matrix that they are multiplied by.
    """
    half = -(-n_rows // 2)
    if (n_rows - half) * matrix_size <= _SMALL:
        return [slice(0, n_rows)]
    return [slice(0, half), slice(half, n_rows)]


def _text_block_edges(text_begins: np.ndarray, text_ends: np.ndarray) -> list[int]:
    """Divide texts into blocks whose signs stay in the processor's cache: the first text of each,
    and n.

    :param text_begins: (n,) places of the tokens of texts that have some; ``text_ends`` (n,) of the
        next ones.
    """
    if not len(text_begins):
        return []
    wanted_edges = np.arange(text_begins[0], text_ends[-1], _TOGETHER)
    # Where a block would end within the last text, all of them end.
    last_texts = [*np.searchsorted(text_begins, wanted_edges), len(text_begins)]
    edges: list[int] = np.unique(last_texts).tolist()
    return edges


@cache
def _cached_thread_controller() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _random_rotation(dim: int) -> np.ndarray:
    """Give a random rotation, the same in every process: (dim, dim) float32."""
    random_matrix = np.random.default_rng(0).standard_normal((dim, dim))
    # Of one thread: two give the same numbers, and take ten times as long where they have to wait
    # for each other.
    with _cached_thread_controller().limit(limits=1, user_api="blas"):
        basis, upper = np.linalg.qr(random_matrix)
    rotation: np.ndarray = (basis * np.sign(np.diag(upper))).astype(np.float32)
    return rotation
