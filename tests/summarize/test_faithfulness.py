from __future__ import annotations

import polars as pl
import pytest

import memlab
from memlab import datasets
from memlab.errors import DataError
from memlab.records import Summary, frame
from memlab.summarize import share, summarize, unsupported


def _found(text: str, *sources: str) -> list[tuple[str, str]]:
    return unsupported([text], [sources]).select("kind", "found").rows()


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("It is on 3 May.", "See you on May 3rd!"),
        ("It is on May 3, 2023.", "2023-05-03 works."),
        ("It was in May.", "It was on 3 May 2023."),
        ("It was in 2023.", "It was on 3 May 2023."),
        ("It was on 3 May 2023.", "It was on the 3rd of May."),
        ("She has 2 cats.", "She has two cats."),
        ("She paid 1250 dollars.", "She paid $1,250.00."),
        ("She paid twenty-five euros.", "25 €"),
        ("It cost 250 thousand.", "It cost two hundred and fifty thousand."),
        ("It cost 2.5 million.", "It cost 2,500,000."),
        ("She met Mel in OSLO.", "Melanie was in Oslo."),
        ("She met Joe's dog.", "Joe has a dog"),
        ("One of them left at first.", "They left."),
        ("Discussed the plan.", "We talked about it."),
        ("She met on Friday.", "See you Fri!"),
        ("He lives at 7:30.", "7:30 pm"),
    ],
)
def test_what_a_source_holds(text, source):
    assert _found(text, source) == []


@pytest.mark.parametrize(
    ("text", "source", "kind", "found"),
    [
        ("It is on 4 May.", "It is on 3 May.", "date", "4 May"),
        ("It is on 3 May 2022.", "It is on 3 May 2023.", "date", "3 May 2022"),
        ("It is in June.", "It is on 3 May.", "date", "June"),
        ("It is on Friday.", "It is on Monday.", "date", "Friday"),
        ("She has three cats.", "She has 2 cats.", "number", "three"),
        ("She paid $1,350.", "She paid $1,250.", "number", "1,350"),
        ("It weighs 2.5 kg.", "It weighs 25 kg.", "number", "2.5"),
        ("Then she met Joe.", "She met Tom.", "name", "Joe"),
        ("She flew to New York.", "She flew to New Delhi.", "name", "York"),
    ],
)
def test_what_no_source_holds(text, source, kind, found):
    assert _found(text, source) == [(kind, found)]


def test_names_that_open_a_sentence():
    rows = unsupported(["Joe left.", "Then Joe came.", "Painting helps."], [["x"], ["Joe"], ["x"]])
    assert rows.rows() == [(0, "name", "Joe")]


def test_any_of_the_sources_will_do():
    assert _found("Joe has 2 cats.", "Joe is here.", "two cats") == []
    assert _found("He has 2 cats.") == [("number", "2")]
    assert unsupported([], []).is_empty()
    with pytest.raises(DataError, match="1 texts and 0 lists"):
        unsupported(["a"], [])


def test_shares_by_service():
    turns = memlab.sample(["owen"], turns=60).turns
    good = summarize(turns).rows
    row = good.row(0, named=True)
    bad = row | {
        "service": "local",
        "sentences": ["There were 77,123 elephants.", "Hello there."],
        "evidence": row["evidence"][:2],
    }
    both = good.vstack(frame(Summary, [Summary(**bad)]))
    assert share(both, turns).select("service", "n_unsupported", "share").rows() == [
        ("extractive", 0, 0.0),
        ("local", 1, 0.5),
    ]
    with pytest.raises(DataError, match="not among the turns"):
        share(good, turns.head(1))


@pytest.mark.shared_data
def test_extractive_summaries_of_real_talk_are_faithful(locomo_path):
    data = datasets.load(locomo_path)
    turns = data.turns.filter(pl.col("session_id").is_in(data.sessions["session_id"].head(12).implode()))
    made = summarize(turns)
    assert made.rows.height == 12
    assert share(made.rows, turns)["share"].to_list() == [0.0]
