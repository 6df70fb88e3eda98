"""Text on pictures: the font, its glyphs, escaping, measuring, wrapping and cutting.

A chart is laid out for print before a browser sees it, with the advance widths of the font that is
drawn. The font comes with the package: Liberation Sans 2.1.5 (SIL Open Font License 1.1,
``fonts/OFL.txt``), regular and bold, without kerning and in blocks of characters
(``scripts/fonts.py``). A picture holds the blocks that it uses, so it looks the same where no such
font is installed.
"""

from __future__ import annotations

import base64
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

FAMILY = "Liberation Sans"
BLOCKS = {
    "basic": ((0x0, 0xFF), (0x2000, 0x206F), (0x2190, 0x22FF), (0x2500, 0x27BF)),
    "latin": ((0x100, 0x36F), (0x1E00, 0x1EFF)),
    "greek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "cyrillic": ((0x400, 0x52F),),
    "other": (
        (0x530, 0x1DFF),
        (0x2070, 0x218F),
        (0x2300, 0x24FF),
        (0x27C0, 0x10FFFF),
    ),
}
"""The blocks of the font with their first and last characters; every picture holds the first."""
_WEIGHTS = (400, 700)
_SHOWS_NOTHING = ("Cc", "Cf", "Cn", "Cs", "Mn", "Me", "Zl", "Zp", "Zs")
"""Categories of Unicode whose characters are not drawn alone, or are none."""
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "HALFWIDTH", "FULLWIDTH")
"""How the names of characters of Chinese, Japanese and Korean begin."""
_FOLDER = Path(__file__).parent / "fonts"


@cache
def character_widths(weight: int) -> dict[int, float]:
    """Give the width of each character that the font has, by code point, in ems."""
    width_table = json.loads((_FOLDER / "widths.json").read_text(encoding="utf-8"))
    units_per_em = width_table["units_per_em"]
    return {
        code_point: width_units / units_per_em
        for code_point, width_units in zip(
            width_table["codes"], width_table[str(weight)], strict=True
        )
    }


def font_face_rules(text: str) -> str:
    """Give the ``@font-face`` rules of the blocks that a text needs, in both weights.

    The basic block is always there. What the font lacks, a viewer draws with a font of its own.
    """
    known_widths = character_widths(_WEIGHTS[0])
    used_blocks = {
        font_block_of_code_point(code_point)
        for code_point in set(map(ord, text))
        if code_point in known_widths
    }
    block_names = [
        block_name for block_name in BLOCKS if block_name == "basic" or block_name in used_blocks
    ]
    rules = ""
    for weight in _WEIGHTS:
        for block_name in block_names:
            rules += _font_face_rule(block_name, weight)
    return rules


def characters_of_other_fonts(text: str) -> list[str]:
    """Give the characters of a text that its font lacks and that show something, in order.

    Marks, spaces and what steers the text around it show nothing by themselves.

    >>> from memlab.figures.text_and_glyphs import characters_of_other_fonts
    >>> characters_of_other_fonts("tea, 茶茶 and 차\u200d")
    ['茶', '차']
    """
    known_widths = character_widths(_WEIGHTS[0])
    lacking = [character for character in dict.fromkeys(text) if ord(character) not in known_widths]
    return [
        character for character in lacking if unicodedata.category(character) not in _SHOWS_NOTHING
    ]


def font_packages(characters: Sequence[str]) -> list[str]:
    """Give the packages of Debian and Ubuntu whose fonts have some characters.

    >>> from memlab.figures.text_and_glyphs import font_packages
    >>> font_packages(["茶", "차"]), font_packages(["🎉", "ক"])
    (['fonts-noto-cjk'], ['fonts-noto-color-emoji', 'fonts-noto-core'])
    """
    package_names = set[str]()
    for character in characters:
        if unicodedata.name(character, "").startswith(_EAST_ASIAN):
            package_names.add("fonts-noto-cjk")
        elif unicodedata.category(character) == "So":
            package_names.add("fonts-noto-color-emoji")
        else:
            package_names.add("fonts-noto-core")
    return sorted(package_names)


def font_block_of_code_point(code_point: int) -> str:
    """Give the block of the font that a character is in, by its code point.

    >>> from memlab.figures.text_and_glyphs import font_block_of_code_point
    >>> font_block_of_code_point(ord("a")), font_block_of_code_point(ord("λ"))
    ('basic', 'greek')
    """
    for block_name, code_ranges in BLOCKS.items():
        if any(first_code <= code_point <= last_code for first_code, last_code in code_ranges):
            return block_name
    raise ValueError(f"{code_point} is no code point")


