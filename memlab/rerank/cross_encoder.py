"""Cross-encoders: a model reads question and document together and scores how well they fit."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.embed import model_files
from memlab.embed.encoder import check_and_list_texts
from memlab.errors import ModelError, check_at_least
from memlab.records import Run
from memlab.registry import Count, stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.rankings_from_scores import rerank_by_scores

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


@stage
def cross_encoder(run: Run, bench: Bench, *, model: str, candidates: Count = 50) -> Run:
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
    path, model_name, _ = model_files.find_or_download_model(model, model_noun="cross-encoder")
    loaded_model = _load_cross_encoder_once(
        path.resolve(), model_name, model_files.weights_digest(path)
    )
    documents = bench.documents(run.level)
    asked_rows = bench.join_question_columns(run.frame, "text")
    # What is not scored is worth as much as the least of the scored, and a tie leaves it behind
    # them.
    scores = np.full(asked_rows.height, np.nan)
    first_rows = asked_rows.with_row_index("at").filter(pl.col("rank") <= candidates)
    for (question, _), question_rows in first_rows.group_by(
        "text", "query_id", maintain_order=True
    ):
        question_texts = check_and_list_texts(
            [documents.texts[place] for place in documents.at(question_rows["doc_id"])], "document"
        )
        distinct_texts = list(dict.fromkeys(question_texts))  # equal texts score equal
        score_by_text = dict(
            zip(
                distinct_texts,
                _score_texts_for_question(loaded_model, str(question), distinct_texts, model_name),
                strict=True,
            )
        )
        scores[question_rows["at"].to_numpy()] = [score_by_text[text] for text in question_texts]
    least_score = pl.col("score").min().over("query_id")
    scored_rows = asked_rows.with_columns(score=pl.Series(scores).fill_nan(None))
    return rerank_by_scores(
        run, bench, scored_rows.with_columns(pl.col("score").fill_null(least_score))
    )


def _score_texts_for_question(
    model: CrossEncoder, question: str, document_texts: list[str], model_name: str
) -> np.ndarray:
    import torch

    text_pairs = [(question, text) for text in document_texts]
    identity = torch.nn.Identity()
    logits = model.predict(
        text_pairs, activation_fn=identity, show_progress_bar=False, convert_to_tensor=True
    ).double()
    scores: np.ndarray = (
        (logits[:, -1] - logits[:, :-1].logsumexp(1) if logits.ndim == 2 else logits).cpu().numpy()
    )
    if not np.isfinite(scores).all():
        raise ModelError(
            f"cross-encoder {model_name} gave NaN or infinity; its weights are damaged"
        )
    return scores


@lru_cache(maxsize=2)
def _load_cross_encoder_once(
    model_folder: Path, model_name: str, weights_digest: str
) -> CrossEncoder:
    """Load a model, once in a process as long as the digest of its weights stays the same."""
    return model_files.load_sentence_transformers_model(
        model_folder, model_name, model_noun="cross-encoder"
    )
