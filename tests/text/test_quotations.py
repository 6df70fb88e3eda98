"""Words of others in a message: what is found of them, and what is the writer's own."""

from __future__ import annotations

import pytest

from memlab.text.quotations import find_quotations, remove_quotations


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("> I own a boat.\n> It leaks.\nSays who?", ["I own a boat.", "It leaks."]),
        ("Bo wrote: I keep bees. They sting me.\n\nI do not.", ["I keep bees. They sting me."]),
        ("My sister: I hate olives", ["I hate olives"]),
        ("Please translate to German: My cat is ill.", ["My cat is ill."]),
        ("Lyrics: I was born in a boat", ["I was born in a boat"]),
        ("A message from my boss:\nI need you on Monday.", ["I need you on Monday."]),
        ("Write a poem. Pirate: I sleep on deck.", ["I sleep on deck."]),
        ("Mel [10:02]: I play the cello.", ["I play the cello."]),
        ("[03.04.26, 10:02] Mel Moe: a boat\n[10:03 pm] Bo: mine", ["a boat", "mine"]),
        ("14/01/2026, 09:01 - Mel: I sail", ["I sail"]),
        ("Bo: I sail\nMel: so do I", ["I sail", "so do I"]),
        ("she said “I live in Rome now” and left", ["I live in Rome now"]),
        ('he wrote "my dog bites" on it', ["my dog bites"]),
    ],
)
def test_words_of_others_are_found(text: str, quoted: list[str]) -> None:
    assert find_quotations(text, speaker="Ann") == quoted
    own = remove_quotations(text, quoted)
    assert not any(part in own for part in quoted)


@pytest.mark.parametrize(
    "text",
    [
        "Update: I moved to Rome.",
        "Long story short: I passed!",
        "I told Bo: I am tired.",
        "The train is at 8:30\nI take it.",
        "The physio said so on Monday: no running for weeks. So I rest.",
        "Breakfast: bread and my own jam.",
        "Ann [10:02]: I sail.",
        'a box with "reasons" and I wrote "or".',
        "5 > 3, and I know it",
        "Ann: I sail",
    ],
)
def test_words_of_the_writer_are_none(text: str) -> None:
    assert find_quotations(text, speaker="Ann") == []


def test_a_name_before_a_colon_is_somebody_who_takes_part() -> None:
    assert find_quotations("Bo: I sail", speaker="Ann") == []
    assert find_quotations("Bo: I sail", speaker="Ann", people={"bo", "ann"}) == ["I sail"]
    assert find_quotations("Bo schrieb: I sail", language="de") == []
    assert find_quotations("> ich segle", language="de") == ["ich segle"]
