"""What sessions say: statements that people make, and nothing that they only ask, suppose, plan or quote."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import memlab
from memlab.knowledge import by_model, resolve
from memlab.knowledge.by_model import OUTCOME
from memlab.knowledge.extraction import extract
from memlab.knowledge.facts import fact_id
from memlab.knowledge.supersession import believed
from memlab.llm import Outcome, Service
from memlab.records import Entity, Fact, Relation, Turn, frame, schema

DAY0 = datetime(2026, 1, 1, tzinfo=UTC)
SERVICE = Service("local", "http://127.0.0.1:9/v1", "small")


def _turns(*said: str | tuple[str, str], session: str = "u/s", day: int = 0) -> pl.DataFrame:
    """One session; a turn is a text of Mel's, or a speaker (a role where it is one) and a text."""
    rows = []
    for n, turn in enumerate(said, 1):
        speaker, text = ("Mel", turn) if isinstance(turn, str) else turn
        role = speaker if speaker in ("user", "assistant", "system") else "user"
        at = DAY0 + timedelta(days=day, minutes=n)
        rows.append(Turn(f"{session}/{n}", "u", session, n, speaker, role, text, None, at))
    return frame(Turn, rows)


def _said(*turns: str | tuple[str, str]) -> list[tuple[str, str, str]]:
    return extract(_turns(*turns)).facts.select("subject", "predicate", "object").rows()


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I work at Acme.", ("Mel", "works at", "Acme")),
        ("Well, I'm a nurse!", ("Mel", "works as", "a nurse")),
        ("i live in Oslo", ("Mel", "lives in", "Oslo")),
        ("My API key is sk-1234AB.", ("Mel's API key", "is", "sk-1234AB")),
        ("I’m allergic to peanuts.", ("Mel", "is allergic to", "peanuts")),
        ("I have two kids.", ("Mel", "has", "two kids")),
        ("Yesterday I bought a red bicycle.", ("Mel", "has", "a red bicycle")),
        ("I love hiking in the mountains!", ("Mel", "loves", "hiking in the mountains")),
        ("My favourite colour is blue.", ("Mel's favourite colour", "is", "blue")),
        ("I no longer work at Acme.", ("Mel", "no longer works at", "Acme")),
        ("I used to live in Rome.", ("Mel", "used to live in", "Rome")),
        ("I'm 34 years old.", ("Mel", "is years old", "34")),
        ("My birthday is 3 May.", ("Mel's birthday", "is", "3 May")),
        ("I switched from Vim to Emacs.", ("Mel", "uses", "Emacs")),
        ("I quit my job.", ("Mel", "no longer works at", "the job")),
        ("I sold my car last week.", ("Mel", "no longer has", "the car")),
        ("I've been working on a novel.", ("Mel", "is working on", "a novel")),
        ("I can speak Danish.", ("Mel", "speaks", "Danish")),
        ("I got married in June.", ("Mel", "is", "married")),
        ("My sister is called Anna.", ("Mel", "has a sister named", "Anna")),
        ("My name is Melanie.", ("Mel's name", "is", "Melanie")),
        ("My brother works at a bank.", ("Mel's brother", "works at", "a bank")),
    ],
)
def test_personal_statements(text: str, fact: tuple[str, str, str]) -> None:
    assert _said(text) == [fact]


@pytest.mark.parametrize("line", (Path(__file__).parent / "readings.txt").read_text(encoding="utf-8").splitlines())
def test_what_people_say_in_their_words(line: str) -> None:
    text, _, wanted = line.partition(" => ")
    assert wanted in {" | ".join(fact) for fact in _said(text)}


@pytest.mark.parametrize("text", (Path(__file__).parent / "no_readings.txt").read_text(encoding="utf-8").splitlines())
def test_what_is_said_of_the_moment_in_jest_or_by_others_is_no_fact(text: str) -> None:
    assert [fact for fact in _said(text) if fact[0] != "it"] == []


@pytest.mark.parametrize(
    "text",
    [
        "Do I work at Acme?",
        "If I work at Acme next year, I'm happy.",
        "I wish I lived in Oslo.",
        "I would love a dog.",
        "Maybe I'm a nurse after all.",
        'He said "I live in Oslo" and left.',
        "Anna said that I live in Oslo.",
        "I love it!",
        "I have no idea.",
        "I had a great time.",
        "I'm so happy for you.",
        "I like the second suggestion.",
        "I almost bought a car.",
        "I'm not sure.",
        "Imagine I live in Rome.",
        "I have to go.",
        "",
        "😊",
    ],
)
def test_what_is_no_statement_gives_no_fact(text: str) -> None:
    assert _said(text) == []


