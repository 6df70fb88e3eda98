"""Cross-encoders: a model reads question and document together and scores how well they fit."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.embed import model_files
from memlab.embed.encoder import check_texts
from memlab.errors import ModelError, check_at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import rerank_by_scores


@stage
def cross_encoder(run: Run, bench: Bench, *, model: str, candidates: int = 50) -> Run:
    """Reorder the first candidates by a transformer that reads the question and the document as one
    text.

    A model with one output scores by it, one with several classes by the log-odds of its last.
    Where the two texts are too long together the longer is cut, so a session counts by its
    beginning: rerank turns instead. The texts of one question make up their own batches: what a
    question gets does not depend on what else is asked.

    :param model: a directory that transformers saved, or a hub id such as
        ``cross-encoder/ms-marco-MiniLM-L6-v2``, which is taken from the hub's local cache where it
        is there; ``@revision`` pins it.
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
    memlab.errors.ModelError: no cross-encoder 'no-such-model': there is no such directory; expected
    ...
    """
    check_at_least(1, candidates=candidates)
    path, name, _ = model_files.find_model(model, what="cross-encoder")
    reader = _load_model(path.resolve(), name, model_files.weights_digest(path))
    documents, rows = bench.documents(run.level), bench.asked(run.frame, "text")
    # What is not scored is worth as much as the least of the scored, and a tie leaves it behind
    # them.
    scores = np.full(rows.height, np.nan)
    first = rows.with_row_index("at").filter(pl.col("rank") <= candidates)
    for (question, _), part in first.group_by("text", "query_id", maintain_order=True):
        texts = check_texts([documents.texts[i] for i in documents.at(part["doc_id"])], "document")
        distinct = list(dict.fromkeys(texts))  # equal texts score equal
        found = dict(
            zip(distinct, _score_pairs(reader, str(question), distinct, name), strict=True)
        )
        scores[part["at"].to_numpy()] = [found[text] for text in texts]
    least = pl.col("score").min().over("query_id")
    scored = rows.with_columns(score=pl.Series(scores).fill_nan(None))
    return rerank_by_scores(run, bench, scored.with_columns(pl.col("score").fill_null(least)))


def _score_pairs(reader: Any, question: str, texts: list[str], name: str) -> np.ndarray:
    import torch

    pairs = [(question, text) for text in texts]
    identity = torch.nn.Identity()
    logits = reader.predict(
        pairs, activation_fn=identity, show_progress_bar=False, convert_to_tensor=True
    ).double()
    scores: np.ndarray = (
        (logits[:, -1] - logits[:, :-1].logsumexp(1) if logits.ndim == 2 else logits).cpu().numpy()
    )
    if not np.isfinite(scores).all():
        raise ModelError(f"cross-encoder {name} gave NaN or infinity; its weights are damaged")
    return scores


@lru_cache(maxsize=2)
def _load_model(path: Path, name: str, digest: str) -> Any:
    """Load a model, once in a process as long as the digest of its weights stays the same."""
    return model_files.load_model(path, name, what="cross-encoder")
