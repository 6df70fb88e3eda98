"""Datasets: fingerprints, parts and sums; ids."""

from __future__ import annotations

import html
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import memlab
from memlab.errors import DataError
from memlab.records import (
    Annotation,
    Dataset,
    Issue,
    Question,
    Session,
    Turn,
    concat,
    frame,
    schema,
)
from memlab.records.dataset import (
    SOURCES,
    digest_turns_by_scope_or_empty,
    keep_questions_of_sources,
)

DAY = datetime(2024, 1, 1, tzinfo=UTC)
TABLES = {"turns": Turn, "sessions": Session, "questions": Question, "annotations": Annotation}
OTHER = {
    pl.String: "changed",
    pl.Int32: 77,
    pl.Boolean: True,
    pl.Datetime: datetime(2025, 5, 5, tzinfo=UTC),
}
NOT_COUNTED = {
    ("sessions", "status"),
    ("turns", "quoted"),
    ("questions", "reasons"),
    ("questions", "checks"),
}
"""Columns that no result depends on."""
GRADED = {"judged": ["u/s/1", "u/s/2"], "grades": [1, 2]}
PROPOSED: dict[str, Any] = {
    "source": "proposed",
    "reasons": ["It says who.", "It says when."],
    "distractors": ["u/s/4"],
    "checks": '{"needed": true}',
}
ASKED = Question(
    "q",
    "u",
    "Who?",
    "Mel",
    "t",
    DAY,
    ["u/s/1", "u/s/2"],
    ["u/s"],
    rubric=["Mel"],
    stale=["u/s/3"],
    **GRADED,
    **PROPOSED,
)
SMALL = Dataset(
    "d",
    "chatlog",
    frame(
        Turn,
        [
            Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", "hi", "cap", DAY, "Bo", ["hi"])
            for n in (1, 2)
        ],
    ),
    frame(Session, [Session("u/s", "u", 1, DAY, DAY, 2, ["Mel"], "closed", "sum")]),
    frame(Question, [ASKED]),
    frame(Annotation, [Annotation("a", "u", "u/s", "event", "Mel", "x", ["u/s/1"])]),
)


def with_value(data: Dataset, table: str, column: str, value: object) -> Dataset:
    rows = getattr(data, table)
    held = pl.Series(column, [value, *rows[column].to_list()[1:]], dtype=rows.schema[column])
    return replace(data, **{table: rows.with_columns(held)})


def test_the_fingerprint_is_of_the_content_alone() -> None:
    same = SMALL.fingerprint()
    for table, column in (
        (t, c) for t, row in TABLES.items() for c in schema(row) if (t, c) not in NOT_COUNTED
    ):
        dtype = getattr(SMALL, table).schema[column]
        values: list[object] = [None, OTHER.get(dtype.base_type())]
        if column == "source":
            values = [None, "accepted"]
        if dtype == pl.List(pl.String):
            values = [None, [], [""], ["u/s/1\x1fu/s/2"]]
        if dtype == pl.List(pl.Int32):
            values = [None, [], [1, 1], [2, 1]]
        prints = {with_value(SMALL, table, column, value).fingerprint() for value in values}
        assert len(prints | {same}) == len(values) + 1, (table, column)
    assert (
        replace(SMALL, name="other", issues=frame(Issue, [Issue("f", "x", "y")])).fingerprint()
        == same
    )
    assert with_value(SMALL, "sessions", "status", "summarized").fingerprint() == same
    for column in ("reasons", "checks"):
        assert with_value(SMALL, "questions", column, None).fingerprint() == same
    assert replace(SMALL, turns=SMALL.turns.reverse()).fingerprint() != same


QUOTING = [
    Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "> I ski\nNo.", None, DAY, quoted=["I ski"]),
    Turn("u/s/2", "u", "u/s", 2, "Bo", "user", "Mel: I row", None, DAY, quoted=["I row"]),
    Turn("u/s/3", "u", "u/s", 3, "Ai", "assistant", "> I row\nYou?", None, DAY),
    Turn("u/s/4", "u", "u/s", 4, "Mel", "user", "I sail, she told me.", None, DAY),
]


def test_quotations_count_in_the_fingerprint_where_the_source_names_them() -> None:
    def quoting(*quoted: list[str] | None) -> Dataset:
        rows = [replace(turn, quoted=parts) for turn, parts in zip(QUOTING, quoted, strict=True)]
        return replace(SMALL, turns=frame(Turn, rows))

    found = [turn.quoted for turn in QUOTING]
    same = quoting(*found).fingerprint()
    assert quoting(None, None, None, None).fingerprint() == same
    # Who had spoken when the second was read is not known.
    assert quoting(["I ski"], None, None, None).fingerprint() == same
    given: list[tuple[int, list[str]]] = [
        *((0, ["ski"]), (0, ["I ski", "No."]), (0, []), (1, ["row"]), (2, ["I row"])),
        *((3, ["I sail"]), (3, ["I sail", "told me"]), (3, [""])),
    ]
    prints = {same}
    for place, parts in given:
        prints.add(quoting(*found[:place], parts, *found[place + 1 :]).fingerprint())
    assert len(prints) == len(given) + 1
    german = replace(quoting(*found), language="de")
    assert (
        german.fingerprint() != replace(quoting(["ski"], *found[1:]), language="de").fingerprint()
    )


