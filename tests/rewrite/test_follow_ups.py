"""Follow-ups made from facts and from names: exact evidence, nothing of the answer key in what a rewriter sees."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.records import Dataset, Question, Session, Turn, frame
from memlab.rewrite import content_words, rewrite
from memlab.rewrite.follow_ups import (
    FACT_SCHEMA,
    FOLLOW_UP,
    KINDS,
    facts_in,
    from_facts,
    from_names,
    gender,
    only,
    posed,
    replaced,
    said_before,
)

DAY0 = datetime(2024, 1, 1, tzinfo=UTC)


def told(n: int, kind: str, predicate: str, name: str, value: float | None = None) -> tuple[Any, ...]:
    """A fact of one scope, stated in the turn of its number."""
    when = DAY0 + timedelta(days=10 * n)
    return (f"f{n}", "u", kind, "Ann", predicate, name, value, "money" if value else None, when, None, None, "true",
            [f"u/s{n}/1"])  # fmt: skip


@pytest.fixture(scope="module")
def facts() -> pl.DataFrame:
    rows = [told(n, "event", "furniture", name, 100.0 + n) for n, name in enumerate(("sofa", "desk", "lamp", "shelf"))]
    rows += [told(4 + n, "event", "doctor", name) for n, name in enumerate(("dentist", "dermatologist", "optician"))]
    rows += [
        told(7 + n, "event", "gift", name, 20.0 + n)
        for n, name in enumerate(("scarf for my sister", "mug for my boss"))
    ]
    states = [told(9 + n, "state", "phone", name) for n, name in enumerate(("555-0101", "555-0202"))]
    rows += [(*states[0][:9], states[1][8], *states[0][10:]), states[1]]
    return pl.DataFrame(rows, schema=FACT_SCHEMA, orient="row")


@pytest.fixture(scope="module")
def data(facts: pl.DataFrame) -> Dataset:
    made = [(fact["evidence"][0], fact["valid_from"]) for fact in facts.iter_rows(named=True)]
    turns = [Turn(t, "u", t[:-2], 1, "Ann", "user", f"Said in {t}.", None, when) for t, when in made]
    sessions = [Session(t[:-2], "u", n, when, when, 1, ["Ann"]) for n, (t, when) in enumerate(made, 1)]
    return Dataset("told", "chatlog", frame(Turn, turns), frame(Session, sessions))


@pytest.fixture(scope="module")
def rows(data: Dataset, facts: pl.DataFrame) -> pl.DataFrame:
    return from_facts(data, facts, each=8)


def test_every_kind_is_there_and_ids_are_unique(rows: pl.DataFrame) -> None:
    assert set(rows["kind"]) == {"opening", *KINDS} - {"name"}
    assert rows["query_id"].is_unique().all()
    assert dict(rows.schema) == dict(pl.DataFrame(schema=FOLLOW_UP).schema)


def test_openings_stand_alone_and_follow_ups_do_not(rows: pl.DataFrame) -> None:
    opens = rows["kind"] == "opening"
    assert (rows.filter(opens)["turn"] == 1).all()
    assert (rows.filter(~opens)["turn"] > 1).all()
    assert (rows.filter(opens)["asked"] == rows.filter(opens)["self_contained"]).all()
    for asked, whole, kind in rows.filter(~opens).select("asked", "self_contained", "kind").iter_rows():
        lacks = set(content_words(whole)) - set(content_words(asked))
        assert lacks, (kind, asked, whole)


def test_histories_hold_what_was_said_and_never_the_form_that_stands_alone(rows: pl.DataFrame) -> None:
    for _, thread in rows.group_by("thread", maintain_order=True):
        said: list[str] = []
        for row in thread.iter_rows(named=True):
            assert row["history"] == said
            assert row["turn"] == 1 or row["self_contained"] not in said
            said += [row["asked"], row["answer"]]


def test_evidence_is_that_of_facts_whose_answer_it_states(
    rows: pl.DataFrame, facts: pl.DataFrame, data: Dataset
) -> None:
    known = {tuple(fact["evidence"]): fact for fact in facts.iter_rows(named=True)}
    asked = rows.filter(pl.col("kind").is_in(["pronoun", "ellipsis", "same", "other", "ordinal", "person"]))
    for row in asked.iter_rows(named=True):
        fact = known[tuple(row["evidence"])]
        day = f"On {fact['valid_from'].day} {fact['valid_from']:%B %Y}."
        amount = "" if fact["value"] is None else f"{fact['value']:g}"
        assert row["answer"] == day or amount in row["answer"]
        assert fact["object"].partition(" for my ")[0] in row["self_contained"]
        assert fact["scope"] == row["scope"]
    sessions = posed(data, rows).questions["evidence_sessions"]
    assert set(sessions.explode()) <= set(data.sessions["session_id"])


def test_the_other_one_is_the_one_that_the_answer_does_not_name(rows: pl.DataFrame) -> None:
    others = rows.filter(pl.col("kind") == "other")
    assert others.height
    for history, whole in others.select("history", "self_contained").iter_rows():
        named = history[1].removesuffix(" came first.")
        assert named[1:] not in whole


def test_the_value_before_needs_both_statements(rows: pl.DataFrame) -> None:
    before = rows.filter(pl.col("kind") == "before")
    assert before.height
    for thread in before["thread"]:
        first, last = rows.filter(pl.col("thread") == thread)["evidence"].to_list()
        assert set(first) < set(last)


def test_a_seed_gives_the_same_and_another_gives_others(data: Dataset, facts: pl.DataFrame, rows: pl.DataFrame) -> None:
    assert from_facts(data, facts, each=8).equals(rows)
    assert not from_facts(data, facts, each=8, seed=2)["asked"].equals(rows["asked"])
    few = from_facts(data, facts, each=1)
    assert few.group_by("scope").agg(pl.col("thread").n_unique())["thread"].max() <= 6


def test_rewriting_never_touches_an_opening(rows: pl.DataFrame) -> None:
    opens = rows.filter(pl.col("turn") == 1)
    made = rewrite(opens["asked"].to_list(), opens["history"].to_list())
    assert (made["rewritten"] == opens["asked"]).all()
    assert set(made["method"]) == {"first"}


def test_facts_are_read_from_a_chat_log_and_from_no_other_file(tmp_path: Path, facts: pl.DataFrame) -> None:
    path, times = tmp_path / "log.jsonl", pl.col("valid_from", "valid_to").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = facts.with_columns(times).to_dicts()
    path.write_text("".join(json.dumps({"fact": line}, separators=(",", ":")) + "\n" for line in lines))
    assert facts_in(path).equals(facts)
    (tmp_path / "other.json").write_text(json.dumps([{"fact": 1}]))
    assert facts_in(tmp_path / "other.json").is_empty()
    with pytest.raises(DataError, match="facts cannot be read"):
        facts_in(tmp_path / "missing.jsonl")


def named_dataset() -> Dataset:
    turns = [Turn(f"x/s/{n}", "x", "x/s", n, ("Ida", "Bo")[n % 2], "other", f"Line {n}.") for n in range(1, 9)]
    texts = ["What does Ida paint?", "Where did Ida travel?", "Who is Ida's cousin?", "When did Ida marry?",
             "Does Ida know Bo?", "Where does Bo live?", "What did Bo lose?", "What did Bo buy?"]  # fmt: skip
    answers = ["her house", "to her aunt", "Max", "in May", "yes", "in his boat", "a hat", None]
    pairs = zip(texts, answers, strict=True)
    asked = [
        Question(f"x/q{i}", "x", text, answer, "single", None, [f"x/s/{i + 1}"], ["x/s"])
        for i, (text, answer) in enumerate(pairs)
    ]
    sessions = [Session("x/s", "x", 1, None, None, 8, ["Bo", "Ida"])]
    return Dataset("named", "locomo", frame(Turn, turns), frame(Session, sessions), frame(Question, asked))


def test_names_give_way_to_pronouns_in_neighbouring_questions() -> None:
    rows = from_names(named_dataset())
    assert rows["asked"].to_list() == [
        "What does Ida paint?",
        "Where did she travel?",
        "Who is her cousin?",
        "Where does Bo live?",
        "What did he lose?",
    ]
    assert rows["turn"].to_list() == [1, 2, 3, 1, 2]
    assert rows["self_contained"][1] == "Where did Ida travel?"
    # A question without an answer cites what it is about, not what answers it.
    assert "What did Bo buy?" not in rows["self_contained"].to_list()


def test_no_names_no_follow_ups(data: Dataset) -> None:
    assert from_names(data.take(data.scopes[:1])).height == 0 or data.turns["speaker"].n_unique() > 1
    quiet = named_dataset()
    turns = quiet.turns.with_columns(speaker=pl.col("role"))
    assert from_names(Dataset("quiet", "chatlog", turns, quiet.sessions, quiet.questions)).is_empty()


@pytest.mark.parametrize(
    ("text", "pronoun", "new"),
    [
        ("What did Kim say about Kim's trip?", "he", "What did he say about his trip?"),
        ("Who invited Kim?", "she", "Who invited her?"),
        ("Who helped Kim to move?", "he", "Who helped him to move?"),
        ("Is Kim at home?", "they", "Are they at home?"),
        ("What is near Kim?", "they", "What is near them?"),
    ],
)
def test_the_pronoun_fits_its_place(text: str, pronoun: str, new: str) -> None:
    assert replaced(text, "Kim", pronoun) == new


def test_a_pronoun_is_read_off_the_texts() -> None:
    assert gender(["he took his bag", "he left"]) == "he"
    assert gender(["she and he"]) == "they"
    assert only(["Ann", "Anna"], "Anna left") == "Anna"
    assert only(["Ann", "Bo"], "Ann and Bo") is None


def test_posed_asks_what_it_is_given(data: Dataset, rows: pl.DataFrame) -> None:
    made = posed(data, rows, rows["self_contained"])
    assert made.questions["text"].to_list() == rows["self_contained"].to_list()
    assert made.questions["query_id"].to_list() == rows["query_id"].to_list()
    assert made.turns.equals(data.turns)
    with pytest.raises(DataError, match="give one for each"):
        posed(data, rows, ["one"])


def test_messages_before_are_those_of_the_scope_in_order(rows: pl.DataFrame) -> None:
    its = rows.filter(pl.col("scope") == rows["scope"][0])
    before = said_before(rows)
    last = before.filter(pl.col("query_id") == its["query_id"][-1])
    assert last.height == 2 * (its.height - 1)
    assert last["text"].to_list()[::2] == its["asked"].to_list()[:-1]
    assert not before["query_id"].is_in([its["query_id"][0]]).any()
    cut = said_before(rows, most=6)
    assert cut.group_by("query_id").len()["len"].max() == 6
    assert cut.filter(pl.col("query_id") == its["query_id"][-1])["text"].to_list() == last["text"].to_list()[-6:]
