"""Forms are read from the text of a question alone; there is one answer to whether it is an aggregation."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.language.questions import FORMS, OF_ASSISTANT, ORDER, SUMMARY, aggregation, question_form

EXAMPLES = [
    ("How many different doctors did I visit?", "how many", True),
    ("I was wondering, how many eggs did you say?", "how many", True),
    ("What is the total number of views?", "how many", True),
    ("How much did the chair cost?", "how many", True),
    ("How many days passed between the race and the party?", "how long", False),
    ("How many weeks ago did I meet Emma?", "how long", False),
    ("How many hours have I spent on games in total?", "how many", True),
    ("How long did the repair take?", "how long", False),
    ("What are all the instruments that Melanie plays?", "list", True),
    ("What activities does she do with her family?", "list", True),
    ("Which cities has Jon visited?", "list", True),
    ("What types of pets does she have?", "list", True),
    ("What is the order of the three trips, from earliest to latest?", "list", True),
    ("List the books I read.", "list", True),
    ("What type of camera lens did I buy?", "what", False),
    ("What kind of books does Nate enjoy?", "list", True),
    ("Which sort of places have we seen?", "list", True),
    ("What type of movies does Nate enjoy watching the most?", "what", False),
    ("Which  classical musicians does Melanie enjoy?", "list", True),
    ("Which popular composer's tunes does Tim play?", "which", False),
    ("What do both Joanna and Nate appreciate?", "what", True),
    ("What are the two hobbies that led me here?", "list", True),
    ("What is the name of my cat?", "what", False),
    ("How much time do I give to coding each day?", "how long", False),
    ("You gave me a list of 100 jobs. Can you remind me what was the 7th job in that list?", "what", False),
    ("Which seeds were started first, the tomatoes or the marigolds?", "which", False),
    ("What class did I take?", "what", False),
    ("What bus did I take?", "what", False),
    ("What is my job?", "what", False),
    ("WHEN did she move?", "when", False),
    ("In what year did he graduate?", "when", False),
    ("What time did I go to bed?", "when", False),
    ("Who gave me the mixer?", "who", False),
    ("With whom did I travel?", "who", False),
    ("I mentioned an event two weeks ago. Where was that event held at?", "where", False),
    ("Why did he quit?", "why", False),
    ("Which vehicle did I wash first, the bike or the car?", "which", False),
    ("In which country was she born?", "which", False),
    ("How did it go?", "how", False),
    ("Did I finish the book?", "yes-no", False),
    ("For the ratio, did I switch to more water, or less?", "yes-no", False),
    ("Would she enjoy a concert?", "yes-no", False),
    ("Can you suggest some activities for the evening?", "advice", False),
    ("My kitchen is a mess. Any tips for keeping it clean?", "advice", False),
    ("Can you remind me what the rotation was on a Sunday?", "what", False),
    ("Tell me more.", "other", False),
    ("In what order did I finish the desk, the shelf and the bed?", "what", True),
    ("Sum up how my training went.", "how", True),
    ("", "other", False),
]


@pytest.mark.parametrize(("text", "form", "counted"), EXAMPLES)
def test_forms(text, form, counted):
    row = pl.DataFrame({"text": [text]}).select(question_form(), aggregation()).row(0)
    assert row == (form, counted)


def test_forms_are_what_is_given():
    texts = [text for text, _, _ in EXAMPLES]
    assert set(pl.DataFrame({"text": texts}).select(question_form())["form"]) == set(FORMS)


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


@pytest.mark.shared_data
def test_forms_of_real_questions(locomo_path, longmemeval_path):
    datasets = pytest.importorskip("memlab.datasets")
    for path in (locomo_path, longmemeval_path):
        forms = datasets.load(path).questions.select(question_form())["form"]
        assert (forms == "other").mean() < 0.05
        assert forms.n_unique() >= 9
