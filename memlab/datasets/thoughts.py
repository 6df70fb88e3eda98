"""Thoughts of a model that stand in the text of its answer, between tags, as models that reason write them."""

from __future__ import annotations

import re

_TAG = r"(?:ant|seed:)?think(?:ing)?|thoughts?|reasoning"
_CODE = r"```.*?(?:```|\Z)|`[^`\n]+`"
_THOUGHT = re.compile(
    rf"(?P<code>{_CODE})"
    rf"|<(?P<tag>{_TAG})\b[^<>]*>.*?(?:</(?P=tag)\s*>|\Z)"
    r"|<details\b[^<>]*\btype=[\"']reasoning[\"'][^<>]*>.*?(?:</details>|\Z)"
    r"|◁think▷.*?(?:◁/think▷|\Z)"
    # The channels of gpt-oss: what is not final is thought.
    r"|(?:<\|start\|>\w+)?<\|channel\|>(?:analysis|commentary)\b.*?(?:<\|end\|>|\Z)"
    # Templates of chats write the opening tag, which is then in no answer.
    rf"|\A(?:(?!<(?:{_TAG})\b|```).)*?</(?:{_TAG})\s*>",
    re.DOTALL | re.IGNORECASE,
)
_MAY_HOLD = re.compile(rf"</?(?:{_TAG})\b|<details\b|◁think▷|<\|channel\|>", re.IGNORECASE)
_FINAL = re.compile(r"(?:<\|start\|>\w+)?<\|channel\|>final<\|message\|>|<\|(?:return|end)\|>\Z")


def cut_thoughts(text: str) -> tuple[str, int]:
    """Give the text of an answer without its thoughts, and how many there were; tags in code are text.

    >>> cut_thoughts("<think>A guess.</think>Yes, at six.")
    ('Yes, at six.', 1)
    >>> cut_thoughts("Models write `<think>` first.")
    ('Models write `<think>` first.', 0)
    """
    if not _MAY_HOLD.search(text):
        return text, 0
    found = [match for match in _THOUGHT.finditer(text) if match["code"] is None]
    rest, end = list[str](), 0
    for match in found:
        rest.append(text[end : match.start()])
        end = match.end()
    spoken = "".join([*rest, text[end:]])
    if "<|channel|>" in text:
        spoken = _FINAL.sub("", spoken)
    return spoken.strip(), len(found)
