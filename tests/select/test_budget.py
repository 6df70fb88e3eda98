"""Where a ranking is cut: tokens, and a number of documents that depends on the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.records import Dataset, Question, Run, Session, Turn, frame, run_from_scores
from memlab.retrieve import Bench
from memlab.select import adaptive, budget, kept_text

Make = Callable[..., tuple[Run, Bench]]
QUICK = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUICK
@given(seed=st.integers(0, 100), tokens=st.integers(1, 140))
def test_the_longest_beginning_that_fits(random_run: Make, seed: int, tokens: int) -> None:
    run, bench = random_run(40, 3, seed=seed)
    documents = bench.documents("turn")
    length = dict(zip(documents.ids, documents.n_tokens.tolist(), strict=True))
    got = budget(run, bench, tokens=tokens)
    for (query,), rows in run.frame.group_by("query_id"):
        kept = got.frame.filter(query_id=query)
        assert kept.equals(rows.head(kept.height))
        assert sum(length[d] for d in kept["doc_id"]) <= tokens
        if kept.height < rows.height:
            assert sum(length[d] for d in rows["doc_id"].head(kept.height + 1)) > tokens


def ranked(texts: Sequence[str], asked: Sequence[str], *, others: Sequence[str] = ("nothing",)) -> tuple[Run, Bench]:
    """Rank texts as they stand, for each question; others' texts are in a scope of their own."""
    turns = [
        Turn(f"{scope}/s/{n}", scope, f"{scope}/s", n, "user", "user", text)
        for scope, own in {"u": texts, "v": others}.items()
        for n, text in enumerate(own, 1)
    ]
    sessions = [Session("u/s", "u", 1, None, None, len(texts), []), Session("v/s", "v", 1, None, None, len(others), [])]
    questions = [Question(f"q{i}", "u", text, None, "t", None, [], []) for i, text in enumerate(asked)]
    data = Dataset("texts", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))
    pairs = [(f"q{i}", f"u/s/{n}") for i in range(len(asked)) for n in range(1, len(texts) + 1)]
    queries, documents = (np.array(c, dtype=object) for c in zip(*pairs, strict=True))
    return run_from_scores(queries, documents, np.zeros(len(pairs)), level="turn", k=99), Bench.of(data, encoder=None)


WORDS = st.text(st.sampled_from("ab é日🦷.!?\n\"'"), max_size=60)


@settings(max_examples=20)
@given(texts=st.lists(WORDS, min_size=1, max_size=5), asked=WORDS, limit=st.integers(1, 40))
def test_what_is_kept_of_any_text(texts: list[str], asked: str, limit: int) -> None:
    run, bench = ranked(texts, [asked, "a b"])
    full = np.array(bench.documents("turn").texts, dtype=object)[bench.documents("turn").at(run.frame["doc_id"])]
    whole, head, best = (kept_text(run, bench, content=c, limit=limit) for c in ("whole", "head", "sentences"))
    assert whole["text"].to_list() == full.tolist()
    assert head["text"].to_list() == [text[:limit] for text in full]
    for table in (whole, head, best):
        assert table.select("query_id", "doc_id", "rank").equals(run.frame.select("query_id", "doc_id", "rank"))
        assert (table["n_tokens"] <= whole["n_tokens"]).all()
        short = budget(run, bench, tokens=9, content="sentences", limit=limit).frame
        assert short.height >= budget(run, bench, tokens=9).frame.height
    for text, part in zip(full, best["text"], strict=True):
        assert len(part) <= limit or part == text
        left = iter(text.split())
        assert all(any(word == piece for word in left) for piece in part.split()[:-1]), "in their own order"


DENTIST = (
    'It rained. I saw Dr. Osei, the dentist, at 3.30 p.m. today! "Why?" she asked.\nMy dog ate. The dentist smiled.'
)


@pytest.mark.parametrize(
    ("asked", "limit", "kept"),
    [
        ("Which dentist?", 70, "I saw Dr. Osei, the dentist, at 3.30 p.m. today! The dentist smiled."),
        ("Which dentist?", 20, "I saw Dr. Osei, the "),
        ("Did the dentist smile?", 60, "The dentist smiled."),
        ("dogs eating", 30, "It rained. My dog ate."),
        ("zyzzyva", 30, "It rained."),
    ],
)
def test_the_sentences_that_share_most_with_the_question(asked: str, limit: int, kept: str) -> None:
    run, bench = ranked([DENTIST, "another turn"], ["What is it?", asked])
    texts = kept_text(run, bench, content="sentences", limit=limit).filter(query_id="q1")["text"]
    assert texts.to_list() == [kept, "another turn"[:limit]]


def test_form_and_contenders_decide_how_many_are_kept(random_run: Make) -> None:
    run, bench = random_run(40, 3)
    bench = replace(
        bench,
        queries=bench.queries.with_columns(
            text=pl.Series(["How many doctors did I see?", "Where do I live?", "Which pets do I have?"])
        ),
    )
    # Half-way between the last and the first, and above: 4, 4 and 1 contenders.
    scores = [[10, 9, 8, 6, 3, 2], [4, 3, 3, 2.5, 1, 1], [9, 1, 1, 1, 1, 0]]
    first = run.frame.filter(pl.col("rank") <= 6)
    run = run_from_scores(first["query_id"], first["doc_id"], np.concatenate(scores), level="turn", k=9)
    for k, kept in ((6, [6, 4, 3]), (3, [3, 2, 1])):
        got = adaptive(run, bench, k=k).frame
        assert got.group_by("query_id", maintain_order=True).len()["len"].to_list() == kept
        assert got.equals(run.frame.join(got, on=["query_id", "rank"], how="semi", maintain_order="left"))


def test_what_cannot_be_cut(random_run: Make) -> None:
    run, bench = random_run()
    for stage, wrong, name in (
        (budget, {"tokens": 0}, "tokens is 0"),
        (budget, {"content": "tail"}, "content"),
        (kept_text, {"content": "head", "limit": 0}, "limit is 0"),
        (adaptive, {"k": 0}, "k is 0"),
    ):
        with pytest.raises(DataError, match=name):
            stage(run, bench, **wrong)
