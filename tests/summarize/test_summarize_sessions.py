from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from pydantic import ValidationError

import memlab
from memlab.llm import Outcome, Service
from memlab.records import Summary, Turn, frame, schema
from memlab.summarize import recipe, share, summarize
from memlab.summarize.by_model import Answer, Point, prompts, supported

SERVICE = Service("local", "http://127.0.0.1:9/v1", "tiny")


def _point(text: str, *turns: int) -> Point:
    return Point(text=text, turns=list(turns))


def _answer(*points: Point, topics: tuple[str, ...] = ()) -> Answer:
    none: list[Point] = []
    return Answer(sentences=list(points), topics=list(topics), decisions=none, action_items=none, open_questions=none)


@pytest.fixture
def talk(chat):
    return chat(
        "Mel: I moved to Oslo.", "Ann: Which street?", "Mel: Harbour street, number 9.", "Ann: I'll send you a lamp."
    )


@pytest.fixture
def serve(monkeypatch):
    """Let the service give these outcomes; what it was asked is returned."""

    def start(*outcomes):
        asked = {}

        def answers(service, texts, shape, *, system=""):
            asked.update(service=service, texts=texts, shape=shape, system=system)
            return list(outcomes)

        monkeypatch.setattr(recipe, "answers", answers)
        return asked

    return start


def test_extractive_summaries(talk):
    now = datetime(2024, 1, 1, tzinfo=UTC)
    made = summarize(talk, entities={"u/s": ["Oslo"]}, version="v7", now=now)
    assert made.rows.schema == schema(Summary)
    (row,) = made.rows.iter_rows(named=True)
    assert row["service"] == "extractive"
    assert row["model"] is None
    assert (row["version"], row["created_at"], row["entities"]) == ("v7", now, ["Oslo"])
    assert (row["participants"], row["n_turns"], row["start"]) == (["Mel", "Ann"], 4, talk["timestamp"][0])
    assert row["summary"] == " ".join(row["sentences"])
    assert row["action_items"] == ["Ann: I'll send you a lamp."]
    assert row["action_item_evidence"] == [["u/s/4"]]
    assert made.outcomes.rows() == [("u/s", "ok", None, "extractive")]


def test_every_list_has_its_evidence():
    turns = memlab.sample(["owen"], turns=120).turns
    made = summarize(turns).rows
    said = dict(turns.select("turn_id", "text").iter_rows())
    of = dict(turns.select("turn_id", "session_id").iter_rows())
    for texts, evidence in (
        ("sentences", "evidence"),
        ("decisions", "decision_evidence"),
        ("action_items", "action_item_evidence"),
        ("open_questions", "open_question_evidence"),
    ):
        for session, lines, ids in made.select("session_id", texts, evidence).iter_rows():
            assert len(lines) == len(ids)
            for line, (turn,) in zip(lines, ids, strict=True):
                assert of[turn] == session
                assert line.split(": ", 1)[-1].rstrip("…") in said[turn] or line.rstrip("…") in said[turn]
    assert made["sentences"].list.len().is_between(2, 6).all()
    assert share(made, turns)["share"].to_list() == [0.0]


def test_sessions_without_words():
    turns = frame(
        Turn,
        [Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "", "a dog"), Turn("u/t/1", "u", "u/t", 1, "Mel", "user", "😂")],
    )
    made = summarize(turns)
    assert made.rows["sentences"].to_list() == [[], ["Mel: 😂"]]
    assert summarize(turns.clear()).rows.is_empty()


def test_model_answers_become_rows(talk, serve):
    asked = serve(Outcome(_answer(_point("Mel moved to Oslo.", 1, 3, 99, 1), topics=("Oslo", "Oslo"))))
    made = summarize(talk, service=SERVICE)
    (row,) = made.rows.iter_rows(named=True)
    assert (row["service"], row["model"]) == ("local", "tiny")
    assert row["evidence"] == [["u/s/1", "u/s/3"]]
    assert row["topics"] == ["Oslo"]
    assert made.outcomes.rows() == [("u/s", "ok", None, "local")]
    assert asked["texts"][0].split("\n")[0] == "[1] (8 May 2023) Mel: I moved to Oslo."
    assert asked["shape"] is Answer


def test_failures(chat, serve):
    turns = pl.concat([chat("Mel: I moved to Oslo.", "Ann: Great!", session=f"u/{s}") for s in "abcd"])
    serve(
        Outcome(None, "the answer does not fit", "content"),
        Outcome(None, "429", "service"),
        Outcome(None, "too slow", "timeout"),
        Outcome(_answer(_point("Elephants paint ceilings."))),
    )
    made = summarize(turns, service=SERVICE)
    assert made.rows.select("session_id", "service", "model").rows() == [
        ("u/a", "extractive", None),
        ("u/d", "extractive", None),
    ]
    states = made.outcomes.select("session_id", "status", "service").rows()
    fallback, failed = ("fallback", "extractive"), ("failed", None)
    assert states == [("u/a", *fallback), ("u/b", *failed), ("u/c", *failed), ("u/d", *fallback)]
    assert made.outcomes["reason"].to_list()[:3] == ["the answer does not fit", "429", "too slow"]


def test_sentences_without_numbers_get_the_turns_that_share_their_words(talk):
    found = supported(
        [_point("Mel lives in Harbour street."), _point("Ann paints elephants.", 0, 77), _point("Yes.")], talk
    )
    assert found.texts == ["Mel lives in Harbour street."]
    assert found.evidence == [["u/s/3"]]


@pytest.mark.parametrize(
    "bad",
    [
        {"sentences": []},
        {"sentences": [{"text": "a" * 10_000, "turns": []}]},
        {"sentences": [{"text": "a", "turns": list(range(500))}]},
        {"sentences": [{"text": "a", "turns": [1]}] * 100},
        {"topics": ["a" * 1_000]},
        {"topics": ["a"] * 1_000},
        {"mood": "fine"},
        {"sentences": [{"text": "a"}]},
    ],
)
def test_answers_are_bounded(bad):
    good = {
        "sentences": [{"text": "a", "turns": [1]}],
        "topics": [],
        "decisions": [],
        "action_items": [],
        "open_questions": [],
    }
    Answer.model_validate(good)
    with pytest.raises(ValidationError):
        Answer.model_validate(good | bad)


def test_prompts_fit_and_show_every_turn(chat):
    turns = chat("Mel: short", *["Ann: " + "long words " * 200] * 3, "Mel: also short")
    (prompt,) = prompts(turns, max_chars=1_000)["prompt"]
    assert len(prompt) <= 1_000
    lines = prompt.split("\n")
    assert [line.split(" ")[0] for line in lines] == ["[1]", "[2]", "[3]", "[4]", "[5]"]
    assert lines[0].endswith("Mel: short")
    assert len(prompt) > 900
    assert len({len(line) for line in lines[1:4]}) == 1
