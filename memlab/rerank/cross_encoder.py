"""Cross-encoders: a model that reads question and document together and says how well they fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.base import check_texts
from memlab.embed.loading import load_parts, longest
from memlab.embed.modelfiles import HUB_ID, fetch, weights_digest
from memlab.embed.transformer import token_batches
from memlab.errors import ModelError, at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import reranked

_RELEVANT = "relevant"
_PROGRESS_FROM = 500

# No language has words of so few tokens: what is further on in a text than this cannot be among the first tokens.
_CHARS_PER_TOKEN = 16


@stage
def cross_encoder(run: Run, bench: Bench, *, model: str, candidates: int = 50) -> Run:
    """Reorder the first candidates by a transformer that reads the question and the document as one text.

    A model with one output scores by it. One with several classes scores by the log-odds of the class named
    ``relevant``, or of its last class where none is named so; their order is that of the probability. Where the two
    texts are too long together the document is cut, so a session counts by its beginning: rerank turns instead.

    The model is loaded once a process. The texts of one question make up their own batches: what a question gets
    does not depend on what else is asked.

    :param model: a directory that transformers saved, or a hub id such as ``cross-encoder/ms-marco-MiniLM-L6-v2``,
        which is taken from the hub's local cache where it is there; ``@revision`` pins it.
    :param candidates: how many of the run's first documents to score; the rest follow as they were.
    :raises DataError: when ``candidates`` is not positive.
    :raises ModelError: when there is no such model, or it classifies no sequences.

    Source: Nogueira and Cho, Passage Re-ranking with BERT (2019).

    >>> from memlab import retrieve, sample
    >>> from memlab.rerank import cross_encoder
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> cross_encoder(retrieve.bm25(bench), bench, model="no-such-model")
    Traceback (most recent call last):
        ...
    memlab.errors.ModelError: no cross-encoder 'no-such-model': there is no such directory; expected ...
    """
    from tqdm.auto import tqdm

    at_least(1, candidates=candidates)
    reader = load(model)
    documents = bench.documents(run.level)
    asked = bench.asked(run.frame, "text")
    first = asked.with_row_index("row").filter(pl.col("rank") <= candidates)
    first = first.with_columns(pl.Series("at", documents.at(first["doc_id"]), dtype=pl.Int64))
    by_query = first.group_by("query_id", maintain_order=True).agg("row", "at", pl.col("text").first())
    # What is not scored is worth as much as the least of the scored, and a tie leaves it behind them.
    scores = np.full(asked.height, np.nan)
    with tqdm(total=first.height, unit="pair", desc=reader.name, disable=first.height < _PROGRESS_FROM) as bar:
        for _, rows, places, question in by_query.iter_rows():
            scores[rows] = reader.scores(question, [documents.texts[at] for at in places])
            bar.update(len(rows))
    scored = asked.with_columns(score=scores).with_columns(pl.col("score").fill_nan(None))
    return reranked(run, bench, scored.with_columns(pl.col("score").fill_null(pl.col("score").min().over("query_id"))))


@dataclass(frozen=True)
class CrossEncoder:
    """A loaded model: question and documents in, scores out.

    :param name: portable name of the model.
    :param column: the output that says "relevant".
    :param limit: tokens of a pair.
    """

    name: str
    tokenizer: Any
    model: Any
    device: str
    column: int
    limit: int

    def scores(self, question: str, texts: list[str]) -> np.ndarray:
        """Score documents for a question: (n,) float64; equal texts score equal."""
        import torch

        chars = self.limit * _CHARS_PER_TOKEN
        unique, place = np.unique(np.array(texts, dtype=object), return_inverse=True)
        pairs = [text[:chars] for text in check_texts([question, *unique], "document")]
        # "Longest first" cuts the document alone, unless the question is more than half of what the model reads.
        tokens = self.tokenizer(
            pairs[:1] * len(unique), pairs[1:], truncation="longest_first", max_length=self.limit, verbose=False
        )
        lengths = [len(ids) for ids in tokens["input_ids"]]
        out = np.empty(len(unique))
        with torch.inference_mode():
            for rows in token_batches(lengths):
                batch = {key: [values[i] for i in rows] for key, values in tokens.items()}
                padded = self.tokenizer.pad(batch, return_tensors="pt").to(self.device)
                out[rows] = self._relevance(self.model(**padded).logits.double()).cpu().numpy()
        if not np.isfinite(out).all():
            raise ModelError(f"cross-encoder {self.name} gave NaN or infinity; its weights are damaged")
        return out[place]

    def _relevance(self, logits: Any) -> Any:
        if logits.shape[1] == 1:
            return logits[:, 0]
        others = [i for i in range(logits.shape[1]) if i != self.column]
        return logits[:, self.column] - logits[:, others].logsumexp(dim=1)


def load(spec: str) -> CrossEncoder:
    """Load a cross-encoder from a directory or the hub, once in a process as long as its weights stay the same.

    :raises ModelError: when there is none, or it is not one.
    """
    path = Path(spec).expanduser()
    if spec and path.is_dir():
        return _loaded(path.resolve(), path.resolve().name, weights_digest(path))
    if not HUB_ID.fullmatch(spec):
        raise ModelError(
            f"no cross-encoder {spec!r}: there is no such directory; expected a directory that transformers saved, or "
            "a hub id (owner/name or owner/name@revision)"
        )
    path = fetch(spec, what="cross-encoder")
    return _loaded(path, spec.partition("@")[0], weights_digest(path))


@lru_cache(maxsize=2)
def _loaded(path: Path, name: str, digest: str) -> CrossEncoder:
    import torch

    tokenizer, model = load_parts(path, name, what="cross-encoder")
    if tokenizer.pad_token is None:
        raise ModelError(f"cross-encoder {name}: its tokenizer has no padding token; set pad_token in its files")
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id
    device = "cuda" if torch.cuda.is_available() else "cpu"
    labels = {str(label).lower(): int(i) for i, label in model.config.id2label.items()}
    column = labels.get(_RELEVANT, model.config.num_labels - 1)
    return CrossEncoder(name, tokenizer, model.to(device), device, column, longest(tokenizer, model.config))
