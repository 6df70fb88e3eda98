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
from memlab.figures.figure_export import write_files_atomically_and_remove_stale
from memlab.figures.figure_provenance import read_sidecar
from memlab.figures.text_and_glyphs import font_face_rules

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
    target_folder = Path(directory)
    cards_by_notebook = dict[str, list[dict[str, Any]]]()
    if not os.path.isdir(target_folder):
        raise ExportError(
            f"no directory {target_folder} to make a gallery of; export a figure to it first"
        )
    for sidecar_path in sorted(target_folder.glob("*.json")):
        figure_card = read_sidecar(sidecar_path)
        if figure_card is not None:
            notebook_name = figure_card["made_by"].get("notebook", "")
            cards_by_notebook.setdefault(notebook_name, []).append(figure_card)
    page_links = _subfolder_links_html(target_folder)
    page_body = ""
    # Those of no notebook are last.
    for notebook_name in sorted(cards_by_notebook, key=lambda name: (not name, name)):
        notebook_cards = cards_by_notebook[notebook_name]
        heading, opening, ordered_cards = _title_opening_and_sorted_cards(
            notebook_name, Path(notebooks), notebook_cards
        )
        section_anchor = _escape_html(f"of-{Path(notebook_name).stem or 'none'}")
        figure_links = ""
        for ordered_card in ordered_cards:
            shown_name = _escape_html(ordered_card["name"])
            figure_links += f'<a href="#{shown_name}">{shown_name}</a>'
        page_links += (
            f'<p><a href="#{section_anchor}">{_escape_html(heading)}</a>{figure_links}</p>'
        )
        page_body += f'<section id="{section_anchor}"><h2>{_escape_html(heading)}</h2>'
        page_body += f'<div class="opening">{opening}</div>'
        page_body += "".join(map(_figure_card_html, ordered_cards)) + "</section>\n"
    n_figures = sum(map(len, cards_by_notebook.values()))
    count_text = "1 figure" if n_figures == 1 else f"{n_figures} figures"
    page_text = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Figures</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{font_face_rules(page_body)}{STYLE}</style>"
        f"</head>\n<body><header><h1>Figures</h1><p>{count_text}, each as HTML, SVG, PDF and PNG "
        f"with its data and provenance.</p><nav>{page_links}</nav></header>\n"
        f"<main>{page_body or '<p>Nothing has been exported yet.</p>'}</main></body></html>\n"
    )
    write_files_atomically_and_remove_stale(
        target_folder, {"index.html": page_text.encode("utf-8", "replace")}
    )
    return target_folder / "index.html"


def _title_opening_and_sorted_cards(
    notebook_name: str, notebook_folder: Path, figure_cards: list[dict[str, Any]]
) -> tuple[str, str, list[dict[str, Any]]]:
    """Give a notebook's title, its words before its first code (HTML), and its figures."""
    notebook = notebook_folder / notebook_name
    heading = Path(notebook_name).stem or "Other figures"
    if not os.path.isfile(notebook):  # a sidecar of anybody's may hold a name that no disk takes
        return heading, "", figure_cards
    try:
        notebook_cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        cell_sources = ["".join(notebook_cell["source"]) for notebook_cell in notebook_cells]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return heading, "", figure_cards
    code_text = "\n".join(cell_sources)
    sources_before_code = []
    for notebook_cell, cell_source in zip(notebook_cells, cell_sources, strict=True):
        if notebook_cell["cell_type"] == "code":
            break
        sources_before_code.append(cell_source)
    # The figures stand below.
    opening = _PICTURE.sub("", "\n\n".join(sources_before_code))
    if opening.startswith("# "):
        heading, _, opening = opening[2:].partition("\n")

    def figure_position_in_code(card: dict[str, Any]) -> int:
        """Give where a figure is named in the code; one that is not is the last."""
        place = code_text.find(f'"{card["name"]}"')
        if place < 0:
            return len(code_text)
        return place

    words = render_markdown(_answer_markdown_or_empty(notebook_cells) or opening)
    return heading, words, sorted(figure_cards, key=figure_position_in_code)


