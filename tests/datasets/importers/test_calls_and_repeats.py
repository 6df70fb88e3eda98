"""Calls and batches: whose they are, what answers what, what is repeated; words for roles; lists read backwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.records import Dataset


def load(folder: Path, files: dict[str, Any], **options: Any) -> Dataset:
    """Write files and load them, the folder where there are several; lines where a name ends in jsonl."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content
        if name.endswith("jsonl"):
            text = "\n".join(map(json.dumps, content))
        elif not isinstance(content, str):
            text = json.dumps(content)
        path.write_text(text, "utf-8")
    if len(files) > 1:
        path = folder
    return memlab.load(path, **options)


def told(data: Dataset) -> list[tuple[str, str, str]]:
    """Give scope, session and text of every turn, scope by scope."""
    sessions = data.turns["session_id"].str.split("/").list.last()
    rows = data.turns.select("scope", sessions, "text")
    return rows.sort("scope", maintain_order=True).rows()


def texts(data: Dataset) -> list[str]:
    return data.turns["text"].to_list()


def left_out(data: Dataset) -> list[str]:
    return data.issues.filter(action="left out")["found"].to_list()


def asks(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def tells(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


# Calls of several users


@pytest.mark.parametrize("key", ["user", "user_id", "tenant"])
def test_calls_of_two_users_that_begin_alike_lose_nothing(tmp_path: Path, key: str) -> None:
    history = [asks("Ahoy"), tells("Ahoy there."), asks("My boat is green")]
    calls = [
        {key: "tove", "messages": [asks("Ahoy")], "response": "Ahoy there."},
        {key: "rolf", "messages": history, "response": "Noted."},
        {key: "tove", "messages": [*history[:2], asks("My boat is red")], "response": "Fine."},
    ]
    data = load(tmp_path, {"calls.jsonl": calls})
    assert told(data) == [
        ("rolf", "c0002", "Ahoy"),
        ("rolf", "c0002", "Ahoy there."),
        ("rolf", "c0002", "My boat is green"),
        ("rolf", "c0002", "Noted."),
        ("tove", "c0001", "Ahoy"),
        ("tove", "c0001", "Ahoy there."),
        ("tove", "c0001", "My boat is red"),
        ("tove", "c0001", "Fine."),
    ]
    assert data.issues.is_empty()


@pytest.mark.parametrize("within", ["body", "request", "kwargs", "input", "params", "messages"])
def test_the_user_of_a_call_may_stand_within_the_request(tmp_path: Path, within: str) -> None:
    calls = []
    for user in ("tove", "rolf"):
        call = {within: {"user": user, "messages": [asks("Ahoy")]}}
        if within == "messages":
            call = {"messages": [asks("Ahoy", user_id=user)]}
        calls.append({**call, "output": [tells("Ahoy there.")]})
    scopes = [(scope, text) for scope, _, text in told(load(tmp_path, {"calls.jsonl": calls}))]
    assert scopes == [(user, text) for user in ("rolf", "tove") for text in ("Ahoy", "Ahoy there.")]


@pytest.mark.parametrize("about", [{"session_id": 1}, {"metadata": {"threadId": 1}}])
@pytest.mark.parametrize("within", ["body", "request", "kwargs", "input", "params"])
def test_the_conversation_of_a_call_may_be_named_within_the_request(
    tmp_path: Path, within: str, about: dict[str, Any]
) -> None:
    history = [asks("Ahoy"), tells("Ahoy there."), asks("Tide?")]
    other = json.loads(json.dumps(about).replace("1", "2"))
    calls = [
        {within: {**about, "messages": history[:1]}, "output": [history[1]]},
        {within: {**other, "messages": history}, "output": [tells("At six.")]},
        {within: {**about, "messages": history}, "output": [tells("At ten.")]},
    ]
    data = load(tmp_path, {"calls.jsonl": calls})
    first = ["Ahoy", "Ahoy there.", "Tide?", "At ten."]
    second = [*first[:3], "At six."]
    assert [(session, text) for _, session, text in told(data)] == [
        *(("1", text) for text in first),
        *(("2", text) for text in second),
    ]


def test_a_call_goes_on_from_an_answer_of_its_own_user(tmp_path: Path) -> None:
    """Two users may number their answers alike; a call that names an answer and no user is of who got that."""
    calls = [
        {"user": "tove", "id": "1", "input": "Ahoy", "output": [tells("Ahoy there.")]},
        {"user": "rolf", "previous_response_id": "1", "input": "And I?", "output": [tells("Hm.")]},
        {"previous_response_id": "1", "id": "2", "input": "Tide?", "output": [tells("At six.")]},
    ]
    scopes = [(scope, text) for scope, _, text in told(load(tmp_path, {"calls.jsonl": calls}))]
    assert scopes == [
        ("rolf", "And I?"),
        ("rolf", "Hm."),
        ("tove", "Ahoy"),
        ("tove", "Ahoy there."),
        ("tove", "Tide?"),
        ("tove", "At six."),
    ]


# Batches


def request(own: str, text: str, **body: Any) -> dict[str, Any]:
    about = {"custom_id": own, "method": "POST", "url": "/v1/chat/completions"}
    return {**about, "body": {"model": "m", "messages": [asks(text)], **body}}


def answer(own: str, text: str) -> dict[str, Any]:
    body = {"id": f"chatcmpl-{text}", "choices": [{"index": 0, "message": tells(text)}]}
    about = {"id": f"batch_req_{text}", "custom_id": own, "error": None}
    return {**about, "response": {"status_code": 200, "request_id": text, "body": body}}


def test_answers_of_a_batch_stand_with_their_questions(tmp_path: Path) -> None:
    files = {
        "input.jsonl": [request("r-1", "Where is the key?"), request("r-2", "Where is the lamp?")],
        "output.jsonl": [answer("r-2", "In the shed."), answer("r-1", "Under the mat.")],
    }
    data = load(tmp_path, files)
    assert told(data) == [
        ("me", "r-1", "Where is the key?"),
        ("me", "r-1", "Under the mat."),
        ("me", "r-2", "Where is the lamp?"),
        ("me", "r-2", "In the shed."),
    ]
    lines = [line for name in reversed(files) for line in files[name]]
    assert told(load(tmp_path / "one", {"all.jsonl": lines})) == told(data)


def test_answers_of_batches_stand_with_the_user_who_asked(tmp_path: Path) -> None:
    files = {
        "input.jsonl": [request("r-1", "Tea?", user="tove"), request("r-2", "Tea?", user="rolf")],
        "output.jsonl": [answer("r-1", "Mint."), answer("r-2", "Black.")],
    }
    assert told(load(tmp_path, files)) == [
        ("rolf", "r-2", "Tea?"),
        ("rolf", "r-2", "Black."),
        ("tove", "r-1", "Tea?"),
        ("tove", "r-1", "Mint."),
    ]


ONE = [request("r-1", "ask 11"), request("r-2", "ask 12"), request("r-3", "ask 13")]
TWO = [request("r-1", "ask 21"), request("r-2", "ask 22"), request("r-3", "ask 23")]
OF_ONE = [answer("r-3", "tell 13"), answer("r-2", "tell 12")]
OF_TWO = [answer("r-3", "tell 23"), answer("r-1", "tell 21"), answer("r-2", "tell 22")]
BATCHES = [
    {"log.jsonl": [*ONE, *OF_ONE, *TWO, *OF_TWO]},
    {"log.jsonl": [*ONE, *TWO, *OF_ONE, *OF_TWO]},
    {"in1.jsonl": ONE, "in2.jsonl": TWO, "out1.jsonl": OF_ONE, "out2.jsonl": OF_TWO},
    {"1.in.jsonl": ONE, "1.out.jsonl": OF_ONE, "2.in.jsonl": TWO, "2.out.jsonl": OF_TWO},
    {"a/out.jsonl": OF_ONE, "a/req.jsonl": ONE, "b/out.jsonl": OF_TWO, "b/req.jsonl": TWO},
]


@pytest.mark.parametrize("files", BATCHES)
def test_two_batches_may_use_the_same_ids(tmp_path: Path, files: dict[str, Any]) -> None:
    """An answer that is missing, since its request failed, does not shift those of the next batch."""
    sessions: dict[str, list[str]] = {}
    for _, session, text in told(load(tmp_path, files)):
        sessions.setdefault(session, []).append(text)
    assert sorted(sessions.values()) == [
        ["ask 11"],
        ["ask 12", "tell 12"],
        ["ask 13", "tell 13"],
        ["ask 21", "tell 21"],
        ["ask 22", "tell 22"],
        ["ask 23", "tell 23"],
    ]


def test_a_batch_may_ask_what_another_asked(tmp_path: Path) -> None:
    lines = [request("r-1", "Tea?"), answer("r-1", "Mint."), request("r-1", "Tea?")]
    data = load(tmp_path, {"log.jsonl": [*lines, answer("r-1", "Black.")]})
    assert texts(data) == ["Tea?", "Mint.", "Tea?", "Black."]
    assert data.sessions.height == 2
    alone = {"one.jsonl": [answer("r-1", "Mint.")], "two.jsonl": [answer("r-1", "Black.")]}
    assert load(tmp_path / "alone", alone).sessions.height == 2, "without requests they are two"


def test_batches_of_other_makers(tmp_path: Path) -> None:
    gemini = {
        "in.jsonl": [{"key": "k", "request": {"contents": [{"role": "user", "parts": ["Tea?"]}]}}],
        "out.jsonl": [
            {"key": "k", "response": {"candidates": [{"content": {"parts": [{"text": "Mint."}]}}]}}
        ],
    }
    assert told(load(tmp_path / "gemini", gemini)) == [("me", "k", "Tea?"), ("me", "k", "Mint.")]
    params = {"messages": [asks("Tea?")], "metadata": {"user_id": "tove"}}
    anthropic = {
        "in.jsonl": [{"custom_id": "k", "params": params}],
        "out.jsonl": [
            {"custom_id": "k", "result": {"type": "succeeded", "message": tells("Mint.", id="m")}}
        ],
    }
    said = [("tove", "k", "Tea?"), ("tove", "k", "Mint.")]
    assert told(load(tmp_path / "anthropic", anthropic)) == said


# What a named conversation repeats


def exchange(when: str | None, text: str, reply: str, **more: Any) -> dict[str, Any]:
    about = {"conversation_id": "quiz", "messages": [asks(text)], "response": reply, **more}
    if when:
        about["created_at"] = f"2026-05-03T{when}:00Z"
    return about


QUIZ = ["next", "Is it wet?"]


@pytest.mark.parametrize(
    ("calls", "expected", "dropped"),
    [
        # Three exchanges, two of which say the same.
        (
            [
                exchange("10:00", *QUIZ),
                exchange("10:05", *QUIZ),
                exchange("10:09", "next", "Is it dry?"),
            ],
            [*QUIZ, *QUIZ, "next", "Is it dry?"],
            0,
        ),
        ([exchange(None, *QUIZ), exchange(None, *QUIZ)], [*QUIZ, *QUIZ], 0),
        ([exchange(None, *QUIZ, id="a"), exchange(None, *QUIZ, id="b")], [*QUIZ, *QUIZ], 0),
        ([exchange("10:00", *QUIZ), exchange(None, *QUIZ)], [*QUIZ, *QUIZ], 0),
        # The same record twice, also where others stand between.
        ([exchange("10:00", *QUIZ), exchange("10:00", *QUIZ)], QUIZ, 2),
        ([exchange(None, *QUIZ, id="a"), exchange(None, *QUIZ, id="a")], QUIZ, 2),
        (
            [
                exchange("10:00", *QUIZ),
                exchange("10:05", "skip", "Well?"),
                exchange("10:00", *QUIZ),
            ],
            [*QUIZ, "skip", "Well?"],
            2,
        ),
        # One time, but two records.
        (
            [exchange("10:00", *QUIZ, id="a"), exchange("10:00", *QUIZ, id="b")],
            [*QUIZ, *QUIZ],
            0,
        ),
    ],
)
def test_a_named_conversation_may_say_the_same_twice(
    tmp_path: Path, calls: list[Any], expected: list[str], dropped: int
) -> None:
    data = load(tmp_path, {"calls.jsonl": calls})
    assert texts(data) == expected
    assert data.sessions.height == 1
    assert left_out(data) == [f"{dropped} repeated messages"] * (dropped > 0)


def test_history_is_told_once_and_what_only_looks_like_it_stays(tmp_path: Path) -> None:
    more = [asks("next"), tells("Is it wet?"), asks("next")]
    grown = [exchange(None, *QUIZ), exchange(None, "", "Is it dry?") | {"messages": more}]
    data = load(tmp_path / "grown", {"calls.jsonl": grown})
    assert texts(data) == [*QUIZ, "next", "Is it dry?"]
    assert left_out(data) == []
    # A window on the last messages is a guess, which is counted.
    window = [exchange(None, "one", "two"), exchange(None, "three", "four")]
    last = [tells("two"), asks("three"), tells("four"), asks("five")]
    window.append(exchange(None, "", "six") | {"messages": last})
    data = load(tmp_path / "window", {"calls.jsonl": window})
    assert texts(data) == ["one", "two", "three", "four", "five", "six"]
    assert left_out(data) == ["3 repeated messages"]
    # The answer has another id in the history than it had when it was given.
    asked = asks("next", id="m1")
    first = {"conversation_id": "quiz", "messages": [asked], "response": tells("Wet?", id="r1")}
    later = [asked, tells("Wet?", id="m2"), asks("skip", id="m3")]
    lines = [first, {"conversation_id": "quiz", "messages": later, "response": "Well?"}]
    data = load(tmp_path / "ids", {"calls.jsonl": lines})
    assert texts(data) == ["next", "Wet?", "skip", "Well?"]
    # Messages that say themselves that they are others are none.
    for key, values in (("id", "abcde"), ("timestamp", [1777809600 + n for n in range(5)])):
        first = [asks("next", **{key: values[0]}), tells("Is it wet?", **{key: values[1]})]
        again = [asks("next", **{key: values[2]}), tells("Is it wet?", **{key: values[3]})]
        again.append(asks("skip", **{key: values[4]}))
        lines = [{"conversation_id": "quiz", "messages": each} for each in (first, again)]
        data = load(tmp_path / key, {"calls.jsonl": lines})
        assert texts(data) == [*QUIZ, *QUIZ, "skip"]
        assert left_out(data) == []


# How much is looked at: each message a few times, however many there are


class Counted(str):
    """A text that counts how often it is looked at."""

    looks = 0

    def strip(self, *chars: Any) -> str:
        Counted.looks += 1
        return super().strip(*chars)


def test_histories_are_found_in_one_pass() -> None:
    from memlab.datasets.importers.logged_model_calls import (
        KnownConversations,
        count_overlapping_messages,
    )

    asked = [{"role": "user", "text": Counted(f"message {n}")} for n in range(300)]
    Counted.looks = 0
    histories = KnownConversations()
    histories.remember_call_and_its_messages("me", {}, "c1", asked[:200])
    assert histories.find_continued_session_or_empty("me", {}, asked) == ("c1", 200)
    assert histories.find_continued_session_or_empty("you", {}, asked) == ("", 0)
    assert Counted.looks == 800
    Counted.looks = 0
    assert count_overlapping_messages(asked[:200], asked[150:]) == 50
    assert count_overlapping_messages(asked, asked[:1]) == 0
    assert Counted.looks < 310


@pytest.mark.parametrize("named", [{"conversation_id": "k"}, {"id": "k"}])
def test_many_records_of_one_name_are_looked_at_a_few_times(
    tmp_path: Path, named: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from memlab.datasets.importers import logged_model_calls

    looks = []
    words = logged_model_calls.role_and_stripped_text_of
    monkeypatch.setattr(
        logged_model_calls, "role_and_stripped_text_of", lambda turn: looks.append(1) or words(turn)
    )
    calls = [{**named, "messages": [asks(f"ask {n}")], "response": f"tell {n}"} for n in range(200)]
    data = load(tmp_path, {"calls.jsonl": calls})
    assert data.turns.height == 400
    assert len(looks) <= 10 * 400


# The words for roles


WORDS = {
    "llm": "assistant",
    "gpt-4o": "assistant",
    "openai/gpt-4o": "assistant",
    "deepseek-chat": "assistant",
    "Chatbot": "assistant",
    "meta ai": "assistant",
    "assistant (v2)": "assistant",
    "Human": "user",
    "user_message": "user",
    "customer": "user",
    "Assistant Manager": "user",
    "Power Tool Shop": "user",
    "developer": "system",
    "function_call_output": "other",
    "document": "other",
}


@pytest.mark.parametrize(("word", "role"), WORDS.items())
def test_a_word_for_a_role_means_the_same_to_all_readers(
    tmp_path: Path, word: str, role: str
) -> None:
    row = {"role": word, "text": "<think>Maybe.</think>Yes at six."}
    other = {"role": "user", "text": "When?"}
    log = [{"scope": "a", **row}, {"scope": "a", **other}]
    lines = [row, other]
    spoken = {
        "log": load(tmp_path, {"log.jsonl": log}),
        "rows": load(tmp_path, {"rows.json": lines}),
        "csv": load(tmp_path, {"rows.csv": f"role,text\n{word},{row['text']}\nuser,When?\n"}),
    }
    expected = "Yes at six." if role == "assistant" else row["text"]
    for name, data in spoken.items():
        turn = data.turns.filter(data.turns["text"] != "When?").row(0, named=True)
        assert (turn["role"], turn["text"]) == (role, expected), name
    listed = [{"role": word, "content": row["text"]}, asks("When?")]
    data = load(tmp_path, {"chat.json": {"messages": listed}})
    said = data.turns.filter(data.turns["text"] != "When?")
    kept = [(role, expected)]
    if role in ("system", "other"):  # which are counted there
        kept = []
        assert len(left_out(data)) == 1
    assert said.select("role", "text").rows() == kept


SENDERS = {
    "ChatGPT": "the assistant",
    "claude": "the assistant",
    "gpt-4o": "the assistant",
    "Ai": "the assistant",
    "Bot": "the assistant",
    "System": "the system",
    "event": "the system",
    "Tool": "a tool",
}


@pytest.mark.parametrize("form", ["log.jsonl", "rows.csv", "chat.json"])
def test_who_is_taken_for_another_than_a_person_by_the_name_is_said(
    tmp_path: Path, form: str
) -> None:
    senders = ["Tove", *SENDERS, "assistant", "AI", "Assistant", "llm", "Tove"]
    rows = [{"sender": sender, "text": f"This is number {n}"} for n, sender in enumerate(senders)]
    content: Any = {"messages": rows}
    if form == "log.jsonl":
        content = [{"scope": "a", **row} for row in rows]
    elif form == "rows.csv":
        lines = ["sender,text", *(",".join(row.values()) for row in rows)]
        content = "\n".join(lines)
    data = load(tmp_path, {form: content})
    taken = data.issues.filter(data.issues["action"].str.contains("by the name"))
    assert dict(taken.select("found", "action").rows()) == {
        f"{name!r}, 1 message": (
            f"taken for {what} by the name; --person NAME says that somebody is called so"
        )
        for name, what in SENDERS.items()
    }
    denied = load(tmp_path, {form: content}, person=list(SENDERS))
    # AI is called as Ai is.
    assert denied.turns.filter(role="user")["speaker"].to_list() == [
        *("Tove", *SENDERS, "AI", "Tove"),
    ]


def test_a_senders_kind_says_more_than_the_name(tmp_path: Path) -> None:
    listed = [{"sender": "Bo", "type": "ai", "text": "Ahoy"}, asks("Ahoy")]
    data = load(tmp_path, {"chat.json": {"messages": listed}})
    assert data.turns["role"].to_list() == ["assistant", "user"]
    assert "by the name" not in str(data.issues.rows())
    sent = [{"sender": "Bo", "type": "document", "text": "The bill"}, asks("Ahoy")]
    data = load(tmp_path, {"chat.json": {"messages": sent}})
    assert data.turns.select("speaker", "role").row(0) == ("Bo", "user"), "Bo sends a document"
    flagged = [
        {"sender": "Claude", "is_bot": False, "text": "I live in Lyon"},
        {"sender": "Bo", "is_bot": True, "text": "Ahoy"},
        {"sender": "Mio", "sender_type": "bot", "text": "Ahoy"},
    ]
    for name, content in (("rows.json", flagged), ("chat.json", {"messages": flagged})):
        data = load(tmp_path, {name: content})
        assert data.turns["role"].to_list() == ["user", "assistant", "assistant"]
        assert data.turns["speaker"][0] == "Claude"
        assert "by the name" not in str(data.issues.rows())
    pairs = [{"from": "human", "value": "Ahoy"}, {"from": "chatgpt", "value": "Ahoy there"}]
    data = load(tmp_path, {"share.json": [{"conversations": pairs}]})
    assert data.turns["role"].to_list() == ["user", "assistant"]
    assert data.issues.is_empty(), "from is the role there"


# Lists with the newest first


def dated(*times: str | None) -> list[dict[str, Any]]:
    """Give messages that are numbered as they stand, those with a time with it."""
    listed = []
    for number, time in enumerate(times):
        message = [asks, tells][number % 2](str(number))
        if time is not None:
            message["created_at"] = time
        listed.append(message)
    return listed


BACKWARDS = [
    ["2/3/2026, 10:00:00 AM", "2/2/2026, 10:00:00 AM", "2/1/2026, 10:00:00 AM"],
    ["2026-02-03", None, "2026-02-01"],
    ["2026-02-03", "2026-02-02", "2026-02-01T10:00:00", "2026-02-01T09:00:00Z"],
    [None, "2026-02-09", "2026-02-07", "2026-02-08", "2026-02-05", None, "2026-02-01"],
    ["2026-02-01T10:00:03Z", "2026-02-01T10:00:03Z", "2026-02-01T10:00:01Z"],
]
FORWARDS = [
    ["2026-02-01T10:00:05Z", "2026-02-01T10:00:04Z"],
    [
        "2026-02-01T10:00:05Z",
        "2026-02-01T10:00:04Z",
        "2026-02-01T10:07:05Z",
        "2026-02-01T10:07:04Z",
    ],
    ["2026-02-01T10:00:05Z", None, "2026-02-01T10:00:01Z", None],
    ["2026-02-09", "2026-02-01", "2026-02-02", "2026-02-03"],
    ["soon", "later", "2026-02-01"],
]


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("times", BACKWARDS)
def test_a_list_whose_times_fall_is_turned_round(
    tmp_path: Path, times: list[str | None], around: bool
) -> None:
    content: Any = {"messages": dated(*times)}
    if around:
        content = {"object": "list", "has_more": False, "data": dated(*times)}
    data = load(tmp_path, {"chat.json": content})
    assert texts(data) == [str(number) for number in reversed(range(len(times)))]
    assert "list of an API" not in str(data.issues.rows())


@pytest.mark.parametrize("times", FORWARDS)
def test_a_list_whose_clock_steps_back_is_not(tmp_path: Path, times: list[str | None]) -> None:
    data = load(tmp_path, {"chat.json": {"messages": dated(*times)}})
    assert texts(data) == [str(number) for number in range(len(times))]


@pytest.mark.parametrize("is_turned", [False, True])
def test_the_page_of_an_api_whose_answers_have_another_clock(
    tmp_path: Path, is_turned: bool
) -> None:
    listed = dated(*FORWARDS[1])
    if is_turned:
        listed.reverse()
    page = {"object": "list", "has_more": False, "data": listed}
    data = load(tmp_path, {"page.json": page})
    assert texts(data) == ["0", "1", "2", "3"]
    assert "list of an API" not in str(data.issues.rows())


def test_the_page_of_an_api_whose_times_are_all_the_same_says_so(tmp_path: Path) -> None:
    page = {"object": "list", "has_more": False}
    page["data"] = [tells("0", created_at=1777809600), asks("1", created_at=1777809600)]
    data = load(tmp_path, {"page.json": page})
    assert texts(data) == ["1", "0"]
    found = "a list of an API whose times do not say in which order"
    assert data.issues.select("found", "action").row(0) == (
        found,
        "read as one with the newest first",
    )


@pytest.mark.parametrize(
    ("times", "hours"),
    [
        (["2/1/2026 1:00:00 PM", "2/1/2026 11:00:00 AM"], [11, 13]),
        (["02/01/2026 13:00:00 +01:00", "02/01/2026 11:00:00 +01:00"], [10, 12]),
        (["13/02/2026 13:00", "13/02/2026 11:00"], [11, 13]),
    ],
)
def test_times_of_copilot(tmp_path: Path, times: list[str], hours: list[int]) -> None:
    rows = [f"Tea,{when},Human,number {n}" for n, when in enumerate(times)]
    table = "\n".join(["Conversation,Time,Author,Message", *rows])
    data = load(tmp_path, {"history.csv": table})
    assert data.format == "copilot"
    assert texts(data) == ["number 1", "number 0"]
    assert data.turns["timestamp"].dt.hour().to_list() == hours


def test_times_of_silly_tavern(tmp_path: Path) -> None:
    forms = [
        "February 1, 2026 9:05am",
        "February 1, 2026 10:05 AM",
        "Feb 1, 2026 11:05am",
        "February 1, 2026 12:05",
        "2026-2-1 @13h 05m 00s 5ms",
    ]
    lines: list[Any] = [{"user_name": "Tove", "character_name": "Mira", "chat_metadata": {}}]
    lines += [{"name": "Tove", "is_user": True, "mes": form, "send_date": form} for form in forms]
    data = load(tmp_path, {"chat.jsonl": lines})
    assert data.turns["timestamp"].dt.hour().to_list() == [9, 10, 11, 12, 13]
    assert left_out(data) == []


def test_a_run_that_is_asked_once_more_without_anything_new_is_counted(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "Call her back"}]
    answered = {"role": "assistant", "content": "I will"}
    runs = [
        {"id": "a", "run_type": "llm", "inputs": {"messages": asked}, "outputs": answered},
        {"id": "b", "run_type": "llm", "inputs": {"messages": [*asked, answered]}, "outputs": {}},
    ]
    for hour, run in enumerate(runs):
        run |= {
            "start_time": f"2026-02-01T0{hour}:00:00Z",
            "extra": {"metadata": {"session_id": "s"}},
        }
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs), "utf-8")
    data = memlab.load(path, format="langsmith")
    assert data.turns["text"].to_list() == ["Call her back", "I will"]
    assert data.issues["found"].to_list() == ["2 repeated messages"]


@pytest.mark.parametrize(
    ("answer", "found"),
    [({}, []), ({"value": {}}, []), ({"value": "So be it"}, ["1 value of runs without messages"])],
)
def test_of_the_values_of_a_run_those_with_a_text_are_counted(
    tmp_path: Path, answer: Any, found: list[str]
) -> None:
    run = {"id": "r", "run_type": "chain", "inputs": {"question": "May I?"}}
    path = tmp_path / "run.json"
    path.write_text(json.dumps([run | {"outputs": {"answer": answer}}]), "utf-8")
    data = memlab.load(path, format="langsmith")
    assert data.turns["text"].to_list() == ["May I?"]
    assert data.issues["found"].to_list() == found
