"""The words of HTML as text.

Blocks and breaks become lines, items of lists get a dash, cells of tables a bar.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "details", "div", "dl", "dt"),
        *("figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header"),
        *("hr", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody"),
        *("tfoot", "thead", "tr", "ul"),
    )
)
_UNSEEN = frozenset(("head", "script", "style", "template", "title"))
_CELLS = frozenset(("td", "th"))
_SPACE = re.compile(r"[ \t\r\n\f]+")


def html_to_text(html: str) -> str:
    """Give the words of some HTML.

    >>> html_to_text("<p>Two <b>ways</b>:</p><ul><li>by bus</li><li>on foot</li></ul>")
    'Two ways:\\n- by bus\\n- on foot'
    """
    builder = HtmlTextBuilder()
    builder.feed(html)
    builder.close()
    return builder.join_gathered_text()


class HtmlTextBuilder(HTMLParser):
    """Gathers the words of HTML that is fed to it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.unseen = self.preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self.unseen += 1
        if tag == "pre":
            self.preformatted += 1
        if tag in _BLOCKS:
            self.pieces.append("\n")
        if tag == "li":
            self.pieces.append("- ")
        elif tag in _CELLS and self._is_within_text_line():
            self.pieces.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self.unseen = max(0, self.unseen - 1)
        if tag == "pre":
            self.preformatted = max(0, self.preformatted - 1)
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if self.unseen:
            return
        spaced_text = data
        if not self.preformatted:
            spaced_text = _SPACE.sub(" ", data)
        if spaced_text != " " or self._is_within_text_line():
            self.pieces.append(spaced_text)

    def _is_within_text_line(self) -> bool:
        return self.pieces[-1:] not in ([], ["\n"])

    def join_gathered_text(self) -> str:
        """Give what was gathered so far.

        It has no empty lines, and no white space at the ends of lines.
        """
        lines = "".join(self.pieces).replace("\xa0", " ").split("\n")
        kept_lines = [line.rstrip() for line in lines]
        return "\n".join(line for line in kept_lines if line.strip()).strip()
