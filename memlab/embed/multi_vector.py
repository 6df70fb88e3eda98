"""Encoders that were trained for late interaction, such as ColBERT: one vector for each token of a
text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from memlab.embed.encoder import Kind, check_texts, unit_rows
from memlab.embed.token_vectors import TokenVectors, concat_tokens
from memlab.embed.transformer import TransformerEncoder, unit_tokens

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
        checked = check_texts(texts, kind)
        means = [np.zeros((0, self.dim))]
        with self.bar(len(checked), progress=progress) as bar:
            for start in range(0, len(checked), _TOGETHER):
                part = checked[start : start + _TOGETHER]
                means.append(_mean_tokens(self.encode_tokens(part, kind=kind, progress=False)))
                bar.update(len(part))
        return unit_rows(np.concatenate(means), of=f"encoder {self.identity.model}")

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
        checked = check_texts(texts, kind)
        context = [""] * len(checked)
        if kind == "document":
            context = check_texts(before or context, kind)
        found: dict[int, TokenVectors] = {}
        has_lead = np.array([bool(lead) for lead in context], bool)
        alone = np.flatnonzero(~has_lead).tolist()
        behind = np.flatnonzero(has_lead).tolist()
        with self.bar(len(checked), progress=progress) as bar:
            for start in range(0, len(alone), _TOGETHER):
                places = alone[start : start + _TOGETHER]
                read = self._read_alone(_take(checked, places), kind)
                found.update(zip(places, read, strict=True))
                bar.update(len(places))
            for start in range(0, len(behind), _TOGETHER):
                places = behind[start : start + _TOGETHER]
                leads = _take(context, places)
                read = self._read_behind(_take(checked, places), leads)
                found.update(zip(places, read, strict=True))
                bar.update(len(places))
        return concat_tokens(_in_order(found), self.dim)

    def _read_alone(self, texts: list[str], kind: Kind) -> list[TokenVectors]:
        """Read texts as sentence-transformers does."""
        rows = self._model.encode(
            texts,
            prompt=self.prompt(kind),
            task=kind,
            batch_size=self._batch or _BATCH,
            output_value=None,
            show_progress_bar=False,
        )
        read = []
        for row in rows:
            counted = row["attention_mask"]
            read.append(_counted(row["input_ids"], row["token_embeddings"], counted))
        return read

    def _read_behind(self, texts: list[str], before: list[str]) -> list[TokenVectors]:
        """Read documents behind others, whose tokens count for nothing."""
        prompt = self.prompt("document")
        head = len(self._frame[0]) + len(self._plain([prompt])[0])
        of = self._in_context(texts, before, prompt)

        def sequences(window: slice) -> list[list[int]]:
            return [ids for ids, _, _ in of[window]]

        found: dict[int, TokenVectors] = {}
        for rows, features in self._read(sequences, len(texts), dict, progress=False):
            for row, place in enumerate(rows.tolist()):
                counted = features["attention_mask"][row].bool().clone()
                counted[head : of[place][1]] = False
                ids, hidden = features["input_ids"][row], features["token_embeddings"][row]
                found[place] = _counted(ids, hidden, counted)
        return _in_order(found)

    def _forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Run the model on documents."""
        del features["prompt_length"]
        out: dict[str, Any] = self._model(features, task="document")
        return out


def _mean_tokens(tokens: TokenVectors) -> np.ndarray:
    """Give the mean vector of each text's tokens: (n, d).

    Of a text without tokens one without direction.
    """
    sums = np.ones((len(tokens), tokens.vectors.shape[1]))
    filled = np.flatnonzero(np.diff(tokens.start))
    if len(filled):
        rows = tokens.vectors.astype(np.float64)
        sums[filled] = np.add.reduceat(rows, tokens.start[filled], axis=0)
    return sums


def _take(texts: list[str], places: list[int]) -> list[str]:
    return [texts[place] for place in places]


def _in_order(found: dict[int, TokenVectors]) -> list[TokenVectors]:
    """Give what was found for each text, by the places of the texts."""
    return [found[place] for place in range(len(found))]


def _counted(ids: Any, hidden: Any, counted: Any) -> TokenVectors:
    """Give the tokens of one text that count.

    :param ids: (t,) numbers of the tokens, the padding included, with vectors (t, d).
    :param counted: (t,) which of them count.
    """
    keep = counted.bool()
    return unit_tokens(ids[keep].cpu().numpy(), hidden[keep].float().cpu().numpy())
