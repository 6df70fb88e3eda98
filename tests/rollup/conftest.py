"""Conversations with dates, a summariser that counts, and the laws that every tree keeps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import polars as pl
import pytest

from memlab.records import Turn, frame
from memlab.rollup.summarisers import WRITTEN


class Counting:
    """Writes the first sentence of each group, with all its turns, and remembers what it was asked for."""

    recipe = "first sentence"

    def __init__(self) -> None:
        self.calls: list[dict[str, str]] = []

    @property
    def groups(self) -> list[str]:
        return [kind for call in self.calls for kind in call.values()]

    def write(self, pool: pl.DataFrame) -> pl.DataFrame:
        self.calls.append(dict(pool.select("group", "kind").unique(maintain_order=True).iter_rows()))
        first = pool.group_by("group", maintain_order=True).agg(
            sentences=pl.col("text").head(1), evidence=pl.col("evidence").head(1), service=pl.lit("counting")
        )
        return first.select(pl.col(name).cast(kind) for name, kind in WRITTEN.items())


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture(scope="session")
def talk() -> Callable[..., pl.DataFrame]:
    """Write sessions, ``(name, ISO date or None, lines)``, as turns of one scope; a line is ``Speaker: text``."""

    def make(*sessions: tuple[str, str | None, list[str]], scope: str = "u") -> pl.DataFrame:
        rows = []
        for name, day, lines in sessions:
            when = None if day is None else datetime.fromisoformat(day).replace(tzinfo=UTC)
            for n, line in enumerate(lines, 1):
                who, text = line.split(": ", 1)
                rows.append(Turn(f"{scope}/{name}/{n}", scope, f"{scope}/{name}", n, who, "user", text, None, when))
        return frame(Turn, rows)

    return make


def check(nodes: pl.DataFrame, turns: pl.DataFrame) -> None:
    """Check what holds for every tree: a forest over all leaves, nested spans, turns that add up."""
    rows = {row["node_id"]: row for row in nodes.iter_rows(named=True)}
    assert len(rows) == nodes.height, "ids are unique"
    place = {turn: i for i, turn in enumerate(turns["turn_id"])}
    scope_of = dict(turns.select("turn_id", "scope").iter_rows())
    leaves = [row for row in rows.values() if row["level"] == 0]
    assert sorted(turn for row in leaves for turn in row["turns"]) == sorted(turns["turn_id"]), "each turn in one leaf"
    for row in rows.values():
        assert row["turns"] == sorted(set(row["turns"]), key=place.__getitem__), "turns are in order, each once"
        assert {scope_of[turn] for turn in row["turns"]} == {row["scope"]}, "scopes never mix"
        assert len(row["sentences"]) == len(row["evidence"])
        assert {turn for held in row["evidence"] for turn in held} <= set(row["turns"]), "sentences stand on its turns"
        assert (row["level"] == 0) == (not row["children"])
        if row["parent"] is not None:
            above = rows[row["parent"]]
            assert above["level"] == row["level"] + 1, "so no path comes back to itself"
            assert row["node_id"] in above["children"]
        for child in (rows[name] for name in row["children"]):
            assert set(child["turns"]) <= set(row["turns"])
            if child["start"] is not None:
                assert row["start"] <= child["start"] <= child["end"] <= row["end"]
        if row["children"]:
            assert set(row["turns"]) == {turn for name in row["children"] for turn in rows[name]["turns"]}
            assert any(rows[name]["parent"] == row["node_id"] for name in row["children"]), "nobody is without a child"


@pytest.fixture(scope="session")
def laws() -> Callable[[pl.DataFrame, pl.DataFrame], None]:
    return check