def test_a_digest_of_turns_sees_whose_words_a_text_holds() -> None:
    scope = QUOTING[0].scope
    digests = {
        digest_turns_by_scope_or_empty(frame(Turn, [turn, *QUOTING[1:]]), [scope])[scope]
        for turn in (
            QUOTING[0],
            replace(QUOTING[0], quoted=None),
            replace(QUOTING[0], forwarded_from="Bo"),
        )
    }
    assert len(digests) == 3


def test_a_digest_of_turns_depends_on_what_is_quoted_and_not_on_the_order() -> None:
    scope = QUOTING[0].scope
    quoted = [None, [], [""], ["a", "b"], ["a\x1fb"], ["b", "a"]]
    digests = set()
    for each in quoted:
        turns = frame(Turn, [replace(QUOTING[0], quoted=each), *QUOTING[1:]])
        digest = digest_turns_by_scope_or_empty(turns, [scope])[scope]
        assert digest == digest_turns_by_scope_or_empty(turns.reverse(), [scope])[scope]
        digests.add(digest)
    assert len(digests) == len(quoted)


def test_a_dataset_without_grades_has_the_fingerprint_that_it_had_before_there_were_any() -> None:
    assert memlab.sample().fingerprint() == "65e0ed2664986eb4"
    bare, later = SMALL, [*GRADED, *PROPOSED]
    for column in later:
        bare = with_value(bare, "questions", column, None)
    before = replace(bare, questions=bare.questions.drop(later))
    assert bare.fingerprint() == before.fingerprint()
    assert bare.fingerprint() != SMALL.fingerprint()


def test_questions_of_one_source_are_taken_and_counted() -> None:
    asked = [replace(ASKED, query_id=f"q{i}", source=source) for i, source in enumerate(SOURCES)]
    data = replace(SMALL, questions=frame(Question, asked))
    assert data.describe().endswith("3 questions (1 written, 1 proposed, 1 accepted), 1 annotation")
    assert keep_questions_of_sources(data, ["written", "accepted"]).questions[
        "query_id"
    ].to_list() == [
        "q0",
        "q2",
    ]
    old = replace(data, questions=data.questions.drop(PROPOSED.keys()))
    assert (
        "(" not in keep_questions_of_sources(old, ["written"]).describe().partition("questions")[2]
    )
    assert keep_questions_of_sources(old, ["written"]).questions.height == 3
    with pytest.raises(DataError, match="no question of 'd' is proposed; there are 3 written"):
        keep_questions_of_sources(old, ["proposed"])
    with pytest.raises(DataError, match="no source is called 'gold'; choose of written, proposed"):
        keep_questions_of_sources(data, ["gold"])
    with pytest.raises(DataError, match="question 'q1' has the source 'gold'; it is one of"):
        replace(data, questions=data.questions.with_columns(source=pl.Series([None, "gold", ""])))


def test_parts_hold_their_scopes_and_join_to_the_whole() -> None:
    data = memlab.sample(turns=300)
    assert concat(data.take([scope]) for scope in data.scopes).fingerprint() == data.fingerprint()
    assert data.take(reversed(data.scopes)).fingerprint() == data.fingerprint()
    assert data.take([]).turns.schema == data.turns.schema
    some = data.take(data.scopes[1:])
    for table in TABLES:
        assert getattr(some, table).equals(
            getattr(data, table).filter(pl.col("scope") != data.scopes[0])
        )
    with pytest.raises(DataError, match=r"no scope 'nobody' in dataset 'sample'; it has \['nadia'"):
        data.take([data.scopes[0], "nobody"])


def test_the_view_in_a_notebook_is_escaped() -> None:
    bad = "<script>alert(1)</script>"
    shown = with_value(replace(SMALL, name=bad), "questions", "text", bad)._repr_html_()
    assert "<script" not in shown
    assert shown.count(html.escape("<script>")) == 2


ANYTHING = st.text(st.characters(), min_size=1)  # st.characters() includes lone surrogates


@given(ANYTHING, ANYTHING)
@example("\ud83d\ude00", "😀")
@example("a b", "a%20b")
@example("%2F", "..")
@example("\x00\x7f\x85\u00a0\u3000", "\ud800")
def test_id_parts_are_reversible_and_fit_an_id_and_a_trec_line(one: str, other: str) -> None:
    part = memlab.records.encode_id_part(one)
    assert memlab.records.decode_id_part(part) == one
    assert part
    assert "/" not in part
    assert part.split() == [part]
    part.encode()  # no lone surrogate is left
    assert (part == memlab.records.encode_id_part(other)) == (one == other)
    with pytest.raises(DataError, match="an id is empty"):
        memlab.records.encode_id_part("")
