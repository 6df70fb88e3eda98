"""Questions that a scripted model proposes over a small chat: what is kept, what is dropped, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from model_server import ModelServer, say
from talk import dialogue

from memlab import llm
from memlab.datasets import propose_questions
from memlab.datasets.question_files import add_questions_of_file
from memlab.datasets.record_sources import Source
from memlab.errors import DataError, ModelError
from memlab.knowledge.fact_extraction import make_fact
from memlab.questions.message_bundles import gather_message_bundles, numbered_prompt_messages
from memlab.questions.proposal_screening import NOT_THERE, share_of_texts_sharing_no_word_or_zero
from memlab.questions.question_kinds import KINDS, share_questions_by_kind
from memlab.records import Dataset, Fact, frame

SAID = """
    == ann 2026-05-01
    Ann: The compressor was repaired for 120 pounds.
    Ann: Tea is out.
    == ann 2026-05-09
    Ann: Somebody mended the forklift, 80 pounds.
    Ann: My office is room 4.
    == ann 2026-05-20
    Ann: The goods lift was repaired as well, 300 pounds.
    Ann: I moved to room 9 today.
"""
MACHINES, ROOMS = (0, 2, 4), (3, 5)
NO_FACTS = frame(Fact)
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


@pytest.fixture(scope="module")
def chat() -> Dataset:
    return dialogue(SAID)


def cited(chat: Dataset, prompt: dict[str, Any], *rows: int) -> list[int]:
    """Give the numbers that some messages of the chat have in a prompt; 0 where one is not in it."""
    texts = [chat.turns["text"][row] for row in rows]
    number = {entry["text"]: entry["id"] for entry in prompt["messages"]}
    return [number.get(text, 0) for text in texts]


def question(kind: str, text: str, answer: str, evidence: list[int], **more: Any) -> dict[str, Any]:
    cites = [{"id": number, "why": f"states {number}"} for number in evidence]
    about = {"kind": kind, "question": text, "answer": answer, "evidence": cites}
    return {**about, "stale": [], "distractors": [], "reworded": False, **more}


class Script:
    """Answers by the name of the shape that is asked for; a shape without an answer says nothing."""

    def __init__(self, **answers: Callable[[dict[str, Any]], Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, handler: Any, request: dict[str, Any]) -> None:
        name = request["response_format"]["json_schema"]["name"]
        self.asked.append(name)
        prompt = json.loads(request["messages"][-1]["content"])
        say(json.dumps(self.answers[name](prompt)), usage=USAGE)(handler, request)


def script(chat: Dataset, **changed: Callable[[dict[str, Any]], Any]) -> Script:
    """Give a model that proposes three right questions and finds them right."""

    def propose(prompt: dict[str, Any]) -> dict[str, Any]:
        made = []
        if "counting" in prompt["kinds"]:
            counted = "How many machines were put right?"
            made.append(question("counting", counted, "3", cited(chat, prompt, *MACHINES)))
        if "single-session" in prompt["kinds"] and cited(chat, prompt, 1) != [0]:
            made.append(
                question("single-session", "What has run out?", "Tea", cited(chat, prompt, 1))
            )
        if "abstention" in prompt["kinds"]:
            made.append(question("abstention", "Who paid?", "Nobody says it.", [], distractors=[1]))
        return {"questions": made}

    def answer(prompt: dict[str, Any]) -> dict[str, Any]:
        return {"answer": "3" if "machines" in prompt["question"] else "tea", "known": True}

    def holds(prompt: dict[str, Any]) -> dict[str, Any]:
        whole = prompt["notes"].count("pounds") == 3
        return {"holds": whole, "missing": "" if whole else "one"}

    usual = {
        "ProposedQuestions": propose,
        "Reply": answer,
        "Verdict": lambda _: {"reason": "same", "correct": True},
        "Grades": lambda _: {"grades": []},
        "Holds": holds,
    }
    return Script(**{**usual, **changed})


def proposed(chat: Dataset, server: ModelServer, model: Script, **options: Any) -> Any:
    server.modes = [model]
    service = server.service(concurrency=1, max_retries=0, **options.pop("of_service", {}))
    given = {"n": 6, "facts": NO_FACTS, "encoder": "hashing", **options}
    return propose_questions(chat, service=service, **given)


def test_what_passes_is_a_question_with_reasons_and_checks(
    chat: Dataset, server: ModelServer, tmp_path: Path
) -> None:
    with pytest.warns(UserWarning, match="of 6 questions"):
        made = proposed(chat, server, script(chat))
    asked = {row["question_type"]: row for row in made.questions.iter_rows(named=True)}
    counting = asked["counting"]
    assert counting["evidence"] == [chat.turns["turn_id"][row] for row in MACHINES]
    assert (counting["source"], len(counting["reasons"])) == ("proposed", 3)
    checks = json.loads(counting["checks"])
    assert checks["from the evidence alone"] == {"answer": "3"}
    assert len(checks["each item needed"]["left out"]) == 2
    assert checks["further messages"]["graded"] == 3
    assert asked["abstention"]["abstention"]
    assert asked["abstention"]["evidence"] == []
    assert made.attach(chat).questions.height == made.questions.height
    made.write(tmp_path / "proposed.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "proposed.jsonl").open()]
    assert {line["source"] for line in lines} == {"proposed"}
    assert made.about["kept"] == len(lines)
    with pytest.raises(DataError, match="a person may have accepted"):
        made.write(tmp_path / "proposed.jsonl")
    read = add_questions_of_file(Source(tmp_path / "proposed.jsonl", "raise", tmp_path), chat)
    assert read.questions.select(made.questions.columns).equals(made.questions)


def test_each_fault_is_dropped_and_counted(chat: Dataset, server: ModelServer) -> None:
    def propose(prompt: dict[str, Any]) -> dict[str, Any]:
        numbers = [entry["id"] for entry in prompt["messages"]]
        return {
            "questions": [
                question("counting", "How many lifts were there?", "2", [*numbers, 99]),
                question("listing", "Which rooms, all of them?", "4", numbers[:1]),
                question("temporal", "Was tea out on 1 May?", "tea out", numbers[:1]),
                question("temporal", "When was tea short?", "1 May", []),
                question("knowledge-update", "Which room now?", "9", numbers[-1:]),
            ]
        }

    with pytest.raises(ModelError, match="no question of 'lab' is left") as refused:
        proposed(chat, server, script(chat, ProposedQuestions=propose))
    for reason in (NOT_THERE, "one session", "gives its answer away", "no evidence", "no longer"):
        assert reason in str(refused.value)


def wrong(_: Any) -> dict[str, Any]:
    return {"reason": "another", "correct": False}


def third(prompt: dict[str, Any]) -> dict[str, Any]:
    return {"grades": [{"id": int(number), "grade": 3} for number in prompt["messages"]]}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"Reply": lambda _: {"answer": "five", "known": True}, "Verdict": wrong},
            "does not follow",
        ),
        ({"Holds": lambda _: {"holds": True, "missing": ""}}, "are not needed"),
        (
            {"Grades": third, "Holds": lambda _: {"holds": False, "missing": "a fourth"}},
            "change the answer",
        ),
    ],
)
def test_what_is_asked_again_and_fails_is_dropped(
    chat: Dataset, server: ModelServer, changed: dict[str, Any], reason: str
) -> None:
    def only_counting(prompt: dict[str, Any]) -> dict[str, Any]:
        found = script(chat).answers["ProposedQuestions"](prompt)["questions"]
        return {"questions": [each for each in found if each["kind"] == "counting"]}

    with pytest.raises(ModelError, match=f"dropped were 1 since .*{reason}"):
        proposed(chat, server, script(chat, ProposedQuestions=only_counting, **changed))


def test_an_item_that_is_not_needed_is_removed(chat: Dataset, server: ModelServer) -> None:
    lift = chat.turns["text"][4]

    def holds(prompt: dict[str, Any]) -> dict[str, Any]:
        return {"holds": lift not in prompt["notes"], "missing": ""}

    with pytest.warns(UserWarning, match="of 6 questions"):
        made = proposed(chat, server, script(chat, Holds=holds), left_out=3)
    counting = made.questions.filter(question_type="counting").row(0, named=True)
    assert counting["evidence"] == [chat.turns["turn_id"][row] for row in MACHINES[:2]]


def test_what_was_answered_is_not_asked_again(
    chat: Dataset, server: ModelServer, tmp_path: Path
) -> None:
    record = {"record": str(tmp_path / "answers.jsonl")}

    def fail(prompt: dict[str, Any]) -> dict[str, Any]:
        raise OSError

    broken = script(chat, Grades=fail)
    with pytest.raises(ModelError, match="run it again"):
        proposed(chat, server, broken, of_service=record)
    assert "Grades" in broken.asked
    good = script(chat)
    with pytest.warns(UserWarning, match="of 6 questions"):
        made = proposed(chat, server, good, of_service=record)
    assert not {"ProposedQuestions", "Reply"} & {*good.asked}
    again = script(chat)
    with pytest.warns(UserWarning, match="of 6 questions"):
        same = proposed(chat, server, again, of_service=record)
    assert again.asked == []
    assert same.questions.equals(made.questions)


def test_nonsense_is_counted(chat: Dataset, server: ModelServer) -> None:
    server.modes = [say("I would rather not.", usage=USAGE)]
    with pytest.raises(ModelError, match=r"have no answer \(no answer fits\)"):
        propose_questions(chat, service=server.service(), facts=NO_FACTS, encoder="hashing")


def test_an_estimate_asks_nothing(chat: Dataset, server: ModelServer) -> None:
    with llm.track_spending(estimate=True) as spent:
        made = proposed(chat, server, script(chat))
    assert made.questions.is_empty()
    assert server.requests == []
    assert {"propose", "answer", "judge", "grades", "holds"} <= spent.describe()["tasks"].keys()


def test_one_session_without_times_has_no_question_of_several(chat: Dataset) -> None:
    short = chat.turns.head(2).with_columns(timestamp=pl.lit(None, chat.turns["timestamp"].dtype))
    bundles = gather_message_bundles(short, NO_FACTS, _vectors, 4)
    asked = {kind for bundle in bundles for kind in bundle.kinds}
    assert asked == {"single-session", "abstention"}
    assert all("day" not in entry for entry in numbered_prompt_messages(bundles[0], short))


def test_what_cannot_be_asked_about_is_said_once(chat: Dataset, server: ModelServer) -> None:
    lone = replace(chat, turns=chat.turns.head(1))
    with pytest.raises(DataError, match="no memory of two messages"):
        propose_questions(lone, service=server.service(), encoder="hashing")
    first = chat.turns["session_id"][0]
    single = replace(
        chat,
        turns=chat.turns.filter(session_id=first),
        sessions=chat.sessions.filter(session_id=first),
    )
    with pytest.warns(UserWarning, match="of 6 questions"):
        made = proposed(single, server, script(chat))
    assert "1 memory of one session: no question needs evidence of several" in made.notes


def test_what_a_fact_replaced_is_a_bundle_of_changes(chat: Dataset) -> None:
    turns = chat.turns["turn_id"]
    first, last = (chat.turns.row(row, named=True) for row in ROOMS)
    old = make_fact([first], about="Ann", slot="office", value="room 4")
    effects = {"effects": ["replaces"], "affected": [old.fact_id]}
    new = make_fact([last], about="Ann", slot="office", value="room 9", **effects)
    bundles = gather_message_bundles(chat.turns, frame(Fact, [old, new]), _vectors, 10)
    changes = [bundle for bundle in bundles if bundle.purpose == "change"]
    assert [bundle.turns for bundle in changes] == [tuple(turns[row] for row in ROOMS)]


def _vectors(texts: list[str]) -> Any:
    from memlab.embed import load

    return load("hashing").encode(texts, kind="document", progress=False)


def test_shares_sum_to_the_number_wanted() -> None:
    for n in (1, 7, 60):
        assert sum(share_questions_by_kind(n, [*KINDS]).values()) == n
    assert share_of_texts_sharing_no_word_or_zero("Who paid?", []) == 0.0
