"""An encoder without a model: words, pairs of words and trigrams hashed to columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np

from memlab.embed.encoder import (
    EncoderIdentity,
    IdentifiedEncoder,
    Kind,
    check_and_list_texts,
    check_and_scale_to_unit,
)
from memlab.errors import ModelError

DEFAULT_DIM = 512
MIN_DIM = 16
MAX_DIM = 16384

_WORD = r"(?u)\w+"
_FAMILIES: tuple[tuple[float, dict[str, Any]], ...] = (
    (1.0, {"token_pattern": _WORD}),
    (0.6, {"token_pattern": _WORD, "ngram_range": (2, 2)}),
    (0.3, {"analyzer": "char_wb", "ngram_range": (3, 3)}),  # they outnumber words five to one
)
_BATCH = 512  # texts, which bounds memory


class HashingEncoder(IdentifiedEncoder):
    """Deterministic vectors from words alone, for tests and cheap first runs.

    Words, neighbouring word pairs and character trigrams are hashed by scikit-learn to a column and
    a sign, weighted by sublinear frequency and summed; the sign keeps the expected error of an
    inner product at zero.

    Source: Weinberger et al. 2009, Feature Hashing for Large Scale Multitask Learning, section 2.

    :raises ModelError: when ``dim`` is outside 16 to 16384.

    >>> from memlab.embed import load
    >>> texts = ["my doctor called", "the doctor called me", "a red bicycle"]
    >>> a, b, c = load("hashing").encode(texts)
    >>> bool(a @ b > a @ c)
    True
    """

    def __init__(self, dim: int = DEFAULT_DIM) -> None:
        if not MIN_DIM <= dim <= MAX_DIM:
            raise ModelError(
                f"hashing to {dim} dimensions; expected {MIN_DIM} to {MAX_DIM}, for example "
                "hashing:512"
            )
        self.identity = EncoderIdentity(
            "hashing", "words-bigrams-trigrams", "2", "sum", normalized=True, dim=dim
        )

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`.

        Queries and documents are treated the same.
        """
        from sklearn.feature_extraction.text import HashingVectorizer

        checked = check_and_list_texts(texts, kind)
        weighted_hashers = [
            (weight, HashingVectorizer(n_features=self.dim, norm=None, **options))
            for weight, options in _FAMILIES
        ]
        unit_vectors = np.empty((len(checked), self.dim), dtype=np.float32)
        with self.progress_bar_of_texts(
            len(checked), progress=progress, description="hashing", min_texts=50_000
        ) as progress_bar:
            for batch_start in range(0, len(checked), _BATCH):
                batch_texts = [
                    unicodedata.normalize("NFKC", text)
                    for text in checked[batch_start : batch_start + _BATCH]
                ]
                summed_counts = np.zeros((len(batch_texts), self.dim))
                for weight, hasher in weighted_hashers:
                    counts = hasher.transform(batch_texts)
                    counts.data = weight * np.sign(counts.data) * np.log1p(np.abs(counts.data))
                    summed_counts += counts.toarray()
                summed_counts[~summed_counts.any(axis=1)] = (
                    1.0  # a text without words, or whose features cancel out
                )
                unit_vectors[batch_start : batch_start + len(batch_texts)] = (
                    check_and_scale_to_unit(summed_counts, made_by="hashing")
                )
                progress_bar.update(len(batch_texts))
        return unit_vectors
