"""A memory is filled and asked scope by scope, whatever it does."""

from __future__ import annotations

import itertools
import threading
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.memories import collect
from memlab.memories.returned_rows import LONGEST_TEXT
from memlab.memories.running_a_memory import USAGE_COLUMNS
from memlab.records import Dataset


class Keeps:
    """Gives the first turns; counts what it is asked, and breaks where it should."""

    settings: ClassVar = {"first": True}

    def __init__(self, breaks: str = "", scope: str = "") -> None:
        self.breaks, self.scope, self.calls = breaks, scope, list[tuple[str, str]]()

    def _call(self, verb: str, scope: str) -> None:
        self.calls.append((verb, scope))
        if verb == self.breaks and scope == self.scope:
            raise RuntimeError("no luck\nat all")

    def reset(self, scope: str) -> None:
        self._call("reset", scope)

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        self._call("ingest", scope)
        self.turns = turns

    def search(self, scope: str, query: str, k: int) -> Any:
        self._call("search", scope)
        return self.turns.head(k).select(
            "text", source_ids=pl.concat_list("id"), score=-pl.int_range(pl.len())
        )


def test_ids_tell_the_place_alone_and_turns_come_in_order_of_time(data: Dataset) -> None:
    class Looks(Keeps):
        def search(self, scope: str, query: str, k: int, now: Any = None) -> Any:
            assert now is not None
            assert self.turns["id"].to_list() == [f"turn-{n}" for n in range(1, 7)]
            assert self.turns["session"].unique(maintain_order=True).to_list() == [
                "session-1",
                "session-2",
            ]
            assert self.turns["time"].is_sorted()
            return super().search(scope, query, k)

    done = collect(Looks(), data, name="mine", k=2)
    assert done.problems.is_empty()
    assert (
        done.rows["source_ids"].explode().to_list()
        == ["ann/1.1", "ann/1.2"] * 2 + ["bo/1.1", "bo/1.2"] * 2
    )
    assert done.costs["n_turns"].to_list() == [6, 6]
    assert (
        done.costs["query_ms"].list.len().to_list() == done.costs["n_queries"].to_list() == [2, 2]
    )


def test_what_fails_costs_its_scope_or_its_question(data: Dataset) -> None:
    good = collect(Keeps(), data, name="mine", k=3)
    for verb in ("reset", "ingest"):
        done = collect(Keeps(verb, "ann"), data, name="mine", k=3)
        assert done.failed == ["ann"]
        assert f"{verb} failed: RuntimeError: no luck at all" in done.problems["problem"].item()
        assert done.rows.equals(good.rows.filter(pl.col("query_id").str.starts_with("bo")))

    def search(turns: pl.DataFrame, query: str) -> Any:
        if "cat" in query:
            raise ValueError("\ud800")
        return turns["text"]

    done = collect(search, data, name="mine")
    assert (done.failed, done.problems["query_id"].to_list()) == ([], ["ann/q0"])
    assert done.rows["query_id"].n_unique() == 3
    done = collect(Keeps("search", "ann"), data.take(["ann"]), name="mine")
    assert done.failed == []


def test_an_interrupt_ends_all(data: Dataset) -> None:
    class Interrupted(Keeps):
        def search(self, *_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(Interrupted(), data, name="mine")


def test_what_gives_nothing_in_time_is_given_up(data: Dataset) -> None:
    never = threading.Event()

    class Silent(Keeps):
        def wait(self) -> None:
            never.wait()

    def endless(query: str) -> Any:
        while not never.wait(0.01):
            yield from ()

    for system, lost in ((Silent(), ["ann", "bo"]), (endless, [])):
        done = collect(system, data, name="mine", timeout=0.05)
        assert done.failed == lost
        assert "gave nothing within 0.05 s" in done.problems["problem"][0]
    never.set()
    for timeout in (0.0, float("nan"), 1e12):
        with pytest.raises(DataError, match="timeout"):
            collect(Keeps(), data, name="mine", timeout=timeout)


DEEP: Any = []
for _ in range(100_000):
    DEEP = [DEEP]


class Hostile(dict):
    def get(self, *_: Any) -> Any:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("row", "problem", "kept"),
    [
        ({"text": "a", "source_ids": ["bo/1.1"]}, "'bo/1.1' is no turn", 1),
        ({"text": "a", "source_ids": 5}, "'5' is no turn", 1),
        ({"text": "a", "source_ids": [DEEP]}, "left out", 0),
        ({"text": "a", "source_ids": ["turn-1"]}, "again", 0),
        ({"text": "a", "score": float("nan")}, "no finite number", 1),
        ({"text": "a", "score": 10**400}, "no finite number", 1),
        ({"text": "a", "time": DEEP}, "left out", 0),
        ({"text": "x" * (LONGEST_TEXT + 1)}, "100,001 characters", 1),
        ({"text": "a", "query": 1}, "another query", 0),
        ({"text": 7}, "text is int", 0),
        (DEEP, "no row", 0),
        (Hostile(), "no row", 0),
        ({"text": "a \ud800 b", "time": "\udfff", "score": None}, "", 1),
        ("only a text", "", 1),
        ("turn-2", "", 1),
        ({"source_ids": ["turn-2", "turn-3"]}, "", 1),
        ({"source_ids": ["turn-2", 0.5]}, "number", 0),
        ({"text": "a", "id": "turn-1"}, "again", 0),
    ],
)
def test_a_row_that_cannot_be_used_costs_itself(
    data: Dataset, row: Any, problem: str, kept: int
) -> None:
    good = {"text": "My sister Ida adopted a grey cat named Muri.", "source_ids": ["turn-1"]}
    done = collect(lambda query: [good, row], data.take(["ann"]), name="mine", k=2)
    assert done.rows["query_id"].to_list() == sorted(["ann/q0", "ann/q1"] * (1 + kept))
    assert all(problem in line for line in done.problems["problem"])
    assert done.problems.height == (2 if problem else 0)
    assert "bo/1.1" not in done.rows["source_ids"].explode().to_list()


