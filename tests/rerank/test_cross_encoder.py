"""Cross-encoders against a direct forward of transformers, on tiny models with random weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import ModelError
from memlab.rerank import cross_encoder
from memlab.retrieve import Bench, bm25

LIMIT = 48
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def bench() -> Bench:
    """Two questions over a few turns."""
    data = memlab.sample(turns=60)
    return Bench.of(data, encoder=None).with_queries(data.questions.head(2))


@pytest.fixture
def tiny(tmp_path: Path, bench: Bench) -> Make:
    """Make a small BERT with random weights and a tokenizer of the bench's own words."""

    def make(name: str = "tiny", *, kind: str = "BertForSequenceClassification", **options: Any) -> Path:
        import torch
        import transformers

        torch.manual_seed(0)
        words = sorted({w for text in bench.documents("turn").texts for w in text.lower().split() if w.isalpha()})
        tokens = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])}
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = transformers.BertConfig(
            vocab_size=len(tokens), max_position_embeddings=LIMIT, initializer_range=0.5, **sizes, **options
        )
        getattr(transformers, kind)(config).save_pretrained(tmp_path / name)
        transformers.BertTokenizer(vocab=tokens).save_pretrained(tmp_path / name)
        return tmp_path / name

    return make


def forward(path: Path, question: str, text: str) -> list[float]:
    """Read a pair through transformers, the document alone cut."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModelForSequenceClassification.from_pretrained(path)
    tokens = tokenizer([question], [text], truncation="only_second", max_length=LIMIT, return_tensors="pt")
    with torch.inference_mode():
        return model.eval()(**tokens).logits[0].tolist()


@pytest.mark.parametrize(
    ("n_labels", "relevance"),
    [(1, lambda x: x[0]), (2, lambda x: x[1] - x[0]), (3, lambda x: x[2] - np.logaddexp(x[0], x[1]))],
)
def test_scores_are_those_of_transformers(
    tiny: Make, bench: Bench, n_labels: int, relevance: Callable[[list[float]], float]
) -> None:
    path, run = tiny(num_labels=n_labels), bm25(bench, k=9)
    got = cross_encoder(run, bench, model=str(path), candidates=4)
    question = dict(bench.queries.select("query_id", "text").iter_rows())
    text = dict(zip(bench.documents("turn").ids, bench.documents("turn").texts, strict=True))
    scores = {(q, d): s for q, d, rank, s in got.frame.iter_rows() if rank <= 4}
    expected = {(q, d): relevance(forward(path, question[q], text[d])) for q, d in scores}
    assert scores == pytest.approx(expected, abs=1e-4)
    assert np.ptp(list(expected.values())) > 0.1
    behind = pl.col("rank") > 4
    assert got.frame.filter(behind)["doc_id"].equals(run.frame.filter(behind)["doc_id"]), "the rest as it was"


def test_equal_texts_tie_weights_that_changed_are_read_again_and_sessions_are_ranked(tiny: Make, bench: Bench) -> None:
    same = {"text": pl.lit("the same"), "caption": pl.lit(None, pl.String), "speaker": pl.lit("user")}
    copies = replace(bench, turns=bench.turns.with_columns(**same))
    run = bm25(copies, k=40)
    assert cross_encoder(run, copies, model=str(tiny("again"))).frame["doc_id"].equals(run.frame["doc_id"])
    run = bm25(bench, level="session", k=4)
    one, two = (cross_encoder(run, bench, model=str(tiny("again", num_labels=n))) for n in (1, 2))
    assert not one.frame["score"].equals(two.frame["score"])
    assert one.level == "session"


def test_what_is_no_cross_encoder(tiny: Make, bench: Bench) -> None:
    from safetensors.torch import load_file, save_file

    plain, nan, broken = tiny("plain", kind="BertModel"), tiny("nan", num_labels=1), tiny("broken")
    weights = load_file(nan / "model.safetensors")
    weights["classifier.weight"] *= float("nan")
    save_file(weights, nan / "model.safetensors", metadata={"format": "pt"})
    (broken / "config.json").write_text("{")
    for model, message in (
        (plain, r"its weights lack 'classifier\..*is no cross-encoder"),
        (nan, "gave NaN"),
        (broken, "cannot load it"),
    ):
        with pytest.raises(ModelError, match=message):
            cross_encoder(bm25(bench, k=3), bench, model=str(model))
