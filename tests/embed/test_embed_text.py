"""The texts that BM25, encoders and the full-text index read."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from memlab.embed.text import query_texts, session_texts, turn_texts
from memlab.records import Question, Session, Turn, encode_id_part, frame

DAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
SCOPE = encode_id_part("work/50 % 漢")


def turn(session: str, n: int, speaker: str, text: str, caption: str | None = None, at: datetime | None = DAY) -> Turn:
    role = speaker if speaker in ("user", "assistant", "system", "other") else "user"
    return Turn(f"{SCOPE}/{session}/{n}", SCOPE, f"{SCOPE}/{session}", n, speaker, role, text, caption, at)


@pytest.fixture
def turns() -> pl.DataFrame:
    rows = [
        turn("s1", 1, "Mel", "Guitar guitar lesson tomorrow", "a red guitar"),
        turn("s1", 2, "Caro", "Which teacher?"),
        turn("s2", 1, "user", "The garden wants water", "a hose", None),
        turn("s2", 2, "assistant", "", None, None),
    ]
    return frame(Turn, rows)


@pytest.fixture
def sessions() -> pl.DataFrame:
    rows = [(f"{SCOPE}/s{i}", SCOPE, i, DAY if i != 2 else None, None, 0, []) for i in (1, 2, 3)]
    return frame(Session, [Session(*row) for row in rows])


def question(scope: str = SCOPE, at: datetime | None = DAY) -> pl.DataFrame:
    return frame(Question, [Question("q", scope, "Where?", "SECRET", "t", at, ["SECRET"], ["SECRET"])])


def test_names_are_written_and_roles_are_not(turns: pl.DataFrame) -> None:
    assert turn_texts(turns) == [
        "Mel: Guitar guitar lesson tomorrow Mel shared a red guitar.",
        "Caro: Which teacher?",
        # Of a speaker who is only a role, the caption alone is left.
        "The garden wants water a hose.",
        "",
    ]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("scope", ["[scope: work/50 % 漢] "] * 4),
        ("time", ["[time: 8 May 2023] "] * 2 + [""] * 2),
        ("participants", ["[participants: Mel, Caro] "] * 2 + ["[participants: user, assistant] "] * 2),
    ],
)
def test_every_field_of_the_header(turns: pl.DataFrame, field: str, expected: list[str]) -> None:
    heads = [
        t.removesuffix(body) for t, body in zip(turn_texts(turns, header=(field,)), turn_texts(turns), strict=True)
    ]
    assert heads == expected


def test_a_session_is_its_date_and_its_turns(turns: pl.DataFrame, sessions: pl.DataFrame) -> None:
    assert session_texts(turns, sessions) == [
        "8 May 2023, Monday\nMel: Guitar guitar lesson tomorrow a red guitar\nCaro: Which teacher?",
        "The garden wants water a hose\n",
        "8 May 2023, Monday\n",
    ]


def test_a_question_has_the_header_of_its_scope(turns: pl.DataFrame) -> None:
    assert query_texts(question(), turns) == ["Where?"]
    both = ("scope", "time")
    head = turn_texts(turns, header=both)[1].removesuffix("Caro: Which teacher?")
    assert query_texts(question(), turns, header=both) == [head + "Where?"]
    everyone = "[participants: Mel, Caro, user, assistant] Where?"
    assert query_texts(question(), turns, header=("participants",)) == [everyone]
