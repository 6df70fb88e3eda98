"""Exports of Gemini, Copilot, Open WebUI, LibreChat, Character.AI, LM Studio and SillyTavern: what a layout gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.datasets import detect
from memlab.errors import DataError

Row = tuple[str, str, str, str | None]


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    path.write_text(text, "utf-8")
    return path


def rows(data: memlab.Dataset) -> list[Row]:
    """Session, speaker, text and time of each turn."""
    sessions = data.turns["session_id"].str.split("/").list.last().to_list()
    times = data.turns["timestamp"].dt.strftime("%d %H:%M").to_list()
    said = data.turns.select("speaker", "text").rows()
    return [
        (session, *words, time) for session, words, time in zip(sessions, said, times, strict=True)
    ]


def left_out(data: memlab.Dataset) -> dict[str, str]:
    return {
        found: action
        for _, found, action in data.issues.rows()
        if not action.startswith("times without a zone")
    }


def entry(title: str, time: str, answer: str = "", **more: Any) -> dict[str, Any]:
    shown = {"safeHtmlItem": [{"html": answer}]} if answer else {}
    about = {"header": "Gemini Apps", "title": title, "time": time, "products": ["Gemini Apps"]}
    return about | shown | more


def test_gemini_entries_stand_newest_first_and_share_the_address_of_their_conversation(
    tmp_path: Path,
) -> None:
    link = {"details": [{"name": "x", "url": "https://gemini.google.com/app/9f3a"}]}
    table = "<p>Two <b>trains</b>:</p><ol><li>Bergen</li><li>Voss &amp; on</li></ol>"
    listed = [
        entry(
            "Created Gemini Canvas titled Trip",
            "2026-04-03T12:00:00Z",
            subtitles=[{"name": "# Plan"}],
        ),
        entry("Gave feedback: Good response", "2026-04-03T11:00:00Z"),
        entry(
            "Prompted and back on Sunday?\nAttached 1 file.",
            "2026-04-03T10:02:00.5Z",
            "<p>Yes.</p>",
            subtitles=[{"name": "Attached 1 file."}, {"name": "-  ticket.pdf", "url": "t"}],
            **link,
        ),
        entry("Asked which train to Voss", "2026-04-03T10:00:00Z", table, **link),
        entry("Eingegebener Prompt: wie spät", "2026-04-02T10:00:00Z"),
        entry("Watched a video", "2026-04-01T10:00:00Z", header="YouTube", products=["YouTube"]),
    ]
    path = write(tmp_path / "Takeout/My Activity/Gemini Apps/MyActivity.json", listed)
    data = memlab.load(tmp_path / "Takeout")
    assert detect(path) == "gemini"
    first = "@~" + data.turns["turn_id"][0].rpartition("~")[2]
    assert rows(data) == [
        (first, "user", "Eingegebener Prompt: wie spät", "02 10:00"),
        ("9f3a", "user", "which train to Voss", "03 10:00"),
        ("9f3a", "assistant", "Two trains:\n- Bergen\n- Voss & on", "03 10:00"),
        ("9f3a", "user", "and back on Sunday?", "03 10:02"),
        ("9f3a", "assistant", "Yes.", "03 10:02"),
    ]
    assert data.turns["caption"].to_list()[3] == "file: ticket.pdf"
    assert left_out(data) == {
        "1 document": "left out",
        "1 other action": "left out",
        "1 action of other products": "left out",
        "1 prompt without an answer": "kept",
        "1 prompt": "kept with the word before them, in another language",
    }


def cell(said: str, details: str = "") -> str:
    """An entry of My Activity as a page has it."""
    body = "content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1"
    return (
        '<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid">'
        '<div class="header-cell mdl-cell mdl-cell--12-col"><p class="mdl-typography--title">Gemini Apps'
        f'<br></p></div><div class="{body}">{said}</div><div class="{body} mdl-typography--text-right">'
        '</div><div class="content-cell mdl-cell mdl-cell--12-col mdl-typography--caption"><b>Products:'
        f"</b><br>&emsp;Gemini Apps<br><b>Why is this here?</b><br>{details}</div></div></div>"
    )


BUS = (
    'Prompted&nbsp;and by bus?<br>on a Sunday<br>Attached 1 file.<br>-&nbsp; <a href="a.png">a.png</a><br>'
    "Apr 3, 2026, 10:02:00&#8239;AM CEST<br><p>Line 31, <em>every</em> hour.</p>"
    "<pre><code>if x:\n    go()</code></pre>"
)
PAGE = "".join(
    [
        "<html><head><title>My Activity</title><style>.x{}</style></head><body>",
        cell(BUS, '<a href="https://gemini.google.com/app/77aa">From Gemini</a>'),
        cell("Used an Assistant feature<br>3 Apr 2026, 09:30:00 CEST<br>"),
        cell("Prompted&nbsp;how far is Voss<br>3 Apr 2026, 09:00:00 GMT+2<br><p>An hour.</p>"),
        "</body></html>",
    ]
)


def test_gemini_as_a_page(tmp_path: Path) -> None:
    data = memlab.load(write(tmp_path / "My Activity/Gemini Apps/MyActivity.html", PAGE))
    assert [row[1:] for row in rows(data)] == [
        ("user", "how far is Voss", "03 07:00"),
        ("assistant", "An hour.", "03 07:00"),
        ("user", "and by bus?\non a Sunday", "03 08:02"),
        ("assistant", "Line 31, every hour.\nif x:\n    go()", "03 08:02"),
    ]
    assert rows(data)[2][0] == "77aa"
    assert data.turns["caption"][2] == "file: a.png"
    assert left_out(data) == {"1 other action": "left out"}
    other = PAGE.replace("Gemini", "YouTube").replace("gemini", "youtube")
    with pytest.raises(DataError, match="a web page"):
        memlab.load(write(tmp_path / "other.html", other))


@pytest.mark.parametrize(
    ("lines", "prompt", "files"),
    [
        (["to buy:", "- two eggs", "- pears"], "to buy:\n- two eggs\n- pears", None),
        (["to buy:", "- eggs", "Attached 1 file.", "- a.png"], "to buy:\n- eggs", "file: a.png"),
        (["see", "Attached 2 files.", "- a", "- b"], "see", "file: a; file: b"),
        (["see", "Attached 1 file.", "- a", "- two eggs"], "see\n- two eggs", "file: a"),
        (
            ["Attached 2 files.", "- eggs", "- pears", "Attached 1 file.", "- a"],
            "Attached 2 files.\n- eggs\n- pears",
            "file: a",
        ),
        (["look", "- eggs", "Attached 2 files.", "thanks"], None, None),
        (["look. Attached 2 files."], None, None),
    ],
)
def test_gemini_files_stand_behind_their_number(
    tmp_path: Path, lines: list[str], prompt: str | None, files: str | None
) -> None:
    title = "Prompted " + "\n".join(lines)
    said = "<br>".join(["Prompted&nbsp;" + lines[0], *lines[1:], "3 Apr 2026, 09:00:00 GMT+2"])
    page = "<html><body>" + cell(said + "<br><p>Yes.</p>") + "</body></html>"
    for path in (
        write(tmp_path / "My Activity/Gemini Apps/MyActivity.html", page),
        write(tmp_path / "json/MyActivity.json", [entry(title, "2026-04-03T07:00:00Z", "Yes.")]),
    ):
        data = memlab.load(path)
        wanted = "\n".join(lines) if prompt is None else prompt
        assert data.turns["text"].to_list() == [wanted, "Yes."]
        assert data.turns["caption"].to_list() == [files, None]
        assert left_out(data) == {}


def test_what_stands_beside_a_prompt_of_gemini_is_no_answer(tmp_path: Path) -> None:
    notes = [{"name": "Used on your phone"}, {"name": "a fern", "value": "grows beside it"}]
    files = [{"name": "Attached 1 file."}, {"name": "-  a.png", "url": "a"}, {"name": "- tea"}]
    listed = [
        entry("Prompted and back?", "2026-04-03T10:02:00Z", "Yes.", subtitles=notes),
        entry("Prompted which train?", "2026-04-03T10:01:00Z", subtitles=[*notes, *files]),
    ]
    data = memlab.load(write(tmp_path / "MyActivity.json", listed))
    assert [row[1:3] for row in rows(data)] == [
        ("user", "which train?"),
        ("user", "and back?"),
        ("assistant", "Yes."),
    ]
    assert data.turns["caption"].to_list() == ["file: a.png", None, None]
    assert left_out(data) == {
        "5 notes beside prompts": "left out",
        "1 prompt without an answer": "kept",
    }


def test_copilots_rows_are_turned_round_and_never_sorted(tmp_path: Path) -> None:
    text = (
        "\ufeffConversation,Time,Author,Message\r\n"
        '"Voss",2026-04-03T10:05:00,AI,"Two:\n- Bergen, at six\n- ""Voss"""\r\n'
        '"Voss",2026-04-03T10:05:00,Human,"Which trains?"\r\n'
        '"Gift",2026-04-02T10:00:00,AI,"A cup."\r\n"Gift",2026-04-02T10:00:00,Human,"What for my aunt?"\r\n'
    )
    data = memlab.load(write(tmp_path / "copilot-activity-history.csv", text))
    assert data.format == "copilot"
    assert rows(data) == [
        ("Gift", "user", "What for my aunt?", "02 10:00"),
        ("Gift", "assistant", "A cup.", "02 10:00"),
        ("Voss", "user", "Which trains?", "03 10:05"),
        ("Voss", "assistant", 'Two:\n- Bergen, at six\n- "Voss"', "03 10:05"),
    ]
    text = (
        "CreatedAt,MessageContent,Author,ChatName\n4/3/2026 10:00:00 +02:00,Which trains?,user,Voss\n"
        "4/3/2026 10:00:01 +02:00,Two.,bot,Voss\n4/3/2026 10:00:02 +02:00,Indeed.,Ann Moe,Voss\n"
    )
    data = memlab.load(write(tmp_path / "copilot-chat-activity.csv", text))
    assert [row[1:] for row in rows(data)] == [
        ("user", "Which trains?", "03 08:00"),
        ("assistant", "Two.", "03 08:00"),
        ("Ann Moe", "Indeed.", "03 08:00"),
    ]


