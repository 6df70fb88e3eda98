"""Exports of messengers: names, threads, bots, media, and what the tool itself wrote."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import memlab
from memlab.records import Dataset


def written(file: Path, content: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def said(data: Dataset) -> list[tuple[str, str]]:
    return data.turns.select("speaker", "text").rows()


def counts(data: Dataset) -> set[str]:
    return set(data.issues.filter(data.issues["where"].str.ends_with(": export"))["found"])


def telegram(key: int, **more: Any) -> dict[str, Any]:
    about = {"id": key, "type": "message", "date": "2026-03-01T10:00:00", "date_unixtime": f"{1772355600 + key}"}
    return about | {"from": "Ann", "from_id": "user1", "text": "", "text_entities": []} | more


def test_telegram_chat(tmp_path: Path) -> None:
    link = {"type": "text_link", "text": "here", "href": "https://x.org/"}
    poll = {"question": "Where?", "closed": False, "answers": [{"text": "Oslo"}, {"text": "Bergen"}]}
    messages = [
        telegram(1, type="service", action="pin_message", actor="Ann"),
        telegram(2, type="service", action="group_call", actor="Ann"),
        telegram(3, text=["see ", link, {"type": "mention", "text": "@bo"}], edited="2026-03-01T10:01:00"),
        telegram(4, poll=poll),
        telegram(5, file="voice.ogg", media_type="voice_message", duration_seconds=3),
        telegram(6, photo="(File not included)", text="my cat"),
        telegram(7, file="files/Lease.pdf", file_name="Lease.pdf", mime_type="application/pdf"),
        telegram(8, location_information={"latitude": 1.0, "longitude": 2.0}),
        telegram(9, place_name="Café", location_information={"latitude": 1.0, "longitude": 2.0}),
        telegram(10, text="ok", forwarded_from="Bo", **{"from": "Claude"}),
        telegram(11, type="unsupported"),
        telegram(12, text="from nobody", **{"from": None}),
    ]
    chat = {"name": "Trip", "type": "private_group", "id": 7, "messages": messages}
    data = memlab.load(written(tmp_path / "result.json", chat))
    assert (data.scopes, data.format) == (["Trip"], "telegram")
    wanted = [("Ann", "see here (https://x.org/)@bo"), ("Ann", "Where?\nOslo / Bergen"), ("Ann", "my cat"), ("Ann", "")]
    assert said(data) == [*wanted, ("Ann", ""), ("Claude", "ok"), ("user1", "from nobody")]
    assert data.turns["caption"].drop_nulls().to_list() == ["photo", "file: Lease.pdf", "location: Café"]
    assert data.turns["role"].to_list().count("assistant") == 1
    assert {"1 call", "1 system message", "1 unsupported message", "1 edited message", "1 forwarded message"} <= counts(
        data
    )
    assert {"1 voice message without text", "1 location without text", "1 poll", "1 photo"} <= counts(data)


def test_telegram_account_has_a_scope_a_chat(tmp_path: Path) -> None:
    chats = [
        {"name": "Ann", "type": "personal_chat", "id": 1, "messages": [telegram(1, text="hi")]},
        {"name": "Helper", "type": "bot_chat", "id": 2, "messages": [telegram(1, text="hello", from_id="user2")]},
        {"type": "saved_messages", "id": 3, "messages": [telegram(1, text="note")]},
        {"name": "Ann", "type": "personal_chat", "id": 4, "messages": [telegram(1, text="another Ann")]},
        {"name": None, "type": "personal_chat", "id": 5, "messages": []},
    ]
    about = {"about": "Here is", "personal_information": {"user_id": 9}, "contacts": {"list": []}}
    file = written(tmp_path / "result.json", about | {"chats": {"about": "x", "list": chats}})
    data = memlab.load(file)
    assert data.scopes == ["Ann", "Helper", "Saved%20messages", "Ann%20(4)"]
    assert data.turns["role"].to_list() == ["user", "assistant", "user", "user"]
    assert said(memlab.load(file, scope="Ann (4)")) == [("Ann", "another Ann")]
    old = {key: value for key, value in telegram(1, text="old").items() if key != "date_unixtime"}
    file = written(tmp_path / "old" / "result.json", {"name": "B", "type": "personal_chat", "id": 1, "messages": [old]})
    assert str(memlab.load(file, tz="Europe/Oslo").turns["timestamp"][0]) == "2026-03-01 09:00:00+00:00"


USERS = [
    {"id": "U1", "name": "ann", "profile": {"display_name": "ann", "real_name": "Ann Moe"}},
    {"id": "U2", "name": "bo", "deleted": True, "profile": {"display_name": "bo"}},
]


def slack(folder: Path) -> None:
    written(folder / "users.json", USERS)
    written(folder / "channels.json", [{"id": "C1", "name": "general", "members": ["U1"]}])
    written(folder / "dms.json", [{"id": "D1", "members": ["U1", "U2"]}])
    written(folder / "integration_logs.json", [])
    day = [
        {"type": "message", "user": "U1", "ts": "1772355600.000100",
         "text": "<@U2> see <https://x.org|the page> &amp; <#C1|general> <!here> <mailto:a@b.c|a@b.c>"},
        {"type": "message", "user": "U2", "ts": "1772355601.0", "text": "in a thread", "thread_ts": "1772355500.0"},
        {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1772355602.0", "text": "joined"},
        {"type": "message", "subtype": "tombstone", "user": "U2", "ts": "1772355603.0", "text": "was deleted"},
        {"type": "message", "subtype": "bot_message", "bot_id": "B1", "username": "ci", "ts": "1772355604.0",
         "attachments": [{"title": "Build", "text": "7 failed"}]},
        {"type": "message", "user": "U9", "ts": "1772355605.0", "text": "", "user_profile": {"real_name": "Cy Ek"},
         "files": [{"name": "plan.png", "mimetype": "image/png"}], "edited": {"ts": "1"}},
        {"type": "message", "user": "U3", "bot_id": "B2", "bot_profile": {"name": "Claude"}, "ts": "1772355606.0",
         "text": "I am", "blocks": [{"type": "rich_text"}]},
        {"type": "message", "user": "U1", "ts": "1772355607.0", "text": "",
         "blocks": [{"type": "rich_text", "elements": [{"elements": [{"type": "text", "text": "block text"}]}]}]},
    ]  # fmt: skip
    written(folder / "general" / "2026-03-01.json", day)
    written(folder / "general" / "2026-03-02.json", [])
    written(
        folder / "D1" / "2026-03-01.json", [{"type": "message", "user": "U1", "ts": "1772355600.0", "text": "psst"}]
    )


def test_slack_folder_and_archive(tmp_path: Path) -> None:
    slack(tmp_path / "export")
    archive = tmp_path / "slack.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in (tmp_path / "export").rglob("*.json"):
            packed.write(file, file.relative_to(tmp_path / "export"))
    for place in (tmp_path / "export", archive):
        assert set(memlab.load(place).scopes) == {"general", "Ann%20Moe,%20bo"}
        data = memlab.load(place, scope="general")
        assert dict(said(data)) == {
            "Ann Moe": "block text", "bo": "in a thread", "ci": "Build\n7 failed", "Cy Ek": "", "Claude": "I am"
        }  # fmt: skip
        assert ("Ann Moe", "@bo see the page (https://x.org) & #general @here a@b.c") in said(data)
        assert dict(data.turns.select("speaker", "role").rows())["ci"] == "other"
        assert dict(data.turns.select("speaker", "role").rows())["Claude"] == "assistant"
        assert "general/thread%201772355500.0" in data.turns["session_id"]
        assert counts(data) == {"1 system message", "1 deleted message", "1 edited message", "1 file"}


def test_one_day_of_slack_is_not_taken_for_a_chat_log(tmp_path: Path) -> None:
    slack(tmp_path)
    file = tmp_path / "general" / "2026-03-01.json"
    assert memlab.datasets.detect(file) == "slack"
    assert "Ann Moe" in dict(said(memlab.load(file)))  # users.json lies above


def test_discord(tmp_path: Path) -> None:
    def message(key: str, author: str, content: str = "", **more: Any) -> dict[str, Any]:
        person = {"id": f"9{author}", "name": author.lower(), "nickname": author, "isBot": author in ("Ci", "ChatGPT")}
        about = {"id": key, "type": "Default", "timestamp": f"2026-03-01T10:00:0{key}.123+01:00", "author": person}
        return about | {"content": content, "attachments": [], "embeds": [], "stickers": [], "mentions": []} | more

    messages = [
        message("1", "Ann", "hi <@!9Bo> <:wave:123>", mentions=[{"id": "9Bo", "name": "bo", "nickname": "Bo Lie"}]),
        message("2", "Ann", "Started a call", type="Call"),
        message("3", "Bo", "joined", type="GuildMemberJoin"),
        message("4", "Ci", embeds=[{"title": "Build", "description": "7 failed"}]),
        message("5", "Bo", attachments=[{"fileName": "plan.pdf"}], timestampEdited="2026-03-01T10:01:00+01:00"),
        message("6", "Ann", type="Reply", stickers=[{"name": "wave"}]),
        message("7", "Ann", forwardedMessage={"content": "read this", "attachments": []}),
        message("8", "ChatGPT", "as you wish", type="20"),
    ]
    about = {"guild": {"id": "1", "name": "Home"}, "exportedAt": "2026-03-03T00:00:00+00:00", "messageCount": 8}
    for part, some in enumerate((messages[:4], messages[4:])):
        channel = {"id": "2", "type": "GuildTextChat", "name": "general"}
        written(tmp_path / f"general [part {part}].json", about | {"channel": channel, "messages": some})
    other = {"id": "3", "type": "GuildTextChat", "name": "general"}
    written(tmp_path / "z.json", about | {"channel": other, "messages": [message("1", "Ann", "elsewhere")]})
    data = memlab.load(tmp_path)
    assert data.scopes == ["general", "general%20(3)"]
    wanted = [("Ann", "hi @Bo Lie :wave:"), ("Ci", "Build\n7 failed"), ("Bo", ""), ("Ann", "read this")]
    assert said(data) == [*wanted, ("ChatGPT", "as you wish"), ("Ann", "elsewhere")]
    assert data.turns["role"].to_list() == ["user", "other", "user", "user", "assistant", "user"]
    assert str(data.turns["timestamp"][0]) == "2026-03-01 09:00:01.123000+00:00"
    wanted_counts = {"1 call", "1 system message", "1 file", "1 edited message", "1 sticker", "1 forwarded message"}
    assert counts(data) == wanted_counts
