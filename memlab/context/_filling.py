"""Filling one context: how room is shared out, which lines are taken, and how they are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memlab.context._overlap import MESSAGES, Seen
from memlab.context.tokens import Count
from memlab.language.calendar import written

TITLES = {
    "rollups": "Over weeks:",
    "summaries": "Earlier sessions:",
    "facts": "Known (how sure, from 0 to 1; when):",
    "relevant": "Messages from earlier:",
    "recent": "This conversation:",
}
"""The heading of each source, in the order in which they stand in a context."""

ORDER = ("recent", "relevant", "summaries", "facts", "rollups")
NO_ROOM = "no room"

# A message is not cut to less than this: half a sentence tells nothing.
_LEAST_CUT = 24


@dataclass(frozen=True)
class Line:
    """A line that may stand in a context.

    :param said: what it says.
    :param text: how it is written down: with how sure and when it is, where it is a fact.
    :param size: of ``text`` in tokens; ``head_size`` of ``head``.
    """

    source: str
    ref: str
    place: int
    head: str
    said: str
    text: str
    turns: tuple[str, ...]
    at: datetime | None
    confidence: float | None
    size: int = 0
    head_size: int = 0
    cut: bool = False


@dataclass
class Taken:
    """What one context holds: lines in the order in which they were taken, and what was left out."""

    given: dict[str, int]
    lines: list[Line] = field(default_factory=list)
    spent: dict[str, int] = field(default_factory=dict)
    left: list[tuple[str, str, str]] = field(default_factory=list)

    def take_back(self) -> None:
        """Give up the line that was taken last."""
        line = self.lines.pop()
        self.spent[line.source] -= line.size
        self.left.append((line.source, line.ref, NO_ROOM))


def rendered(
    source: str, ref: str, place: int | None, head: str | None, said: str | None, turns: Sequence[str] | None,
    at: datetime | None, confidence: float | None,
) -> Line:  # fmt: skip
    """Write a row of a source down: a message under its day, and behind a fact how sure it is and when it was said.

    >>> from datetime import datetime
    >>> rendered("facts", "f1", 1, None, "Mel works at Acme", ["t1"], datetime(2023, 5, 8), 0.82).text
    'Mel works at Acme (0.82, 8 May 2023)'
    """
    text, head = cleaned(said or ""), cleaned(head or "")
    day = "" if at is None else written(at)
    if source in MESSAGES and day and not head:
        head = f"[{day}]"
    notes = [] if confidence is None else [str(round(confidence, 2)), day]
    shown = f"{text} ({', '.join(filter(None, notes))})" if notes else text
    return Line(source, ref, place or 0, head, text, shown, tuple(turns or ()), at, confidence)


def cleaned(text: str) -> str:
    """Write a text as one line that every tokenizer reads.

    >>> cleaned("two\\n\\nlines ")
    'two lines'
    """
    return " ".join(text.encode("utf-8", "replace").decode().split())


def fill(
    offered: Mapping[str, Sequence[Line]],
    wanted: Mapping[str, int],
    flow: Sequence[str],
    *,
    titles: Mapping[str, int],
    count: Count,
) -> Taken:
    """Take lines of every source while there is room.

    :param wanted: tokens for each source.
    :param titles: tokens of the heading of each source.
    """
    needs = {source: _need(offered.get(source, ()), titles[source]) for source in ORDER}
    taken = Taken(shares(wanted, needs, flow))
    seen, spare = Seen(), 0
    for source in ORDER:
        room = taken.given[source] + spare
        taken.spent[source] = _take(taken, seen, offered.get(source, ()), titles[source], room=room, count=count)
        spare = room - taken.spent[source]
    return taken


def _need(lines: Sequence[Line], title: int) -> int:
    heads = {line.head: line.head_size for line in lines}
    return sum(line.size for line in lines) + sum(heads.values()) + title if lines else 0


def shares(wanted: Mapping[str, int], needs: Mapping[str, int], flow: Sequence[str]) -> dict[str, int]:
    """Share room out: each source its share, or its need if that is less; the rest to those that need more.

    >>> shares({"a": 10, "b": 10}, {"a": 3, "b": 30}, ["b", "a"])
    {'a': 3, 'b': 17}
    """
    given = {source: min(share, needs[source]) for source, share in wanted.items()}
    rest = sum(wanted.values()) - sum(given.values())
    for source in flow:
        more = min(rest, needs[source] - given[source])
        given[source] += more
        rest -= more
    return given


def _take(taken: Taken, seen: Seen, lines: Sequence[Line], title: int, *, room: int, count: Count) -> int:
    """Take lines of one source, and give the tokens that they cost."""
    spent, heads, full = 0, {""}, False
    for line in lines:
        reason = (
            NO_ROOM if full else seen.reason(line.source, line.said, line.text, line.turns) if line.text else "empty"
        )
        if not reason:
            around = (line.head_size if line.head not in heads else 0) + (0 if spent else title)
            fitted = _fitted(line, room - spent - around, count)
            if fitted is None or fitted.cut:
                full = True
            if fitted is not None:
                spent += fitted.size + around
                heads.add(line.head)
                taken.lines.append(fitted)
                seen.add(line.source, fitted.text, line.turns, cut=fitted.cut)
                continue
            reason = NO_ROOM
        taken.left.append((line.source, line.ref, reason))
    return spent


def _fitted(line: Line, room: int, count: Count) -> Line | None:
    """Give a line as it fits into the room: whole, cut if it is a message, or not at all."""
    if line.size <= room:
        return line
    if line.source not in MESSAGES or room < _LEAST_CUT:
        return None
    # Cuts about where the text's own rate of tokens says; counted together, and the longest that fits is taken.
    reach = len(line.text) * room / line.size
    cuts = list(dict.fromkeys(_cut(line.text, int(reach * share)) for share in _CUTS))
    sizes = map(int, count([text + "\n" for text in cuts]))
    fitting = ((text, size) for text, size in zip(cuts, sizes, strict=True) if size <= room and len(text) > 1)
    text, size = max(fitting, key=lambda cut: len(cut[0]), default=("", 0))
    return replace(line, text=text, size=size, cut=True) if text else None


_CUTS = (0.25, 0.5, 0.65, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1)


def _cut(text: str, length: int) -> str:
    head = text[:length]
    at = head.rfind(" ")
    return (head[:at] if at > length // 2 else head).rstrip() + "…"


def shown(lines: Sequence[Line]) -> str:
    """Write a context down: sources from the most general to the newest, lines in order of time."""
    out: list[str] = []
    for source, title in TITLES.items():
        mine = sorted((line for line in lines if line.source == source), key=lambda line: line.place)
        head = ""
        for n, line in enumerate(mine):
            out += [title] if n == 0 else []
            out += [line.head] if line.head and line.head != head else []
            out.append(line.text)
            head = line.head
    return "\n".join(out)
