"""A person's profile: the sections, their priority, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.knowledge import resolve, score
from memlab.knowledge.profile import Profile, people, profile, standing
from memlab.knowledge.search import search_facts
from memlab.records import Fact, frame

DAY0 = datetime(2025, 1, 1, tzinfo=UTC)
NOW = datetime(2025, 6, 1, tzinfo=UTC)
STORY = [
    (0, "Ann", "lives in", "Oslo"),
    (1, "Ann", "went to", "a concert"),
    (2, "Ann", "enjoys", "chess"),
    (3, "Ann", "is planning", "a trip"),
    (4, "Ann", "saw", "a comet"),
    (9, "Ann", "saw", "the comet"),
    (60, "Ann", "lives in", "Bergen"),
    (140, "Ann", "bought", "a kayak"),
    (145, "Ann", "enjoys", "sailing"),
    (146, "Ann's brother", "works at", "Acme"),
    (147, "Ann Lee", "is", "a nurse"),
    (148, "Bo", "met", "Ann at the kayak shop"),
    (149, "Bo", "plays", "chess"),
    (200, "Ann", "moved to", "the future"),
]


def scored(*rows: tuple[int, str, str, str], scope: str = "u") -> pl.DataFrame:
    facts = [
        Fact(f"f{i}", scope, *row, "stated", [f"u/s/{i}"], DAY0 + timedelta(days=day))
        for i, (day, *row) in enumerate(rows)
    ]
    return score(resolve(frame(Fact, facts)).facts, now=NOW)


def sections(made: Profile) -> dict[str, list[str]]:
    return dict(made.frame.group_by("section", maintain_order=True).agg("statement").iter_rows())


def test_sections() -> None:
    assert sections(profile(scored(*STORY), person="ann", now=NOW)) == {
        # Who she is; heard twice; a state and old. What was superseded is gone.
        "stable": ["Ann lives in Bergen", "Ann saw a comet", "Ann enjoys chess"],
        "recent": ["Ann's brother works at Acme", "Ann enjoys sailing", "Ann bought a kayak"],
    }


def test_search_results_come_last_and_only_about_the_person() -> None:
    facts = scored(*STORY)
    question = pl.DataFrame({"scope": ["u"], "text": ["Who plays chess or bought a kayak at the shop?"]})
    found = search_facts(question, facts, k=20)
    made = profile(facts, person="Ann", now=NOW, found=found)
    assert "Bo plays chess" not in made.frame["statement"].to_list()
    assert sections(made)["found"][0] == "Bo met Ann at the kayak shop"
    assert not made.frame["fact_id"].is_duplicated().any()
    assert made.frame.filter(fact_id="f7")["section"].to_list() == ["recent"]


def test_no_statement_twice() -> None:
    facts = scored((0, "Ann", "enjoys", "chess"), (1, "Ann", "likes", "tea"))
    twin = facts.filter(fact_id="f0").with_columns(fact_id=pl.lit("f9"))
    made = profile(pl.concat([facts, twin]), person="Ann", now=NOW)
    assert made.frame["statement"].to_list().count("Ann enjoys chess") == 1


def test_a_full_section_does_not_spill_into_the_next() -> None:
    rows = [(i, "Ann", "enjoys", f"game {i}") for i in range(5)]
    facts = scored(*rows)
    found = search_facts(pl.DataFrame({"scope": ["u"], "text": ["Ann"]}), facts, k=9)
    made = profile(facts, person="Ann", now=NOW, found=found, most=2)
    assert made.frame["section"].to_list() == ["stable", "stable"]


def test_evidence_since_and_how_often() -> None:
    row = profile(scored(*STORY), person="Ann", now=NOW).frame.row(1, named=True)
    assert (row["evidence"], row["n_heard"]) == (["u/s/4", "u/s/5"], 2)
    assert row["since"] == DAY0 + timedelta(days=4)
    assert row["last_access"] == DAY0 + timedelta(days=9)
    assert 0 < row["confidence"] <= 1


def test_who_somebody_is_comes_before_what_they_like() -> None:
    told = [
        ("likes", "the spa"), ("has", "a degree in law"), ("is married to", "Bo"), ("has a sister named", "Ida"),
        ("works at", "Acme"), ("lives in", "Oslo"), ("shaves", "daily"), ("is", "a nurse"),
    ]  # fmt: skip
    facts = scored(*((i, "Ann", predicate, obj) for i, (predicate, obj) in enumerate(told)))
    objects = profile(facts, person="Ann", now=NOW).frame["statement"].str.split(" ").list.last().to_list()
    assert objects == ["Oslo", "Acme", "Ida", "Bo", "law", "nurse", "daily", "spa"]


def test_whose_boss_somebody_is_tells_of_work() -> None:
    work = standing("works at", "Acme")
    assert standing("is", "Joris", "Nora's boss") == work < standing("is", "Joris", "Nora's cat")
    assert standing("studies", "law", "Nora's boss") > work


def test_markdown() -> None:
    text = profile(scored(*STORY), person="Ann", now=NOW).to_markdown()
    assert text.startswith("# Ann on 1 June 2025\n\n## Stable\n\n- Ann lives in Bergen (")
    assert "since 5 Jan 2025, heard 2 times; u/s/4, u/s/5)" in text
    assert "## Found" not in text
    before = profile(scored((9, "Ann", "saw", "a comet")), person="Ann", now=DAY0)
    assert before.to_markdown() == "# Ann on 1 January 2025\n\nNothing is known.\n"


def test_names() -> None:
    facts = scored((0, "Ann Lee", "enjoys", "chess"), (1, "Bo Lee", "enjoys", "tea"), (2, "user", "enjoys", "rain"))
    assert profile(facts, person="Ann", now=NOW).person == "Ann Lee"
    with pytest.raises(DataError, match="'Lee' may be Ann Lee, Bo Lee; give the whole name"):
        profile(facts, person="Lee", now=NOW)
    with pytest.raises(DataError, match="no fact is about 'Cy'; there are facts about Ann Lee, Bo Lee, user"):
        profile(facts, person="Cy", now=NOW)
    with pytest.raises(DataError, match="no fact is about ''"):
        profile(facts, person="", now=NOW)
    assert people(facts, 1) == ["Ann Lee"]


def test_what_is_refused() -> None:
    facts = scored(*STORY)
    with pytest.raises(DataError, match="no column 'confidence'"):
        profile(facts.drop("confidence"), person="Ann", now=NOW)
    other = facts.with_columns(scope=pl.lit("v"), fact_id="g" + pl.col("fact_id"))
    with pytest.raises(DataError, match="facts of 2 scopes"):
        profile(pl.concat([facts, other]), person="Ann", now=NOW)