def node(
    own: str, parent: str | None, role: str, content: Any, at: int, **more: Any
) -> dict[str, Any]:
    about = {"id": own, "parentId": parent, "childrenIds": [], "role": role, "content": content}
    return about | {"timestamp": 1775210400 + at} | more


def webui(own: str, *nodes: dict[str, Any], current: str = "", **more: Any) -> dict[str, Any]:
    history = {"messages": {each["id"]: each for each in nodes}, "currentId": current or None}
    chat = {"title": own, "models": ["m"], "history": history, "messages": [], "params": {}}
    return {"id": own, "user_id": "u1", "title": own, "chat": chat | more, "archived": False}


def test_open_webui_gives_the_branch_that_is_shown(tmp_path: Path) -> None:
    hidden = (
        '<details type="reasoning" done="true" duration="2">\n<summary>Thought</summary>\n> hm\n</details>\n'
        '<details type="tool_calls" done="true" id="c" name="x"><summary>Ran</summary></details>\nAt six.'
    )
    trip = webui(
        "trip",
        node("q", None, "user", "When?", 0, files=[{"type": "file", "name": "plan.pdf"}]),
        node("a", "q", "assistant", "Never.", 1),
        node("b", "q", "assistant", hidden, 2),
        node("t", "b", "user", [{"type": "text", "text": "And back?"}], 3),
        node("e", "t", "assistant", "", 4, error={"content": "no model"}),
        node(
            "f",
            "t",
            "assistant",
            "",
            5,
            output=[{"type": "message", "content": [{"type": "output_text", "text": "At nine."}]}],
        ),
        current="f",
        system="Be brief.",
    )
    newest = webui("two", node("x", None, "user", "Hi", 0), node("y", "x", "assistant", "Ho", 1))
    old = webui("old")
    old["chat"]["messages"] = [{"role": "user", "content": "Long ago"}]
    other = webui("three", node("z", None, "user", "Not me", 9)) | {"user_id": "u2"}
    data = memlab.load(write(tmp_path / "chat-export-1.json", [trip, newest, old, other]))
    assert data.format == "open_webui"
    assert [(row[0], row[2]) for row in rows(data)] == [
        ("trip", "When?"),
        ("trip", "At six."),
        ("trip", "And back?"),
        ("trip", "At nine."),
        ("two", "Hi"),
        ("two", "Ho"),
        ("old", "Long ago"),
        ("three", "Not me"),
    ]
    assert data.scopes == ["me", "u2"]
    assert data.turns.filter(text="When?")["caption"].to_list() == ["file: plan.pdf"]
    assert left_out(data) == {
        "1 system message": "left out",
        "1 thought": "left out",
        "1 tool call": "left out",
        "2 messages of other branches": "left out",
    }
    # A chat alone, as its menu saves it.
    assert len(memlab.load(write(tmp_path / "one.json", trip)).turns) == 4
    assert len(memlab.load(write(tmp_path / "bare.json", trip["chat"] | {"id": "c"})).turns) == 4


