"""The texts that BM25, encoders and the full-text index read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memlab.embed.text import query_texts, session_texts, turn_texts
from memlab.records import Question, Session, Turn, encode_id_part, frame

DAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
SCOPE = encode_id_part("work/50 % 漢")
SAID = [
    ("s1", 1, "Mel", "other", "Guitar guitar lesson tomorrow", "a red guitar", DAY),
    ("s1", 2, "Caro", "other", "Which teacher?", None, DAY),
    ("s2", 1, "user", "user", "The garden wants water", "a hose", None),
    ("s2", 2, "assistant", "assistant", "", None, None),
]
TURNS = frame(Turn, [Turn(f"{SCOPE}/{s}/{n}", SCOPE, f"{SCOPE}/{s}", n, *rest) for s, n, *rest in SAID])


def test_names_are_written_and_roles_are_not() -> None:
    assert turn_texts(TURNS) == [
        "Mel: Guitar guitar lesson tomorrow Mel shared a red guitar.",
        "Caro: Which teacher?",
        "The garden wants water a hose.",  # of a speaker who is only a role, the caption alone is left
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
def test_every_field_of_the_header(field: str, expected: list[str]) -> None:
    written = [head + body for head, body in zip(expected, turn_texts(TURNS), strict=True)]
    assert turn_texts(TURNS, header=(field,)) == written


def test_a_session_is_its_date_and_its_turns() -> None:
    sessions = [Session(f"{SCOPE}/s{i}", SCOPE, i, DAY if i != 2 else None, None, 0, []) for i in (1, 2, 3)]
    assert session_texts(TURNS, frame(Session, sessions)) == [
        "8 May 2023, Monday\nMel: Guitar guitar lesson tomorrow a red guitar\nCaro: Which teacher?",
        "The garden wants water a hose\n",
        "8 May 2023, Monday\n",
    ]


def test_a_question_has_the_header_of_its_scope() -> None:
    asked = frame(Question, [Question("q", SCOPE, "Where?", "SECRET", "t", DAY, ["SECRET"], ["SECRET"])])
    for header, head in (
        ((), ""),
        (("scope", "time"), "[scope: work/50 % 漢 | time: 8 May 2023] "),
        (("participants",), "[participants: Mel, Caro, user, assistant] "),
    ):
        assert query_texts(asked, TURNS, header=header) == [f"{head}Where?"]
