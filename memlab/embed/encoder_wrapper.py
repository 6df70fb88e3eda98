"""What is around a model, in one wrapper, so that callers pass an encoder and nothing besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from memlab.embed.contextual_headers import header_fields_or_empty
from memlab.embed.encoder import (
    Encoder,
    EncoderIdentity,
    IdentifiedEncoder,
    Kind,
    check_and_list_texts,
    encoder_for_storing,
)
from memlab.embed.token_vectors import TokenEncoder, TokenVectors, concat_tokens
from memlab.errors import ModelError

if TYPE_CHECKING:
    from memlab.embed.ray_workers import NamedEncoder


T = TypeVar("T")


class TokenCache(Protocol):
    """What remembers the vectors of single tokens by their texts."""

    def encode(
        self,
        encoder: TokenEncoder,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None,
        kind: Kind,
        progress: bool,
    ) -> TokenVectors:
        """Embed tokens by an encoder; what it gave before is read."""
        ...


class VectorCache(Protocol):
    """What remembers vectors by their texts: a :class:`memlab.store.MemoryStore`."""

    @property
    def tokens(self) -> TokenCache:
        """Remembers the vectors of single tokens: :class:`memlab.store.vector_cache.Tokens`."""

    def encode(
        self, encoder: Encoder, texts: Iterable[str], *, kind: Kind, progress: bool
    ) -> np.ndarray:
        """Encode texts by an encoder; what it gave before is read."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class WrappedEncoder(IdentifiedEncoder):
    """An encoder: a model with its header, the cache of a store, and how its texts are read.

    Made by :func:`memlab.embed.load`. Its identity is that of the model: the header stands in the
    texts, so vectors with and without one lie in one cache under different texts.
    :func:`describe_encoder` says both, which distinguishes rankings.

    :param model: what makes vectors of texts. Where it gives those of single tokens, so does this.
    :param header: fields put before turns and questions by whoever writes texts for it, see
        :mod:`memlab.embed.contextual_headers`.
    :param cache: reads what the model gave before; see :func:`cache_encoder`.
    :param spec: the name by which another process can load the model; ``None`` for an object.
    :param services: the known services by name, for that process.
    :param engine: ``local``, or ``ray``: many texts are read by the workers of a cluster, see
        :mod:`memlab.embed.ray_workers`.
    :param token_encoder: another encoder, which gives the vectors of single tokens; ``None`` where
        the model itself does, or nothing does.
    :raises ModelError: for ``ray`` without a name.
    """

    model: Encoder
    header: tuple[str, ...] = ()
    cache: VectorCache | None = None
    spec: str | None = None
    services: Mapping[str, Any] | None = None
    engine: str = "local"
    token_encoder: WrappedEncoder | None = None

    def __post_init__(self) -> None:
        if self.engine == "ray" and self.spec is None:
            raise ModelError("engine 'ray' takes an encoder by its name, so that workers load it")
        if self.token_encoder is not None or isinstance(self.model, TokenEncoder):
            # Of the object, not of the class: it is a TokenEncoder where its model is one.
            vars(self)["encode_tokens"] = self._encode_tokens

    @property
    def identity(self) -> EncoderIdentity:  # type: ignore[override]
        """That of the model."""
        return self.model.identity

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.model.dim

    @property
    def texts_per_call(self) -> int | None:
        """How many texts to give at once, so that no worker waits; ``None`` without workers."""
        if self.engine != "ray":
            return None
        from memlab.embed.ray_workers import texts_per_worker_call

        return texts_per_worker_call()

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`.

        Each different text is read once. What the cache keeps is made by one reader, see
        :func:`memlab.embed.encoder.encoder_for_storing`.
        """
        checked = check_and_list_texts(texts, kind)
        if self.cache is not None and not self._is_model_faster_than_cache(checked, kind):
            return self.cache.encode(self, checked, kind=kind, progress=progress)
        number_by_text = _first_appearance_number_by_item(checked)
        if len(number_by_text) < len(checked):
            vectors = self.encode(number_by_text, kind=kind, progress=progress)
            return vectors[[number_by_text[text] for text in checked]]
        if self._reads_on_workers(checked):
            return np.concatenate(
                list(self._encode_on_workers("encode", [checked], kind, progress))
            )
        return self.model.encode(checked, kind=kind, progress=progress)

    def _encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed tokens; see :meth:`memlab.embed.token_vectors.TokenEncoder.encode_tokens`."""
        if self.token_encoder is not None:
            token_encoder = replace(self.token_encoder, cache=self.cache)
            return token_encoder._encode_tokens(texts, before=before, kind=kind, progress=progress)
        checked = check_and_list_texts(texts, kind)
        context = [""] * len(checked) if before is None else list(before)
        if self.cache is not None and (
            any(context) or not self._is_model_faster_than_cache(checked, kind)
        ):
            own = cast(TokenEncoder, self)
            return self.cache.tokens.encode(
                own, checked, before=before, kind=kind, progress=progress
            )
        pairs = list(zip(checked, context, strict=True))
        number_by_pair = _first_appearance_number_by_item(pairs)
        if len(number_by_pair) < len(pairs):
            distinct_texts, distinct_contexts = zip(*number_by_pair, strict=True)
            distinct_tokens = self._encode_tokens(
                distinct_texts, before=distinct_contexts, kind=kind, progress=progress
            )
            return distinct_tokens.take(
                np.array([number_by_pair[text_and_context] for text_and_context in pairs])
            )
        if self._reads_on_workers(checked):
            spread_tokens = self._encode_on_workers(
                "encode_tokens", [checked, context], kind, progress
            )
            return concat_tokens(list(spread_tokens), self.dim)
        model = cast(TokenEncoder, self.model)
        return model.encode_tokens(checked, before=before, kind=kind, progress=progress)

    def _is_model_faster_than_cache(self, texts: Sequence[str], kind: Kind) -> bool:
        """Whether reading is faster than looking up: one question, by a model of this process."""
        is_question = kind == "query" and len(texts) == 1
        return is_question and self.identity.kind in ("transformer", "static", "multi-vector")

    def _reads_on_workers(self, texts: Sequence[str]) -> bool:
        """Whether workers read texts; few are read here."""
        if self.engine != "ray":
            return False
        from memlab.embed.ray_workers import TEXTS

        return len(texts) >= TEXTS

    def _encode_on_workers(
        self, method_name: str, text_columns: Sequence[Sequence[str]], kind: Kind, progress: bool
    ) -> Iterator[Any]:
        from memlab.embed.ray_workers import encode_on_workers

        with self.progress_bar_of_texts(len(text_columns[0]), progress=progress) as progress_bar:
            for encoded_part in encode_on_workers(
                self.named_encoder(), method_name, text_columns, kind
            ):
                progress_bar.update(len(encoded_part))
                yield encoded_part

    def for_storing(self) -> WrappedEncoder:
        """Give one without a cache whose models read one text as they read many."""
        token_encoder = None
        if self.token_encoder is not None:
            token_encoder = encoder_for_storing(self.token_encoder)
        return replace(
            self, model=encoder_for_storing(self.model), token_encoder=token_encoder, cache=None
        )

    def named_encoder(self) -> NamedEncoder:
        """Give what :func:`memlab.embed.ray_workers.load_model_once_per_worker` loads this encoder
        by.

        :raises ModelError: when it has no name.
        """
        from memlab.embed.encoder_names import find_embed_settings
        from memlab.embed.ray_workers import NamedEncoder

        if self.spec is None:
            raise ModelError(f"encoder {self.identity.key} was given as an object; load it by name")
        named_token_encoder = None
        if self.token_encoder is not None:
            named_token_encoder = self.token_encoder.named_encoder()
        return NamedEncoder(
            self.spec,
            self.header,
            self.identity,
            self.services,
            own=find_embed_settings(self.spec),
            tokens=named_token_encoder,
        )

    def __repr__(self) -> str:
        description_parts = [f"{self.identity.key}: {self.identity.describe()}"]
        if self.header:
            description_parts.append(f"header {' + '.join(self.header)}")
        if self.token_encoder is not None:
            description_parts.append(f"tokens by {self.token_encoder}")
        return f"<Encoder {', '.join(description_parts)}>"


def _first_appearance_number_by_item(items: Sequence[T]) -> dict[T, int]:
    """Number the different ones among some items, in order."""
    return {item: number for number, item in enumerate(dict.fromkeys(items))}


def cache_encoder(store: VectorCache, encoder: Encoder) -> WrappedEncoder:
    """Wrap an encoder so that a store caches its vectors.

    One question is read by a model of this process, which is faster than to look it up.

    >>> import tempfile
    >>> from memlab import MemoryStore, embed
    >>> cached = embed.cache_encoder(MemoryStore.open(tempfile.mkdtemp()), embed.load("hashing:64"))
    >>> cached.encode(["tea", "coffee"]).shape
    (2, 64)
    """
    if isinstance(encoder, WrappedEncoder):
        return replace(encoder, cache=store)
    return WrappedEncoder(encoder, cache=store)


def without_cache(encoder: T) -> T:
    """Give an encoder that asks its model for every text."""
    if isinstance(encoder, WrappedEncoder) and encoder.cache is not None:
        return replace(encoder, cache=None)
    return encoder


def token_encoder_of(encoder: Encoder | None) -> TokenEncoder | None:
    """Give the encoder that the token vectors of an encoder are made by, and kept under.

    ``None`` where it has none.

    >>> from memlab import embed
    >>> from memlab.embed.encoder_wrapper import token_encoder_of
    >>> token_encoder_of(embed.load("hashing:64", token_encoder="minilm")).identity.model
    'minilm'
    """
    token_encoder = getattr(encoder, "token_encoder", None) or encoder
    return token_encoder if isinstance(token_encoder, TokenEncoder) else None


def forget_texts(encoder: Encoder | None) -> None:
    """Let an encoder's model forget the last texts that it read, before it is measured how long
    reading takes.
    """
    other = getattr(encoder, "token_encoder", None)
    if other is not None:
        forget_texts(other)
    model = encoder.model if isinstance(encoder, WrappedEncoder) else encoder
    forget = getattr(model, "forget_texts", None)
    if forget is not None:
        forget()


def describe_encoder(encoder: Encoder) -> dict[str, Any]:
    """Say what rankings depend on: ``encoder``, its identity, and ``header``, its fields.

    Where another encoder gives the token vectors, ``token_encoder`` is the identity of that one.

    >>> from memlab import embed
    >>> embed.describe_encoder(embed.load("hashing:64", header=["time"]))["header"]
    ['time']
    """
    description = {
        "encoder": encoder.identity.describe(),
        "header": list(header_fields_or_empty(encoder)),
    }
    token_encoder = getattr(encoder, "token_encoder", None)
    if token_encoder is not None:
        description["token_encoder"] = token_encoder.identity.describe()
    return description
