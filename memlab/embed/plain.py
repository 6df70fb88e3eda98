"""Encoders that run no network here: hashed words, a function of yours, an OpenAI-compatible endpoint."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from memlab import llm
from memlab.embed.base import (
    EncoderIdentity,
    IdentifiedEncoder,
    Kind,
    check_nonzero_vectors,
    check_texts,
    unit_rows,
)
from memlab.errors import ModelError

DEFAULT_DIM = 512
MIN_DIM, MAX_DIM = 16, 16384

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
    >>> a, b, c = load("hashing").encode(["my doctor called", "the doctor called me", "a red bicycle"])
    >>> bool(a @ b > a @ c)
    True
    """

    def __init__(self, dim: int = DEFAULT_DIM) -> None:
        if not MIN_DIM <= dim <= MAX_DIM:
            raise ModelError(
                f"hashing to {dim} dimensions; expected {MIN_DIM} to {MAX_DIM}, for example hashing:512"
            )
        self.identity = EncoderIdentity(
            "hashing", "words-bigrams-trigrams", "2", "sum", normalized=True, dim=dim
        )

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`. Queries and documents are treated the same."""
        from sklearn.feature_extraction.text import HashingVectorizer

        checked = check_texts(texts, kind)
        families = [
            (weight, HashingVectorizer(n_features=self.dim, norm=None, **options))
            for weight, options in _FAMILIES
        ]
        out = np.empty((len(checked), self.dim), dtype=np.float32)
        with self.bar(len(checked), progress=progress, what="hashing", least=50_000) as bar:
            for start in range(0, len(checked), _BATCH):
                part = [
                    unicodedata.normalize("NFKC", text) for text in checked[start : start + _BATCH]
                ]
                rows = np.zeros((len(part), self.dim))
                for weight, hashed in families:
                    counts = hashed.transform(part)
                    counts.data = weight * np.sign(counts.data) * np.log1p(np.abs(counts.data))
                    rows += counts.toarray()
                rows[~rows.any(axis=1)] = 1.0  # a text without words, or whose features cancel out
                out[start : start + len(part)] = unit_rows(rows, of="hashing")
                bar.update(len(part))
        return out


_CALL_BATCH = 1024


class FunctionEncoder(IdentifiedEncoder):
    """Vectors that a function gives, at length 1; a text for which it gives zeros gets a vector without direction.

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


# Servers refuse an empty input; one agreed word gives every empty text the same vector.
EMPTY = "(empty)"


class EndpointEncoder(IdentifiedEncoder):
    """Vectors from a service that the user named; made by :func:`memlab.embed.load` with ``endpoint:NAME``.

    One text is encoded at once, to learn the width and to fail early. The identity holds the
    model's name at the server and no address or key; whether two servers of one name give the same
    vectors is for the user to know.

    :raises ModelError: when the service cannot be used.
    """

    def __init__(self, service: llm.Service) -> None:
        self._service = service
        probe = llm.embed_texts(service, [EMPTY])
        self.identity = EncoderIdentity(
            "endpoint", service.model, "", "server", service.query_prompt, service.document_prompt, service.max_input,
            normalized=bool(abs(np.linalg.norm(probe[0]) - 1) < 1e-3), dim=probe.shape[1],
        )  # fmt: skip

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`.

        :raises ModelError: when the service fails, or its vectors have another width than at load.
        """
        checked = check_texts(texts, kind)
        prompt, name = self.prompt(kind), f"endpoint {self._service.name!r}"
        sent = [
            (prompt + (text if text.strip() else EMPTY))[: self._service.max_input]
            for text in checked
        ]

        def done(vectors: np.ndarray) -> None:
            if vectors.shape[1] != self.dim:
                raise ModelError(
                    f"{name} gave vectors of {vectors.shape[1]} numbers, expected {self.dim} as at load"
                )
            bar.update(len(vectors))

        with self.bar(len(checked), progress=progress) as bar:
            vectors = llm.embed_texts(self._service, sent, done=done)
        return unit_rows(vectors.reshape(len(sent), self.dim), of=name)
