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
from memlab.errors import DataError, ModelError
from memlab.records import Run
from memlab.rerank import cross_encoder
from memlab.retrieve import Bench, bm25

LIMIT = 48
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench.of(memlab.sample(turns=160), encoder=None)


@pytest.fixture
def tiny(tmp_path: Path, bench: Bench) -> Make:
    """Make a small BERT with random weights and a tokenizer of the bench's own words."""

    def make(name: str = "tiny", *, kind: str = "BertForSequenceClassification", **options: Any) -> Path:
        import torch
        import transformers

        torch.manual_seed(0)
        words = sorted({w for text in bench.documents("turn").texts for w in text.lower().split() if w.isalpha()})
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
        (tmp_path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = transformers.BertConfig(
            vocab_size=len(vocabulary), max_position_embeddings=LIMIT, initializer_range=0.5, **sizes, **options
        )
        getattr(transformers, kind)(config).save_pretrained(tmp_path / name)
        tokens = {word: i for i, word in enumerate(vocabulary)}
        transformers.BertTokenizer(vocab=tokens).save_pretrained(tmp_path / name)
        return tmp_path / name

    return make


def forward(path: Path) -> Callable[[str, str], list[float]]:
    """Read a pair through transformers, the document alone cut."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModelForSequenceClassification.from_pretrained(path).eval()

    def logits(question: str, text: str) -> list[float]:
        tokens = tokenizer([question], [text], truncation="only_second", max_length=LIMIT, return_tensors="pt")
        with torch.inference_mode():
            return model(**tokens).logits[0].tolist()

    return logits


def first_queries(run: Run, n: int) -> Run:
    kept = run.frame["query_id"].unique(maintain_order=True).head(n)
    return replace(run, frame=run.frame.filter(pl.col("query_id").is_in(kept.implode())))


def scores_of(run: Run, n: int) -> dict[tuple[str, str], float]:
    kept = run.frame.filter(pl.col("rank") <= n)
    return {(q, d): s for q, d, s in kept.select("query_id", "doc_id", "score").iter_rows()}


@pytest.mark.parametrize(
    ("n_labels", "relevance"),
    [(1, lambda x: x[0]), (2, lambda x: x[1] - x[0]), (3, lambda x: x[2] - np.logaddexp(x[0], x[1]))],
)
def test_scores_are_those_of_transformers(
    tiny: Make, bench: Bench, n_labels: int, relevance: Callable[[list[float]], float]
) -> None:
    path = tiny(num_labels=n_labels)
    run = first_queries(bm25(bench, k=12), 2)
    got = cross_encoder(run, bench, model=str(path), candidates=8)
    question = dict(bench.queries.select("query_id", "text").iter_rows())
    text = dict(zip(bench.documents("turn").ids, bench.documents("turn").texts, strict=True))
    logits = forward(path)
    expected = {pair: relevance(logits(question[pair[0]], text[pair[1]])) for pair in scores_of(run, 8)}
    assert scores_of(got, 8) == pytest.approx(expected, abs=1e-4)
    assert np.ptp(list(expected.values())) > 0.1
    # What is not scored follows as it was.
    for _, rows in got.frame.group_by("query_id"):
        before = run.frame.filter(pl.col("query_id") == rows["query_id"][0])["doc_id"]
        assert rows["doc_id"][8:].to_list() == before[8:].to_list()


def test_equal_texts_tie_and_keep_their_order(tiny: Make, bench: Bench) -> None:
    same = {"text": pl.lit("the same"), "caption": pl.lit(None, pl.String), "speaker": pl.lit("user")}
    copies = replace(bench, turns=bench.turns.with_columns(**same))
    run = first_queries(bm25(copies, k=40), 2)
    assert cross_encoder(run, copies, model=str(tiny())).frame["doc_id"].equals(run.frame["doc_id"])


def test_weights_that_changed_are_read_again_and_sessions_are_ranked(tiny: Make, bench: Bench) -> None:
    run = replace(first_queries(bm25(bench, level="session", k=4), 2), name="mine", provenance={"x": 1})
    one = cross_encoder(run, bench, model=str(tiny("again", num_labels=1)))
    two = cross_encoder(run, bench, model=str(tiny("again", num_labels=2)))
    assert not one.frame["score"].equals(two.frame["score"])
    assert (one.name, one.provenance, one.level) == ("mine", {"x": 1}, "session")
    none = replace(run, frame=run.frame.head(0))
    assert cross_encoder(none, bench, model=str(tiny("again"))).frame.equals(none.frame)


def test_what_is_no_cross_encoder(tiny: Make, bench: Bench) -> None:
    from safetensors.torch import load_file, save_file

    run = first_queries(bm25(bench, k=3), 1)
    plain, nan, broken = tiny("plain", kind="BertModel"), tiny("nan", num_labels=1), tiny("broken")
    weights = load_file(nan / "model.safetensors")
    weights["classifier.weight"] *= float("nan")
    save_file(weights, nan / "model.safetensors", metadata={"format": "pt"})
    (broken / "config.json").write_text("{")
    for model, message in (
        ("", "there is no such directory"),
        (plain, r"its weights lack 'classifier\..*is no cross-encoder"),
        (nan, "gave NaN"),
        (broken, "cannot load it"),
    ):
        with pytest.raises(ModelError, match=message):
            cross_encoder(run, bench, model=str(model))
    with pytest.raises(DataError, match="candidates is 0"):
        cross_encoder(run, bench, model="nothing", candidates=0)