def test_a_plan_says_that_it_is_one() -> None:
    plans = _said("I'm planning to move to Oslo.", "I'm going to adopt a cat.", "I hope to visit Rome.")
    assert [predicate for _, predicate, _ in plans] == ["plans to live in", "plans to have", "plans to go to"]


def test_a_denial_is_a_fact_and_an_end_of_a_habit_is_both() -> None:
    assert _said("I don't eat pork.") == [("Mel", "does not eat", "pork")]
    assert _said("I don't eat meat any more.") == [("Mel", "no longer eats", "meat"), ("Mel", "does not eat", "meat")]


def test_clauses_are_cut() -> None:
    assert _said("I quit my job and moved to Oslo, but my sister lives in Rome because she loves it.") == [
        ("Mel", "no longer works at", "the job"),
        ("Mel", "lives in", "Oslo"),
        ("Mel's sister", "lives in", "Rome"),
    ]


@pytest.mark.parametrize(
    ("question", "answer", "fact"),
    [
        ("Where do you live now?", "Bergen! Since May.", ("Mel", "lives in", "Bergen")),
        ("what u majorin in", "bio rn", ("Mel", "studies", "bio")),
        ("mum what's the wifi at yours again", "turnip88 all one word", ("Mel's wifi", "is", "turnip88")),
        ("Who is your boss?", "Ana Ruiz, since Monday.", ("Mel's boss", "is", "Ana Ruiz")),
        ("u allergic to mango", "nah thats marcus", ("Mel", "is not allergic to", "mango")),
        ("Do you have a dog?", "No, never.", ("Mel", "does not have", "a dog")),
    ],
)
def test_an_answer_is_read_with_its_question(question: str, answer: str, fact: tuple[str, str, str]) -> None:
    assert fact in _said(("Tess", question), ("Mel", answer))
    # Another one's answer, or no question at all, says nothing of the kind.
    assert fact not in _said(("Mel", answer))


def test_what_somebody_did_once_answers_nothing_of_now() -> None:
    assert _said(("Tess", "what did u study"), ("Mel", "Geography, I left after a year")) == []


def test_he_and_she_are_of_the_same_message() -> None:
    assert _said("My brother came, he's a paramedic.") == [("Mel's brother", "works as", "a paramedic")]
    assert _said("My brother rang.", "He's a paramedic.") == []


def test_how_it_was_established() -> None:
    turns = _turns(
        ("system", "The user lives in Oslo."), ("assistant", "I work at Acme."), "My sister works at Acme.",
        "I moved to Bergen.", "My rent is 900 euros.",
    )  # fmt: skip
    assert extract(turns).facts.select("subject", "predicate", "source").rows() == [
        ("Mel", "lives in", "system"),
        ("Mel's sister", "works at", "observed"),
        ("Mel", "lives in", "stated"),
        ("Mel's rent", "is", "stated"),
    ]


def test_where_somebody_lived_long_ago_is_not_where_they_live() -> None:
    said = _said("I moved to Oslo ten years ago.", "When I was six, we moved to Rome.")
    assert {predicate for _, predicate, _ in said} == {"used to live in"}


def test_a_fact_carries_its_turn_its_time_its_speaker_and_its_sentence() -> None:
    turns = _turns("Hello!", "Nice day. I work at Acme. Bye.", "As I said, I work at Acme.")
    fact = extract(turns).facts.row(0, named=True)
    assert fact["fact_id"] == fact_id("u/s/2", "Mel", "works at", "Acme")
    assert fact["evidence"] == ["u/s/2", "u/s/3"]
    assert fact["asserted_at"] == turns["timestamp"][1]
    assert (fact["speaker"], fact["text"]) == ("Mel", "I work at Acme.")


def test_a_speaker_without_a_name_is_the_user() -> None:
    assert _said(("user", "I work at Acme. My dog is called Max.")) == [
        ("user", "works at", "Acme"),
        ("user", "has a dog named", "Max"),
    ]


def test_what_is_extracted_is_resolved() -> None:
    early = _turns("I live in Oslo. My API key is sk-1. I work at Acme.", session="u/s1")
    late = _turns("I moved to Bergen. My API key is now sk-2. I no longer work at Acme.", session="u/s2", day=30)
    facts = extract(pl.concat([early, late])).facts
    held = believed(resolve(facts)).select("predicate", "object").rows()
    assert ("lives in", "Oslo") not in held
    assert ("is", "sk-1") not in held
    assert ("works at", "Acme") not in held
    assert {("lives in", "Bergen"), ("is", "sk-2")} <= set(held)