@cache
def _font_face_rule(block_name: str, weight: int) -> str:
    glyph_text = base64.b64encode((_FOLDER / f"{block_name}-{weight}.woff2").read_bytes()).decode()
    source = f"url(data:font/woff2;base64,{glyph_text})format('woff2')"
    range_text = ",".join(
        f"U+{first_code:X}-{last_code:X}" for first_code, last_code in BLOCKS[block_name]
    )
    return (
        f"@font-face{{font-family:'{FAMILY}';font-weight:{weight};src:{source};"
        f"unicode-range:{range_text}}}"
    )


_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff￾￿]")
_COUNT = re.compile(r"\bn = [^()]*\)")


def drawable_text(text: object) -> str:
    """Make any value safe to draw: one line, nothing unprintable, and no mark-up of its own.

    >>> from memlab.figures.text_and_glyphs import drawable_text
    >>> drawable_text("<b>5 & 6</b>\\n")
    '&lt;b&gt;5 &amp; 6&lt;/b&gt;'
    """
    return escape(printable_line(text))


def printable_line(text: object) -> str:
    """Put a value on one line, with a replacement character for what no font prints."""
    return " ".join(_UNPRINTABLE.sub("�", str(text)).split())


def escape(text: str) -> str:
    """Escape what plotly reads as mark-up inside a text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def text_px(text: str, size: float, *, bold: bool = False) -> float:
    """Give the width of unescaped text in pixels at a font size in pixels."""
    return sum(_character_widths_in_ems(text, bold)) * size


def widest_px(texts: Iterable[str], size: float, *, bold: bool = False) -> float:
    """Give the width of the widest of several unescaped texts; 0 of none."""
    return max((text_px(measured_text, size, bold=bold) for measured_text in texts), default=0.0)


def _character_widths_in_ems(text: str, bold: bool) -> list[float]:
    """Give the width of each character in ems; of what the font lacks a guess, a little wide."""
    font_widths = character_widths(_WEIGHTS[int(bold)])
    text_widths = []
    for character in text:
        known_width = font_widths.get(ord(character))
        text_widths.append(_guess_width_in_ems(character) if known_width is None else known_width)
    return text_widths


def _guess_width_in_ems(character: str) -> float:
    """Guess the width in ems of a character of another font."""
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return 0.85


def cut_to_width(text: object, px: float, size: float, *, bold: bool = False) -> str:
    """Cut a text to a width, with an ellipsis where something was cut; it is not yet escaped."""
    whole_line = printable_line(text)
    if text_px(whole_line, size, bold=bold) <= px:
        return whole_line
    end_places = np.cumsum(_character_widths_in_ems(f"…{whole_line}", bold))[1:] * size
    return whole_line[: int((end_places <= px).argmin())].rstrip() + "…"


def wrap(text: object, px: float, size: float, *, lines: int = 2, bold: bool = False) -> list[str]:
    """Break a text into at most ``lines`` lines of a width; the last may be cut.

    >>> from memlab.figures.text_and_glyphs import wrap
    >>> wrap("how many doctors did I see this year", 90, 10)
    ['how many doctors', 'did I see this year']
    """
    # A count in brackets is not broken: "(n = 291)", "(4 memories, n = 291)".
    joined_text = _COUNT.sub(
        lambda count_match: count_match[0].replace(" ", "\xa0"), printable_line(text)
    )
    words = [word.replace("\xa0", " ") for word in joined_text.split(" ") if word]
    wrapped_lines = list[str]()
    while words and len(wrapped_lines) < lines - 1:
        n_taken = 1
        while (
            n_taken < len(words) and text_px(" ".join(words[: n_taken + 1]), size, bold=bold) <= px
        ):
            n_taken += 1
        wrapped_lines.append(cut_to_width(" ".join(words[:n_taken]), px, size, bold=bold))
        words = words[n_taken:]
    if words:
        wrapped_lines.append(cut_to_width(" ".join(words), px, size, bold=bold))
    return wrapped_lines


def format_p(value: float, *, is_bound: bool = False) -> str:
    """Write a p-value for a figure.

    :param is_bound: p is at most the value, of which two digits are shown, rounded up.

    >>> from memlab.figures.text_and_glyphs import format_p
    >>> format_p(0.0312), format_p(1.0), format_p(0.0004)
    ('p=.031', 'p=1', 'p<.001')
    >>> format_p(50 / 10_001, is_bound=True), format_p(12 / 10_001, is_bound=True)
    ('p≤.005', 'p≤.0012')
    """
    if value < 0.001:
        return "p<.001"
    if value > 0.9995:
        return "p=1"
    if is_bound:
        unit = 10.0 ** (math.floor(math.log10(value)) - 1)
        bound_text = f"{math.ceil(value / unit - 1e-9) * unit:.4f}"
        return "p≤" + bound_text.removeprefix("0").rstrip("0")
    return "p=" + f"{value:.3f}".removeprefix("0")


def format_signed(value: float) -> str:
    """Write a difference for a figure, with its sign and no nought before the point."""
    return f"{value:+.3f}".replace("+0.", "+.").replace("-0.", "−.").replace("-", "−")
