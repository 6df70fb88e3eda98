"""Texts that workers of a Ray cluster encode: each loads the model by its name and reads a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memlab import distributed
from memlab.config import EmbedSettings
from memlab.embed.encoder import Encoder, EncoderIdentity, Kind, encoder_for_storing
from memlab.embed.encoder_names import load_named_model
from memlab.errors import ModelError

TEXTS = 128
"""Of a part: some seconds of a small model, so that what is sent and started weighs little."""


@dataclass(frozen=True)
class NamedEncoder:
    """What a worker loads an encoder by.

    :param spec: its name, as :func:`memlab.embed.load` takes it: the model must be there for every
        worker.
    :param header: fields put before turns and questions.
    :param identity: what the encoder is where the command runs.
    :param services: the known services by name.
    :param own: its table ``[embed.NAME]`` in the settings of the command.
    :param tokens: the encoder of its token vectors, where that is another.
    """

    spec: str
    header: tuple[str, ...]
    identity: EncoderIdentity
    services: Mapping[str, Any] | None = field(default=None, compare=False)
    own: EmbedSettings | None = field(default=None, compare=False)
    tokens: NamedEncoder | None = None


def texts_per_worker_call() -> int:
    """Give how many texts to hand over at once, so that no worker of the cluster waits."""
    return TEXTS * distributed.PARTS_PER_CORE * distributed.connect_and_count_cluster_cores()


def encode_on_workers(
    named_encoder: NamedEncoder, method_name: str, text_columns: Sequence[Sequence[str]], kind: Kind
) -> Iterator[Any]:
    """Give what an encoder's method gives for each :data:`TEXTS` texts, in their order.

    :param method_name: ``encode``, or ``encode_tokens``.
    :param text_columns: n texts; for tokens a second list of n, which the model reads before them.
    """
    part_starts = range(0, len(text_columns[0]), TEXTS)
    text_parts = (
        [column[part_start : part_start + TEXTS] for column in text_columns]
        for part_start in part_starts
    )
    return distributed.parallel_map(
        _encode_texts_on_worker, text_parts, named_encoder, method_name, kind, engine="ray"
    )


def _encode_texts_on_worker(
    text_columns: list[list[str]], named_encoder: NamedEncoder, method_name: str, kind: Kind
) -> Any:
    texts, *other_columns = text_columns
    context_option = {"before": other_columns[0]} if other_columns else {}
    # As one machine reads all parts, the last of which may be a few texts.
    encode = getattr(encoder_for_storing(load_model_once_per_worker(named_encoder)), method_name)
    return encode(texts, kind=kind, progress=False, **context_option)


_worker_models: dict[EncoderIdentity, Encoder] = {}  # of a worker: the last


def load_model_once_per_worker(named_encoder: NamedEncoder) -> Encoder:
    """Load the model of an encoder on a worker, once.

    :raises ModelError: when it is another than where the command runs.
    """
    if named_encoder.identity not in _worker_models:
        model = load_named_model(
            named_encoder.spec, named_encoder.services, model_settings=named_encoder.own
        )
        if model.identity != named_encoder.identity:
            raise ModelError(
                f"encoder {named_encoder.spec!r} is {model.identity} on a worker and "
                f"{named_encoder.identity} "
                "where the command runs: put the same model on every machine"
            )
        _worker_models.clear()
        _worker_models[named_encoder.identity] = model
    return _worker_models[named_encoder.identity]