def test_relations_join_entities() -> None:
    found = extract(_turns("I work at Acme Labs. My sister Anna moved to Oslo.", "I bought a bicycle."))
    assert found.relations.select("subject", "predicate", "object").rows() == [
        ("Mel", "works at", "Acme Labs"),
        ("Anna", "lives in", "Oslo"),
        ("Mel", "sister", "Anna"),
    ]
    names = set(found.entities["name"])
    assert set(found.relations["subject"]) | set(found.relations["object"]) <= names


def test_no_turns() -> None:
    found = extract(frame(Turn))
    assert (found.facts.schema, found.facts.height) == (schema(Fact), 0)
    assert (found.entities.schema, found.relations.schema) == (schema(Entity), schema(Relation))
    assert found.outcomes.schema == OUTCOME


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=80) | st.sampled_from(["I ", "my ", "I am", "I have not", "I no longer"]), max_size=6))
def test_any_text_is_read(texts: list[str]) -> None:
    turns = _turns(*texts, *(f"I {text}" for text in texts))
    found = extract(turns)
    known = set(turns["turn_id"])
    for table in (found.facts, found.entities, found.relations):
        assert {turn for turns_ in table["evidence"] for turn in turns_} <= known
        assert all(len(turns_) for turns_ in table["evidence"])
    assert found.facts["fact_id"].is_unique().all()
    assert (found.facts["object"].str.len_chars() > 0).all()


def test_sessions_are_read_alone() -> None:
    data = memlab.sample(["owen"], turns=300)
    whole = extract(data.turns)
    for (session,), part in list(data.turns.group_by("session_id", maintain_order=True))[:5]:
        alone = extract(part)
        assert alone.facts["object"].to_list() == whole.facts.filter(session_id=session)["object"].to_list()
    assert extract(data.turns).facts.equals(whole.facts)


def _answering(monkeypatch: pytest.MonkeyPatch, *outcomes: Outcome, ends: list[Outcome] | None = None) -> list[str]:
    asked: list[str] = []
    over = list(ends or [])

    def answers(service: Service, prompts: list[str], shape: type, *, system: str = "") -> list[Outcome]:
        asked.extend(prompts)
        if shape is by_model.Ended:
            return [over.pop(0) if over else Outcome(by_model.Ended(ended=[])) for _ in prompts]
        return list(outcomes)

    monkeypatch.setattr(by_model, "answers", answers)
    return asked


def _knowledge(**parts: list[dict]) -> Outcome:
    return Outcome(by_model.Knowledge.model_validate({"facts": [], "entities": []} | parts))


def _fact(subject: str, relation: str, value: str, *turns: int, manner: str = "is", corrects: str = "") -> dict:
    said = {"subject": subject, "relation": relation, "object": value, "turns": list(turns)}
    return said | {"manner": manner, "corrects": corrects, "source": "stated"}


