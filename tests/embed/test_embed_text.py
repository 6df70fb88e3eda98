"""The texts that BM25, encoders and the full-text index read."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import polars as pl
import pytest

import memlab
from memlab.embed.text import HEADER_FIELDS, query_texts, session_texts, turn_texts
from memlab.errors import DataError
from memlab.records import Question, Session, Turn, frame, id_part

DAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
SCOPE = id_part("work/50 % 漢")


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
        ("topics", ["[topics: guitar, lesson, teacher] "] * 2 + ["[topics: garden, wants, water] "] * 2),
    ],
)
def test_every_field_of_the_header(turns: pl.DataFrame, field: str, expected: list[str]) -> None:
    heads = [
        t.removesuffix(body) for t, body in zip(turn_texts(turns, header=(field,)), turn_texts(turns), strict=True)
    ]
    assert heads == expected


def test_fields_stand_in_the_order_asked_for(turns: pl.DataFrame) -> None:
    for order in permutations(HEADER_FIELDS):
        first = turn_texts(turns, header=order)[0]
        head = first[1 : first.index("]")]
        assert [part.split(":")[0] for part in head.split(" | ")] == list(order)
    assert turn_texts(turns, header=("time", "scope"))[2].startswith("[scope: work/50 % 漢] The garden")


def test_topics_do_not_depend_on_the_order_of_sessions_or_on_other_scopes() -> None:
    data = memlab.sample(turns=200)
    texts = dict(zip(data.turns["turn_id"], turn_texts(data.turns, header=("topics",)), strict=True))
    shuffled = data.turns.sample(fraction=1.0, shuffle=True, seed=1)
    assert dict(zip(shuffled["turn_id"], turn_texts(shuffled, header=("topics",)), strict=True)) == texts
    alone = data.take(data.scopes[:1]).turns
    assert all(texts[i] == t for i, t in zip(alone["turn_id"], turn_texts(alone, header=("topics",)), strict=True))
    assert all(t.startswith("[topics: ") for t in texts.values())


def test_a_session_is_its_date_and_its_turns(turns: pl.DataFrame, sessions: pl.DataFrame) -> None:
    assert session_texts(turns, sessions) == [
        "8 May 2023, Monday\nMel: Guitar guitar lesson tomorrow a red guitar\nCaro: Which teacher?",
        "The garden wants water a hose\n",
        "8 May 2023, Monday\n",
    ]


def test_the_header_of_a_session_is_that_of_its_turns(turns: pl.DataFrame, sessions: pl.DataFrame) -> None:
    plain = session_texts(turns, sessions)
    for header in ((f,) for f in HEADER_FIELDS):
        of_turns = turn_texts(turns, header=header)
        heads = [of_turns[0][: of_turns[0].index("Mel: ")], of_turns[2][: of_turns[2].index("The garden")], ""]
        assert session_texts(turns, sessions, header=header) == [h + p for h, p in zip(heads, plain, strict=True)]


def test_a_question_has_the_header_of_its_scope(turns: pl.DataFrame) -> None:
    assert query_texts(question(), turns) == ["Where?"]
    both = ("scope", "time")
    head = turn_texts(turns, header=both)[1].removesuffix("Caro: Which teacher?")
    assert query_texts(question(), turns, header=both) == [head + "Where?"]
    everyone = "[participants: Mel, Caro, user, assistant] Where?"
    assert query_texts(question(), turns, header=("topics", "participants")) == [everyone]


@pytest.mark.parametrize("header", [(), *((f,) for f in HEADER_FIELDS), HEADER_FIELDS])
def test_nothing_gives_no_texts(header: tuple[str, ...]) -> None:
    nothing = frame(Turn)
    assert turn_texts(nothing, header=header) == []
    assert session_texts(nothing, frame(Session), header=header) == []
    assert query_texts(frame(Question), nothing, header=header) == []


def test_an_unknown_field_is_named(turns: pl.DataFrame, sessions: pl.DataFrame) -> None:
    calls = (
        lambda: turn_texts(turns, header=("date",)),
        lambda: session_texts(turns, sessions, header=("date",)),
        lambda: query_texts(question(), turns, header=("date",)),
        lambda: turn_texts(frame(Turn), header=("date",)),
    )
    for call in calls:
        with pytest.raises(DataError, match="'date' is not known; choose from scope, time, participants, topics"):
            call()
