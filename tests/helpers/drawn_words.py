"""What is written on a chart."""

from __future__ import annotations

import html
import re


def words(svg: str) -> str:
    """Give the words of an SVG picture, text by text, without its markup."""
    lines = re.findall(r"<text[^>]*>(.*?)</text>", svg, flags=re.DOTALL)
    return " ".join(" ".join(html.unescape(re.sub(r"<[^>]+>", " ", line)).split()) for line in lines)
