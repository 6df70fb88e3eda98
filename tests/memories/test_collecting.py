"""A memory is filled and asked scope by scope, whatever it does."""

from __future__ import annotations

import threading
from typing import Any

import polars as pl
import pytest
from talk import excerpt

from memlab.memories import Memory, collect, memory
from memlab.memories.collecting import LONGEST_TEXT
from memlab.records import Dataset


@pytest.fixture(scope="module")
def data() -> Dataset:
    return excerpt(150)


class Words:
    """Gives the turns that share most words; counts what it was told, and breaks where it is told to."""

    def __init__(self, breaks: str = "", scope: str = "") -> None:
        self.breaks, self.scope, self.calls = breaks, scope, []

    def _call(self, verb: str, scope: str) -> None:
        self.calls.append((verb, scope))
        if verb == self.breaks and scope == self.scope:
            raise RuntimeError("no luck\nat all")

    def reset(self, scope: str) -> None:
        self._call("reset", scope)
        self.turns = pl.DataFrame()

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        self._call("ingest", scope)
        self.turns = turns

    def wait(self) -> None:
        pass

    def search(self, scope: str, queries: Any, k: int, now: Any) -> Any:
        self._call("search", scope)
        return self.turns.head(k).select(
            "text", query=0, source_ids=pl.concat_list("id"), score=-pl.int_range(pl.len())
        )


def test_it_is_filled_in_order_of_time_and_asked_each_question(data: Dataset) -> None:
    taken: list[pl.DataFrame] = []

    def search(turns: pl.DataFrame, query: str, k: int, now: Any) -> list[str]:
        taken.append(turns)
        assert now is not None
        return [query]

    done = collect(memory(search), data, name="mine")
    assert dict(done.rows.select("query_id", "text").iter_rows()) == dict(
        data.questions.select("query_id", "text").iter_rows()
    )
    assert all(turns["time"].is_sorted() for turns in taken)
    assert done.costs["n_turns"].sum() == data.turns.height
    assert done.costs["query_ms"].list.len().to_list() == done.costs["n_queries"].to_list()


@pytest.mark.parametrize("verb", ["reset", "ingest", "search"])
def test_a_scope_that_fails_costs_no_other(data: Dataset, verb: str) -> None:
    broken = Words(verb, data.scopes[1])
    done = collect(broken, data, name="mine", k=3)
    assert done.failed == [data.scopes[1]]
    [problem] = done.problems["problem"]
    assert problem.startswith(f"mine, scope {data.scopes[1]}: {verb} failed: RuntimeError: no luck at all")
    good = collect(Words(), data, name="mine", k=3)
    expected = good.rows.filter(~pl.col("query_id").str.starts_with(data.scopes[1]))
    assert done.rows.equals(expected)


def test_ids_say_nothing(data: Dataset) -> None:
    taken: list[pl.DataFrame] = []

    class Looks(Words):
        def ingest(self, scope: str, turns: pl.DataFrame) -> None:
            taken.append(turns)
            super().ingest(scope, turns)

    done = collect(Looks(), data, name="mine", k=1)
    for turns in taken:
        assert turns["id"].to_list() == [f"turn-{n}" for n in range(1, turns.height + 1)]
        assert turns["session"].str.contains(r"^session-\d+$").all()
    assert set(done.rows["source_ids"].explode()) <= set(data.turns["turn_id"])


def test_one_search_that_fails_is_one_question(data: Dataset) -> None:
    class Once(Words):
        def search(self, scope: str, queries: Any, k: int, now: Any) -> Any:
            if queries[0] == data.questions["text"][0]:
                raise ValueError("this one")
            return super().search(scope, queries, k, now)

    done = collect(Once(), data, name="mine", k=2)
    assert done.failed == []
    assert done.problems["query_id"].to_list() == [data.questions["query_id"][0]]


def test_a_memory_that_says_nothing_is_given_up(data: Dataset) -> None:
    never = threading.Event()

    class Silent(Words):
        def wait(self) -> None:
            never.wait()

    done = collect(Silent(), data, name="mine", timeout=0.05)
    assert done.failed == data.scopes
    assert "wait gave nothing within 0.05 s" in done.problems["problem"][0]
    never.set()


