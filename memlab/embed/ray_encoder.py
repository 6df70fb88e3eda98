"""An encoder whose texts are read by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from memlab import distributed
from memlab.embed import load
from memlab.embed.base import Encoder, EncoderIdentity, IdentifiedEncoder, Kind, check_texts
from memlab.embed.token_vectors import TokenEncoder, TokenVectors, concat_tokens
from memlab.errors import ModelError

Services = Mapping[str, Any] | None

TEXTS = 128
"""Of a part: some seconds of a small model on one core, so that what is sent and started weighs little."""


class SpreadEncoder(IdentifiedEncoder):
    """The encoder of a name; each worker loads its own and reads a part of the texts.

    It has the identity of the encoder, so that a store takes the vectors of both for the same, as
    they are within the rounding of float32. Few texts are read here.
    """

    def __init__(self, spec: str, encoder: Encoder, services: Services) -> None:
        self.spec, self.encoder, self.services = spec, encoder, services
        self.identity: EncoderIdentity = encoder.identity

    @property
    def together(self) -> int:
        """How many texts to give at once, so that no worker waits."""
        return TEXTS * distributed.PARTS_PER_CORE * distributed.core_count()

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`."""
        checked = check_texts(texts, kind)
        if len(checked) < TEXTS:
            return self.encoder.encode(checked, kind=kind, progress=progress)
        return np.concatenate(list(self._spread("encode", [checked], kind, progress)))

    def _spread(
        self, method: str, columns: list[Sequence[str]], kind: Kind, progress: bool
    ) -> Iterator[Any]:
        parts = (
            [column[i : i + TEXTS] for column in columns] for i in range(0, len(columns[0]), TEXTS)
        )
        shared = (method, self.spec, self.services, self.identity, kind)
        with self.bar(len(columns[0]), progress=progress) as bar:
            for part in distributed.parallel_map(_encode_part, parts, *shared, engine="ray"):
                bar.update(len(part))
                yield part


class SpreadTokenEncoder(SpreadEncoder):
    """The same for an encoder that also gives the vectors of single tokens."""

    encoder: TokenEncoder

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts; see :meth:`memlab.embed.token_vectors.TokenEncoder.encode_tokens`."""
        checked = check_texts(texts, kind)
        if len(checked) < TEXTS:
            return self.encoder.encode_tokens(checked, before=before, kind=kind, progress=progress)
        columns = [checked, [""] * len(checked) if before is None else before]
        return concat_tokens(list(self._spread("encode_tokens", columns, kind, progress)), self.dim)


def load_distributed_encoder(spec: str, *, services: Services = None) -> SpreadEncoder:
    """Give an encoder whose texts the workers of a Ray cluster read, see :func:`memlab.distributed.parallel_map`.

    :param spec: its name, as :func:`memlab.embed.load` takes it: the model must be there for every
        worker.
    :param services: the known services by name.
    :raises ModelError: when there is no such model.

    >>> from memlab.embed.ray_encoder import load_distributed_encoder
    >>> load_distributed_encoder("hashing:64").encode(["few texts are read here"]).shape
    (1, 64)
    """
    encoder = load(spec, services=services)
    return (SpreadTokenEncoder if isinstance(encoder, TokenEncoder) else SpreadEncoder)(
        spec, encoder, services
    )


def _encode_part(
    part: list[list[str]],
    method: str,
    spec: str,
    services: Services,
    identity: EncoderIdentity,
    kind: Kind,
) -> Any:
    before = {"before": part[1]} if part[1:] else {}
    return getattr(load_worker_encoder(spec, services, identity), method)(
        part[0], kind=kind, progress=False, **before
    )


_worker_encoders: dict[EncoderIdentity, Encoder] = {}  # of a worker: the last


def load_worker_encoder(spec: str, services: Services, identity: EncoderIdentity) -> Encoder:
    """Load the encoder of a worker, once.

    :raises ModelError: when it is another than where the command runs.
    """
    if identity not in _worker_encoders:
        encoder = load(spec, services=services)
        if encoder.identity != identity:
            raise ModelError(
                f"encoder {spec!r} is {encoder.identity} on a worker and {identity} where the command runs: put the "
                "same model on every machine"
            )
        _worker_encoders.clear()
        _worker_encoders[identity] = encoder
    return _worker_encoders[identity]
