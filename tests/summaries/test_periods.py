"""Weeks and months: which sessions they take, what is carried on, and what is asked for again."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from markdown_it import MarkdownIt

from memlab import llm
from memlab.errors import DataError
from memlab.llm import Service, recording
from memlab.summaries import period, rollup, summarize, to_markdown
from memlab.summaries.asking import PERIOD, SESSION

Make = Callable[..., pl.DataFrame]
PIANO = ["Mel: I bought a piano for $900.", "Ann: Where will it stand?"]
MOVING = ["Mel: The piano comes on Friday, the movers cost $80.", "Ann: I will help."]
GARDEN = ["Mel: I planted 12 tulips behind the house in Oslo.", "Ann: Lovely."]


@pytest.fixture
def year(talk: Make) -> pl.DataFrame:
    return talk(
        ("s1", "2026-02-23T10:00", PIANO),
        ("s2", "2026-03-01T23:30", MOVING),
        ("s3", "2026-03-04T10:00", GARDEN),
        ("s4", "2026-05-06T10:00", ["Mel: The tulips are up, all 12 of them."]),
    )


def kinds(nodes: pl.DataFrame, kind: str) -> list[list[str]]:
    return nodes.filter(kind=kind)["children"].to_list()


def test_sessions_weeks_and_months(year: pl.DataFrame) -> None:
    nodes = rollup(year)
    assert kinds(nodes, "week") == [["u/s1", "u/s2"], ["u/s3"], ["u/s4"]]
    assert [len(weeks) for weeks in kinds(nodes, "month")] == [1, 1, 1]
    rows = {row["node_id"]: row for row in nodes.iter_rows(named=True)}
    assert len(rows) == nodes.height
    for row in rows.values():
        below = [rows[child] for child in row["children"]]
        assert row["turns"] == [turn for child in below for turn in child["turns"]] or not below
        assert {turn for ids in row["evidence"] for turn in ids} <= set(row["turns"])
        assert all(child["parent"] == row["node_id"] for child in below)
        assert len(row["sentences"]) == len(row["evidence"])
    assert [row["level"] for row in rows.values()] == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_weeks_begin_where_the_owner_lives_and_belong_to_the_month_of_their_thursday(year: pl.DataFrame) -> None:
    assert kinds(rollup(year, tz="Europe/Oslo"), "week") == [["u/s1"], ["u/s2", "u/s3"], ["u/s4"]]
    months = rollup(year).filter(kind="month")
    assert [to_markdown(row).splitlines()[0] for row in months.iter_rows(named=True)] == [
        "# u: February 2026", "# u: March 2026", "# u: May 2026",
    ]  # fmt: skip
    with pytest.raises(DataError, match="Mars"):
        rollup(year, tz="Mars/North")


def test_what_has_no_date_goes_with_its_neighbours(talk: Make) -> None:
    turns = talk(
        ("a", None, GARDEN), ("b", "2026-03-04T10:00", GARDEN), ("c", None, GARDEN), ("d", "2026-03-12T10:00", GARDEN)
    )
    assert kinds(rollup(turns), "week") == [["u/a", "u/b", "u/c"], ["u/d"]]
    undated = rollup(talk(("a", None, GARDEN), ("b", None, PIANO)))
    assert undated.filter(kind="week")["method"].to_list() == ["undated"]
    assert "undated" in to_markdown(undated.row(-1, named=True))


def test_without_a_model_what_shares_its_words_is_carried_on(talk: Make) -> None:
    again = ["Ann: The dentist was fine.", "Mel: The piano that I bought is out of tune."]
    nodes = rollup(talk(("s1", "2026-02-23T10:00", PIANO), ("s2", "2026-03-04T10:00", again)))
    week = nodes.filter(kind="week").row(1, named=True)
    assert week["carried_on"] == ["Mel: The piano that I bought is out of tune."]
    assert week["carried_on_evidence"] == [["u/s1/1", "u/s2/2"]]


def test_turns_are_split_for_topics_only_where_topics_are_missing(
    talk: Make, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    split: list[str] = []
    monkeypatch.setattr("memlab.summaries.writing.sentences", lambda text: split.append(text) or [text])
    known = talk(("s", "2026-03-04T10:00", GARDEN), scope="a")
    assert rollup(known, service=model()).height == 3
    assert split == []
    summaries = summarize(known, service=model())
    rollup(pl.concat([known, talk(("s", "2026-03-04T10:00", PIANO), scope="b")]), summaries=summaries)
    # The session of b; then weeks and months of both, which no model wrote.
    said = {line.partition(": ")[2]: n for lines, n in ((GARDEN, 2), (PIANO, 3)) for line in lines}
    assert {text: split.count(text) for text in split} == said


def test_what_is_carried_on_stands_on_both_and_sentences_on_the_period(year: pl.DataFrame, model: Any) -> None:
    def told(value: dict[str, Any]) -> dict[str, Any]:
        if "carried_on" not in value:
            return value
        last = value["sentences"][0]["ids"][-1]
        both = {"text": "The piano comes.", "ids": [1, last]}
        before = {"text": "The piano was bought.", "ids": [1]}
        return value | {"carried_on": [both, before], "sentences": [*value["sentences"], before]}

    week = rollup(year, service=model(told)).filter(kind="week").row(1, named=True)
    assert week["carried_on"] == ["The piano comes."]
    assert week["carried_on_evidence"] == [["u/s1/1", "u/s1/2", "u/s3/1", "u/s3/2"]]
    assert week["dropped"] == 2
    assert week["service"] == "lab"


def test_decisions_and_open_questions_go_up(year: pl.DataFrame, model: Any) -> None:
    def told(value: dict[str, Any]) -> Any:
        if "carried_on" in value:
            return None
        decided, open_ = {"text": "The piano stays.", "ids": [1]}, {"text": "Where?", "ids": [2]}
        return value | {"decisions": [decided], "open_questions": [open_]}

    few = year.filter(pl.col("session_id") == "u/s1")
    month = rollup(few, service=model(told)).filter(kind="month").row(0, named=True)
    assert (month["decisions"], month["decision_evidence"]) == (["The piano stays."], [["u/s1/1"]])
    assert (month["open_questions"], month["open_question_evidence"]) == (["Where?"], [["u/s1/2"]])
    assert (month["service"], month["reason"]) == ("extractive", "timed out")


@pytest.mark.parametrize("kind", ["week", "month"])
def test_one_period_is_the_one_of_the_rollup_and_costs_what_it_stands_on(
    year: pl.DataFrame, model: Any, kind: str
) -> None:
    nodes, lab = rollup(year, service=model()), model()
    made = period(year, kind, date(2026, 3, 5), summaries=summarize(year, service=model()), service=lab)
    same = nodes.filter(kind=kind, node_id=made["node_id"][0])
    assert same["text"].to_list() == made["text"].to_list()
    assert len(lab.asked) == {"week": 1, "month": 3}[kind]
    with pytest.raises(DataError, match="no session in the week of 2020-01-01; its weeks go from 2026-02-23"):
        period(year, "week", date(2020, 1, 1), summaries=summarize(year))


def test_markdown_holds_no_markup_of_the_conversation(talk: Make) -> None:
    hostile = "Mel: <img src=x onerror=alert(1)> [me](javascript:alert(2)) `x` | 12 *bold* &lt; Oslo"
    referring = ["[a]: http://127.0.0.1/a.png", "See ![a] and ![b][a] in Oslo.", "# Oslo", "&#60;img src=x&#62; Oslo"]
    page = to_markdown(
        rollup(talk(("s", "2026-03-04T10:00", [hostile, *(f"Mel: {each}" for each in referring)]))).row(1, named=True)
    )
    assert page.startswith("# u: week of 2 March 2026\n")
    assert "(u/s/1)" in page
    shown = MarkdownIt("commonmark", {"html": True}).render(page)
    assert set(re.findall(r"<(\w+)", shown)) <= {"h1", "h2", "p", "ul", "li"}
    assert "&lt;img src=x onerror=alert(1)&gt; [me](javascript:alert(2)) `x` | 12 *bold* &amp;lt; Oslo" in shown


def recorded_service(path: Path) -> Service:
    return Service("lab", "http://127.0.0.1:9/v1", "m", record=str(path), max_retries=0, timeout=1)


def test_rounds_of_requests_record_everything(
    year: pl.DataFrame, model: Any, record_rounds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "recorded.jsonl"
    monkeypatch.setattr(recording, "DEFAULT", (path,))
    rounds = record_rounds(partial(rollup, year), model(), path)
    assert [[each.task for each in asked] for asked in rounds] == [[SESSION.name] * 4, *[[PERIOD.name] * 3] * 2]
    nodes = rollup(year, service=llm.RECORDED)
    assert nodes["service"].unique().to_list() == ["recorded"]
    assert nodes["text"].to_list() == rollup(year, service=model())["text"].to_list()
    # Of one more session, it, its week and its month are new, and the period before is not.
    again = {"turn_id": pl.lit("u/s5/1"), "session_id": pl.lit("u/s5")}
    later = year.tail(1).with_columns(**again, timestamp=pl.col("timestamp") + pl.duration(days=14))
    later = pl.concat([year, later])
    old = rollup(later, service=recorded_service(path)).filter(pl.col("service") == "lab")
    assert set(nodes["node_id"]) - set(old["node_id"]) == {nodes["node_id"][-1]}
