"""A page of every exported figure, by notebook: picture, caption, and where it came from."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memlab.errors import ExportError, require_extra
from memlab.figures._text_measuring import font_face_rules
from memlab.figures.export import write_files_atomically
from memlab.figures.provenance import read_sidecar

_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
STYLE = """
body{font:15px/1.5 "Liberation Sans",Arial,Helvetica,sans-serif;color:#222;
background:#f6f6f4;margin:0}
main,header{max-width:1100px;margin:0 auto;padding:0 1rem}
header{padding-top:2.5rem}h1{font-size:1.7rem;margin:0}header p{color:#666;margin:.3rem 0 1rem}
nav p{margin:.4rem 0}nav a{display:inline-block;margin:0 .8rem .3rem 0;font-size:.9rem}
nav a:first-child{font-weight:600}
a{color:#0072b2;text-decoration:none}a:hover{text-decoration:underline}
section>h2{font-size:1.35rem;margin:2.5rem 0 .3rem}.opening{max-width:46rem}
article{background:#fff;border:1px solid #e4e4e0;border-radius:6px;
padding:1.2rem 1rem;margin:1.5rem 0}
article h3{font-size:1.1rem;margin:0 0 .8rem}
.pictures{display:flex;flex-wrap:wrap;gap:1rem;align-items:flex-start}
.pictures figure{margin:0}.pictures img{max-width:100%;height:auto;border:1px solid #eee}
figcaption{color:#777;font-size:.8rem}
.caption{max-width:46rem}.formats{font-size:.9rem}
.formats a{display:inline-block;margin-right:.8rem}
@media(max-width:700px){.pictures figure:first-child:not(:only-child){display:none}}
details{margin:.5rem 0}summary{cursor:pointer;color:#555;font-size:.9rem}
pre,table{font:12.5px/1.45 "Liberation Mono","DejaVu Sans Mono",monospace}
pre{background:#f6f6f4;padding:.7rem .9rem;overflow-x:auto;border-radius:4px;margin:.5rem 0}
td{padding:.1rem 1rem .1rem 0;vertical-align:top;word-break:break-word}td:first-child{color:#777}
"""


def write_gallery(
    directory: str | os.PathLike[str] = "figures",
    *,
    notebooks: str | os.PathLike[str] = "notebooks",
) -> Path:
    """Write ``index.html``: everything exported to a directory, by notebook and in its order.

    It is read off the sidecars that :func:`memlab.figures.export` writes, links relatively, and
    opens without a server.

    :param notebooks: where they are, executed or not: each part begins with what the notebook
        found, or says before its first code.
    :returns: the path of the page.
    :raises ExportError: when the directory is missing or cannot be written, or a sidecar cannot be
        read.
    """
    target, parts = Path(directory), dict[str, list[dict[str, Any]]]()
    if not os.path.isdir(target):
        raise ExportError(
            f"no directory {target} to make a gallery of; export a figure to it first"
        )
    for path in sorted(target.glob("*.json")):
        if (card := read_sidecar(path)) is not None:
            parts.setdefault(card["made_by"].get("notebook", ""), []).append(card)
    links, body = _links_to_folders(target), ""
    for name, cards in sorted(
        parts.items(), key=lambda part: (not part[0], part[0])
    ):  # those of no notebook are last
        heading, words, ordered = _read_notebook(name, Path(notebooks), cards)
        anchor = _escape_html(f"of-{Path(name).stem or 'none'}")
        names = "".join(
            f'<a href="#{_escape_html(card["name"])}">{_escape_html(card["name"])}</a>'
            for card in ordered
        )
        links += f'<p><a href="#{anchor}">{_escape_html(heading)}</a>{names}</p>'
        body += f'<section id="{anchor}"><h2>{_escape_html(heading)}</h2>'
        body += f'<div class="opening">{words}</div>'
        body += "".join(map(_card_html, ordered)) + "</section>\n"
    count = sum(map(len, parts.values()))
    counted = "1 figure" if count == 1 else f"{count} figures"
    page = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Figures</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{font_face_rules(body)}{STYLE}</style>"
        f"</head>\n<body><header><h1>Figures</h1><p>{counted}, each as HTML, SVG, PDF and PNG "
        f"with its data and provenance.</p><nav>{links}</nav></header>\n"
        f"<main>{body or '<p>Nothing has been exported yet.</p>'}</main></body></html>\n"
    )
    write_files_atomically(target, {"index.html": page.encode("utf-8", "replace")})
    return target / "index.html"


def _read_notebook(
    name: str, folder: Path, cards: list[dict[str, Any]]
) -> tuple[str, str, list[dict[str, Any]]]:
    """Give a notebook's title, its words before its first code (HTML), and its figures."""
    notebook, heading = folder / name, Path(name).stem or "Other figures"
    if not os.path.isfile(notebook):  # a sidecar of anybody's may hold a name that no disk takes
        return heading, "", cards
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return heading, "", cards
    code = "\n".join(sources)
    first = next((i for i, cell in enumerate(cells) if cell["cell_type"] == "code"), len(cells))
    # The figures stand below.
    opening = _PICTURE.sub("", "\n\n".join(sources[:first]))
    if opening.startswith("# "):
        heading, _, opening = opening[2:].partition("\n")
    return (
        heading,
        render_markdown(_found_text(cells) or opening),
        sorted(cards, key=lambda card: code.find(f'"{card["name"]}"') % (len(code) + 1)),
    )


def _found_text(cells: list[dict[str, Any]]) -> str:
    """Give what an executed notebook found: the Markdown that its cell tagged ``answer`` shows."""
    for cell in cells:
        if "answer" not in cell.get("metadata", {}).get("tags", []):
            continue
        outputs = [output.get("data", {}) for output in cell.get("outputs", [])]
        return "\n".join("".join(data.get("text/markdown", "")) for data in outputs).strip()
    return ""


def _links_to_folders(directory: Path) -> str:
    """Link to the galleries of the folders of a directory, which are those of datasets."""
    pages = sorted(directory.glob("*/index.html"))
    names = [page.parent.name for page in pages]
    links = "".join(
        f'<a href="{_quote_link(name)}/index.html">{_escape_html(name)}</a>' for name in names
    )
    return f"<p>{links}</p>" if links else ""


def render_markdown(markdown: str) -> str:
    """Give Markdown with tables as HTML; mark-up in it is text."""
    with require_extra("figures", "a page"):
        from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown))


def _card_html(fields: dict[str, Any]) -> str:
    name, files = fields["name"], fields["files"]
    pictures = "".join(
        _picture_html(name, files, *kind)
        for kind in (("", "7 in", 672), (".column", "3.5 in", 336))
    )
    links = "".join(
        f'<a href="{_quote_link(f)}">{_escape_html(f.removeprefix(name + "."))}</a>' for f in files
    )
    facts = fields["made_by"] | fields["provenance"] | fields["versions"]
    told = {
        k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in facts.items()
    }
    rows = "".join(
        f"<tr><td>{_escape_html(k)}</td><td>{_escape_html(v)}</td></tr>" for k, v in told.items()
    )
    return (
        f'<article id="{_escape_html(name)}"><h3>{_escape_html(name)}</h3>'
        f'<div class="pictures">{pictures}</div>'
        f'<p class="caption">{_escape_html(fields["caption"])}</p><p class="formats">{links}</p>'
        f"<details><summary>Provenance</summary><table>{rows}</table></details></article>\n"
    )


def _picture_html(name: str, files: list[str], suffix: str, size: str, px: int) -> str:
    source = next(
        (f"{name}{suffix}.{fmt}" for fmt in ("svg", "png") if f"{name}{suffix}.{fmt}" in files),
        None,
    )
    if source is None:
        return ""
    target = f"{name}.html" if f"{name}.html" in files else source
    described = f'alt="{_escape_html(name)}, {size} wide" loading="lazy"'
    shown = f'<img src="{_quote_link(source)}" width="{px}" {described}>'
    linked = f'<a href="{_quote_link(target)}">{shown}</a>'
    return f"<figure>{linked}<figcaption>{size}</figcaption></figure>"


def _quote_link(file: str) -> str:
    """Link to a file of the directory: no name of a file is an address."""
    return quote(file, errors="replace")


def _escape_html(value: object) -> str:
    return html.escape(str(value))
