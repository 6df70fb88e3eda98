"""Words of others in a message: what is found of them, and what is the writer's own."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any

import pytest

from memlab.text import quotations
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
        (
            'Mum says: "I am off and you mind the hens." So we mind the hens',
            ["I am off and you mind the hens."],
        ),
        ("Bo wrote: „I sail.“ Well, I row", ["I sail."]),
        ('Mum says: "I am off."', ['"I am off."']),
        ("> I own a boat.\r\nSays who?\r\n[10:02] Mel: a boat\r\n", ["I own a boat.", "a boat"]),
        ("> I sail\nBo wrote: I sail and I row", ["I sail", "I sail and I row"]),
        ("Bo: I sail\nMel: so do I\nBo: I sail", ["I sail", "so do I"]),
        ("Tell a story… Pirate: I write a poem.", ["I write a poem."]),
        ("Write on. A song! Pirate: I sleep.", []),
        ("Pirate: I sleep.\nWell?\nWrite a poem. Cook: I cook.", ["I cook."]),
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


def test_the_writers_own_words_stay_where_others_said_the_same() -> None:
    text = "> I sail\nI sail too, on ice\n> I sail"
    assert remove_quotations(text, find_quotations(text)) == "I sail too, on ice"
    assert remove_quotations("well: I sail, I sail", ["I sail"]) == "well:  ,"


class Counted:
    """A form that counts how many characters it was let look at."""

    def __init__(self, form: re.Pattern[str], counts: list[int]) -> None:
        self.form, self.counts = form, counts

    def __getattr__(self, name: str) -> Any:
        def look(text: str, *span: int) -> Any:
            start, end = [*span, *(0, len(text))[len(span) :]]
            self.counts.append(end - start)
            return getattr(self.form, name)(text, *span)

        return look


LONG = {
    "labelled": lambda n: f"{('Mel', 'Bo')[n % 2]}: I row boat number {n}",
    "told": lambda n: f"Mel: write on, boat number {n}",
    "marked": lambda n: f"> boat number {n}",
    "said": lambda n: f'"I row boat number {n}"',
    "pasted": lambda n: f"[10:02] Mel: boat number {n}",
}


@pytest.mark.parametrize("kind", LONG)
def test_what_is_looked_at_grows_as_the_text_does(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    seen: list[int] = []
    for name, form in list(vars(quotations).items()):
        if isinstance(form, re.Pattern):
            monkeypatch.setattr(quotations, name, Counted(form, seen))
    monkeypatch.setattr(quotations, "_FORMS", [Counted(form, seen) for form in quotations._FORMS])
    calls: list[str] = []

    def count(frame: FrameType, event: str, given: Any) -> None:
        calls.append(event)

    work = []
    for size in (100, 400):
        text = "\n".join(map(LONG[kind], range(size)))
        seen.clear()
        calls.clear()
        sys.setprofile(count)
        try:
            quoted = find_quotations(text, speaker="Ann")
            remove_quotations(text, quoted)
        finally:
            sys.setprofile(None)
        assert len(quoted) == (size if kind != "told" else 0)
        work.append((sum(seen) / len(text), len(calls) / size))
    (looks, events), (more_looks, more_events) = work
    assert more_looks < 1.5 * looks
    assert more_events < 1.5 * events
