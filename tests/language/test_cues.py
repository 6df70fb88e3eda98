from __future__ import annotations

import polars as pl
import pytest

from memlab.language import cues


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("DECISION", "I’ll go with the blue one.", True),
        ("DECISION", "We finally picked a date.", True),
        ("DECISION", "Let's see.", False),
        ("UNDECIDED", "I haven't decided yet.", True),
        ("NEED", "I need to call the bank.", True),
        ("REMINDER", "Please don't forget to lock up.", True),
        ("WILL", "I'll send you the file.", True),
        ("WILL", "I'll be fine.", False),
        ("LATER", "We fly on Friday.", True),
        ("LATER", "We marry in May.", True),
        ("LATER", "May I go?", False),
        ("REQUEST", "Could you please book a table?", True),
        ("ASKS", "Really?!", True),
        ("ASKS", "Really.", False),
        ("COURTESY", "Hey Mel, how are you?", True),
        ("COURTESY", "How are the boilers?", False),
        ("TAG", "It rained, right?", True),
        ("PUT_OFF", "I'm not sure yet.", True),
        ("EVENT", "We moved in April.", True),
        ("DANGLING", "And it was great.", True),
        ("DANGLING", "Italy was great.", False),
        ("ORDER", "In what order did I tell you of my four aches?", True),
        ("ORDER", "Which came first, which next: the fall, the cough?", True),
        ("ORDER", "What did I order?", False),
        ("SUMMARY", "Sum up how the move went.", True),
        ("SUMMARY", "How did the novel develop?", True),
        ("SUMMARY", "What was the sum in the end?", False),
        ("OF_ASSISTANT", "Which hotel did you recommend?", True),
        ("OF_ASSISTANT", "What was the third title on the list you gave me?", True),
        ("OF_ASSISTANT", "Can you tell me where I live?", False),
        ("OF_ASSISTANT", "Which hotel did I book?", False),
    ],
)
def test_what_a_sentence_does(name, text, expected):
    assert pl.Series([text]).str.contains(getattr(cues, name)).item() is expected
