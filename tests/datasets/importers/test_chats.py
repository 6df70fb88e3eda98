"""Telegram, Slack and Discord: what their tools write wrong, who speaks, and what stands beside the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.datasets import json_streaming
from memlab.records import Dataset

SENT = {"type": "message", "date_unixtime": "1772355600", "from": "Ann", "from_id": "user1"}


def telegram(folder: Path, *messages: dict[str, Any], **chat: Any) -> Dataset:
    """Load a Telegram chat."""
    said = [SENT | {"id": n} | message for n, message in enumerate(messages)]
    text = json.dumps(
        {"name": "Trip", "type": "private_group", "id": 5} | chat | {"messages": said}, indent=1
    )
    for written, wrong in (
        ("\\u001b", "\\x1B"),
        ('"stickers/sticker (2).webm"', "stickers/sticker (2).webm"),
    ):
        text = text.replace(written, wrong)  # as Telegram Desktop writes it
    (folder / "result.json").write_text(text)
    return memlab.load(folder / "result.json")


MEMBER = {"id": 1, "name": "ann", "nickname": "Ann", "isBot": False}
WROTE = {"type": "message", "user": "U1", "text": ""}
USERS = [{"id": "U1", "real_name": "Ann"}, {"id": "U2", "real_name": "Bo"}]


def slack(
    folder: Path,
    *messages: dict[str, Any],
    users: list[dict[str, Any]] = USERS,
    channel: str = "C1",
) -> Dataset:
    """Load a Slack workspace of a channel."""
    said = [WROTE | {"ts": f"{1772355600 + n}.0"} | message for n, message in enumerate(messages)]
    tables = {"users.json": users, "channels.json": [{"id": channel, "name": "general"}]}
    for name, content in {**tables, "general/2026-03-01.json": said}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return memlab.load(folder)


def discord(folder: Path, *messages: dict[str, Any]) -> Dataset:
    """Load a Discord channel."""
    said = [
        {"id": n, "type": "Default", "content": "", "author": MEMBER} | each
        for n, each in enumerate(messages)
    ]
    channel = {"guild": {"id": 1}, "channel": {"id": 2, "name": "general"}, "messages": said}
    (folder / "general.json").write_text(json.dumps(channel))
    return memlab.load(folder / "general.json")


def issues(data: Dataset) -> list[tuple[str, str]]:
    """Give what was counted, and what became of it."""
    return data.issues.select("found", "action").rows()


@pytest.mark.parametrize("chunk", [1, 50, 1 << 20])
def test_what_telegram_writes_that_is_no_json_is_repaired(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_streaming, "_CHUNK", chunk)
    emoji = {"type": "custom_emoji", "text": "🔥", "document_id": "stickers/sticker (2).webm"}
    data = telegram(
        tmp_path, {"text": "C:\\\\x1B \x1b"}, {"text": [emoji, "!"]}, {"text": "\x1bbye"}
    )
    assert data.turns["text"].to_list() == ["C:\\\\x1B \x1b", "🔥!", "\x1bbye"]
    assert issues(data) == [("3 broken values of the JSON", "repaired")]
    file = tmp_path / "result.json"
    file.write_text(file.read_text() + "more")
    with pytest.raises(
        memlab.DataError, match=f"byte {file.stat().st_size - 4}: something after the end"
    ):
        memlab.load(file)


def test_two_workspaces_of_slack_are_apart_and_two_exports_of_one_are_not(tmp_path: Path) -> None:
    zeta = [{"id": "U9", "real_name": "Zoe"}]
    slack(tmp_path / "acme", {"text": "hi <@U1>"})
    slack(tmp_path / "acme 2", {"text": "hi <@U1>"}, {"text": "later"})
    slack(tmp_path / "zeta", {"text": "hello <#C9>", "user": "U9"}, users=zeta, channel="C9")
    rows = memlab.load(tmp_path).turns.select("scope", "speaker", "text").rows()
    first, other = "general", "general%20(C9)"
    assert rows == [
        (first, "Ann", "hi @Ann"),
        (first, "Ann", "later"),
        (other, "Zoe", "hello #general"),
    ]


RICH = [
    {"type": "text", "text": "a < b, ask "},
    {"type": "user", "user_id": "U1"},
    {"type": "text", "text": " about "},
    {"type": "link", "url": "https://a.b/?c&d", "text": "the plan"},
    {"type": "text", "text": ", again ask "},
    {"type": "channel", "channel_id": "C1"},
    {"type": "date", "timestamp": 1392734382, "format": "{date}", "fallback": "Feb 18"},
]
ROWS = [[{"type": "raw_text", "text": "a"}, {"type": "raw_text", "text": "b"}]]
SECTION = {
    "type": "section",
    "text": {"type": "mrkdwn", "text": "*Service:* <https://x.org|sink>"},
    "fields": ROWS[0],
}
SHOWN = "*Service:* sink (https://x.org)\na\nb"
LIST = {
    "type": "rich_text_list",
    "style": "ordered",
    "elements": [{"type": "rich_text_section", "elements": RICH[:1]}],
}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"text": "<!date^1392734382^{date}|Feb 18> <!date^1392734382^{date}>"}, "Feb 18 2014-02-18 14:39 UTC"),
        (
            {"blocks": [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": RICH}]}]},
            "a < b, ask @Ann about the plan (https://a.b/?c&d), again ask #generalFeb 18",
        ),
        ({"blocks": [{"type": "emoji", "name": "+1"}, {"type": "usergroup", "usergroup_id": None}]}, ":+1:\n@subteam"),
        ({"blocks": [{"type": "table", "rows": ROWS}, {"type": "markdown", "text": "c"}]}, "a | b\nc"),
        ({"text": "hi", "blocks": [SECTION]}, "hi"),
        ({"bot_id": "B", "text": "Down", "blocks": [SECTION, LIST]}, f"Down\n{SHOWN}\n1. a < b, ask"),
        ({"bot_id": "B", "text": "Service https x.org sink a b", "blocks": [SECTION]}, "Service https x.org sink a b"),
        ({"bot_id": "B", "text": "sink", "blocks": [SECTION]}, SHOWN),
        ({"attachments": [{"fallback": "[no preview available]", "blocks": [SECTION]}]}, SHOWN),
        ({"attachments": [{"title": "t", "fields": [{"title": "By", "value": "Bo"}, {"value": "x"}]}]}, "t\nBy: Bo\nx"),
    ],
)  # fmt: skip
def test_slack_texts_in_blocks_and_attachments(
    tmp_path: Path, message: dict[str, Any], text: str
) -> None:
    assert slack(tmp_path, message).turns["text"].to_list() == [text]


def test_a_slack_app_that_is_listed_among_the_people_is_none(tmp_path: Path) -> None:
    users = [*USERS, {"id": "UB", "real_name": "Jira", "is_bot": True}]
    update = {"text": "Updated", "attachments": [{"title": "PROJ-1", "text": "Fix it"}]}
    data = slack(
        tmp_path, update | {"user": "UB", "bot_id": "B1"}, update | {"bot_id": "B2"}, users=users
    )
    rows = data.turns.select("speaker", "role", "text").rows()
    assert rows == [("Jira", "other", "Updated\nPROJ-1\nFix it"), ("Ann", "user", "Updated")]
    assert issues(data) == [("1 preview of links", "left out")]


def test_people_of_one_name_are_several_speakers(tmp_path: Path) -> None:
    bot = MEMBER | {"id": 4, "isBot": True}
    said = discord(
        tmp_path,
        {"content": "<@3>", "mentions": [MEMBER | {"id": 3}]},
        {"author": bot, "content": "b"},
    )
    assert said.turns.select("speaker", "text").rows() == [("Ann", "@Ann (3)"), ("Ann", "b")]
    said = telegram(
        tmp_path, {"text": "a"}, {"from_id": "user2", "text": "b"}, {"from_id": 1, "text": "c"}
    )
    assert said.turns["speaker"].to_list() == ["Ann", "Ann (2)", "Ann"]
    users = [
        *USERS,
        {"id": "U3", "real_name": "Ann"},
        {"id": "UB", "real_name": "Ann", "is_bot": True},
    ]
    said = slack(
        tmp_path / "s",
        {"text": "a"},
        {"user": "U3", "text": "<@U1>"},
        {"user": "UB", "text": "b"},
        users=users,
    )
    assert said.turns.select("speaker", "text").rows() == [
        ("Ann", "a"),
        ("Ann (U3)", "@Ann"),
        ("Ann", "b"),
    ]
    (tmp_path / "s/dms.json").write_text('[{"id": "D1", "members": ["U1", "U3"]}]')
    (tmp_path / "s/D1").mkdir()
    (tmp_path / "s/D1/2026-03-01.json").write_text(
        json.dumps([WROTE | {"user": "U3", "text": "psst", "ts": "9.0"}])
    )
    assert memlab.load(tmp_path / "s/D1").turns.select("scope", "speaker").rows() == [
        ("Ann,%20Ann%20(U3)", "Ann (U3)")
    ]


@pytest.mark.parametrize("key", [4242, "user4242"])
def test_the_bot_of_a_telegram_chat_is_the_assistant(tmp_path: Path, key: Any) -> None:
    answer = {"from": "Weather", "from_id": key, "text": "rain"}
    data = telegram(tmp_path, {"text": "/start"}, answer, type="bot_chat", name="Weather", id=4242)
    assert data.turns["role"].to_list() == ["user", "assistant"]


def test_a_guest_of_a_shared_slack_channel_has_one_name_and_recordings_their_words(
    tmp_path: Path,
) -> None:
    guest = {"user": "U7", "user_profile": {"real_name": "Eve"}}
    heard = {
        "name": "clip",
        "transcription": {"preview": {"content": "I am late", "has_more": True}},
    }
    post = {"title": "Plan", "mode": "space", "preview": "<p>Launch in <b>May</b> &amp; June</p>"}
    data = slack(
        tmp_path, {"text": "<@U7>"}, guest | {"text": "hi"}, {"user": "U7", "files": [heard, post]}
    )
    rows = data.turns.select("speaker", "text", "caption").rows()
    heard_and_read = "I am late …\nLaunch in May & June"
    assert rows == [
        ("Ann", "@Eve", None),
        ("Eve", "hi", None),
        ("Eve", heard_and_read, "file: clip; file: Plan"),
    ]
    assert ("1 recording", "kept as their transcripts") in issues(data)


def test_who_wrote_what_was_forwarded_or_signed_in_telegram(tmp_path: Path) -> None:
    origins = [{"forwarded_from": name, "text": "I am moving"} for name in ("Carl", "Ann", None)]
    data = telegram(tmp_path, *origins, {"forwarded_from": "Carl", "photo": "x"})
    assert data.turns["text"].to_list() == [
        "Carl: I am moving",
        "I am moving",
        "Deleted Account: I am moving",
    ]
    assert issues(data) == [("3 forwarded messages", "kept"), ("1 photo without text", "left out")]
    post = {"from": "News", "from_id": "channel5", "author": "Bo", "text": "x"}
    assert telegram(tmp_path, post, type="public_channel").turns["speaker"].to_list() == ["Bo"]
    assert telegram(tmp_path, post).turns["speaker"].to_list() == ["News"]


def test_checklists_and_names_of_videos_in_telegram(tmp_path: Path) -> None:
    items = [
        {"text": "Milk", "id": 1},
        {"text": ["Eggs ", {"type": "bold", "text": "(6)"}], "id": 2},
    ]
    video = {"media_type": "video_file", "file_name": "holiday.mp4"}
    checklist = {"todo_list": {"title": "Shop", "answers": items}}
    data = telegram(tmp_path, checklist, video, video | {"media_type": "sticker"})
    assert data.turns.select("text", "caption").rows() == [
        ("Shop\nMilk / Eggs (6)", None),
        ("", "video: holiday.mp4"),
    ]
    assert ("1 checklist", "kept as text") in issues(data)


def test_what_is_forwarded_in_discord_keeps_its_embeds(tmp_path: Path) -> None:
    embed = {"title": "Release 2", "fields": [{"name": "by", "value": "Bo"}]}
    forwards: list[dict[str, Any]] = [{"embeds": [embed]}, {"stickers": [{"name": "wave"}]}]
    forwards += [{"content": "https://x.org", "embeds": [embed]}]
    data = discord(tmp_path, *({"forwardedMessage": forward} for forward in forwards))
    assert data.turns["text"].to_list() == ["Release 2\nby: Bo", "https://x.org"]
    assert issues(data) == [
        ("3 forwarded messages", "kept"),
        ("1 preview of links", "left out"),
        ("1 sticker", "left out"),
    ]