@pytest.mark.parametrize(
    ("rows", "problem", "n"),
    [
        ([{"text": "a", "source_ids": ["nowhere/1"]}], "id 'nowhere/1' is no turn of this scope", 1),
        ([{"text": "a", "source_ids": ["OTHER"]}], "is no turn of this scope", 1),
        ([{"text": "a", "source_ids": ["OWN"]}, {"text": "b", "source_ids": ["OWN"]}], "again, left out", 1),
        ([{"text": "a", "score": float("nan")}], "score nan is no finite number", 1),
        ([{"text": "a", "score": "high"}], "score high is no finite number", 1),
        ([{"text": str(n)} for n in range(9)], "9 rows, 4 were asked for", 4),
        ([{"text": "x" * (LONGEST_TEXT + 1)}], "a text of 100,001 characters", 1),
        ([{"text": "a", "query": 1}], "rows for another query", 0),
        ([], "", 0),
        ([{"text": "a \ud800 b", "score": None, "time": None}], "", 1),
    ],
)
def test_what_a_search_should_not_give_is_cut_with_a_line(data: Dataset, rows: Any, problem: str, n: int) -> None:
    one = data.take(data.scopes[:1])
    other = data.turns["turn_id"][-1]
    names = {"OWN": "turn-1", "OTHER": other}
    rows = [
        row | {"source_ids": [names.get(i, i) for i in row["source_ids"]]} if "source_ids" in row else row
        for row in rows
    ]

    class Odd(Words):
        def search(self, scope: str, queries: Any, k: int, now: Any) -> Any:
            return rows

    done = collect(Odd(), one, name="mine", k=4)
    assert done.rows.height == n * one.questions.height
    assert all(problem in each for each in done.problems["problem"])
    assert bool(done.problems.height) == bool(problem)
    assert other not in done.rows["source_ids"].explode().to_list()


@pytest.mark.parametrize("answer", [None, 7, ["text"], [{"score": 1.0}], [{"text": 7}], {"rows": []}, "text"])
def test_what_is_no_rows_fails_the_search(data: Dataset, answer: Any) -> None:
    class Odd(Words):
        def search(self, scope: str, queries: Any, k: int, now: Any) -> Any:
            return answer

    done = collect(Odd(), data.take(data.scopes[:1]), name="mine", k=4)
    assert done.failed == data.scopes[:1]
    assert "search gave" in done.problems["problem"][-1]


def test_it_goes_on_where_it_stopped(data: Dataset, tmp_path: Any) -> None:
    class Stops(Words):
        def search(self, scope: str, queries: Any, k: int, now: Any) -> Any:
            return [{"text": queries[0]}]

    whole = collect(Stops(), data, name="mine", k=3)
    collect(Stops(), data, name="mine", k=3, folder=tmp_path)
    places = sorted(tmp_path.iterdir())
    assert len(places) == len(data.scopes)
    places[0].unlink()
    again = Stops()
    done = collect(again, data, name="mine", k=3, folder=tmp_path)
    assert len({scope for verb, scope in again.calls if verb == "reset"}) == 1
    assert done.rows.equals(whole.rows)
    other = Stops()
    collect(other, data, name="mine", k=4, folder=tmp_path)
    assert len([verb for verb, _ in other.calls if verb == "reset"]) == len(data.scopes)


def test_a_failed_scope_is_run_again(data: Dataset, tmp_path: Any) -> None:
    collect(Words("ingest", data.scopes[0]), data, name="mine", k=3, folder=tmp_path)
    mended = Words()
    done = collect(mended, data, name="mine", k=3, folder=tmp_path)
    assert done.failed == []
    assert [scope for verb, scope in mended.calls if verb == "reset"] == data.scopes[:1]


def test_code_that_changed_is_run_again(data: Dataset, tmp_path: Any) -> None:
    def first() -> Memory:
        def search(turns: pl.DataFrame, query: str, k: int) -> list[str]:
            return ["one"]

        return memory(search)

    def second() -> Memory:
        def search(turns: pl.DataFrame, query: str, k: int) -> list[str]:
            return ["two"]

        return memory(search)

    texts = [set(collect(each(), data, name="mine", folder=tmp_path).rows["text"]) for each in (first, second, first)]
    assert texts == [{"one"}, {"two"}, {"one"}]
