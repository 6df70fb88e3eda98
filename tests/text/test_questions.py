"""Forms are read from the text of a question alone."""

from __future__ import annotations

import polars as pl
import pytest

from memlab.text.questions import FORMS, aggregation, question_form

EXAMPLES = [
    ("How many different doctors did I visit?", "how many", True),
    ("How many days passed between the race and the party?", "how long", False),
    ("What is the order of the three trips, from earliest to latest?", "list", True),
    ("What kind of books does Nate enjoy?", "list", True),
    ("Which  classical musicians does Melanie enjoy?", "list", True),
    ("Which popular composer's tunes does Tim play?", "which", False),
    ("You gave me a list of 100 jobs. Can you remind me what was the 7th job in that list?", "what", False),
    ("Which seeds were started first, the tomatoes or the marigolds?", "which", False),
    ("WHEN did she move?", "when", False),
    ("I mentioned an event two weeks ago. Where was that event held at?", "where", False),
    ("For the ratio, did I switch to more water, or less?", "yes-no", False),
    ("Who gave me the mixer?", "who", False),
    ("Why did he quit?", "why", False),
    ("Tell me more.", "other", False),
    ("In what order did I finish the desk, the shelf and the bed?", "what", True),
    ("Sum up how my training went.", "other", True),
    ("How did the novel develop?", "how", True),
    ("", "other", False),
]


@pytest.mark.parametrize(("text", "form", "counted"), EXAMPLES)
def test_forms(text: str, form: str, counted: bool) -> None:
    row = pl.DataFrame({"text": [text]}).select(question_form(), aggregation()).row(0)
    assert row == (form, counted)
    assert {form for _, form, _ in EXAMPLES} == set(FORMS)
