"""An encoder behind an OpenAI-compatible embeddings endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from tqdm import tqdm

from memlab import llm
from memlab.embed.base import EncoderIdentity, Kind, check_texts, unit_rows
from memlab.errors import ModelError

# Servers refuse an empty input; one agreed word gives every empty text the same vector.
EMPTY = "(empty)"

_PROGRESS_FROM = 256


class EndpointEncoder:
    """Vectors from a service that the user named; made by :func:`memlab.embed.load` with ``endpoint:NAME``.

    One text is encoded at once, to learn the width and to fail early. The identity holds the model's name at the
    server and no address or key; whether two servers of one name give the same vectors is for the user to know.

    :param service: where the model is served.
    :raises ModelError: when the service cannot be used.
    """

    def __init__(self, service: llm.Service) -> None:
        self._service = service
        self._client = llm.client(service)
        probe = llm.embeddings(service, [EMPTY], using=self._client)
        self._identity = EncoderIdentity(
            kind="endpoint",
            model=service.model,
            revision="",
            pooling="server",
            query_prompt=service.query_prompt,
            document_prompt=service.document_prompt,
            max_length=service.max_input,
            normalized=bool(abs(np.linalg.norm(probe[0]) - 1) < 1e-3),
            dim=probe.shape[1],
        )

    @property
    def identity(self) -> EncoderIdentity:
        """What the vectors depend on."""
        return self._identity

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self._identity.dim

    def encode(self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`.

        :raises ModelError: when the service fails, or its vectors have another width than before.
        """
        held = check_texts(texts, kind)
        out = np.empty((len(held), self.dim), dtype=np.float32)
        if not held:
            return out
        prompt = self._identity.query_prompt if kind == "query" else self._identity.document_prompt
        sent = [(prompt + (text if text.strip() else EMPTY))[: self._service.max_input] for text in held]
        start = 0
        quiet = not progress or len(held) < _PROGRESS_FROM
        with tqdm(total=len(held), unit="text", desc=self._identity.model, disable=quiet) as bar:
            for batch in llm.batches(sent):
                vectors = llm.embeddings(self._service, batch, using=self._client)
                if vectors.shape[1] != self.dim:
                    raise ModelError(
                        f"endpoint {self._service.name!r} gave vectors of {vectors.shape[1]} numbers, expected "
                        f"{self.dim} as at load: has the server's model changed? Load the encoder again"
                    )
                out[start : start + len(batch)] = vectors
                start += len(batch)
                bar.update(len(batch))
        return unit_rows(out, of=f"endpoint {self._service.name!r}")

    def __repr__(self) -> str:
        return f"<Encoder {self.identity.key}: {self.identity.describe()}>"


def load_endpoint(name: str, services: Mapping[str, llm.Service]) -> EndpointEncoder:
    """Open the endpoint of a known service.

    :raises ModelError: when no service has that name, or it cannot be used.
    """
    if name not in services:
        known = ", ".join(sorted(services)) or "none"
        raise ModelError(
            f"encoder 'endpoint:{name}': no service {name!r} is known (known: {known}); name it in the settings, or "
            "pass services={name: Service(name, base_url, model)}"
        )
    return EndpointEncoder(services[name])
