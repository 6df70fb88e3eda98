"""Static encoders: a table with one vector for each token of a vocabulary, and no transformer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab.embed import model_files
from memlab.embed.encoder import (
    EncoderIdentity,
    IdentifiedEncoder,
    Kind,
    check_and_list_texts,
    check_and_scale_to_unit,
)
from memlab.embed.model_kinds import read_folder_and_class_of_modules, read_json_table_or_empty
from memlab.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_BATCH = 1024
"""Texts that are read at once where the settings say nothing: it bounds memory, not time."""


class StaticEncoder(IdentifiedEncoder):
    """The mean of the vectors of a text's tokens, which stand in a table.

    A text without tokens gets a vector without direction. Made by :func:`memlab.embed.load` for the
    folders of model2vec and of sentence-transformers' ``StaticEmbedding``.

    :param path: directory of the model.
    :param identity: what the model's files say.
    :param batch: texts that are read at once.
    """

    def __init__(self, path: Path, identity: EncoderIdentity, *, batch: int | None = None) -> None:
        self.path = path.absolute()  # It is read later, maybe from another working directory.
        self.identity = identity
        self._batch = batch or _BATCH

    @cached_property
    def _model(self) -> SentenceTransformer:
        return load_static_model(self.path, self.identity.model)

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`."""
        checked = check_and_list_texts(texts, kind)
        prompt = self.prompt(kind)
        unit_vectors = np.empty((len(checked), self.dim), np.float32)
        with self.progress_bar_of_texts(
            len(checked), progress=progress, min_texts=50_000
        ) as progress_bar:
            for batch_start in range(0, len(checked), self._batch):
                batch_texts = checked[batch_start : batch_start + self._batch]
                model_vectors = self._model.encode(
                    batch_texts, prompt=prompt, show_progress_bar=False
                )
                cut_vectors = np.array(model_vectors[:, : self.dim], np.float32)
                cut_vectors[~cut_vectors.any(axis=1)] = 1.0
                unit_vectors[batch_start : batch_start + len(batch_texts)] = (
                    check_and_scale_to_unit(cut_vectors, made_by=f"encoder {self.identity.model}")
                )
                progress_bar.update(len(batch_texts))
        return unit_vectors


def load_static_model(path: Path, name: str) -> SentenceTransformer:
    """Load a table of vectors as a model of sentence-transformers, in float32.

    :raises ModelError: when the files are damaged or of another kind of model.
    """
    if read_folder_and_class_of_modules(path):
        return model_files.load_sentence_transformers_model(path, name).float()
    return _load_model2vec(path, name)


def _load_model2vec(model_folder: Path, model_name: str) -> SentenceTransformer:
    """Load a folder of model2vec that says nothing of sentence-transformers."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    try:
        modules: list[Any] = [StaticEmbedding.load(str(model_folder), local_files_only=True)]
    except Exception as error:
        raise ModelError(
            f"encoder {model_name}: its table of vectors cannot be read ({type(error).__name__}: "
            f"{error}); expected model.safetensors and tokenizer.json as model2vec saves them"
        ) from error
    if read_json_table_or_empty(model_folder / "config.json").get("normalize"):
        modules.append(Normalize())
    return SentenceTransformer(modules=modules, device="cpu").float().eval()