def libre(
    own: str, parent: str, text: str, at: int, *, user: bool = False, **more: Any
) -> dict[str, Any]:
    about = {"messageId": own, "parentMessageId": parent, "conversationId": "c9", "text": text}
    about |= {"sender": "User" if user else "Claude", "isCreatedByUser": user}
    return about | {"createdAt": f"2026-04-03T10:0{at}:00.000Z", "error": False} | more


ABOUT_TAGS = [
    'Write <details type="reasoning"> first. The boat is red.',
    '```html\n<details type="reasoning">a</details>\n```\nThe boat is red.',
    "Write :::thinking and end it with ::: on a line. The boat is red.",
    "Ask for `<antThinking>hm</antThinking>` there. The boat is red.",
]


@pytest.mark.parametrize("text", ABOUT_TAGS)
def test_an_answer_about_the_marks_of_thoughts_holds_none(tmp_path: Path, text: str) -> None:
    chat = webui("c", node("q", None, "user", text, 0), node("a", "q", "assistant", text, 1))
    listed = [libre("q", "0", text, 0, user=True), libre("a", "q", text, 1)]
    messages = [
        {"uuid": "q", "sender": "human", "text": text, "created_at": "2026-04-03T10:00:00Z"},
        {"uuid": "a", "sender": "assistant", "text": "Yes.", "created_at": "2026-04-03T10:01:00Z"},
    ]
    claude = [{"uuid": "c", "name": "", "chat_messages": messages}]
    for name, content, answer in (
        ("chat-export-1.json", [chat], text),
        ("bus.json", {"conversationId": "c9", "messages": listed}, text),
        ("conversations.json", claude, "Yes."),
    ):
        data = memlab.load(write(tmp_path / name, content))
        assert data.turns["text"].to_list() == [text, answer], name
        assert left_out(data) == {}


