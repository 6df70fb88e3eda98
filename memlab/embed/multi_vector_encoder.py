"""Encoders that were trained for late interaction, such as ColBERT: one vector for each token of a
text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memlab.embed.encoder import Kind, check_and_list_texts, check_and_scale_to_unit
from memlab.embed.token_vectors import TokenVectors, concat_tokens
from memlab.embed.transformer_encoder import TransformerEncoder, unit_token_vectors

if TYPE_CHECKING:
    import torch

_TOGETHER = 512
"""Texts whose tokens are held with their padding: it bounds memory."""

_BATCH = 32
"""Texts that the library reads at once where the settings say nothing: its own default."""


class MultiVectorEncoder(TransformerEncoder):
    """A ColBERT with the projection, the markers, the lengths and the expanded queries that it was
    trained with.

    What counts in its scores is what sentence-transformers counts: the special tokens and markers
    too, of queries the expansion, of documents no token of the model's skip list. Made by
    :func:`memlab.embed.load`.
    """

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode each text by the mean of its token vectors, for stages that want one vector of it.

        The model was not trained for that: ``late`` ranks better.
        """
        checked = check_and_list_texts(texts, kind)
        token_means = [np.zeros((0, self.dim))]
        with self.progress_bar_of_texts(len(checked), progress=progress) as progress_bar:
            for batch_start in range(0, len(checked), _TOGETHER):
                batch_texts = checked[batch_start : batch_start + _TOGETHER]
                token_means.append(
                    _mean_token_vectors(self.encode_tokens(batch_texts, kind=kind, progress=False))
                )
                progress_bar.update(len(batch_texts))
        return check_and_scale_to_unit(
            np.concatenate(token_means), made_by=f"encoder {self.identity.model}"
        )

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts.

        See :meth:`memlab.embed.token_vectors.TokenEncoder.encode_tokens`.

        What stands before a document takes up to half of the length that the model reads of one.
        A query is read alone.
        """
        checked = check_and_list_texts(texts, kind)
        context = [""] * len(checked)
        if kind == "document":
            context = check_and_list_texts(before or context, kind)
        tokens_by_place: dict[int, TokenVectors] = {}
        has_lead = np.array([bool(lead) for lead in context], bool)
        alone_places = np.flatnonzero(~has_lead).tolist()
        behind_places = np.flatnonzero(has_lead).tolist()
        with self.progress_bar_of_texts(len(checked), progress=progress) as progress_bar:
            for batch_start in range(0, len(alone_places), _TOGETHER):
                batch_places = alone_places[batch_start : batch_start + _TOGETHER]
                read_tokens = self._embed_tokens_of_single_texts(
                    _texts_at_places(checked, batch_places), kind
                )
                tokens_by_place.update(zip(batch_places, read_tokens, strict=True))
                progress_bar.update(len(batch_places))
            for batch_start in range(0, len(behind_places), _TOGETHER):
                batch_places = behind_places[batch_start : batch_start + _TOGETHER]
                lead_texts = _texts_at_places(context, batch_places)
                read_tokens = self._embed_tokens_of_documents_in_context(
                    _texts_at_places(checked, batch_places), lead_texts
                )
                tokens_by_place.update(zip(batch_places, read_tokens, strict=True))
                progress_bar.update(len(batch_places))
        return concat_tokens(_tokens_in_text_order(tokens_by_place), self.dim)

    def _embed_tokens_of_single_texts(self, texts: list[str], kind: Kind) -> list[TokenVectors]:
        """Read texts as sentence-transformers does."""
        model_rows = self._model.encode(
            texts,
            prompt=self.prompt(kind),
            task=kind,
            batch_size=self._batch or _BATCH,
            output_value=None,
            show_progress_bar=False,
        )
        read_tokens = []
        for row in model_rows:
            attention_mask = row["attention_mask"]
            read_tokens.append(
                _unit_vectors_of_counted_tokens(
                    row["input_ids"], row["token_embeddings"], attention_mask
                )
            )
        return read_tokens

    def _embed_tokens_of_documents_in_context(
        self, texts: list[str], texts_before: list[str]
    ) -> list[TokenVectors]:
        """Read documents behind others, whose tokens count for nothing."""
        prompt = self.prompt("document")
        head_length = len(self._opening_and_closing_tokens[0]) + len(
            self._token_ids_without_special([prompt])[0]
        )
        tokens_in_context = self._frame_texts_in_context(texts, texts_before, prompt)

        def token_ids_of_window(window: slice) -> list[list[int]]:
            return [ids for ids, _, _ in tokens_in_context[window]]

        tokens_by_place: dict[int, TokenVectors] = {}
        for rows, features in self._run_in_batches(
            token_ids_of_window, len(texts), dict, progress=False
        ):
            for row, place in enumerate(rows.tolist()):
                is_counted = features["attention_mask"][row].bool().clone()
                is_counted[head_length : tokens_in_context[place][1]] = False
                token_ids = features["input_ids"][row]
                hidden_states = features["token_embeddings"][row]
                tokens_by_place[place] = _unit_vectors_of_counted_tokens(
                    token_ids, hidden_states, is_counted
                )
        return _tokens_in_text_order(tokens_by_place)

    def _run_model(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Run the model on documents."""
        del features["prompt_length"]
        model_output: dict[str, torch.Tensor] = self._model(features, task="document")
        return model_output


def _mean_token_vectors(tokens: TokenVectors) -> np.ndarray:
    """Give the mean vector of each text's tokens: (n, d).

    Of a text without tokens one without direction.
    """
    token_sums = np.ones((len(tokens), tokens.vectors.shape[1]))
    filled = np.flatnonzero(np.diff(tokens.start))
    if len(filled):
        exact_vectors = tokens.vectors.astype(np.float64)
        token_sums[filled] = np.add.reduceat(exact_vectors, tokens.start[filled], axis=0)
    return token_sums


def _texts_at_places(texts: list[str], places: list[int]) -> list[str]:
    return [texts[place] for place in places]


def _tokens_in_text_order(tokens_by_place: dict[int, TokenVectors]) -> list[TokenVectors]:
    """Give what was found for each text, by the places of the texts."""
    return [tokens_by_place[place] for place in range(len(tokens_by_place))]


def _unit_vectors_of_counted_tokens(
    token_ids: torch.Tensor, hidden_states: torch.Tensor, is_counted: torch.Tensor
) -> TokenVectors:
    """Give the tokens of one text that count.

    :param token_ids: (t,) numbers of the tokens, the padding included, with vectors (t, d).
    :param is_counted: (t,) which of them count.
    """
    is_kept = is_counted.bool()
    return unit_token_vectors(
        token_ids[is_kept].cpu().numpy(), hidden_states[is_kept].float().cpu().numpy()
    )
