"""What a statement means after the ones before it, and what it ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from memlab.embed import load
from memlab.knowledge import believed, resolve, score
from memlab.knowledge.extraction import by_rule
from memlab.knowledge.supersession import Resolved
from memlab.records import Fact, Turn, frame

START = datetime(2026, 1, 1, tzinfo=UTC)


def _after(*texts: str, speaker: str = "Mel", days: int = 7) -> Resolved:
    """Messages a week apart, each a session of its own."""
    turns = [
        Turn(f"u/{n}", "u", f"u/s{n}", 1, speaker, "user", text, None, START + timedelta(days=days * n))
        for n, text in enumerate(texts)
    ]
    return resolve(by_rule(frame(Turn, turns)).facts)


def _held(resolved: Resolved) -> set[str]:
    return {" | ".join(row) for row in believed(resolved).select("subject", "predicate", "object").iter_rows()}


@pytest.mark.parametrize(
    ("texts", "held"),
    [
        (["my boss is Ingrid", "it's Henrik now"], {"Mel's boss | is | Henrik"}),
        (["gym code is 4417", "they changed the gym lockers, it's 9021 now"], {"Mel's gym code | is | 9021"}),
        (["my pin is 4417", "no wait, it's 4471 not 4417"], {"Mel's pin | is | 4471"}),
        (["I have two cats", "we got a third cat", "lost one of the cats"], {"Mel | has | 2 cats"}),
        (["I live in Oslo", "i moved to Bergen"], {"Mel | lives in | Bergen"}),
        (["we might move to Bruges", "Bruges is off"], set()),
        (["I work at Acme", "I quit Acme and started at Globex"], {"Mel | works at | Globex"}),
        (["my pin is 4417", "it's not 4417 but 4471"], {"Mel's pin | is | 4471"}),
        (["I'm dating Kim", "me and kim are done"], {"Mel | broke up with | Kim"}),
        (["I work at Acme", "my boss is Ana", "I quit my job"], set()),
        (["I work at Acme", "I live in Oslo", "I've left Acme"], {"Mel | lives in | Oslo"}),
        (["I love steak", "I no longer eat meat"], {"Mel | does not eat | meat"}),
        (["I don't drink coffee", "I'm back on coffee"], {"Mel | drinks | coffee"}),
        (["I'm vegetarian", "I went vegan"], {"Mel | is | vegan"}),
        (["My sister is a nurse", "my sister is a teacher now"], {"Mel's sister | works as | a teacher"}),
    ],
)  # fmt: skip
def test_what_holds_after_what_was_said(texts: list[str], held: set[str]) -> None:
    assert _held(_after(*texts)) == held


def _told(*facts: tuple[str, str, str], encoder: str | None = None) -> Resolved:
    """Statements as a language model gives them, a week apart."""
    rows = [
        Fact(f"f{n}", "u", *fact, "stated", [f"u/{n}"], START + timedelta(days=7 * n), None, "Mel")
        for n, fact in enumerate(facts)
    ]
    return resolve(frame(Fact, rows), encoder=load(encoder) if encoder else None)


@pytest.mark.parametrize(
    ("facts", "held"),
    [
        # What ends the wrong value does not end the right one.
        (
            [("Mel", "earns", "not 15 but 16 an hour"), ("Mel", "no longer earns", "15 an hour")],
            {"Mel | earns | not 15 but 16 an hour"},
        ),
        (
            [("Mel's boss", "is", "not Ida but Eda"), ("Mel's boss", "is no longer", "Eda")],
            set(),
        ),
        # What describes is no value that another takes the place of.
        ([("Mel's team", "is", "really nice"), ("Mel's team", "is", "like a family")], {
            "Mel's team | is | really nice", "Mel's team | is | like a family",
        }),
        ([("Mel's cat", "is", "Pim"), ("Mel's cat", "is", "Kobe")], {"Mel's cat | is | Pim", "Mel's cat | is | Kobe"}),
        ([("Mel's boss", "is", "Pim"), ("Mel's boss", "is", "Kobe")], {"Mel's boss | is | Kobe"}),
        # A plan of any kind is dropped, comes about, or is told again.
        ([("Mel", "plans to let", "the field"), ("Mel", "no longer plans to let", "the field")], set()),
        ([("Mel", "plans to let", "the field"), *[("Mel", "keeps", f"cat {n}") for n in range(18)]], {
            f"Mel | keeps | cat {n}" for n in range(18)
        }),
    ],
)  # fmt: skip
def test_what_holds_of_statements_in_any_words(facts: list[tuple[str, str, str]], held: set[str]) -> None:
    assert _held(_told(*facts)) == held


def test_what_was_planned_and_is_done_is_no_repetition_of_the_plan() -> None:
    people = [("Mel", "Monzo"), ("Ida", "King's"), ("Bo", "Greggs")]
    verbs = ("plans to work at", "works at", "no longer plans to work at")
    facts = [(who, verb, where) for who, where in people for verb in verbs]
    assert _held(_told(*facts, encoder="minilm")) == {f"{who} | works at | {where}" for who, where in people}


def test_what_nothing_completes_is_left_out() -> None:
    assert _after("it's Henrik now", "so three", "Lisbon is off").facts.is_empty()


def test_a_new_city_erases_no_employer() -> None:
    assert _held(_after("I work at Acme", "we moved to Bergen")) == {"Mel | works at | Acme", "Mel | lives in | Bergen"}


def test_a_plan_expires_and_is_believed_until_then() -> None:
    resolved = _after("I hope to move to Bruges", "hello", "I like cheese", days=100)
    assert "expired" in resolved.facts["status"].to_list()
    assert _held(resolved) == {"Mel | likes | cheese"}
    assert believed(resolved, as_of=START + timedelta(days=100))["object"].to_list() == ["Bruges"]


def test_a_stay_expires() -> None:
    assert _held(_after("I'm staying with my parents", "hello", days=80)) == {"Mel | stays at | Mel's parents"}
    assert _held(_after("I'm staying with my parents", "I like cheese", days=100)) == {"Mel | likes | cheese"}


def test_the_general_before_the_particular_stands_in_tension() -> None:
    resolved = _after("I don't eat meat", "I love steak")
    assert resolved.facts["tension"].list.len().to_list() == [1, 1]
    scored = score(resolved.facts, now=START + timedelta(days=7))
    assert scored["confidence"].max() <= 0.5


def test_another_scope_completes_nothing() -> None:
    turns = [
        Turn("a/1", "a", "a/s", 1, "Mel", "user", "my boss is Ingrid", None, START),
        Turn("b/1", "b", "b/s", 1, "Mel", "user", "it's Henrik now", None, START + timedelta(days=1)),
    ]
    resolved = resolve(by_rule(frame(Turn, turns)).facts)
    assert resolved.facts["object"].to_list() == ["Ingrid"]


def test_what_tells_of_a_change_in_other_words_leaves_the_old_unsaid() -> None:
    resolved = _after("I have a dog named Bosse", "Bosse died on Sunday")
    assert believed(resolved).filter(pl.col("object").str.contains("Bosse")).height <= 1
    assert _held(_after("I play the cello", "sadly the cello got lost on the train")) == set()
    assert _held(_after("I play the cello", "he lost his cello")) == {"Mel | plays | the cello"}