ROOT = "00000000-0000-0000-0000-000000000000"
ANSWER = [
    {"type": "think", "think": "Let me see."},
    {"type": "text", "text": {"value": "Line 31."}},
    {"type": "tool_call", "tool_call": {"name": "bus"}},
]


@pytest.mark.parametrize("recursive", [False, True])
def test_librechat_gives_the_newest_branch(tmp_path: Path, *, recursive: bool) -> None:
    said = [
        libre(
            "m1",
            ROOT,
            "Which bus?",
            0,
            user=True,
            files=[{"filename": "map.png", "type": "image/png"}],
        ),
        libre("m2", "m1", "No idea.", 1),
        libre("m3", "m1", "", 2, content=ANSWER),
        libre("m4", "m3", "When?", 3, user=True),
        libre("m5", "m4", "quota exceeded", 4, error=True),
        libre("m6", "m4", ":::thinking\nhm hm hm\n:::\nAt nine.", 5),
    ]
    listed = said
    if recursive:
        by_id = {each["messageId"]: each | {"children": []} for each in said}
        for each in by_id.values():
            if each["parentMessageId"] in by_id:
                by_id[each["parentMessageId"]]["children"].append(each)
        listed = [by_id["m1"]]
    export = {"conversationId": "c9", "endpoint": "x", "title": "Bus", "recursive": recursive}
    export |= {"options": {"promptPrefix": "Be brief."}, "messages": listed}
    data = memlab.load(write(tmp_path / "bus.json", export))
    assert data.format == "librechat"
    assert rows(data) == [
        ("c9", "user", "Which bus?", "03 10:00"),
        ("c9", "assistant", "Line 31.", "03 10:02"),
        ("c9", "user", "When?", "03 10:03"),
        ("c9", "assistant", "At nine.", "03 10:05"),
    ]
    assert left_out(data) == {
        "1 system message": "left out",
        "2 messages of other branches": "left out",
        "2 thoughts": "left out",
        "1 tool call": "left out",
    }


