"""Names and dates: found by capitals, typed by what stands around them, joined within a session."""

from __future__ import annotations

import polars as pl
import pytest

from memlab.knowledge.extraction import extract
from memlab.language import gazetteers
from memlab.records import Turn, frame


def _entities(*texts: str, speaker: str = "Melanie", sessions: int = 1) -> dict[str, tuple[str, list[str]]]:
    rows = [
        Turn(f"u/s{n % sessions}/{n}", "u", f"u/s{n % sessions}", n, speaker, "user", text)
        for n, text in enumerate(texts, 1)
    ]
    found = extract(frame(Turn, rows).sort("session_id", maintain_order=True)).entities
    return {name: (kind, evidence) for name, kind, evidence in found.select("name", "type", "evidence").iter_rows()}


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("We moved to Lisbon.", "Lisbon", "place"),
        ("I work at Veltrix now.", "Veltrix", "organization"),
        ("She studies at Marsh University.", "Marsh University", "organization"),
        ("My sister Ines called.", "Ines", "person"),
        ("I saw Dr. Haddad about it.", "Dr. Haddad", "person"),
        ('I loved "The Silent Tide" as a kid.', "The Silent Tide", "work"),
        ("We went to the Harbour Festival.", "Harbour Festival", "event"),
        ("It is on 3 May 2026, I think.", "3 May 2026", "date"),
        ("It is due on March 14th.", "March 14th", "date"),
        ("I bought a Yamaha last week.", "Yamaha", "product"),
        ("We have a dog named Biscuit.", "Biscuit", "other"),
        ("It was written by Mira van Santen.", "Mira van Santen", "person"),
    ],
)
def test_names_and_their_types(text: str, name: str, kind: str) -> None:
    assert _entities(text)[name][0] == kind


@pytest.mark.parametrize(
    "text",
    [
        "Wow, that is great!",
        "Absolutely! OK, see you on Monday.",
        "I speak Spanish and watch TV.",
        "Great news. Coffee is ready. Thanks!",
        "LOOK AT THIS PLACE NOW",
        "Two spoons of Tbsp Honey, then stir.",
        "We have a poster, Wanted, on the wall.",
        "So I’ve said and I've done it on Thursdays.",
        "my hands are FREEZING and I LOVE it",
        "My favourite is Chicken Pot Pie.",
        "I asked Ms. and she knew.",
    ],
)
def test_words_with_capitals_that_are_no_names(text: str) -> None:
    assert set(_entities(text)) == {"Melanie"}


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("It was Wout.", "Wout", "person"),
        ("handed over to Birgitta, again", "Birgitta", "person"),
        ("how is Stockholm?", "Stockholm", "place"),
        ("the flat is in Motala", "Motala", "place"),
        ("we might move to Bruges btw", "Bruges", "place"),
        ("my sister Paris rang", "Paris", "person"),
        ("I just joined Aragorn there", "Aragorn", ""),
    ],
)
def test_names_that_lists_know(text: str, name: str, kind: str) -> None:
    pytest.importorskip("faker", reason="the extra memlab[gazetteers] is not installed")
    assert _entities(text)[name][0] == kind


def test_without_lists_names_are_typed_by_context_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gazetteers, "types", lambda name: frozenset())
    assert _entities("how is Stockholm?")["Stockholm"][0] == ""
    assert _entities("I live in Stockholm")["Stockholm"][0] == "place"


def test_a_word_that_also_stands_in_lower_case_is_no_name() -> None:
    assert "Valorant" not in _entities("I like Valorant.", "valorant is fun, valorant is art.")
    assert "Valorant" in _entities("I like Valorant.", "it is fun.")


def test_a_first_word_is_a_name_where_it_is_one_elsewhere() -> None:
    assert _entities("Ines is here.", "I saw Ines there.")["Ines"][1] == ["u/s0/1", "u/s0/2"]
    assert "Honestly" not in _entities("Honestly nobody came.")


def test_forms_of_a_name_are_joined() -> None:
    found = _entities(
        "I saw Dr. Lee today.", "Yes, and Lee says hello.", "I told Anna Keller and Anna Kelly.", "Hi Anna."
    )
    assert found["Dr. Lee"][1] == ["u/s0/1", "u/s0/2"]
    assert "Lee" not in found
    # Anna may be either.
    assert found["Anna"][1] == ["u/s0/4"]


def test_a_short_form_of_who_speaks() -> None:
    found = _entities("And then Mel fell asleep.")
    assert found == {"Melanie": ("person", ["u/s0/1"])}


def test_mentions_elsewhere_tell_the_type() -> None:
    found = _entities("I like Porto a lot.", "We moved to Porto.", sessions=2)
    assert found["Porto"][0] == "place"


def test_context_and_ids() -> None:
    turn = Turn("u/s/1", "u", "u/s", 1, "Melanie", "user", "Hello. I flew to Graz. And Graz is fine.")
    found = extract(frame(Turn, [turn])).entities
    row = found.filter(pl.col("name") == "Graz").row(0, named=True)
    assert (row["context"], row["evidence"], row["session_id"]) == ("I flew to Graz.", ["u/s/1"], "u/s")
    assert found["entity_id"].to_list() == ["u/s/e1", "u/s/e2"]


@pytest.mark.parametrize("name", ["New Harbour City", "Fox Hollow", "Cliffs of Moher"])
def test_common_words_beside_a_name_are_part_of_it(name: str) -> None:
    assert name in _entities(f"We walked to the {name} today.", "A new city, a fox, a hollow tree, cliffs.")


def test_a_name_that_begins_like_a_preposition_stays_whole() -> None:
    turn = Turn("u/s/1", "u", "u/s", 1, "Melanie", "user", "I like Under Armour and I work at The Lantern.")
    assert extract(frame(Turn, [turn])).facts["object"].to_list() == ["Under Armour", "The Lantern"]
