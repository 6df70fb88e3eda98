"""Thoughts of a model that stand in the text of its answer, between tags.

An answer may also write about the tags. A pair within a sentence is a thought where the tags stand
close around what is thought. A tag without its other half is one at the beginning of a line only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TAG = (
    r"(?:ant|seed:)?think(?:ing)?|thoughts?|reasoning|scratchpad|reflection"
    r"|inner_(?:monologue|thoughts?)|internal_monologue"
)
_SUMMARY = r"\s*<summary[^<>]*>\s*(?:thought|thinking|reasoning|reasoned|chain of thought)\b"
"""What a page that folds thoughts away shows of them."""
_MARK = re.compile(
    r"(?P<code>```.*?(?:```|\Z)|`[^`\n]+`)"
    rf"|(?P<hollow><(?:{_TAG})\s*/>)"
    rf"|<(?P<tag>{_TAG})\b[^<>]*>"
    r"|<(?P<details>details)\b(?:[^<>]*\btype=[\"']reasoning[\"'][^<>]*>"
    rf"|[^<>]*>(?={_SUMMARY}))"
    r"|(?P<signed>◁think▷)"
    r"|(?P<bracketed>\[THINK\])"  # of Mistral
    r"|(?P<piped><\|START_THINKING\|>)"  # of Cohere
    r"|(?P<begun><\|begin_of_thought\|>)"
    r"|(?P<gemma><\|channel>thought\b|<unused94>thought\b)"
    # The channels of gpt-oss: what is not final is thought.
    r"|(?P<channel>(?:<\|start\|>\w+)?<\|channel\|>(?:analysis|commentary)\b)"
    # Templates of chats write the opening tag, which is then in no answer.
    rf"|(?P<unopened></(?:{_TAG})\s*>)",
    re.DOTALL | re.IGNORECASE,
)
"""What opens a thought, code, in which tags are text, and closing tags that nothing opened."""
_ENDS = {
    "details": "</details>",
    "signed": "◁/think▷",
    "bracketed": r"\[/THINK\]",
    "piped": r"<\|END_THINKING\|>",
    "begun": r"<\|end_of_thought\|>",
    "gemma": r"<channel\|>|<unused95>",
    "channel": r"<\|end\|>",
}
_MAY_HOLD = re.compile(
    rf"</?(?:{_TAG})\b|<details\b|◁think▷|\[THINK\]"
    r"|<\|(?:channel|START_THINKING|begin_of_thought)\|>|<\|channel>|<unused94>",
    re.IGNORECASE,
)
_FINAL = re.compile(
    r"(?:<\|start\|>\w+)?<\|channel\|>final<\|message\|>|<\|(?:return|end)\|>\Z"
    r"|<\|(?:START|END)_RESPONSE\|>|<\|(?:begin|end)_of_solution\|>"
)
"""What such a model writes around its answer."""
_ANY_TAG_END = rf"</(?:{_TAG})\s*>"
_SENTENCE_END = re.compile(r"[.!?…。！？>][*_)”\"]*\Z")
_FIRST_OF_THOUGHT = re.compile(r"[\w\n*]")
_NEAR = 100
"""How many characters of a line are looked at before a mark."""


def may_hold_thoughts(text: str) -> bool:
    """Say whether a mark of a thought is in a text; a mark in code is one too here."""
    if "<" not in text and "[" not in text and "◁" not in text:
        return False  # as most are
    return _MAY_HOLD.search(text) is not None


def cut_and_count_thoughts(text: str) -> tuple[str, int]:
    """Give the text of an answer without its thoughts, and how many there were.

    Tags in code are text.

    >>> cut_and_count_thoughts("<think>A guess.</think>Yes, at six.")
    ('Yes, at six.', 1)
    >>> cut_and_count_thoughts("Models write <think> first.")
    ('Models write <think> first.', 0)
    """
    if not may_hold_thoughts(text):
        return text, 0
    thought_spans = list(_thought_spans(text))
    other_texts = list[str]()
    thought_end = 0
    for thought_start, next_end in thought_spans:
        other_texts.append(text[thought_end:thought_start])
        thought_end = next_end
    spoken_text = "".join([*other_texts, text[thought_end:]])
    if thought_spans or "<|channel|>" in text:
        spoken_text = _FINAL.sub("", spoken_text)
    return spoken_text.strip(), len(thought_spans)


def _thought_spans(text: str) -> Iterator[tuple[int, int]]:
    """Give where each thought begins and ends, in their order."""
    thought_ends = _ThoughtEnds(text)
    may_be_unopened = True
    search_place = line_start = 0
    while True:
        thought_mark = _MARK.search(text, search_place)
        if thought_mark is None:
            return
        mark_start, search_place = thought_mark.span()
        line_start = max(line_start, text.rfind("\n", line_start, mark_start) + 1)
        text_before = text[max(line_start, mark_start - _NEAR) : mark_start]
        if thought_mark["code"]:
            if "```" in thought_mark["code"]:
                may_be_unopened = False
            continue
        if thought_mark["hollow"]:
            thought_begin = mark_start
            thought_end = search_place
        elif thought_mark["unopened"]:
            thought_begin = 0
            thought_end = None
            if may_be_unopened and (not text_before.strip() or _SENTENCE_END.search(text_before)):
                thought_end = search_place
        else:
            thought_begin = mark_start
            thought_end = thought_ends.find_thought_end(thought_mark, text_before)
            may_be_unopened = False
        if thought_end is not None:
            may_be_unopened = False
            yield thought_begin, thought_end
            search_place = line_start = thought_end


class _ThoughtEnds:
    """The closing marks of a text; each kind is looked for from where it was found last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.next = dict[str, re.Match[str] | None]()

    def find_thought_end(self, opening_mark: re.Match[str], line_before: str) -> int | None:
        """Give where the thought of an opening mark ends.

        :param line_before: what stands before it in its line, behind the last thought.
        :returns: ``None`` where the mark is only written about.
        """
        closing = self._find_closing_mark(opening_mark)
        begins_line = not line_before.strip()
        if closing is None and begins_line:
            return len(self.text)
        if closing is None:
            return None
        if begins_line or _SENTENCE_END.search(line_before.rstrip()):
            return closing.end()
        is_close_before = _FIRST_OF_THOUGHT.match(self.text, opening_mark.end())
        is_close_behind = self.text[closing.start() - 1] not in " \t"
        if is_close_before and is_close_behind:
            return closing.end()
        return None

    def _find_closing_mark(self, opening_mark: re.Match[str]) -> re.Match[str] | None:
        """Find what closes a thought: a tag of its own name or, without one, of another name."""
        opening_kind = str(opening_mark.lastgroup)
        if opening_kind != "tag":
            return self._find_next_match(_ENDS[opening_kind], opening_mark.end())
        own_tag_end = rf"</{re.escape(opening_mark['tag'].lower())}\s*>"
        closing = self._find_next_match(own_tag_end, opening_mark.end())
        if closing is None:
            closing = self._find_next_match(_ANY_TAG_END, opening_mark.end())
        return closing

    def _find_next_match(self, pattern: str, search_start: int) -> re.Match[str] | None:
        if pattern not in self.next or self._is_last_match_before(pattern, search_start):
            self.next[pattern] = re.compile(pattern, re.IGNORECASE).search(self.text, search_start)
        return self.next[pattern]

    def _is_last_match_before(self, pattern: str, position: int) -> bool:
        """Say whether the closing mark that was found last stands before a place."""
        known_match = self.next[pattern]
        return known_match is not None and known_match.start() < position