def test_rows_of_librechats_messages_keep_users_and_conversations_apart(tmp_path: Path) -> None:
    lines = [
        libre("m1", ROOT, "Mine", 0, user=True) | {"user": "u1", "conversationId": "c1"},
        libre("n1", ROOT, "Theirs", 1, user=True) | {"user": "u2", "conversationId": "c2"},
        libre("m2", "m1", "Yours", 2) | {"user": "u1", "conversationId": "c1"},
    ]
    path = write(tmp_path / "messages.jsonl", "\n".join(map(json.dumps, lines)))
    data = memlab.load(path)
    assert data.turns.select("scope", "text").rows() == [
        ("me", "Mine"),
        ("me", "Yours"),
        ("u2", "Theirs"),
    ]


def turn(
    own: str, name: str, at: int, *versions: str, human: bool = False, shown: int = 0
) -> dict[str, Any]:
    author = {"author_id": "1", "name": name} | ({"is_human": True} if human else {})
    made = [{"candidate_id": f"{own}{n}", "raw_content": text} for n, text in enumerate(versions)]
    about = {"turn_key": {"chat_id": "h7", "turn_id": own}, "author": author, "candidates": made}
    return about | {
        "create_time": f"2026-04-03T10:0{at}:00Z",
        "primary_candidate_id": f"{own}{shown}",
    }


def test_character_ai_gives_the_version_that_is_shown_in_the_order_of_time(tmp_path: Path) -> None:
    turns = [
        turn("c", "Ruth", 2, "Aye.", "Nay.", shown=1),
        turn("b", "tove", 1, "Sail?", human=True),
        turn("a", "Ruth", 0, "Ahoy."),
    ]
    expected = [
        ("h7", "Ruth", "Ahoy.", "03 10:00"),
        ("h7", "tove", "Sail?", "03 10:01"),
        ("h7", "Ruth", "Nay.", "03 10:02"),
    ]
    for content in ({"chats": [{"chat_id": "h7", "turns": turns}]}, {"turns": turns}):
        data = memlab.load(write(tmp_path / "c.json", content))
        assert (data.format, rows(data)) == ("character_ai", expected)
        assert data.turns["role"].to_list() == ["assistant", "user", "assistant"]
        assert left_out(data) == {"1 message of other branches": "left out"}
    old = [
        {
            "id": 1,
            "text": "Ahoy.",
            "src__name": "Ruth",
            "src__is_human": False,
            "is_alternative": False,
        },
        {
            "id": 2,
            "text": "Never said.",
            "src__name": "Ruth",
            "src__is_human": False,
            "is_alternative": True,
        },
        {
            "id": 3,
            "text": "Sail?",
            "src__name": "tove",
            "src__is_human": True,
            "is_alternative": False,
        },
    ]
    for content in (
        {"histories": {"histories": [{"external_id": "e1", "msgs": old}]}},
        {"histories": [{"external_id": "e1", "messages": old}]},
    ):
        data = memlab.load(write(tmp_path / "old.json", content))
        assert rows(data) == [("e1", "Ruth", "Ahoy.", None), ("e1", "tove", "Sail?", None)]
        assert left_out(data) == {"1 message of other branches": "left out"}
    saved = {
        "histories": [
            [{"name": "Ruth", "message": "Ahoy.", "isHuman": False}],
            [{"name": "t", "message": "Hi", "isHuman": True}],
        ]
    }
    data = memlab.load(write(tmp_path / "tools.json", saved))
    assert [row[:3] for row in rows(data)] == [("tools-1", "Ruth", "Ahoy."), ("tools-2", "t", "Hi")]


def block(*texts: str, style: str = "") -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"type": "contentBlock", "content": content} | (
        {"style": {"type": style}} if style else {}
    )


