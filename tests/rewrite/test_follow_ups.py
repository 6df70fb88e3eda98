"""Follow-ups made from names, asked of a dataset, with the messages before them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.records import Dataset, Question, Session, Turn, frame
from memlab.rewrite import rewrite
from memlab.rewrite.follow_ups import (
    FOLLOW_UP,
    from_names,
    gender,
    only,
    posed,
    replaced,
    said_before,
)

DAY0 = datetime(2024, 1, 1, tzinfo=UTC)
ASKED = {
    "t0": [("opening", "Did I buy a sofa?", "Did I buy a sofa?", "Yes, the sofa.", 1),
           ("pronoun", "How much did it cost?", "How much did the sofa cost?", "$100.", 1),
           ("other", "And when did I buy the other one?", "When did I buy the desk?", "On 2 January 2024.", 2)],
    "t1": [("opening", "Which city is my home?", "Which city is my home?", "Bergen.", 3),
           ("before", "And before that?", "Which city was my home before Bergen?", "Oslo.", 2)],
}  # fmt: skip


@pytest.fixture(scope="module")
def data() -> Dataset:
    turns = [Turn(f"u/s{n}/1", "u", f"u/s{n}", 1, "Ann", "user", f"Said {n}.", None, DAY0) for n in range(4)]
    sessions = [Session(f"u/s{n}", "u", n + 1, DAY0, DAY0, 1, ["Ann"]) for n in range(4)]
    return Dataset("told", "chatlog", frame(Turn, turns), frame(Session, sessions))


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    table: list[tuple[Any, ...]] = []
    for thread, asks in ASKED.items():
        said: list[str] = []
        for turn, (kind, asked, whole, answer, n) in enumerate(asks, 1):
            when = DAY0 + timedelta(days=1, minutes=len(table))
            row = (
                f"u/{thread}/{turn}",
                f"u/{thread}",
                "u",
                turn,
                kind,
                asked,
                whole,
                answer,
                [*said],
                [f"u/s{n}/1"],
                when,
            )
            table.append(row)
            said += [asked, answer]
    return pl.DataFrame(table, schema=FOLLOW_UP, orient="row")


def test_rewriting_never_touches_an_opening(rows: pl.DataFrame) -> None:
    opens = rows.filter(pl.col("turn") == 1)
    made = rewrite(opens["asked"].to_list(), opens["history"].to_list())
    assert (made["rewritten"] == opens["asked"]).all()
    assert set(made["method"]) == {"first"}


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
    cut = said_before(rows, most=4)
    assert cut.group_by("query_id").len()["len"].max() == 4
    assert cut.filter(pl.col("query_id") == its["query_id"][-1])["text"].to_list() == last["text"].to_list()[-4:]