def _answer_markdown_or_empty(notebook_cells: list[dict[str, Any]]) -> str:
    """Give what an executed notebook found: the Markdown that its cell tagged ``answer`` shows."""
    for notebook_cell in notebook_cells:
        if "answer" not in notebook_cell.get("metadata", {}).get("tags", []):
            continue
        output_contents = [
            cell_output.get("data", {}) for cell_output in notebook_cell.get("outputs", [])
        ]
        return "\n".join(
            "".join(output_data.get("text/markdown", "")) for output_data in output_contents
        ).strip()
    return ""


def _subfolder_links_html(gallery_folder: Path) -> str:
    """Link to the galleries of the folders of a directory, which are those of datasets."""
    gallery_pages = sorted(gallery_folder.glob("*/index.html"))
    folder_names = [gallery_page.parent.name for gallery_page in gallery_pages]
    page_links = "".join(
        f'<a href="{_quoted_file_link(folder_name)}/index.html">{_escape_html(folder_name)}</a>'
        for folder_name in folder_names
    )
    return f"<p>{page_links}</p>" if page_links else ""


def render_markdown(markdown: str) -> str:
    """Give Markdown with tables as HTML; mark-up in it is text."""
    with require_extra("figures", "a page"):
        from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown))


def _figure_card_html(sidecar_fields: dict[str, Any]) -> str:
    figure_name = sidecar_fields["name"]
    file_names = sidecar_fields["files"]
    pictures = _picture_html(figure_name, file_names, "", "7 in", 672)
    pictures += _picture_html(figure_name, file_names, ".column", "3.5 in", 336)
    file_links = ""
    for file_name in file_names:
        file_kind = _escape_html(file_name.removeprefix(f"{figure_name}."))
        file_links += f'<a href="{_quoted_file_link(file_name)}">{file_kind}</a>'
    origin_fields = (
        sidecar_fields["made_by"] | sidecar_fields["provenance"] | sidecar_fields["versions"]
    )
    table_rows = ""
    for field_name, field_value in origin_fields.items():
        field_text = field_value
        if not isinstance(field_value, str):
            field_text = json.dumps(field_value, ensure_ascii=False)
        table_rows += (
            f"<tr><td>{_escape_html(field_name)}</td><td>{_escape_html(field_text)}</td></tr>"
        )
    return (
        f'<article id="{_escape_html(figure_name)}"><h3>{_escape_html(figure_name)}</h3>'
        f'<div class="pictures">{pictures}</div>'
        f'<p class="caption">{_escape_html(sidecar_fields["caption"])}</p>'
        f'<p class="formats">{file_links}</p>'
        f"<details><summary>Provenance</summary><table>{table_rows}</table></details></article>\n"
    )


def _picture_html(
    figure_name: str, file_names: list[str], suffix: str, size: str, width_px: int
) -> str:
    source_file = next(
        (
            f"{figure_name}{suffix}.{picture_format}"
            for picture_format in ("svg", "png")
            if f"{figure_name}{suffix}.{picture_format}" in file_names
        ),
        None,
    )
    if source_file is None:
        return ""
    link_target = f"{figure_name}.html" if f"{figure_name}.html" in file_names else source_file
    image_attributes = f'alt="{_escape_html(figure_name)}, {size} wide" loading="lazy"'
    image_markup = (
        f'<img src="{_quoted_file_link(source_file)}" width="{width_px}" {image_attributes}>'
    )
    link_markup = f'<a href="{_quoted_file_link(link_target)}">{image_markup}</a>'
    return f"<figure>{link_markup}<figcaption>{size}</figcaption></figure>"


def _quoted_file_link(file_name: str) -> str:
    """Link to a file of the directory: no name of a file is an address."""
    return quote(file_name, errors="replace")


def _escape_html(value: object) -> str:
    return html.escape(str(value))
