"""An encoder that is a service: an OpenAI-compatible endpoint for embeddings."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from memlab import llm
from memlab.embed.encoder import (
    EncoderIdentity,
    IdentifiedEncoder,
    Kind,
    check_and_list_texts,
    check_and_scale_to_unit,
)
from memlab.errors import ModelError

# Servers refuse an empty input; one agreed word gives every empty text the same vector.
EMPTY = "(empty)"


class EndpointEncoder(IdentifiedEncoder):
    """Vectors from a service that the user named.

    Made by :func:`memlab.embed.load` with ``endpoint:NAME``.

    One text is encoded at once, to learn the width and to fail early. The identity holds the
    model's name at the server and no address or key; whether two servers of one name give the same
    vectors is for the user to know.

    :raises ModelError: when the service cannot be used.
    """

    def __init__(self, service: llm.Service) -> None:
        self._service = service
        probe_vectors = llm.embed_texts(service, [EMPTY])
        vector_width = probe_vectors.shape[1]
        if service.dimensions not in (None, vector_width):
            raise ModelError(
                f"endpoint {service.name!r} gave vectors of {vector_width} numbers, and dimensions "
                f"of the settings is {service.dimensions}: its server or model does not cut them; "
                "leave dimensions out"
            )
        self.identity = EncoderIdentity(
            kind="endpoint",
            model=service.model,
            pooling="server",
            query_prompt=service.query_prompt,
            document_prompt=service.document_prompt,
            max_length=service.max_input,
            normalized=bool(abs(np.linalg.norm(probe_vectors[0]) - 1) < 1e-3),
            dim=vector_width,
        )

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`.

        :raises ModelError: when the service fails, or its vectors have another width than at load.
        """
        checked = check_and_list_texts(texts, kind)
        prompt = self.prompt(kind)
        endpoint_name = f"endpoint {self._service.name!r}"
        sent_texts = [
            (prompt + (text if text.strip() else EMPTY))[: self._service.max_input]
            for text in checked
        ]

        def check_width_and_advance_bar(vectors: np.ndarray) -> None:
            if vectors.shape[1] != self.dim:
                raise ModelError(
                    f"{endpoint_name} gave vectors of {vectors.shape[1]} numbers, expected "
                    f"{self.dim} as at load"
                )
            progress_bar.update(len(vectors))

        with self.progress_bar_of_texts(len(checked), progress=progress) as progress_bar:
            vectors = llm.embed_texts(self._service, sent_texts, done=check_width_and_advance_bar)
        return check_and_scale_to_unit(
            vectors.reshape(len(sent_texts), self.dim), made_by=endpoint_name
        )
