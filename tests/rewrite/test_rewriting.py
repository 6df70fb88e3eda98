"""Follow-up questions, rewritten so that they stand alone."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError, ModelError
from memlab.rewrite import content_words, rewrite
from memlab.rewrite._context import Context, Text
from memlab.rewrite.assemble import phrases, possessive
from memlab.rewrite.model import Model, choose
from memlab.rewrite.pointing import listed
from memlab.rewrite.training import canard, fit

SKATERS = [
    "Who taught Lena Fischer to skate?",
    "Lena Fischer learned to skate from Tomas Novak in Prague.",
]
REFUNDS = [
    "What is the refund rule for damaged books?",
    "Damaged books are refunded within 30 days.",
]
TALK = ["Where do you keep the Nimbus recordings?", "In the cellar of the Halden Museum."]


def one(question: str, history: list[str], **given: object) -> str:
    return rewrite([question], [history], **given)["rewritten"].item()


@pytest.mark.parametrize(
    ("question", "history", "topics", "added"),
    [
        ("Where was she born?", SKATERS, ["Lena Fischer"], "lena fischer"),
        ("What is her best jump?", SKATERS, ["Lena Fischer"], "lena fischer"),
        ("Where was she born?", SKATERS, [], "lena fischer"),
        (
            "How did they first meet?",
            ["Who founded the Halden Quartet?", "Two sisters."],
            ["Halden Quartet"],
            "halden quartet",
        ),
        ("What happened next?", SKATERS, ["Lena Fischer"], "lena fischer"),
        ("And in 2019?", ["Where did Lena Fischer win in 2018?", "Lena Fischer won in Oslo."], [], "lena fischer"),
        ("Does the same rule apply to maps?", REFUNDS, [], "refund"),
        ("When was it built?", ["Where is the Halden Museum?", "The Halden Museum is in Oslo."], [], "halden museum"),
        ("Who works there?", ["Where is the Halden Museum?", "The Halden Museum is in Oslo."], [], "halden museum"),
        ("Did he teach anyone else?", SKATERS, ["Tomas Novak"], "tomas novak"),
    ],
)
def test_what_is_left_out_is_put_back(question: str, history: list[str], topics: list[str], added: str) -> None:
    row = rewrite([question], [history], topics=[topics]).row(0, named=True)
    assert set(added.split()) <= set(row["added"]), row
    assert row["gated"]
    assert row["method"] == "offline"


@pytest.mark.parametrize(
    ("question", "history", "rewritten"),
    [
        (
            "How much is the other one?",
            [
                "Do you sell tents or hammocks?",
                "We sell dome tents and canvas hammocks.",
                "How much is a dome tent?",
                "90 euros.",
            ],
            "How much is the other one (canvas hammocks)?",
        ),
        (
            "Which one is cheaper?",
            ["Where can I stay?", "You can stay at the Hotel Adler or the Villa Rosa."],
            "Which one is cheaper (the Hotel Adler, the Villa Rosa)?",
        ),
    ],
)
def test_a_choice_is_read_from_the_list(question: str, history: list[str], rewritten: str) -> None:
    assert one(question, history) == rewritten


PRICES = ["How much did the oak desk cost?", "$210.", "And the lamp?", "$35."]
SOLD = ["Have I sold the oak desk?", "Yes.", "What was I paid for it?", "$90."]
MILES = ["How many miles was Jansen Ridge?", "17 miles."]
FIRST = ["Which came first, the dentist or the oculist?", "The oculist came first."]


@pytest.mark.parametrize(
    ("question", "history", "rewritten"),
    [
        # What names nothing is about what was asked about last; what leans itself leads further back.
        ("And when?", PRICES, "And when (lamp)?"),
        ("Which day was it?", SOLD, "sold the oak desk"),
        ("And the price?", ["Did I see the Halden Museum?", "Yes."], "Halden Museum"),
        # What names another thing asks the same of it.
        ("And the lamp?", PRICES[:2], "And the lamp (cost)?"),
        ("What about the Iwata Ridge?", MILES, "What about the Iwata Ridge (miles)?"),
        ("And my sister?", ["Where does my brother live?", "In Oslo."], "And my sister (live)?"),
        # The other one is not the one that the answer names.
        ("When did I see the other one?", FIRST, "dentist"),
    ],
)
def test_a_chat_goes_on(question: str, history: list[str], rewritten: str) -> None:
    new = one(question, history)
    assert rewritten in new
    if "oculist" in history[0]:
        assert "oculist" not in new


@pytest.mark.parametrize("text", ["Thanks!", "OK, thank you very much.", "Good night"])
def test_what_asks_for_nothing_passes(text: str) -> None:
    assert one(text, PRICES) == text


def test_the_second_of_a_list() -> None:
    history = ["Which bikes do you rent?", "We rent city bikes, cargo bikes and tandems."]
    row = rewrite(["How much is the second?"], [history]).row(0, named=True)
    assert "cargo" in row["added"]
    assert not {"city", "tandems"} & set(row["added"])


def test_a_pronoun_gives_way_to_the_name() -> None:
    assert one("Where was she born?", SKATERS, topics=[["Lena Fischer"]]) == "Where was Lena Fischer born?"
    assert one("What was HER first jump?", SKATERS, topics=[["Lena Fischer"]]) == "What was Lena Fischer's first jump?"
    assert one("Who's their singer?", ["Who are the Kites?", "A choir."], topics=[["The Kites"]]).count("their") == 0


def test_a_pronoun_inside_a_scattered_name_stays_readable() -> None:
    text = one("Did Lena and her coach Fischer quarrel about it?", SKATERS, topics=[["Lena Maria Fischer"]])
    assert text.startswith("Did Lena and her coach Fischer quarrel")


def test_her_is_no_possessive_before_a_function_word() -> None:
    assert "Fischer's" not in one("Who taught her to skate?", SKATERS, topics=[["Lena Fischer"]])


def test_a_part_of_the_title_becomes_the_whole() -> None:
    text = one("Did Fischer win anything else?", SKATERS, topics=[["Lena Fischer"]])
    assert "Lena Fischer" in text
    assert text.count("Fischer") == 1


@pytest.mark.parametrize("question", ["Where was she born?", "And in 2019?", "Which one?", "Why?", "it", ""])
def test_a_first_turn_is_never_touched(question: str) -> None:
    row = rewrite([question], [[]], topics=[["Lena Fischer", "Career"]]).row(0, named=True)
    assert (row["rewritten"], row["gated"], row["signals"], row["method"]) == (question, False, [], "first")


@pytest.mark.parametrize(
    "question",
    [
        "When did Lena Fischer win the European Championship in Oslo?",
        "Which trains go from Prague to Oslo on a Sunday in winter?",
        "How many people live in the city of Prague according to the census?",
    ],
)
def test_a_question_that_stands_alone_passes(question: str) -> None:
    row = rewrite([question], [SKATERS], topics=[["Lena Fischer"]]).row(0, named=True)
    assert (row["rewritten"], row["gated"], row["added"], row["method"]) == (question, False, [], "untouched")


def test_only_the_last_six_messages_matter() -> None:
    recent = [*SKATERS, *TALK, *REFUNDS]
    for question in ("Where was she born?", "Where is it?", "What else?"):
        wanted = one(question, recent)
        for older in (["Hello", "Hi"], ["Who was Ada Lovelace?", "Ada Lovelace wrote programs."] * 4):
            assert one(question, [*older, *recent]) == wanted
    assert one("Where are they?", recent) != one("Where are they?", recent[2:])


def test_a_heading_that_opens_the_history_is_a_topic() -> None:
    headed = ["Lena Fischer", "Early career", *SKATERS]
    assert one("Where was she born?", headed) == one(
        "Where was she born?", SKATERS, topics=[["Lena Fischer", "Early career"]]
    )
    # Long ago too, where it is spoken of; a greeting is none.
    later = [*SKATERS, *TALK, *REFUNDS]
    assert one("Why did she stop?", [*headed[:2], *later]) == one("Why did she stop?", later, topics=[headed[:2]])
    assert one("Why did she stop?", ["Good morning", "Hello again", *later]) == one("Why did she stop?", later)


def test_the_batch_gives_what_single_questions_give() -> None:
    questions = ["Where was she born?", "Where is it?", "Who wrote the opera Fidelio in Vienna in 1805?", "Why?"]
    histories = [SKATERS, TALK, REFUNDS, []]
    batch = rewrite(questions, histories)
    assert batch.equals(rewrite(questions, histories))
    singles = [rewrite([q], [h]) for q, h in zip(questions, histories, strict=True)]
    assert batch.equals(pl.concat(singles))


def test_no_questions() -> None:
    frame = rewrite([], [])
    assert frame.height == 0
    assert frame.schema["signals"] == pl.List(pl.String)


def test_bad_input_is_named() -> None:
    with pytest.raises(DataError, match="2 questions, 1 histories"):
        rewrite(["a", "b"], [[]])
    with pytest.raises(DataError, match="one text"):
        rewrite(["a"], ["Who was it?"])


TEXTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.lists(
    st.sampled_from(["it", "that", "The Kites", "her", "'s", "?", "which one", "and", "1999", "é", "\u200d", "(", '"']),
    max_size=8,
).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(question=TEXTS, history=st.lists(TEXTS, max_size=8), topics=st.lists(TEXTS, max_size=3))
def test_any_text_is_rewritten_or_left(question: str, history: list[str], topics: list[str]) -> None:
    row = rewrite([question], [history], topics=[topics]).row(0, named=True)
    assert rewrite([question], [history], topics=[topics]).row(0, named=True) == row
    assert row["gated"] == bool(row["signals"])
    if not history:
        assert row["method"] == "first"
    if not row["gated"]:
        assert row["rewritten"] == question
    known = {word for text in [*history[-6:], *topics] for word in content_words(text)}
    assert set(row["added"]) <= known


def test_a_whole_title_keeps_its_small_words_and_leaves_brackets() -> None:
    context = Context.of("How did it end?", [], ["All About Eve (film)"])
    assert [p.text for p in phrases(context, {"eve": 0.9})] == ["All About Eve"]
    context = Context.of("How did it end?", [], ["The Birth of a Nation"])
    assert [p.text for p in phrases(context, {"nation": 0.9})] == ["Nation"]
    assert [p.text for p in phrases(context, {"nation": 0.9, "birth": 0.9})] == ["The Birth of a Nation"]


def test_a_phrase_ends_with_its_sentence() -> None:
    context = Context.of(
        "Why?", ["Who?", "It was banned in China. Relations with St. Gallen and the U.S. Senate were tense."]
    )
    chosen = dict.fromkeys(["china", "relations", "st", "gallen", "senate"], 0.9)
    assert [p.text for p in phrases(context, chosen)] == ["China", "Relations", "St. Gallen", "Senate"]


def test_possessives() -> None:
    assert [possessive(text) for text in ("Ada", "The Kinks", "Ada's")] == ["Ada's", "The Kinks'", "Ada's"]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("You can take the red bus, the tram or a ferry.", [{"red", "bus"}, {"tram"}, {"ferry"}]),
        ("There are rooms at the Villa Rosa and the Hotel Adler.", [{"villa", "rosa"}, {"hotel", "adler"}]),
        ("He wrote it and she read it.", []),
        ("Nothing is listed here.", []),
    ],
)
def test_lists_are_read(text: str, items: list[set[str]]) -> None:
    assert listed(Text.of(text)) == items


def test_a_history_that_opens_with_no_heading_has_no_topic() -> None:
    assert Context.of("Why?", SKATERS).topics == []
    assert Context.of("Why?", ["Yes.", "No."]).topics == []
    assert [t.text for t in Context.of("Why?", ["Lena Fischer", "Career", *SKATERS]).topics] == [
        "Lena Fischer",
        "Career",
    ]


def test_choose_weighs_words_left_out_against_wrong_ones() -> None:
    assert choose({}) == {}
    assert choose({"a": 0.05}) == {}
    assert list(choose({"a": 0.9, "b": 0.85, "c": 0.25})) == ["a", "b"]
    even = {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5}
    assert list(choose(even)) == list(even)
    assert len(choose({str(n): 0.9 for n in range(40)})) == 12


def test_a_model_learns_and_survives_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlab.rewrite.training.NETWORKS", 2)
    described = [{"title": float(i % 2), "noise": float(i % 3)} for i in range(3000)]
    model = fit(described, [i % 2 == 1 for i in range(3000)])
    model.save(tmp_path / "m.safetensors")
    read = Model.load(tmp_path / "m.safetensors")
    words = {"yes": {"title": 1.0, "unheard_of": 3.0}, "no": {"noise": 1.0}}
    given = read.probabilities(words)
    assert given["yes"] > 0.5 > given["no"]
    assert given == pytest.approx(model.probabilities(words), abs=0.01)
    assert read.probabilities({}) == {}


def test_damaged_weights_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="cannot be read"):
        Model.load(tmp_path / "m.safetensors")


def test_a_file_that_is_not_canard_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('[{"Question": "a"}]')
    with pytest.raises(DataError, match="expected a list with History"):
        canard(tmp_path / "x.json")
