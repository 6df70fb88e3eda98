"""Rerankers that are not trained here: light, blending, and cross-encoders against a forward of transformers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tiny_bert import change_weights, save_bert

import memlab
from memlab.errors import DataError, ModelError
from memlab.records import Dataset, Question, Session, Turn, frame, run_from_scores
from memlab.rerank import blend_by_position, cross_encoder, light
from memlab.retrieve import Bench, bm25, sessions_from_turns

NOW = datetime(2026, 3, 4, 9, tzinfo=UTC)
AGO = NOW - timedelta(hours=72)


def roses(asked: datetime | None) -> Bench:
    """Four turns in three sessions, which have the same ids; nobody knows when one of them was."""
    said = [
        ("1", "roses need water", AGO),
        ("1", "roses", None),
        ("2", "nothing", None),
        ("3", "water", NOW),
    ]
    turns = [
        Turn(f"{i}", "u", s, i + 1, "user", "user", text, None, time)
        for i, (s, text, time) in enumerate(said)
    ]
    about = (AGO, "nothing of it"), (None, None), (NOW, "the water is cold")
    sessions = [
        Session(f"{n}", "u", n, at, at, 1, [], summary=text)
        for n, (at, text) in enumerate(about, 1)
    ]
    question = Question("q", "u", "roses and water", None, "t", asked, [], [])
    data = Dataset(
        "w", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, [question])
    )
    return Bench.of(data, encoder=None)


@pytest.mark.parametrize(
    ("asked", "parameters", "recency", "lowered"),
    [
        (
            None,
            {},
            [0.5, 0.5, 2 / 3, 1.0],
            0.5,
        ),  # as of the last turn; without a time the mean of the others
        (AGO, {}, [1.0, 1.0, 1.0, 1.0], 0.5),  # what comes after the question is as fresh as can be
        (NOW, {"half_life_hours": 36.0, "covered": 0.25}, [0.25, 0.25, 0.5, 1.0], 0.25),
        (NOW, {"window": 0}, [0.5, 0.5, 2 / 3, 1.0], 1.0),
    ],
)
def test_the_sum_by_hand(
    asked: datetime | None, parameters: dict[str, float], recency: list[float], lowered: float
) -> None:
    bench, scores = roses(asked), np.array([5.0, 4.0, 2.0, 0.0])
    run = run_from_scores(np.repeat("q", 4), np.array([*"0123"]), scores, level="turn", k=9)
    expected = 0.7 * scores / 5 + 0.1 * np.array(recency) + 0.2 * np.array([1.0, 0.5, 0.0, 0.5])
    expected *= [
        1.0,
        lowered,
        1.0,
        1.25,
    ]  # the second stands beside a better one; the last one's summary fits
    got = dict(light(run, bench, **parameters).frame.select("doc_id", "score").iter_rows())
    assert got == pytest.approx(dict(zip("0123", expected.tolist(), strict=True)), abs=1e-6)
    sessions = bm25(bench, level="session")
    assert sorted(light(sessions, bench, **parameters).frame["doc_id"]) == sorted(
        sessions.frame["doc_id"]
    )


def test_the_further_down_the_more_a_reranker_may_say(bench: Bench) -> None:
    """.75, .6 and .4 of the retrieval, 1 to 0 in twelve steps; the reranker says 1, .5 and 0, and dropped the rest."""
    ids, query = bench.documents("turn").ids[:13], np.repeat(bench.queries["query_id"][0], 12)
    run = run_from_scores(query, ids[:12], np.arange(12.0)[::-1], level="turn", k=12)
    said, scores = (
        ids[[12, 11, 3, 0]],
        np.array([9.0, 9.0, 5.0, 1.0]),
    )  # one that the retrieval has not
    got = blend_by_position(run, run_from_scores(query[:4], said, scores, level="turn", k=4), bench)
    assert bench.documents("turn").at(got.frame["doc_id"]).tolist() == [
        0,
        1,
        3,
        2,
        11,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
    ]
    with pytest.raises(DataError, match="ranks turns and the reranked one sessions"):
        blend_by_position(run, sessions_from_turns(run, bench), bench)


LIMIT = 48
save_classifier = partial(
    save_bert, kind="BertForSequenceClassification", max_position_embeddings=LIMIT
)


@pytest.fixture(scope="module")
def asked() -> Bench:
    """Two questions over a few turns."""
    data = memlab.sample(turns=60)
    return Bench.of(data, encoder=None).with_queries(data.questions.head(2))


def forward(path: Path, question: str, text: str) -> list[float]:
    """Read a pair through transformers, the document alone cut."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer, model = (
        AutoTokenizer.from_pretrained(path),
        AutoModelForSequenceClassification.from_pretrained(path),
    )
    tokens = tokenizer(
        [question], [text], truncation="only_second", max_length=LIMIT, return_tensors="pt"
    )
    with torch.inference_mode():
        return model.eval()(**tokens).logits[0].tolist()


