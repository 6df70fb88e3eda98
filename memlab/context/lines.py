"""The lines of a context: they keep their fields, and are written down last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memlab.context.tokens import Count, cleaned
from memlab.language.calendar import written

MESSAGES = ("recent", "relevant")
TITLES = {
    "rollups": "Over weeks:",
    "summaries": "Earlier sessions:",
    "facts": "Known (how sure, from 0 to 1; when):",
    "relevant": "Messages from earlier:",
    "recent": "This conversation:",
}
"""The heading of each source, in the order in which they stand in a context."""

# A message is not cut to less than this: half a sentence tells nothing.
_LEAST_CUT = 24
_CUTS = (0.25, 0.5, 0.65, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1)


@dataclass(frozen=True)
class Line:
    """A line that may stand in a context: a row of :data:`memlab.context.ITEM` of a source.

    :param size: tokens of what is written down; ``head_size`` of its head.
    :param cut: whether the text is only the beginning of what was said.
    """

    source: str
    ref: str
    place: int
    head: str
    text: str
    turns: tuple[str, ...]
    at: datetime | None = None
    confidence: float | None = None
    size: int = 0
    head_size: int = 0
    cut: bool = False

    @classmethod
    def of(cls, source: str, row: Mapping[str, Any]) -> Line:
        """Read a row of :data:`memlab.context.ITEM`; a message without a head stands under its day."""
        head, at = cleaned(row["head"] or ""), row["at"]
        if source in MESSAGES and at is not None and not head:
            head = f"[{written(at)}]"
        text, turns = cleaned(row["text"] or ""), tuple(row["turns"] or ())
        return cls(source, row["ref"], row["place"] or 0, head, text, turns, at, row["confidence"])

    @property
    def written(self) -> str:
        """What stands in the context: the text, and behind a fact how sure it is and when it was said.

        >>> from datetime import datetime
        >>> from memlab.context.lines import Line
        >>> Line("facts", "f1", 1, "", "Mel works at Acme", ("t1",), datetime(2023, 5, 8), 0.82).written
        'Mel works at Acme (0.82, 8 May 2023)'
        """
        if self.confidence is None:
            return self.text
        notes = [str(round(self.confidence, 2)), *([] if self.at is None else [written(self.at)])]
        return f"{self.text} ({', '.join(notes)})"

    @property
    def under_day(self) -> str:
        """What it says, with the head or the day that it stands under."""
        return f"{self.text} {self.head or ('' if self.at is None else written(self.at))}".rstrip()

    def fitted(self, room: int, count: Count) -> Line | None:
        """Give the line as it fits into the room: whole, cut if it is a message, or not at all."""
        if self.size <= room:
            return self
        if self.source not in MESSAGES or room < _LEAST_CUT:
            return None
        # Cuts about where the text's own rate of tokens says; counted together, and the longest that fits is taken.
        reach = len(self.text) * room / self.size
        texts = dict.fromkeys(_cut(self.text, int(reach * share)) for share in _CUTS)
        cuts = [replace(self, text=text, cut=True) for text in texts]
        sizes = map(int, count([line.written + "\n" for line in cuts]))
        sized = [replace(line, size=size) for line, size in zip(cuts, sizes, strict=True)]
        fitting = (line for line in sized if line.size <= room and len(line.text) > 1)
        return max(fitting, key=lambda line: len(line.text), default=None)


def _cut(text: str, length: int) -> str:
    head = text[:length]
    at = head.rfind(" ")
    return (head[:at] if at > length // 2 else head).rstrip() + "…"


def shown(lines: Sequence[Line]) -> str:
    """Write a context down: sources from the most general to the newest, lines in order of time."""
    out: list[str] = []
    for source, title in TITLES.items():
        own = sorted((line for line in lines if line.source == source), key=lambda line: line.place)
        out += [title] if own else []
        for line, before in zip(own, ["", *(line.head for line in own)], strict=False):
            out += [line.head, line.written] if line.head and line.head != before else [line.written]
    return "\n".join(out)
