"""A token budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memlab
from memlab import retrieve, select
from memlab.errors import DataError
from memlab.records import RUN_SCHEMA, Dataset, Question, Run, Session, Turn, frame, run_from_scores
from memlab.retrieve import Bench
from memlab.select import budget
from memlab.select.budget import kept_text

Make = Callable[..., tuple[Run, Bench]]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(seed=st.integers(0, 100), tokens=st.integers(1, 140))
def test_the_longest_beginning_that_fits(random_run: Make, seed: int, tokens: int) -> None:
    run, bench = random_run(40, 3, seed=seed)
    documents = bench.documents("turn")
    length = dict(zip(documents.ids, documents.n_tokens.tolist(), strict=True))
    assert set(length.values()) == set(range(7))
    got = budget(run, bench, tokens=tokens)
    for (query,), rows in run.frame.group_by("query_id"):
        kept = got.frame.filter(pl.col("query_id") == query)
        assert kept.equals(rows.head(kept.height))
        assert sum(length[d] for d in kept["doc_id"]) <= tokens
        if kept.height < rows.height:
            assert sum(length[d] for d in rows["doc_id"].head(kept.height + 1)) > tokens


def test_a_first_document_that_does_not_fit_leaves_nothing(random_run: Make) -> None:
    run, bench = random_run(40, 1)
    long = bench.documents("turn").ids[bench.documents("turn").n_tokens == 6]
    other = replace(run, frame=run.frame.with_columns(query_id=pl.lit("other"), doc_id=pl.lit(long[0])).head(1))
    both = replace(run, frame=pl.concat([other.frame, run.frame]))
    kept = budget(both, bench, tokens=5).frame
    assert "other" not in kept["query_id"]
    assert dict(kept.schema) == RUN_SCHEMA
    assert budget(other, bench, tokens=5).frame.height == 0
    assert budget(other, bench, tokens=6).frame.height == 1


def test_a_large_budget_keeps_everything_and_a_cut_run_goes_on(random_run: Make) -> None:
    run, bench = random_run()
    named = replace(run, name="mine", provenance={"x": 1})
    got = budget(named, bench, tokens=10_000)
    assert got.frame.equals(named.frame)
    assert (got.name, got.provenance, got.level) == ("mine", {"x": 1}, "turn")
    cut = budget(run, bench, tokens=20)
    assert select.mmr(cut, bench).frame.height == select.by_cluster(cut, bench).frame.height == cut.frame.height
    nothing = replace(run, frame=run.frame.head(0))
    assert budget(nothing, bench).frame.equals(nothing.frame)


def test_sessions_are_counted_with_their_date() -> None:
    bench = Bench.of(memlab.sample(["owen"], turns=120), encoder=None)
    sessions = bench.documents("session")
    assert (sessions.n_tokens > 4).all()
    run = retrieve.bm25(bench, level="session")
    kept = budget(run, bench, tokens=int(sessions.n_tokens.max())).frame
    assert kept.group_by("query_id").len()["len"].min() >= 1


def test_no_budget_is_an_error(random_run: Make) -> None:
    run, bench = random_run()
    for tokens in (0, -5):
        with pytest.raises(DataError, match=f"tokens is {tokens}; expected at least 1"):
            budget(run, bench, tokens=tokens)


def said(texts: Sequence[str], asked: Sequence[str], *, others: Sequence[str] = ()) -> tuple[Run, Bench]:
    """Make a run that ranks the texts as they stand, for each question; others' texts are in a scope of their own."""
    scopes = {"u": texts, "v": others or ["nothing here"]}
    turns = [
        Turn(f"{scope}/s/{n}", scope, f"{scope}/s", n, "user", "user", text)
        for scope, held in scopes.items()
        for n, text in enumerate(held, 1)
    ]
    sessions = [Session(f"{scope}/s", scope, 1, None, None, len(held), []) for scope, held in scopes.items()]
    questions = [Question(f"q{i}", "u", text, None, "t", None, [], []) for i, text in enumerate(asked)]
    data = Dataset("said", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))
    pairs = [(f"q{i}", f"u/s/{n}") for i in range(len(asked)) for n in range(1, len(texts) + 1)]
    queries, documents = (np.array(c, dtype=object) for c in zip(*pairs, strict=True))
    return run_from_scores(queries, documents, np.zeros(len(pairs)), level="turn", k=99), Bench.of(data, encoder=None)