@pytest.mark.parametrize(
    ("n_labels", "relevance"),
    [
        (1, lambda x: x[0]),
        (2, lambda x: x[1] - x[0]),
        (3, lambda x: x[2] - np.logaddexp(x[0], x[1])),
    ],
)
def test_scores_are_those_of_transformers(
    tmp_path: Path, asked: Bench, n_labels: int, relevance: Callable[[list[float]], float]
) -> None:
    path, run = save_classifier(tmp_path / "tiny", num_labels=n_labels), bm25(asked, k=9)
    got = cross_encoder(run, asked, model=str(path), candidates=4)
    question = dict(asked.queries.select("query_id", "text").iter_rows())
    text = dict(zip(asked.documents("turn").ids, asked.documents("turn").texts, strict=True))
    scores = {(q, d): s for q, d, rank, s in got.frame.iter_rows() if rank <= 4}
    expected = {(q, d): relevance(forward(path, question[q], text[d])) for q, d in scores}
    assert scores == pytest.approx(expected, abs=1e-4)
    assert np.ptp(list(expected.values())) > 0.1
    behind = pl.col("rank") > 4
    assert got.frame.filter(behind)["doc_id"].equals(run.frame.filter(behind)["doc_id"]), (
        "the rest as it was"
    )


def test_equal_texts_tie_weights_that_changed_are_read_again_and_sessions_are_ranked(
    tmp_path: Path, asked: Bench
) -> None:
    same = {
        "text": pl.lit("the same"),
        "caption": pl.lit(None, pl.String),
        "speaker": pl.lit("user"),
    }
    copies = replace(asked, turns=asked.turns.with_columns(**same))
    run, path = bm25(copies, k=40), tmp_path / "again"
    assert (
        cross_encoder(run, copies, model=str(save_classifier(path)))
        .frame["doc_id"]
        .equals(run.frame["doc_id"])
    )
    run = bm25(asked, level="session", k=4)
    one, two = (
        cross_encoder(run, asked, model=str(save_classifier(path, num_labels=n))) for n in (1, 2)
    )
    assert not one.frame["score"].equals(two.frame["score"])
    assert one.level == "session"


def test_what_is_no_cross_encoder(tmp_path: Path, asked: Bench) -> None:
    plain = save_bert(tmp_path / "plain")
    nan, broken = (
        save_classifier(tmp_path / "nan", num_labels=1),
        save_classifier(tmp_path / "broken"),
    )
    change_weights(lambda held: held | {"classifier.weight": held["classifier.weight"] * np.nan})(
        nan
    )
    (broken / "config.json").write_text("{")
    for model, message in (
        (plain, r"its weights lack 'classifier\..*is no cross-encoder"),
        (nan, "gave NaN"),
        (broken, "cannot load it"),
    ):
        with pytest.raises(ModelError, match=message):
            cross_encoder(bm25(asked, k=3), asked, model=str(model))
