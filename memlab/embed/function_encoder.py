"""An encoder from a function of yours: texts to vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from memlab.embed.encoder import (
    EncoderIdentity,
    IdentifiedEncoder,
    Kind,
    check_and_list_texts,
    check_and_scale_to_unit,
    check_nonzero_vectors,
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
        self._name = f"encoder {name!r}"
        self._function = function
        n_dimensions = self._call_and_check_function(["memlab"]).shape[1]
        self.identity = EncoderIdentity("function", name, source, "its own", dim=n_dimensions)

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`."""
        checked = check_and_list_texts(texts, kind)
        unit_vectors = np.empty((len(checked), self.dim), dtype=np.float32)
        for batch_start in range(0, len(checked), _CALL_BATCH):
            batch_vectors = self._call_and_check_function(
                checked[batch_start : batch_start + _CALL_BATCH]
            )
            if batch_vectors.shape[1] != self.dim:
                raise ModelError(
                    f"{self._name} gave {batch_vectors.shape[1]} dimensions, and {self.dim} before"
                )
            if kind == "document":
                check_nonzero_vectors(batch_vectors, made_by=self._name)
            batch_vectors[~batch_vectors.any(axis=1)] = 1.0
            unit_vectors[batch_start : batch_start + _CALL_BATCH] = check_and_scale_to_unit(
                batch_vectors, made_by=self._name
            )
        return unit_vectors

    def _call_and_check_function(self, texts: list[str]) -> np.ndarray:
        try:
            function_rows = np.array(self._function(texts), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{self._name}: {error}; it takes a list of texts and gives (n, d) numbers"
            ) from error
        if (
            function_rows.ndim != 2
            or len(function_rows) != len(texts)
            or not function_rows.shape[1]
        ):
            raise ModelError(
                f"{self._name} gave {function_rows.shape} for {len(texts)} texts; expected (n, d) "
                "numbers"
            )
        return function_rows
