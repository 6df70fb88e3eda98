"""The font of every figure, which comes with the package: its widths, and its glyphs inside what is exported.

Liberation Sans 2.1.5 (SIL Open Font License 1.1, ``fonts/OFL.txt``), regular and bold, as published. A picture holds
the glyphs that it uses, so it looks the same where no such font is installed.
"""

from __future__ import annotations

import base64
import io
import string
from functools import cache, lru_cache
from pathlib import Path

from memlab.errors import require_extra

FAMILY = "Liberation Sans"
_FILES = {400: "LiberationSans-Regular.ttf", 700: "LiberationSans-Bold.ttf"}
_ALWAYS = frozenset(map(ord, string.ascii_letters + string.digits + string.punctuation + " "))


@cache
def character_widths(weight: int) -> dict[int, float]:
    """Give the width of each character that the font has, by code point, in ems."""
    with require_extra("figures", "a figure"):
        from fontTools.ttLib import TTFont

    with TTFont(_font_path(weight), lazy=True) as font:
        widths, em = font["hmtx"], font["head"].unitsPerEm
        return {code: widths[glyph][0] / em for code, glyph in font.getBestCmap().items()}


def font_face_rules(text: str) -> str:
    """Give the ``@font-face`` rules that hold what a text needs of the font, and what is plain ASCII, in both weights.

    What the font lacks, a viewer draws with a font of its own.
    """
    codes = frozenset(map(ord, text))
    return "".join(_font_face_rule(weight, _ALWAYS | codes.intersection(character_widths(weight))) for weight in _FILES)


@lru_cache(128)
def _font_face_rule(weight: int, codes: frozenset[int]) -> str:
    with require_extra("figures", "a figure"):
        import brotli  # noqa: F401  fontTools writes WOFF2 with it
        from fontTools import subset

    # Without kerning a line is as wide as its characters, which is how a chart measures it before a browser does.
    unused = [*subset.Options._drop_tables_default, "FFTM", "GDEF", "GPOS", "GSUB", "kern"]
    options = subset.Options(flavor="woff2", hinting=False, layout_features=[], drop_tables=unused)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    buffer = io.BytesIO()
    with subset.load_font(_font_path(weight), options) as font:
        subsetter.subset(font)
        subset.save_font(font, buffer, options)
    glyphs = base64.b64encode(buffer.getvalue()).decode()
    source = f"url(data:font/woff2;base64,{glyphs})format('woff2')"
    return f"@font-face{{font-family:'{FAMILY}';font-weight:{weight};src:{source}}}"


def _font_path(weight: int) -> Path:
    return Path(__file__).parent / "fonts" / _FILES[weight]
