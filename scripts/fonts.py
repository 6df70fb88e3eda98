"""Make the font of the figures: ``memlab/figures/fonts/*.woff2`` and ``widths.json``.

Run it with fontTools and brotli in an environment of their own, on the folder of the release
"liberation-fonts-ttf-2.1.5", in the root of the repository:

    python scripts/fonts.py FOLDER

Each weight becomes a file for each block of characters, so that a picture holds the blocks that it
uses. Kerning goes: a line is as wide as its characters, which is how a chart measures it before a
browser does. Instructions for screens (hinting) go too. The licence (OFL 1.1, clause 3) reserves
the name "Liberation" for the font as published, so these files are called "memlab Sans" inside.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

from memlab.figures.text_and_glyphs import BLOCKS, font_block_of_code_point

SOURCES = {400: "LiberationSans-Regular.ttf", 700: "LiberationSans-Bold.ttf"}
TARGET = Path("memlab/figures/fonts")
NAME = "memlab Sans"
FAMILY, UNIQUE, FULL, POSTSCRIPT = 1, 3, 4, 6
UNUSED_TABLES = [*subset.Options._drop_tables_default, "FFTM", "GDEF", "GPOS", "GSUB", "kern"]


def main() -> None:
    folder = Path(sys.argv[1])
    widths = {weight: read_widths(folder / file) for weight, file in SOURCES.items()}
    table = {"codes": sorted(widths[400]), "units_per_em": 2048}
    for weight, of_code in widths.items():
        table[str(weight)] = [of_code[code] for code in table["codes"]]
    (TARGET / "widths.json").write_text(json.dumps(table, separators=(",", ":")) + "\n")
    for weight, file in SOURCES.items():
        for block in BLOCKS:
            codes = [code for code in table["codes"] if font_block_of_code_point(code) == block]
            write_block(folder / file, codes, TARGET / f"{block}-{weight}.woff2")


def read_widths(path: Path) -> dict[int, int]:
    """Give the advance width of each character, by code point, in units of the font."""
    with TTFont(path) as font:
        assert font["head"].unitsPerEm == 2048
        return {code: font["hmtx"][glyph][0] for code, glyph in font.getBestCmap().items()}


def write_block(path: Path, codes: list[int], target: Path) -> None:
    """Write the glyphs of some characters under another name."""
    options = subset.Options(
        flavor="woff2", hinting=False, layout_features=[], drop_tables=UNUSED_TABLES
    )
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    with subset.load_font(path, options) as font:
        font["head"].modified = font["head"].created
        subsetter.subset(font)
        for record in font["name"].names:
            if record.nameID in (FAMILY, UNIQUE, FULL, POSTSCRIPT):
                record.string = record.toUnicode().replace("Liberation Sans", NAME)
                record.string = str(record.string).replace("LiberationSans", "memlabSans")
        subset.save_font(font, target, options)


if __name__ == "__main__":
    main()
