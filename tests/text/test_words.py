"""Tokens and the form in which words are compared; words as retrieval reads them; the form of questions; sentences."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import memlab
from memlab.errors import DataError
from memlab.text import tokens as splitter
from memlab.text import words as classes
from memlab.text.analysis import LANGUAGES, check_language, stop_words, tokenize
from memlab.text.questions import FORMS, asks_for_aggregation, question_form
from memlab.text.tokens import normalize_word, sentence_spans, sentences, tokens, words

TEXTS = st.text(alphabet=st.sampled_from("abZé19 .,'’-_\n!%$ß漢कि") | st.characters(), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't think so, Mel’s well-known dog's", ["i", "don't", "think", "so", "mel", "well", "known", "dog"]),
        ("$1,250.50 at 3pm, a_b 'quoted'", ["1,250.50", "at", "3pm", "a", "b", "quoted"]),
        ("Zoë की किताब ?!", ["zoë", "की", "किताब"]),
    ],
)
def test_what_a_word_is(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(TEXTS)
def test_places_hold_the_words_and_leave_no_letter_out(text: str) -> None:
    read = tokens(text)
    assert [text[token.start : token.end] for token in read] == [token.text for token in read]
    assert [token.key for token in read] == words(text)
    ends = zip([0, *(t.end for t in read)], [*(t.start for t in read), len(text)], strict=True)
    assert not any(c.isalpha() for a, b in ends for c in text[a:b])
    assert all(normalize_word(word) == word for word in words(text) if not word.endswith("'s"))


def test_words_are_written_as_they_are_compared() -> None:
    sets = {name: value for name, value in vars(classes).items() if name.isupper() and name[0] != "_"}
    assert len(sets) > 20
    for name, members in sets.items():
        assert all(normalize_word(word) == word and word.strip() == word and word for word in members), name


def test_every_language_has_a_stemmer() -> None:
    texts = ["Did you call about the fire?", "doctor's DOCTOR!", "how what did", "", "?!", "naïve 漢字 x 42"]
    assert tokenize(texts) == [["call", "fire"], ["doctor", "doctor"], [], [], [], ["naïv", "漢字", "42"]]
    assert len(LANGUAGES) > 30
    assert all(tokenize(["Oslo 2024", ""], language=language)[1] == [] for language in LANGUAGES)
    without = {language for language in LANGUAGES if not stop_words(language)}
    assert without == {"fa", "ne", "sr", "ta", "yi"}
    assert {language for language in LANGUAGES if len(stop_words(language)) < 30} - without == {"el", "fi", "hu", "id"}
    with pytest.raises(DataError, match=r"choose from .*de \(German\)"):
        check_language("klingon")


def test_function_words_of_a_language_are_left_out() -> None:
    for language, text, left in (
        ("pl", "Kiedy byłem u lekarza?", "byłem lekarza"),
        ("lt", "Kada aš buvau prieš savaitę?", "buvau savaitę"),
        ("id", "Kapan tahun itu?", "tahun itu"),
        ("hi", "हिन्दी किताब", "हिन्दी किताब"),  # vowel signs belong to their word
        ("de", "Wann bin ich in die neuen Wohnungen gezogen?", "neuen wohnungen gezogen"),
    ):
        assert tokenize([text], language=language, stem=False) == [left.split()]


EXAMPLES = [
    ("How many different doctors did I visit?", "how many", True),
    ("How many days passed between the race and the party?", "how long", False),
    ("What is the order of the three trips, from earliest to latest?", "list", True),
    ("Which  classical musicians does Melanie enjoy?", "list", True),
    ("Which popular composer's tunes does Tim play?", "which", False),
    ("You gave me a list of 100 jobs. Can you remind me what was the 7th job in that list?", "what", False),
    ("WHEN did she move?", "when", False),
    ("I mentioned an event two weeks ago. Where was that event held at?", "where", False),
    ("For the ratio, did I switch to more water, or less?", "yes-no", False),
    ("Who gave me the mixer?", "who", False),
    ("Why did he quit?", "why", False),
    ("Tell me more.", "other", False),
    ("Sum up how my training went.", "other", True),
    ("How did the novel develop?", "how", True),
    ("", "other", False),
]


@pytest.mark.parametrize(("text", "form", "counted"), EXAMPLES)
def test_forms_of_questions(text: str, form: str, counted: bool) -> None:
    row = pl.DataFrame({"text": [text]}).select(question_form(), asks_for_aggregation()).row(0)
    assert row == (form, counted)
    assert {form for _, form, _ in EXAMPLES} == set(FORMS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Dr. Lee at 3 p.m. today. Fine!", ["I met Dr. Lee at 3 p.m. today.", "Fine!"]),
        ("See https://a.b/c?d=1.5&e=2 now... Bye.", ["See https://a.b/c?d=1.5&e=2 now...", "Bye."]),
        ("Buy:\n- Milk\n- Two eggs", ["Buy:", "- Milk", "- Two eggs"]),
        ("```\nx = 1. \nY. Z\n``` Done. Next.", ["```\nx = 1. \nY. Z\n```", "Done.", "Next."]),
        ("今日は。元気ですか？はい！", ["今日は。", "元気ですか？", "はい！"]),
        (" \n ", []),
    ],
)
def test_what_a_sentence_is(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet=st.sampled_from("aB1 .!?…\n,;:()\"'`-😂。é\u00a0\u200b"), max_size=80))
@example("```" * 3)
@example("a (b. c " * 300)
@example("x" * 5_000)
def test_sentences_tile_the_text(text: str) -> None:
    """Between them, before and after, stands nothing but white space."""
    at = 0
    for start, end in sentence_spans(text):
        assert not text[at:start].strip()
        assert start < end
        assert not text[start].isspace()
        at = end
    assert not text[at:].strip()


def test_what_has_no_end_of_a_sentence_within_is_one_as_the_splitter_says(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = memlab.sample(turns=600).turns["text"].to_list()
    texts += ["".join(texts[i : i + 5]) for i in range(0, len(texts), 5)]
    quick = [sentence_spans(text) for text in texts]
    monkeypatch.setattr(splitter, "_END", re.compile(""))  # every text goes to the splitter
    assert quick == [sentence_spans(text) for text in texts]
