"""What every encoder is and says about itself."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np

from memlab.errors import DataError, ModelError
from memlab.progress_bars import progress_bar

Kind = Literal["document", "query"]

HALF = "+bf16"
"""Ends the revision of an encoder whose layers are computed in bfloat16: two to three times as fast
where the processor multiplies such matrices (Intel's AMX), at cosines of .9999 to the exact
vectors; they differ between machines."""

_UNSTATED: dict[str, Any] = {"dtype": "float32", "cut_from": None, "token_mean": ""}
"""Fields of an identity that are part of its key only where they differ from these: they came later
than stores.
"""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class EncoderIdentity:
    """Everything that vectors depend on, so that two vectors are compared only when one encoder
    made them.

    Nothing in it names the machine: the same encoder has the same identity everywhere.

    :param kind: ``transformer``, ``multi-vector``, ``static``, ``hashing``, ``endpoint`` or
        ``function``.
    :param model: portable name of the model: ``minilm``, a hub id, the base name of a directory.
    :param revision: hub revision, or the first 12 hex digits of the sha256 of the weights; empty
        where unknown.
    :param pooling: how token vectors become one vector, ``+`` between modes that are concatenated.
    :param max_length: length in tokens (transformer) or characters (endpoint) at which a text is
        cut.
    :param normalized: whether the model itself ends in a normalisation; memlab's vectors always are
        of length 1.
    :param dtype: what the layers are computed in; vectors are float32.
    :param cut_from: how many dimensions the model gives, where only the first ``dim`` are kept.
    :param token_mean: how the mean was estimated that token vectors are centred on, see
        :mod:`memlab.embed.token_centring`; empty where they are not.

    >>> from memlab.embed import load
    >>> load("hashing:64").identity.describe()
    'hashing words-bigrams-trigrams (2), 64-d, sum pooling'
    """

    kind: str
    model: str
    revision: str = ""
    pooling: str = ""
    query_prompt: str = ""
    document_prompt: str = ""
    max_length: int | None = None
    normalized: bool = False
    dim: int = 0
    dtype: str = "float32"
    cut_from: int | None = None
    token_mean: str = ""

    @property
    def key(self) -> str:
        """A short slug, ``[a-z0-9_]+``, that differs whenever any field differs:
        ``minilm_1a2b3c4d``.
        """
        plain_name = (
            re.sub(r"[^a-z0-9]+", "_", self.model.rsplit("/", 1)[-1].lower())
            .strip("_")[:32]
            .strip("_")
        )
        stated_fields = asdict(self)
        for field, usual_value in _UNSTATED.items():
            if stated_fields[field] == usual_value:
                del stated_fields[field]
        digest = hashlib.sha256(json.dumps(stated_fields, sort_keys=True).encode()).hexdigest()[:8]
        return f"{plain_name or self.kind}_{digest}"

    def describe(self) -> str:
        """Say in a line what the encoder is."""
        revision = f" ({self.revision})" if self.revision else ""
        width_text = f"{self.dim}-d"
        if self.cut_from is not None:
            width_text = f"the first {self.dim} of {self.cut_from} dimensions"
        description_parts = [
            f"{self.kind} {self.model}{revision}",
            width_text,
            f"{self.pooling} pooling",
        ]
        if self.max_length is not None:
            length_unit = "characters" if self.kind == "endpoint" else "tokens"
            description_parts.append(f"at most {self.max_length} {length_unit}")
        if self.dtype != "float32":
            description_parts.append(f"computed in {self.dtype}")
        if self.token_mean:
            description_parts.append("tokens centred")
        prompts = (("query", self.query_prompt), ("document", self.document_prompt))
        return ", ".join(
            description_parts + [f"{name} prompt {text!r}" for name, text in prompts if text]
        )


@runtime_checkable
class Encoder(Protocol):
    """An encoder: texts in, unit vectors out.

    Rows are float32 of length 1, so a matrix product of two results is their cosine similarity. An
    empty text has a defined, finite vector too. ``identity`` says what the vectors depend on,
    ``dim`` how wide they are.
    """

    @property
    def identity(self) -> EncoderIdentity: ...

    @property
    def dim(self) -> int: ...

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts.

        :param texts: n texts: a list, a polars column, any iterable of strings.
        :param kind: ``document`` or ``query``; decides which of the model's prompts is put before
            the text.
        :param progress: show a progress bar when the work is long.
        :returns: (n, dim) float32, rows of length 1.
        """
        ...


AnyEncoder = TypeVar("AnyEncoder", bound=Encoder)


class IdentifiedEncoder:
    """What memlab's encoders share: all that they say about themselves is in their identity."""

    identity: EncoderIdentity

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.identity.dim

    def prompt(self, kind: Kind) -> str:
        """Give what is put before a text."""
        return self.identity.query_prompt if kind == "query" else self.identity.document_prompt

    def progress_bar_of_texts(
        self, n_texts: int, *, progress: bool, description: str = "", min_texts: int = 256
    ) -> Any:
        """Give a progress bar, which shows itself where the work is long."""
        return progress_bar(
            what=description or self.identity.model,
            total=n_texts,
            unit="texts",
            hidden=not progress or n_texts < min_texts,
        )

    def __repr__(self) -> str:
        return f"<Encoder {self.identity.key}: {self.identity.describe()}>"


def check_and_list_texts(texts: Iterable[str], kind: str) -> list[str]:
    """Check what was given to :meth:`Encoder.encode`.

    Lone surrogates, which no tokenizer takes, become U+FFFD.

    :raises DataError: when an item is not a string, a string stands where a list should, or the
        kind is unknown.

    >>> from memlab.embed.encoder import check_and_list_texts
    >>> check_and_list_texts(["a", "b\\ud800"], "query") == ["a", "b\\ufffd"]
    True
    """
    if kind not in get_args(Kind):
        raise DataError(f"kind is {kind!r}; expected one of {', '.join(get_args(Kind))}")
    if isinstance(texts, str | bytes):
        raise DataError(f"texts is one string ({texts[:40]!r}); expected a list: encode([text])")
    text_list = list(texts)
    for row, text in enumerate(text_list):
        if not isinstance(text, str):
            raise DataError(
                f"text {row} is {type(text).__name__}, expected a string; fill or drop missing "
                "texts first"
            )
    return [text if text.isascii() else _SURROGATE.sub("\ufffd", text) for text in text_list]


def check_nonzero_vectors(vectors: np.ndarray, *, made_by: str) -> np.ndarray:
    """Refuse vectors of several texts that are all zero: every text would be as near as any other.

    :raises ModelError: naming who made them.
    """
    if len(vectors) > 1 and not vectors.any():
        raise ModelError(
            f"{made_by} gave only zeros for {len(vectors)} texts; check what it is made of: the "
            "weights of a model, or a function of yours"
        )
    return vectors


def check_and_scale_to_unit(vectors: np.ndarray, *, made_by: str) -> np.ndarray:
    """Scale rows to length 1, as contiguous float32.

    :param vectors: (n, d) numbers.
    :param made_by: who made them, for the message.
    :raises ModelError: when a row is not finite or is zero.
    """
    exact_vectors = np.asarray(vectors, dtype=np.float64)
    row_norms = np.linalg.norm(exact_vectors, axis=1, keepdims=True)
    bad_rows = np.flatnonzero(~np.isfinite(row_norms[:, 0]) | (row_norms[:, 0] == 0))
    if bad_rows.size:
        fault = "a zero vector" if row_norms[bad_rows[0], 0] == 0 else "NaN or infinity"
        raise ModelError(
            f"{made_by} gave {fault} for text {bad_rows[0]} ({bad_rows.size} of "
            f"{len(exact_vectors)} "
            "texts); expected finite numbers: check that its weights are whole and that it is an "
            "embedding model"
        )
    return np.ascontiguousarray(exact_vectors / row_norms, dtype=np.float32)


def encoder_for_storing(encoder: AnyEncoder) -> AnyEncoder:
    """Give what makes the vectors that are stored: it reads one text as it reads many.

    A model that reads a few texts in another way, whose vectors differ in their last digits, has a
    method ``for_storing``. Without it, what is stored would depend on how many texts were missing,
    and so on where a command was killed before.
    """
    make_for_storing = getattr(encoder, "for_storing", None)
    if make_for_storing is None:
        return encoder
    stored_by: AnyEncoder = make_for_storing()
    return stored_by
