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
from memlab.embed import modelfiles
from memlab.errors import DataError, ModelError
from memlab.records import Run
from memlab.rerank import cross_encoder
from memlab.rerank.cross_encoder import load
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


def forward(path: Path, question: str, text: str) -> list[float]:
    """One pair through transformers, the document alone cut."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    tokens = tokenizer([question], [text], truncation="only_second", max_length=LIMIT, return_tensors="pt")
    with torch.inference_mode():
        return AutoModelForSequenceClassification.from_pretrained(path).eval()(**tokens).logits[0].tolist()


def first_queries(run: Run, n: int) -> Run:
    kept = run.frame["query_id"].unique(maintain_order=True).head(n)
    return replace(run, frame=run.frame.filter(pl.col("query_id").is_in(kept.implode())))


def scores_of(run: Run, n: int) -> dict[tuple[str, str], float]:
    kept = run.frame.filter(pl.col("rank") <= n)
    return {(q, d): s for q, d, s in kept.select("query_id", "doc_id", "score").iter_rows()}


@pytest.mark.parametrize(
    ("options", "relevance"),
    [
        ({"num_labels": 1}, lambda x: x[0]),
        ({"num_labels": 2}, lambda x: x[1] - x[0]),
        ({"num_labels": 3}, lambda x: x[2] - np.logaddexp(x[0], x[1])),
        (
            {"id2label": {0: "Relevant", 1: "not"}, "label2id": {"Relevant": 0, "not": 1}},
            lambda x: x[0] - x[1],
        ),
    ],
    ids=["one output", "two classes", "three classes", "a named class"],
)
def test_scores_are_those_of_transformers(
    tiny: Make, bench: Bench, options: dict[str, Any], relevance: Callable[[list[float]], float]
) -> None:
    path = tiny(**options)
    run = first_queries(bm25(bench, k=12), 2)
    got = cross_encoder(run, bench, model=str(path), candidates=8)
    question = dict(bench.queries.select("query_id", "text").iter_rows())
    text = dict(zip(bench.documents("turn").ids, bench.documents("turn").texts, strict=True))
    expected = {pair: relevance(forward(path, question[pair[0]], text[pair[1]])) for pair in scores_of(run, 8)}
    assert scores_of(got, 8) == pytest.approx(expected, abs=1e-4)
    assert np.ptp(list(expected.values())) > 0.1
    # What is not scored follows as it was.
    for _, rows in got.frame.group_by("query_id"):
        before = run.frame.filter(pl.col("query_id") == rows["query_id"][0])["doc_id"]
        assert rows["doc_id"][8:].to_list() == before[8:].to_list()
        assert rows["score"].diff().drop_nulls().lt(0).all()


def test_only_the_document_is_cut(tiny: Make, bench: Bench) -> None:
    path = tiny(num_labels=1)
    words = " ".join(bench.documents("turn").texts).split()
    reader = load(str(path))
    short, long = " ".join(words[:10]), " ".join(words[:400])
    assert reader.limit == LIMIT
    got = reader.scores(short, [long, short, "", long + " and more"])
    assert got[:3] == pytest.approx([forward(path, short, t)[0] for t in (long, short, "")], abs=1e-4)
    assert got[3] == got[0]
    # A question longer than what the model reads leaves room for the document.
    one, two = reader.scores(long, [words[0], " ".join(words[5:9])])
    assert one != two


def test_equal_texts_tie_and_keep_their_order(tiny: Make, bench: Bench) -> None:
    reader = load(str(tiny(num_labels=1)))
    texts = bench.documents("turn").texts[:30]
    got = reader.scores("how many", texts * 3)
    assert np.array_equal(got[:30], got[30:60])
    assert np.array_equal(got[:30], got[60:])
    copies = replace(bench, turns=bench.turns.with_columns(text=pl.lit("the same"), caption=pl.lit(None, pl.String)))
    copies = replace(copies, turns=copies.turns.with_columns(speaker=pl.lit("user")))
    run = first_queries(bm25(copies, k=9), 2)
    assert cross_encoder(run, copies, model=str(tiny())).frame["doc_id"].equals(run.frame["doc_id"])


def test_a_question_alone_gets_what_it_gets_among_many(tiny: Make, bench: Bench) -> None:
    model = str(tiny(num_labels=1))
    run = bm25(bench, k=10)
    many = cross_encoder(run, bench, model=model).frame
    for query in many["query_id"].unique(maintain_order=True).to_list()[:3]:
        mine = pl.col("query_id") == query
        one = replace(bench, queries=bench.queries.filter(mine))
        alone = cross_encoder(replace(run, frame=run.frame.filter(mine)), one, model=model)
        assert alone.frame.equals(many.filter(mine))


def test_loaded_once_until_the_weights_change(tiny: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny("again", num_labels=1)
    first = load(str(path))
    assert load(str(path / ".." / "again")) is first
    tiny("again", num_labels=2)
    assert load(str(path)) is not first


def test_sessions_and_what_goes_in(tiny: Make, bench: Bench) -> None:
    model = str(tiny(num_labels=1))
    run = replace(first_queries(bm25(bench, level="session", k=4), 2), name="mine", provenance={"x": 1})
    before = run.frame.clone()
    got = cross_encoder(run, bench, model=model)
    assert (got.name, got.provenance, got.level) == ("mine", {"x": 1}, "session")
    assert run.frame.equals(before)
    assert got.text_of is not None
    assert cross_encoder(run.top(1), bench, model=model).frame["doc_id"].equals(run.top(1).frame["doc_id"])
    none = replace(run, frame=run.frame.head(0))
    assert cross_encoder(none, bench, model=model).frame.equals(none.frame)


def test_a_model_that_classifies_nothing_is_no_cross_encoder(tiny: Make, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cross-encoder plain: its weights lack 'classifier\..*is no cross-encoder"):
        load(str(tiny("plain", kind="BertModel")))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds no weights"):
        load(str(tmp_path / "empty"))
    (tiny("broken") / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cross-encoder broken: transformers cannot load it"):
        load(str(tmp_path / "broken"))


@pytest.mark.parametrize("spec", ["", "nothing", "./owner/name", "/no/such/directory"])
def test_no_such_model(spec: str) -> None:
    with pytest.raises(ModelError, match=r"no cross-encoder .*there is no such directory"):
        load(spec)


def test_a_hub_model_comes_through_the_hubs_cache(tiny: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    path = tiny(num_labels=1)
    asked: list[dict[str, Any]] = []

    def snapshot_download(**options: Any) -> str:
        asked.append(options)
        return str(path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert load("owner/model@abc").name == "owner/model"
    assert [(a["repo_id"], a["revision"], a["local_files_only"]) for a in asked] == [("owner/model", "abc", True)]

    def unreachable(**options: Any) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(ModelError, match=r"no cross-encoder 'owner/other'.*no route to host"):
        load("owner/other")
    assert modelfiles.fetch.__kwdefaults__ == {"what": "encoder"}


def test_wrong_arguments(tiny: Make, bench: Bench) -> None:
    run = first_queries(bm25(bench, k=3), 1)
    with pytest.raises(DataError, match="candidates is 0"):
        cross_encoder(run, bench, model="nothing", candidates=0)
    model = str(tiny(num_labels=1))
    with pytest.raises(DataError, match="question 'x' is not in this bench"):
        cross_encoder(replace(run, frame=run.frame.with_columns(query_id=pl.lit("x"))), bench, model=model)
    with pytest.raises(DataError, match="document 'x' is not in this bench"):
        cross_encoder(replace(run, frame=run.frame.with_columns(doc_id=pl.lit("x"))), bench, model=model)


def test_weights_of_nan(tiny: Make, bench: Bench) -> None:
    from safetensors.torch import load_file, save_file

    path = tiny("nan", num_labels=1)
    weights = load_file(path / "model.safetensors")
    weights["classifier.weight"] *= float("nan")
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="cross-encoder nan gave NaN"):
        cross_encoder(first_queries(bm25(bench, k=3), 1), bench, model=str(path))