def test_a_model_reads_what_the_turns_say(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _answering(
        monkeypatch,
        _knowledge(
            facts=[_fact("Mel", "works at", "Acme", *turns) for turns in ((2, 9), (7,), ())],
            entities=[
                {"name": "Acme", "type": "organization", "turns": [1, 2]},
                {"name": "Mel", "type": "person", "turns": [2]},
                {"name": "Globex", "type": "organization", "turns": [2]},
            ],
        ),
    )
    found = extract(_turns("Hi!", "It rains. I work at Acme."), service=SERVICE)
    assert asked == ["[1] (2026-01-01) Mel: Hi!\n[2] (2026-01-01) Mel: It rains. I work at Acme."]
    assert found.facts.select("fact_id", "evidence", "speaker", "text").rows() == [
        (fact_id("u/s/2", "Mel", "works at", "Acme"), ["u/s/2"], "Mel", "I work at Acme.")
    ]
    assert found.entities.select("name", "evidence").rows() == [("Acme", ["u/s/2"]), ("Mel", ["u/s/2"])]
    assert found.relations.select("subject", "object").rows() == [("Mel", "Acme")]
    assert found.outcomes.rows() == [("u/s", "ok", None, "local")]


def test_a_model_tells_the_manner_and_what_it_corrects(monkeypatch: pytest.MonkeyPatch) -> None:
    manners = ("is", "not", "plan", "was", "ended")
    said = [_fact("Mel", "keeps", f"bees{n}", 1, manner=manner) for n, manner in enumerate(manners)]
    _answering(monkeypatch, _knowledge(facts=[*said, _fact("Mel's boss", "is", "Ida", 1, corrects="Eda")]))
    facts = extract(_turns("…"), service=SERVICE).facts
    assert facts["predicate"].to_list() == [
        "keeps", "does not keep", "plans to keep", "used to keep", "no longer keeps", "is",
    ]  # fmt: skip
    assert facts["object"].to_list()[-1] == "not Eda but Ida"


def test_a_model_is_shown_what_came_before_and_says_what_of_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (
        _turns("The code is 4417.", session="u/s0"),
        _turns("New panel. Code's 2093.", session="u/s1", day=9),
    )
    over = Outcome(by_model.Ended.model_validate({"ended": [{"statement": n, "turns": [1]} for n in (1, 1, 5)]}))
    asked = _answering(
        monkeypatch,
        _knowledge(facts=[_fact("the alarm code", "is", "4417", 1)]),
        _knowledge(facts=[_fact("the panel's code", "is", "2093", 1)]),
        ends=[over],
    )
    before = by_model.Before({"u/s1": first.to_dicts()})
    found = extract(pl.concat([first, second]), service=SERVICE, before=before)
    session = "The session:\n[1] (2026-01-10) Mel: New panel. Code's 2093."
    shown = f"Earlier turns:\n(2026-01-01) Mel: The code is 4417.\n\n{session}"
    assert asked[1:] == [shown, f"Statements:\n(1) 2026-01-01: the alarm code is 4417\n\n{shown}"]
    assert found.facts.select("subject", "predicate", "object", "session_id").rows()[2:] == [
        ("the alarm code", "is no longer", "4417", "u/s1")
    ]
    assert believed(resolve(found.facts))["object"].to_list() == ["2093"]


def test_what_came_before_makes_way_where_a_service_takes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _turns("The code is 4417.", "Bye.", session="u/s0"), _turns("Code's 2093.", session="u/s1", day=9)
    before = by_model.Before({"u/s1": first.to_dicts()})
    session = "[1] (2026-01-10) Mel: Code's 2093."
    for most, said in ((None, 5), (105, 4), (60, 1)):
        asked = _answering(monkeypatch, _knowledge(facts=[_fact("the code", "is", "4417", 1)]), _knowledge(facts=[]))
        extract(pl.concat([first, second]), service=replace(SERVICE, max_input=most), before=before)
        assert asked[1].splitlines()[-1] == session
        assert len([line for line in asked[1].splitlines() if line]) == said
        assert all(text.endswith(session) and (most is None or len(text) <= most) for text in asked[1:])


def test_what_is_over_without_an_answer_leaves_the_session_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _turns("I keep bees.", session="u/s0"), _turns("No more.", session="u/s1", day=9)
    known = [_knowledge(facts=[_fact("Mel", "keeps", "bees", 1)]), _knowledge(facts=[_fact("Mel", "is", "sad", 1)])]
    for kind, status in (("service", "failed"), ("content", "ok")):
        _answering(monkeypatch, *known, ends=[Outcome(None, "429", kind)])
        found = extract(pl.concat([first, second]), service=SERVICE)
        assert found.outcomes["status"].to_list() == ["ok", status]
        assert found.facts["object"].to_list() == ["bees", "sad"][: 1 + (status == "ok")]


def test_a_bad_answer_falls_back_to_the_rules_and_no_answer_leaves_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    _answering(monkeypatch, Outcome(None, "no JSON", "content"), Outcome(None, "429", "service"), _knowledge())
    turns = pl.concat([_turns("I work at Acme.", session=f"u/s{i}") for i in range(3)])
    found = extract(turns, service=SERVICE)
    assert found.facts["fact_id"].to_list() == [fact_id("u/s0/1", "Mel", "works at", "Acme")]
    assert found.outcomes.rows() == [
        ("u/s0", "fallback", "no JSON", "rules"),
        ("u/s1", "failed", "429", None),
        ("u/s2", "ok", None, "local"),
    ]
    assert found.outcomes.schema == OUTCOME


@pytest.mark.parametrize(
    "fact",
    [
        {"object": "x" * 301},
        {"object": ""},
        {"source": "guessed"},
        {"turns": list(range(21))},
        {"turns": ["2"] * 2 + [-1]},
        {"more": 1},
    ],
)
def test_an_answer_is_bounded(fact: dict) -> None:
    good = _fact("Mel", "is", "a nurse", 1)
    by_model.SaidFact.model_validate(good)
    with pytest.raises(ValidationError):
        by_model.SaidFact.model_validate(good | fact)
    with pytest.raises(ValidationError):
        by_model.Knowledge.model_validate({"facts": [good] * 61, "entities": []})


@pytest.mark.slow
@pytest.mark.shared_data
def test_real_conversations(locomo_path: Path) -> None:
    data = memlab.datasets.load(locomo_path).take(["conv-42", "conv-43", "conv-44"])
    facts = extract(data.turns).facts
    assert facts.height > 50
    # Of people who tell of many different things, little is taken back.
    assert resolve(facts).log.height < facts.height * 0.05
