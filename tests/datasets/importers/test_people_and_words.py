"""Who is an assistant, and whose words a message holds, in messengers and in a chat log of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.datasets import sender_roles
from memlab.errors import DataError

NAMES = ("Claude", "Ai", "System", "Bot", "User", "Gemini", "Model")
TAKEN = sender_roles.TAKEN_BY_NAME


def telegram(path: Path, *messages: dict[str, Any], **chat: Any) -> Path:
    about = {"type": "message", "date_unixtime": "1775210400", "from": "Ann", "from_id": "user1"}
    said = [about | {"id": n} | message for n, message in enumerate(messages, 1)]
    content = {"name": "Trip", "type": "private_group", "id": 5} | chat | {"messages": said}
    path.write_text(json.dumps(content), "utf-8")
    return path


def log(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("\n".join(json.dumps({"scope": "s"} | line) for line in lines), "utf-8")
    return path


def roles(data: memlab.Dataset) -> dict[str, str]:
    return dict(data.turns.select("speaker", "role").rows())


def notes(data: memlab.Dataset) -> list[tuple[str, str]]:
    return data.issues.filter(action=TAKEN).select("found", "action").rows()


def test_in_a_messenger_a_persons_name_makes_no_assistant(tmp_path: Path) -> None:
    said = [{"from": name, "from_id": f"user{n}", "text": "I ski."} for n, name in enumerate(NAMES)]
    data = memlab.load(telegram(tmp_path / "result.json", *said))
    assert roles(data) == dict.fromkeys(NAMES, "user")
    assert notes(data) == []
    lines = [f"03/04/2026, 09:0{n} - {name}: I ski." for n, name in enumerate(NAMES)]
    (tmp_path / "WhatsApp Chat with Trip.txt").write_text("\n".join(lines), "utf-8")
    data = memlab.load(tmp_path / "WhatsApp Chat with Trip.txt")
    assert roles(data) == dict.fromkeys(NAMES, "user")
    named = memlab.load(tmp_path / "WhatsApp Chat with Trip.txt", assistant="Ai")
    assert roles(named)["Ai"] == "assistant"


def test_what_an_export_says_of_bots_comes_first(tmp_path: Path) -> None:
    author = {"id": "1", "name": "Claude", "isBot": False}
    bot = {"id": "2", "name": "Gemini", "isBot": True}
    messages = [
        {
            "id": n,
            "type": "Default",
            "timestamp": "2026-04-03T10:00:00Z",
            "content": "I ski.",
            "author": each,
        }
        for n, each in enumerate((author, bot, {"id": "3", "name": "ci", "isBot": True}))
    ]
    channel = {"guild": {"id": "1"}, "channel": {"id": "2", "name": "g"}, "messages": messages}
    (tmp_path / "g.json").write_text(json.dumps(channel))
    data = memlab.load(tmp_path / "g.json")
    assert roles(data) == {"Claude": "user", "Gemini": "assistant", "ci": "other"}
    assert notes(data) == [("'Gemini', 1 message", TAKEN)]
    said = [
        {"type": "message", "user": f"U{n}", "text": "I ski.", "ts": f"177521040{n}.0"}
        for n in (1, 2)
    ]
    users = [
        {"id": "U1", "real_name": "Claude", "is_bot": False},
        {"id": "U2", "real_name": "Claude", "is_bot": True},
    ]
    for name, content in {"users.json": users, "general/2026-04-03.json": said}.items():
        (tmp_path / "slack" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "slack" / name).write_text(json.dumps(content))
    data = memlab.load(tmp_path / "slack")
    assert data.turns["role"].to_list() == ["user", "assistant"]


def test_who_is_taken_for_an_assistant_is_said_and_can_be_denied(tmp_path: Path) -> None:
    path = log(
        tmp_path / "log.jsonl",
        {"sender": "Claude", "text": "I ski."},
        {"sender": "Ai", "text": "I sail."},
        {"sender": "assistant", "text": "Nice."},
        {"sender": "Claude", "text": "I row."},
    )
    data = memlab.load(path)
    assert roles(data) == {"Claude": "assistant", "Ai": "assistant", "assistant": "assistant"}
    assert notes(data) == [("'Claude', 2 messages", TAKEN), ("'Ai', 1 message", TAKEN)]
    denied = memlab.load(path, person=["claude", "Ai"])
    assert roles(denied) == {"Claude": "user", "Ai": "user", "assistant": "assistant"}
    assert denied.issues.is_empty()
    absent = memlab.load(path, person=("Claude", "Ai", "Bo"))
    assert absent.issues["found"].to_list() == ["'Bo', whom no message is from"]
    with pytest.raises(DataError, match="as assistant and as person"):
        memlab.load(path, person="Ai", assistant="Ai")


def test_what_somebody_forwards_is_not_theirs(tmp_path: Path) -> None:
    quote = [{"type": "blockquote", "text": "I live in Rome."}, " Really?"]
    path = telegram(
        tmp_path / "result.json",
        {"text": "I ski.", "forwarded_from": "Bo Lie"},
        {"text": "I row.", "forwarded_from": None},
        {"text": "I sail.", "forwarded_from": "Ann"},
        {"text": quote},
    )
    data = memlab.load(path)
    assert data.turns.select("text", "forwarded_from", "quoted").rows() == [
        ("Bo Lie: I ski.", "Bo Lie", None),
        ("Deleted Account: I row.", "Deleted Account", None),
        ("I sail.", None, None),
        ("I live in Rome. Really?", None, ["I live in Rome."]),
    ]
    author = {"id": "1", "name": "ann", "isBot": False}
    about = {"type": "Default", "timestamp": "2026-04-03T10:00:00Z", "author": author}
    passed = {"content": "I live in <@1>'s shed."}
    messages = [
        about | {"id": n, "content": own, "forwardedMessage": passed}
        for n, own in enumerate(("", "ha"))
    ]
    channel = {"guild": {"id": "1"}, "channel": {"id": "2", "name": "g"}, "messages": messages}
    (tmp_path / "g.json").write_text(json.dumps(channel))
    data = memlab.load(tmp_path / "g.json")
    assert data.turns.select("text", "forwarded_from", "quoted").rows() == [
        ("I live in @ann's shed.", "unknown", None),
        ("ha\nI live in @ann's shed.", None, ["I live in @ann's shed."]),
    ]


def test_a_chat_log_says_whose_words_a_text_holds_or_they_are_found(tmp_path: Path) -> None:
    path = log(
        tmp_path / "log.jsonl",
        {"sender": "Ann", "text": "I ski.", "forwarded_from": "Bo"},
        {"sender": "Ann", "text": "well: I ski", "quoted": "I ski"},
        {"sender": "Ann", "text": "> I sail\nno"},
        {"sender": "Ann", "text": "Bo: I sail"},
        {"sender": "Bo", "text": "I row"},
        {"sender": "Ann", "text": "Bo: I row"},
        {"sender": "assistant", "text": "> I row\nDo you?"},
    )
    data = memlab.load(path)
    assert data.turns["forwarded_from"].to_list() == ["Bo", *[None] * 6]
    quoted = data.turns["quoted"].to_list()
    assert quoted == [None, ["I ski"], ["I sail"], None, None, ["I row"], None]
    plain = memlab.load(log(tmp_path / "plain.jsonl", {"sender": "Ann", "text": "I ski."}))
    assert plain.fingerprint() == "97d074248fbc4dd5"
    told = {"sender": "Ann", "text": "I live in Oslo now, she told me."}
    prints = {
        memlab.load(log(tmp_path / "said.jsonl", told | named)).fingerprint()
        for named in ({}, {"quoted": ["I live in Oslo now"]}, {"quoted": "I live in Oslo"})
    }
    assert len(prints) == 3
    with pytest.raises(DataError, match="quoted"):
        memlab.load(log(tmp_path / "bad.jsonl", {"sender": "Ann", "text": "x", "quoted": 3}))


def test_topics_of_a_forum_are_sessions_and_stay_apart(tmp_path: Path) -> None:
    def opened(title: str) -> dict[str, Any]:
        return {"type": "service", "action": "topic_created", "title": title, "text": ""}

    path = telegram(
        tmp_path / "result.json",
        opened("Bikes"),
        opened("Bikes"),
        {"text": "mine is flat", "reply_to_message_id": 1},
        {"text": "general", "from": "Bo", "from_id": "user2"},
        {"text": "sold", "reply_to_message_id": 2},
        {"text": "which tyre?", "reply_to_message_id": 3, "from": "Bo", "from_id": "user2"},
        type="private_supergroup",
    )
    data = memlab.load(path)
    sessions = data.turns["session_id"].str.split("/").list.last()
    said = dict(zip(data.turns["text"], sessions, strict=True))
    assert said == {
        "mine is flat": "topic%20Bikes",
        "which tyre?": "topic%20Bikes",
        "sold": "topic%20Bikes%20(2)",
        "general": "@4",
    }


def test_slackdump_names_its_channel_and_a_thread_lies_in_it(tmp_path: Path) -> None:
    said = {"type": "message", "user": "U1", "text": "The boiler leaks", "ts": "1775210400.000100"}
    answer = said | {"user": "U2", "text": "Again?", "ts": "1775210460.0", "thread_ts": said["ts"]}
    about = {"channel_id": "C7", "name": "facilities"}
    thread = about | {"thread_ts": said["ts"], "messages": [said, answer]}
    (tmp_path / "C7.json").write_text(json.dumps(about | {"messages": [said]}))
    (tmp_path / "C7-1775210400.000100.json").write_text(json.dumps(thread))
    data = memlab.load(tmp_path)
    assert data.format == "slack"
    assert data.scopes == ["facilities"]
    assert sorted(data.turns["text"]) == ["Again?", "The boiler leaks"]


@pytest.mark.parametrize(
    "shown",
    [
        "This block is not supported on your current device yet.",
        "Viewing artifacts created via the Analysis Tool web feature preview isn’t yet supported on mobile.",
        "This artifact isn't available in your version of the app.",
    ],
)
def test_what_claude_writes_in_place_of_a_block_is_none_of_its_words(
    tmp_path: Path, shown: str
) -> None:
    text = f"Here.\n```\n{shown}\n```\nAnd ```\nprint('not shown')\n``` too."
    said = {"uuid": "a", "sender": "assistant", "content": [{"type": "text", "text": text}]}
    content = [{"uuid": "c", "name": "Plan", "chat_messages": [said]}]
    (tmp_path / "conversations.json").write_text(json.dumps(content))
    data = memlab.load(tmp_path / "conversations.json")
    assert data.turns["text"].to_list() == ["Here.\nAnd ```\nprint('not shown')\n``` too."]
    assert data.issues["found"].to_list() == ["1 block that the export does not show"]