def test_an_answer_that_is_no_rows_costs_its_question_and_endless_rows_are_cut(
    data: Dataset,
) -> None:
    async def late() -> list[str]:
        return ["a"]

    for answer in (None, 7, "text", {"answer": []}, late):

        def search(query: str, answer: Any = answer) -> Any:
            return (
                ["a"]
                if "cat" in query or "cello" in query
                else answer()
                if answer is late
                else answer
            )

        done = collect(search, data, name="mine", k=1)
        assert done.failed == []
        assert done.rows["query_id"].to_list() == ["ann/q0", "bo/q0"]
        assert done.problems["query_id"].to_list() == ["ann/q1", "bo/q1"]
    done = collect(lambda query: itertools.repeat("a text"), data.take(["ann"]), name="mine", k=4)
    assert done.rows.height == 8
    assert all("more than 4 rows" in line for line in done.problems["problem"])


def test_it_goes_on_where_it_stopped(data: Dataset, tmp_path: Path) -> None:
    whole = collect(Keeps("ingest", "bo"), data, name="mine", k=3, folder=tmp_path)
    assert len([*tmp_path.iterdir()]) == 1  # what failed is run again
    again = Keeps()
    done = collect(again, data, name="mine", k=3, folder=tmp_path)
    assert [scope for verb, scope in again.calls if verb == "reset"] == ["bo"]
    assert done.rows.filter(pl.col("query_id").str.starts_with("ann")).equals(whole.rows)
    for damage in (b"", b"[" * 100_000, b'{"rows": [[1]], "costs": 3}'):
        for place in tmp_path.iterdir():
            place.write_bytes(damage)
        mended = collect(Keeps(), data, name="mine", k=3, folder=tmp_path)
        assert mended.rows.equals(done.rows)

    one, two = (
        lambda query: ["one"],
        lambda query: ["two"],
    )
    texts = [
        set(collect(each, data, name="mine", folder=tmp_path).rows["text"])
        for each in (one, two, one)
    ]
    assert texts == [{"one"}, {"two"}, {"one"}], "code that changed is run again"

    class Gives:
        def __init__(self, text: Any) -> None:
            self.text = text

        def search(self, query: str) -> list[str]:
            return [str(self.text)]

    stated = [Gives("a"), Gives("b"), partial(lambda text, query: [text], "c"), Gives(object())]
    for system in stated:
        collect(system, data, name="mine", folder=tmp_path / "state")
    assert len([*(tmp_path / "state").iterdir()]) == 2 * 3, (
        "a state that cannot be read is not recognised"
    )

    def giving(text: Any) -> Any:
        def search(query: str) -> list[str]:
            return [str(text)]

        return search

    for held in ("a", "b", object()):
        collect(giving(held), data, name="mine", folder=tmp_path / "closures")
    assert len([*(tmp_path / "closures").iterdir()]) == 2 * 2, "what a function holds counts too"


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"bytes": 12, "tokens_read": 3}, [12, 3, None]),
        ({"bytes": 2**63}, [None] * 3),
        ({"bytes": "many"}, [None] * 3),
    ],
)
def test_what_a_memory_says_of_its_use(data: Dataset, usage: Any, read: list[int | None]) -> None:
    class Counting(Keeps):
        def usage(self, scope: str) -> Any:
            return usage

    done = collect(Counting(), data.take(["ann"]), name="mine")
    assert list(done.costs.select(USAGE_COLUMNS).row(0)) == read
    assert (done.failed, done.problems.height) == ([], read[0] is None)
