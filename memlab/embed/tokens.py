"""Token embeddings: one vector for every token of a text, read in the light of what was said before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from memlab.embed.base import Encoder, Kind


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """The token embeddings of some texts, one text after the other.

    :param ids: (t,) int32 numbers of the tokens in the model's vocabulary.
    :param vectors: (t, d) float16 unit rows.
    :param start: (n + 1,) where the tokens of each text begin; the last is t. A text without tokens has none.
    """

    ids: np.ndarray
    vectors: np.ndarray
    start: np.ndarray

    def __len__(self) -> int:
        return len(self.start) - 1

    def take(self, rows: np.ndarray) -> TokenVectors:
        """Give the tokens of some texts, in the order of ``rows``.

        >>> import numpy as np
        >>> from memlab.embed.tokens import TokenVectors
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
        """Embed the tokens of texts.

        :param before: as many texts that the model reads before each of them, and of which no vector is given: a
            pronoun takes its meaning from there. Its last tokens count, up to half of the model's length.
        """
        ...


def joined(parts: Sequence[TokenVectors], dim: int) -> TokenVectors:
    """Put token embeddings behind each other.

    :param dim: of the vectors, where there is none.
    """
    counts = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.start) for part in parts)])
    ids = np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)])
    vectors = [part.vectors for part in parts if len(part.ids)] or [np.zeros((0, dim), np.float16)]
    return TokenVectors(ids, np.concatenate(vectors), np.r_[0, np.cumsum(counts)])