WORDS = st.text(st.sampled_from("ab é日🦷.!?\n\"'"), max_size=60)


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=5), asked=WORDS, limit=st.integers(1, 40))
def test_what_is_kept_of_any_text(texts: list[str], asked: str, limit: int) -> None:
    run, bench = said(texts, [asked, "a b"])
    full = np.array(bench.documents("turn").texts, dtype=object)[bench.documents("turn").at(run.frame["doc_id"])]
    whole, head, best = (kept_text(run, bench, content=c, limit=limit) for c in ("whole", "head", "sentences"))
    for table in (whole, head, best):
        assert table.select("query_id", "doc_id", "rank").equals(run.frame.select("query_id", "doc_id", "rank"))
        assert (table["n_tokens"] <= whole["n_tokens"]).all()
    assert whole["text"].to_list() == full.tolist()
    assert head["text"].to_list() == [text[:limit] for text in full]
    for text, short in zip(full, best["text"], strict=True):
        assert len(short) <= limit
        assert short == text or len(text) > limit
        assert bool(short) == bool(text.strip()) or short == text
        left = iter(text.split())
        assert all(any(part == piece for part in left) for piece in short.split()[:-1]), "in their own order"


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(seed=st.integers(0, 50), tokens=st.integers(1, 140), limit=st.integers(1, 40))
def test_the_shorter_the_texts_the_more_fit(random_run: Make, seed: int, tokens: int, limit: int) -> None:
    run, bench = random_run(40, 3, seed=seed)
    whole = budget(run, bench, tokens=tokens).frame
    for content in ("head", "sentences"):
        short = budget(run, bench, tokens=tokens, content=content, limit=limit)
        more = budget(run, bench, tokens=tokens, content=content, limit=limit + 5)
        cost = kept_text(short, bench, content=content, limit=limit)
        assert (cost.group_by("query_id").agg(pl.col("n_tokens").sum())["n_tokens"] <= tokens).all()
        assert whole.join(short.frame, on=["query_id", "doc_id", "rank"], how="anti").height == 0
        assert more.frame.join(short.frame, on=["query_id", "doc_id", "rank"], how="anti").height == 0
        same = budget(run, bench, tokens=tokens, content=content, limit=10_000)
        assert same.frame.equals(whole)


DENTIST = (
    'It rained. I saw Dr. Osei, the dentist, at 3.30 p.m. today! "Why?" she asked.\nMy dog ate. The dentist smiled.'
)


@pytest.mark.parametrize(
    ("asked", "limit", "kept"),
    [
        ("Which dentist?", 70, "I saw Dr. Osei, the dentist, at 3.30 p.m. today! The dentist smiled."),
        ("Which dentist?", 50, "I saw Dr. Osei, the dentist, at 3.30 p.m. today!"),
        ("Which dentist?", 20, "I saw Dr. Osei, the "),
        ("Did the dentist smile?", 60, "The dentist smiled."),
        ("dogs eating", 30, "It rained. My dog ate."),
        ("zyzzyva", 30, "It rained."),
        ("", 30, "It rained."),
    ],
)
def test_the_sentences_that_share_most_with_the_question(asked: str, limit: int, kept: str) -> None:
    run, bench = said([DENTIST, "another turn"], ["What is it?", asked])
    texts = kept_text(run, bench, content="sentences", limit=limit).filter(pl.col("query_id") == "q1")["text"]
    assert texts.to_list() == [kept, "another turn"[:limit]]


def test_rare_words_of_the_scope_count_more_and_other_scopes_nothing() -> None:
    text = "I like the dog. I like the cat."
    texts = [text, "a cat", "that cat", "cat food"]
    for others in ([], ["dog"] * 50):
        run, bench = said(texts, ["cat dog"], others=others)
        first = kept_text(run, bench, content="sentences", limit=16)["text"][0]
        assert first == "I like the dog."
        assert kept_text(run, said(texts[:1] + ["a dog"] * 3, ["cat dog"])[1], content="sentences", limit=16)["text"][
            0
        ] == ("I like the cat.")


def test_a_sentence_is_chosen_whatever_else_is_asked_or_ranked() -> None:
    asked = ["Which dentist?", "dogs eating", "rain"]
    run, bench = said([DENTIST, DENTIST, "short"], asked)
    whole = kept_text(run, bench, content="sentences", limit=40)
    for i, text in enumerate(asked):
        alone = kept_text(*said([DENTIST, DENTIST, "short"], [text]), content="sentences", limit=40)
        assert alone["text"].to_list() == whole.filter(pl.col("query_id") == f"q{i}")["text"].to_list()
    backwards = replace(run, frame=run.frame.reverse())
    texts = kept_text(backwards, bench, content="sentences", limit=40)["text"]
    assert texts.to_list() == whole["text"].reverse().to_list()


def test_sessions_can_be_shortened_and_nothing_stays_nothing(random_run: Make) -> None:
    bench = Bench.of(memlab.sample(["owen"], turns=120), encoder=None)
    run = retrieve.bm25(bench, level="session")
    for content in ("head", "sentences"):
        assert kept_text(run, bench, content=content, limit=80)["text"].str.len_chars().max() <= 80
        more = budget(run, bench, tokens=300, content=content, limit=80)
        assert more.frame.height > budget(run, bench, tokens=300).frame.height
        nothing = replace(run, frame=run.frame.head(0))
        assert budget(nothing, bench, content=content).frame.equals(nothing.frame)
        assert kept_text(nothing, bench, content=content).columns == ["query_id", "doc_id", "rank", "text", "n_tokens"]


@pytest.mark.parametrize(
    ("wrong", "said_"),
    [
        ({"content": "tail"}, "content is 'tail'; choose from whole, head, sentences"),
        ({"content": "head", "limit": 0}, "limit is 0; expected at least 1"),
    ],
)
def test_no_way_to_shorten_is_an_error(random_run: Make, wrong: dict[str, object], said_: str) -> None:
    run, bench = random_run()
    for stage in (budget, kept_text):
        with pytest.raises(DataError, match=said_):
            stage(run, bench, **wrong)