def test_lm_studio_gives_the_version_that_is_selected(tmp_path: Path) -> None:
    def said(*versions: dict[str, Any], selected: int = 0) -> dict[str, Any]:
        return {"versions": list(versions), "currentlySelected": selected}

    user = {"type": "singleStep", "role": "user"}
    file = {"type": "file", "fileIdentifier": "17 - rye.png", "fileType": "image"}
    first = user | {"content": [{"type": "text", "text": "Is it dead?"}, file]}
    again = user | {"content": [{"type": "text", "text": "Is my starter dead?"}, file]}
    model = {"type": "multiStep", "role": "assistant", "senderInfo": {"senderName": "gemma"}}
    steps = [
        block("Acetone means hunger", style="thinking"),
        block("No. ", "Feed it."),
        {"type": "toolStatus", "callId": 1},
        {"type": "debugInfoBlock", "debugInfo": "named by prompt"},
    ]
    export = {
        "name": "Rye",
        "createdAt": 1775210400000,
        "systemPrompt": "You bake.",
        "notes": [],
        "messages": [said(first, again, selected=1), said(model | {"steps": steps})],
    }
    for number in (7, 8):
        write(tmp_path / f"chats/{number}.conversation.json", export)
    data = memlab.load(tmp_path / "chats")
    assert data.format == "lm_studio"
    assert rows(data)[:2] == [
        ("7", "user", "Is my starter dead?", "03 10:00"),
        ("7", "gemma", "No. \nFeed it.", "03 10:00"),
    ]
    assert {row[0] for row in rows(data)} == {"7", "8"}
    assert data.turns["caption"][0] == "image: 17 - rye.png"
    assert left_out(data) == {
        "2 images": "described in captions",
        "2 lines about the session": "left out",
        "2 messages of other branches": "left out",
        "2 system messages": "left out",
        "2 thoughts": "left out",
        "2 times of conversations": "given to their messages, which have none",
        "2 tool calls": "left out",
    }


def test_silly_tavern_gives_the_swipe_that_is_shown(tmp_path: Path) -> None:
    def said(name: str, mes: str, at: Any, *, user: bool = False, **more: Any) -> dict[str, Any]:
        about = {"name": name, "is_user": user, "is_system": False, "send_date": at, "mes": mes}
        return about | more

    lines = [
        {
            "user_name": "unused",
            "character_name": "unused",
            "chat_metadata": {"note_prompt": "Be kind."},
        },
        said("Mira", "Good evening.", "April 3, 2026 8:15pm", extra={"reasoning": "He is late."}),
        said(
            "Tove",
            "I passed!",
            "2026-04-03@20h16m12s",
            user=True,
            extra={"image": "x.png", "title": "a grade"},
        ),
        said(
            "Mira",
            "Well done.",
            "2026-4-3 @20h 17m 0s 5ms",
            swipes=["Oh.", "Well done."],
            swipe_id=1,
        ),
        said("SillyTavern System", "Help text", "2026-04-03T20:18:00Z", is_system=True),
        said("Tove", "Keep this quiet.", "2026-04-03T20:18:30.000Z", user=True, is_system=True),
        said("Narrator", "Night falls.", 1775247540000, extra={"type": "narrator"}),
    ]
    path = write(tmp_path / "Mira - 2026-04-03.jsonl", "\n".join(map(json.dumps, lines)))
    data = memlab.load(path)
    session = "Mira%20-%202026-04-03"
    assert data.format == "silly_tavern"
    assert rows(data) == [
        (session, "Mira", "Good evening.", "03 20:15"),
        (session, "Tove", "I passed!", "03 20:16"),
        (session, "Mira", "Well done.", "03 20:17"),
        (session, "Tove", "Keep this quiet.", "03 20:18"),
    ]
    assert data.turns["role"].to_list() == ["assistant", "user", "assistant", "user"]
    assert data.turns["caption"][1] == "image: a grade"
    assert left_out(data) == {
        "1 message of other branches": "left out",
        "1 thought": "left out",
        "3 system messages": "left out",
        "1 message hidden from the model": "kept",
    }


@pytest.mark.parametrize(
    ("name", "content", "called"),
    [
        (
            "ui_messages.json",
            [{"ts": 1769940000000, "type": "say", "say": "text", "text": "mend it"}],
            "Cline",
        ),
        (
            "MyActivity.json",
            [
                {
                    "header": "Search",
                    "title": "Searched for x",
                    "titleUrl": "u",
                    "time": "t",
                    "products": ["Search"],
                }
            ],
            "Google's activity",
        ),
        (
            "thread.json",
            {"id": "jan_1", "object": "thread", "title": "t", "assistants": [], "created": 1},
            "a Jan thread",
        ),
        (
            "chat.json",
            {"requesterUsername": "a", "responderUsername": "GitHub Copilot", "requests": []},
            "GitHub Copilot",
        ),
        (
            "20260403.json",
            {"internal": [["a", "b"]], "visible": [["a", "b"]]},
            "text-generation-webui",
        ),
    ],
)
def test_what_is_not_read_is_named(tmp_path: Path, name: str, content: Any, called: str) -> None:
    with pytest.raises(DataError, match=called):
        memlab.load(write(tmp_path / name, content))
