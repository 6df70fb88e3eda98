"""Forms and parts are read from the text of a question alone."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab import datasets
from memlab.text.parts import question_parts
from memlab.text.questions import FORMS, OF_ASSISTANT, ORDER, SUMMARY, aggregation, question_form

EXAMPLES = [
    ("How many different doctors did I visit?", "how many", True),
    ("I was wondering, how many eggs did you say?", "how many", True),
    ("How many days passed between the race and the party?", "how long", False),
    ("How many weeks ago did I meet Emma?", "how long", False),
    ("How many hours have I spent on games in total?", "how many", True),
    ("What is the order of the three trips, from earliest to latest?", "list", True),
    ("What type of camera lens did I buy?", "what", False),
    ("What kind of books does Nate enjoy?", "list", True),
    ("What type of movies does Nate enjoy watching the most?", "what", False),
    ("Which  classical musicians does Melanie enjoy?", "list", True),
    ("Which popular composer's tunes does Tim play?", "which", False),
    ("What do both Joanna and Nate appreciate?", "what", True),
    ("How much time do I give to coding each day?", "how long", False),
    ("You gave me a list of 100 jobs. Can you remind me what was the 7th job in that list?", "what", False),
    ("Which seeds were started first, the tomatoes or the marigolds?", "which", False),
    ("What bus did I take?", "what", False),
    ("WHEN did she move?", "when", False),
    ("In what year did he graduate?", "when", False),
    ("I mentioned an event two weeks ago. Where was that event held at?", "where", False),
    ("For the ratio, did I switch to more water, or less?", "yes-no", False),
    ("My kitchen is a mess. Any tips for keeping it clean?", "advice", False),
    ("Can you remind me what the rotation was on a Sunday?", "what", False),
    ("Who gave me the mixer?", "who", False),
    ("Why did he quit?", "why", False),
    ("Tell me more.", "other", False),
    ("In what order did I finish the desk, the shelf and the bed?", "what", True),
    ("Sum up how my training went.", "how", True),
    ("", "other", False),
]


@pytest.mark.parametrize(("text", "form", "counted"), EXAMPLES)
def test_forms(text, form, counted):
    row = pl.DataFrame({"text": [text]}).select(question_form(), aggregation()).row(0)
    assert row == (form, counted)
    assert {form for _, form, _ in EXAMPLES} == set(FORMS)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (ORDER, "In what order did I tell you of my four aches?", True),
        (ORDER, "Which came first, which next: the fall, the cough?", True),
        (ORDER, "What did I order?", False),
        (SUMMARY, "Sum up how the move went.", True),
        (SUMMARY, "How did the novel develop?", True),
        (SUMMARY, "What was the sum in the end?", False),
        (OF_ASSISTANT, "Which hotel did you recommend?", True),
        (OF_ASSISTANT, "What was the third title on the list you gave me?", True),
        (OF_ASSISTANT, "Can you tell me where I live?", False),
        (OF_ASSISTANT, "Which hotel did I book?", False),
    ],
)
def test_what_a_question_is_after(pattern, text, expected):
    assert pl.Series([text]).str.contains(pattern).item() is expected


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(max_size=80), min_size=1, max_size=30))
def test_any_text_has_one_form(texts):
    table = pl.DataFrame({"asked": texts}).select(question_form("asked"), aggregation(pl.col("asked")))
    assert set(table["form"]) <= set(FORMS)
    assert table["aggregation"].null_count() == 0


def split(text: str) -> list[str]:
    return question_parts(pl.DataFrame({"query_id": ["q"], "text": [text]}))["text"].to_list()


PARTS = [
    ("What do Ann and Bob both like?", "What do {} like", "Ann; Bob"),
    ("What movies have both Joanna and Nate seen?", "What movies have {} seen", "Joanna; Nate"),
    ("Who is Tim and John's favorite player?", "Who is {} favorite player", "Tim's; John's"),
    ("What will Al do with Scout, Toby, and Buddy?", "What will Al do with {}", "Scout; Toby; Buddy"),
    ("How much did I spend on my coworker and brother?", "How much did I spend on my {}", "coworker; brother"),
    ("How many kitchen items did I replace or fix?", "How many kitchen items did I {}", "replace; fix"),
    ("What did Mel and her kids make with clay?", "What did {} make with clay", "Mel; her kids"),
    ("What if I sold the old ring and the clay vase?", "What if I sold the {}", "old ring; clay vase"),
    ("How much more did I spend in Hawaii compared to Tokyo?", "How much more did I spend in {}", "Hawaii; Tokyo"),
    ("Which did I wash first, the bike or the car?", "Which did I wash first {}", "the bike; the car"),
    ("What passed between my trip and the show?", "What passed between {}", "my trip; the show"),
    ("Which did I see first, 'The Crown' or 'Top Gun'?", "Which did I see first, {}", "'The Crown'; 'Top Gun'"),
    ("How often did I play before? How often do I play now?", "How often {}", "did I play before; do I play now"),
    ("How many tops have I bought from H&M so far?", "", ""),
    ('What does "Salt and Pepper" mean to Tim?', "", ""),
    ("Where did I go and why?", "", ""),
    ("", "", ""),
    ("and, or", "", ""),
    ("?", "", ""),
]


@pytest.mark.parametrize(("text", "pattern", "members"), PARTS)
def test_parts(text: str, pattern: str, members: str) -> None:
    assert split(text) == [pattern.format(member) for member in members.split("; ") if member]


@given(
    st.lists(st.text(max_size=60) | st.sampled_from(["Ann and Bob", "the a, the b, and", "'x' and 'y'?"]), max_size=5)
)
def test_parts_are_texts_of_their_own(texts: list[str]) -> None:
    queries = pl.DataFrame({"query_id": [str(i) for i in range(len(texts))], "text": pl.Series(texts, dtype=pl.String)})
    parts = question_parts(queries)
    assert not parts.is_duplicated().any()
    assert not parts.join(queries, on=["query_id", "text"], how="semi").height
    assert not parts.filter(pl.col("text").str.strip_chars() == "").height
    for row in queries.iter_slices(1):
        assert question_parts(row).equals(parts.filter(pl.col("query_id") == row["query_id"][0]))


@pytest.mark.shared_data
def test_forms_of_real_questions(locomo_path, longmemeval_path):
    for path in (locomo_path, longmemeval_path):
        forms = datasets.load(path).questions.select(question_form())["form"]
        assert (forms == "other").mean() < 0.05
        assert forms.n_unique() >= 9
