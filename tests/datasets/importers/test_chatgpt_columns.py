"""Plain conversations of ChatGPT are read in columns: with what the reader of single messages gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.datasets.importers import chatgpt
from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source

TEXTS = st.sampled_from(
    [
        "Hello there",
        " with blanks \n",
        "",
        "Zoë 🔥",
        "\ue200cite\ue202turn0\ue201 so",
        "<think>Where?</think>In Oslo.",
        "a [link] <b>",
        "◁think▷so◁/think▷ Yes",
        "a\0b",
        "\ud83d",
    ]
)
PLAIN = {
    "id": "m1",
    "author": {"role": "user", "name": None, "metadata": {}},
    "create_time": 1.7e9,
    "update_time": None,
    "content": {"content_type": "text", "parts": ["Hello"]},
    "status": "finished_successfully",
    "end_turn": True,
    "weight": 1.0,
    "metadata": {"model_slug": "gpt-4o"},
    "recipient": "all",
    "channel": None,
}
WORDS = {"note": "three words here"}
ODD: dict[str, list[Any]] = {
    "id": ["", "m 1", "m0", "Zoë", None, 7],
    "author": [{"role": "system"}, {"role": "tool"}, {"role": None}, {}, None],
    "create_time": [None, 0, -1.0, 1.6e9, 2e9, 1700000000, "2026-03-01T09:00:00Z", 1e12, True],
    "update_time": [1.7e9, "yesterday at noon", WORDS],
    "content": [
        {"content_type": "code", "text": "x = 1"},
        {"content_type": "text", "parts": ["one", "two"]},
        {"content_type": "text", "parts": [{"content_type": "image_asset_pointer"}]},
        {"content_type": "text", "parts": []},
        {"content_type": "thoughts", "thoughts": []},
        "Hello",
        None,
    ],
    "status": ["one two three", WORDS, None],
    "end_turn": [None, "no more words", []],
    "weight": [0.0, WORDS],
    "metadata": [
        {},
        None,
        [],
        {"is_visually_hidden_from_conversation": True},
        {"attachments": [{"name": "a.pdf"}]},
        {"is_user_system_message": False},
    ],
    "recipient": [None, "browser", "canmore.create", 3],
    "channel": ["analysis", "final", "the third one"],
    "aside": ["three words here", WORDS, 3, [], None],
}


@st.composite
def messages(draw: st.DrawFn, most: int = 2) -> dict[str, Any]:
    """Draw a message with as many odd fields at most."""
    role = draw(st.sampled_from(["user", "assistant"]))
    said = PLAIN | {"id": f"m{draw(st.integers(0, 30))}", "author": {"role": role}}
    said["content"] = {"content_type": "text", "parts": [draw(TEXTS)]}
    said["create_time"] = 1.7e9 + draw(st.integers(0, 600))
    for name in draw(st.lists(st.sampled_from(sorted(ODD)), max_size=most)):
        said[name] = draw(st.sampled_from(ODD[name]))
    for name in draw(st.lists(st.sampled_from(sorted(PLAIN)), max_size=most // 2)):
        said.pop(name, None)
    return said


def make_conversation(said: list[Any], end: Any) -> dict[str, Any]:
    """Make a conversation of one branch."""
    keys = [f"n{place}" for place in range(len(said) + 1)]
    mapping: dict[str, Any] = {keys[0]: {"parent": None, "children": keys[1:2], "message": None}}
    for place, message in enumerate(said, 1):
        near = {"parent": keys[place - 1], "children": keys[place + 1 : place + 2]}
        mapping[keys[place]] = near | {"message": message}
    about = {"conversation_id": "c1", "current_node": keys[-1], "update_time": end}
    return about | {"mapping": mapping}


def read(conversation: dict[str, Any], people: tuple[str, ...]) -> tuple[Any, ...]:
    """Read a conversation; give its records, and all that was noted of them."""
    source = Source(Path("conversations.json"), people=people)
    source.report.seen["me", "m0"] = "c0", 0
    records = list(chatgpt._read_chatgpt_conversation(source, Record(conversation)))
    report = source.report
    return (
        records,
        list(map(list, records)),
        +report.counts,
        report.seen,
        report.edited,
        report.newer,
    )


@given(
    st.lists(messages(most=0), min_size=1, max_size=4),
    st.lists(messages(), max_size=3),
    st.sampled_from([None, 1.7e9 + 700, 1.6e9, "soon"]),
    st.sampled_from([(), ("assistant",)]),
)
def test_columns_give_what_single_messages_give(
    plain: list[Any], odd: list[Any], end: Any, people: tuple[str, ...]
) -> None:
    for said in (plain, [*odd, *plain], [*plain, *odd]):
        conversation = make_conversation(said, end)
        with pytest.MonkeyPatch.context() as patch:
            given_columns = read(conversation, people)
            patch.setattr(chatgpt, "read_messages_if_all_plain", lambda *_: None)
            patch.setattr(chatgpt, "_branch_keys_if_all_name_parents", lambda *_: None)
            assert given_columns == read(conversation, people)


def test_a_plain_conversation_is_read_in_columns_behind_what_is_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hidden = PLAIN | {"id": "m3", "author": {"role": "system"}, "create_time": None}
    said = [hidden, PLAIN, PLAIN | {"id": "m2", "author": {"role": "assistant"}}]
    monkeypatch.setattr(chatgpt, "make_message_or_count_drop", None)  # whose call would fail
    records, *_ = read(make_conversation(said, 1.7e9), ())
    assert [record["id"] for record in records] == ["m1", "m2"]
