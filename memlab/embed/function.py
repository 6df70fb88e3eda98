"""An encoder from a function of yours: texts to vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from memlab.embed.encoder import (
    EncoderIdentity,
    IdentifiedEncoder,
    Kind,
    check_nonzero_vectors,
    check_texts,
    unit_rows,
)
from memlab.errors import ModelError

_CALL_BATCH = 1024


class FunctionEncoder(IdentifiedEncoder):
    """Vectors that a function gives, at length 1.

    A text for which it gives zeros gets a vector without direction.

    :param function: n texts to (n, d) numbers, for queries and documents.
    :param source: digest of its file, by which vectors of changed code are distinguished.
    :raises ModelError: when it gives something else.
    """

    def __init__(self, name: str, function: Callable[[list[str]], np.ndarray], source: str) -> None:
        self._name, self._function = f"encoder {name!r}", function
        dim = self._rows(["memlab"]).shape[1]
        self.identity = EncoderIdentity("function", name, source, "its own", dim=dim)

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`."""
        checked = check_texts(texts, kind)
        out = np.empty((len(checked), self.dim), dtype=np.float32)
        for start in range(0, len(checked), _CALL_BATCH):
            rows = self._rows(checked[start : start + _CALL_BATCH])
            if rows.shape[1] != self.dim:
                raise ModelError(
                    f"{self._name} gave {rows.shape[1]} dimensions, and {self.dim} before"
                )
            if kind == "document":
                check_nonzero_vectors(rows, of=self._name)
            rows[~rows.any(axis=1)] = 1.0
            out[start : start + _CALL_BATCH] = unit_rows(rows, of=self._name)
        return out

    def _rows(self, texts: list[str]) -> np.ndarray:
        try:
            rows = np.array(self._function(texts), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{self._name}: {error}; it takes a list of texts and gives (n, d) numbers"
            ) from error
        if rows.ndim != 2 or len(rows) != len(texts) or not rows.shape[1]:
            raise ModelError(
                f"{self._name} gave {rows.shape} for {len(texts)} texts; expected (n, d) numbers"
            )
        return rows
