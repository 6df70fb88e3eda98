"""Executed notebooks as HTML pages of one file."""

from __future__ import annotations

import ast
import html
import os
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from memlab.errors import ExportError
from memlab.figures.export import svg_as_shown, write_files_atomically
from memlab.figures.gallery import STYLE
from memlab.notebooks.executed import answer_text, read_dataset, split_opening
from memlab.notebooks.page_charts import PLOTLY, PageCharts

_WIDGET = "application/vnd.jupyter.widget-view+json"
# What a page shows of an output, text alone aside.
_SHOWN = frozenset(
    ["text/html", "text/markdown", "text/latex", "image/svg+xml", "image/png", "image/jpeg"]
)
_CELLS = """
main{max-width:1010px;padding:2rem 1rem}main p,main li{max-width:46rem}
.prompt,.jp-InputPrompt,.jp-OutputPrompt,.anchor-link{display:none}
.highlight{background:#fff;border:1px solid #e4e4e0;border-radius:4px}
.highlight pre{background:none}
td{word-break:normal}td:first-child{color:inherit}table{font-family:inherit}
.output_area,.jp-OutputArea-output{overflow-x:auto;margin:.6rem 0}
main img,main svg{max-width:100%;height:auto}
.chart{position:relative;max-width:100%;background:#fff}.chart img{display:block;width:100%}
.live{position:absolute;top:0;left:0;transform-origin:0 0}
.live .modebar{opacity:0}.live:hover .modebar,.live:focus-within .modebar{opacity:1}
"""
_GALLERY_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*/figures/gallery/sample-([\w-]+)\.png\)")
_PROGRESS = re.compile(r"\d+%\|.*\|")


def write_notebook_page(
    notebook: Any, target: Path, *, figures: str | os.PathLike[str] | None = None
) -> None:
    """Write an executed notebook as one HTML page beside it that needs no network.

    What this run found, the output of the cell tagged :data:`memlab.notebooks.executed.ANSWER`,
    stands under the title too, with the figure of the opening as this run drew it: a committed
    opening speaks of the sample, and what it says of it comes last. What libraries print to stderr
    is left to the notebook. Charts of plotly can be zoomed and read
    (:mod:`memlab.notebooks.page_charts`), in letters of the size of the text; a line stands for a
    widget, and for whatever else the page cannot show.

    :param figures: where the notebook exported its figures to.
    """
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    shown = deepcopy(notebook)
    # The state of widgets, with their scripts: megabytes that nothing on the page reads.
    shown.metadata.pop("widgets", None)
    charts = PageCharts()
    shown.cells = _with_findings_first(shown, figures, charts)
    shown.cells = _with_one_parameter_cell(shown.cells)
    for number, cell in enumerate(shown.cells):
        if cell.cell_type == "code":
            _show_outputs(cell, f"{target.stem} {number}", charts)
    exporter = HTMLExporter(template_name="basic", embed_images=True)
    body, _ = exporter.from_notebook_node(shown, {"metadata": {"path": str(target.parent)}})
    style = STYLE + _CELLS + HtmlFormatter(style="default").get_style_defs(".highlight")
    page = html_page(
        target.stem, f"<main>{body}</main>{charts.script()}", charts.font_rules() + style
    )
    write_files_atomically(target.parent, {f"{target.stem}.html": page})


def _with_findings_first(
    notebook: Any, figures: str | os.PathLike[str] | None, charts: PageCharts
) -> list[Any]:
    """Put what a notebook found under its title, and its words on the sample at the end."""
    from nbformat.v4 import new_markdown_cell

    cells, text = [*notebook.cells], answer_text(notebook)
    if not text or not cells or cells[0].cell_type != "markdown":
        return cells
    opening = split_opening(notebook)
    read = read_dataset(notebook.metadata)
    head = "**Found in this run:**"
    if read:
        head = f"**Found in this run, on {read}:**"
    first = {
        "title": f"# {opening.title}",
        "findings": f"{head}\n\n{text}",
        "picture": _picture_of_run(opening.sample, figures, charts),
        "opening": opening.words,
    }
    # The same cells get the same ids, so that the page is the same at every run.
    made = []
    for name, words in first.items():
        if words:
            made.append(new_markdown_cell(words, id=name))
    if opening.sample:
        words = f"## What it found on the sample\n\n{_GALLERY_PICTURE.sub('', opening.sample)}"
        cells.append(new_markdown_cell(words, id="sample"))
    return [*made, *cells[1:]]


def _picture_of_run(
    opening: str, figures: str | os.PathLike[str] | None, charts: PageCharts
) -> str:
    """Give the figure of an opening as this run exported it; "" where it did not."""
    found = _GALLERY_PICTURE.search(opening)
    if found is None or figures is None:
        return ""
    picture = Path(figures) / f"{found[1]}.svg"
    if not picture.is_file():
        return ""
    return charts.add_picture(picture.read_text(encoding="utf-8"))


def _with_one_parameter_cell(cells: list[Any]) -> list[Any]:
    """Put the values that a notebook was run with in the place of its own.

    papermill adds a second cell of them.
    """
    given = {}
    for cell in cells:
        if "injected-parameters" in cell.metadata.get("tags", []):
            given = _assignments(cell.source)
    kept = []
    for cell in cells:
        tags = cell.metadata.get("tags", [])
        if "injected-parameters" in tags:
            continue
        if "parameters" in tags:
            lines = {**_assignments(cell.source), **given}
            cell.source = "\n".join(lines.values())
        kept.append(cell)
    return kept


def _assignments(source: str) -> dict[str, str]:
    """Give the source of each assignment of a cell by its name, in order."""
    lines = source.splitlines()
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    return found


def _show_outputs(cell: Any, key: str, charts: PageCharts) -> None:
    """Make the outputs of a cell what the page can show."""
    cell.outputs = [output for output in cell.outputs if not _is_passing(output)]
    for number, output in enumerate(cell.outputs):
        if "data" in output:
            output.data = _shown_data(output.data, f"{key} {number}", charts)


def _is_passing(output: Any) -> bool:
    """Say whether an output was for who waited: a line on stderr, or a bar of progress."""
    if output.get("name") == "stderr":
        return True
    data = output.get("data", {})
    return _WIDGET in data and _PROGRESS.search(data.get("text/plain", "")) is not None


def _shown_data(data: Mapping[str, Any], key: str, charts: PageCharts) -> dict[str, Any]:
    """Give an output as it is, as a chart, as a picture, or as a line that says what is missing.

    nbconvert 7.17 prefers the view of a widget to a picture beside it, and leaves out a kind of
    output that it does not know, such as the only one that plotly 7.1 gives in a kernel.

    :param data: by kind (MIME type).
    :param key: of the output, on its page.
    """
    shown = {kind: content for kind, content in data.items() if kind != _WIDGET}
    if PLOTLY in shown and "text/html" not in shown:
        return _chart_data(shown, key, charts)
    if "image/svg+xml" in shown:
        return {"text/html": charts.add_picture(shown["image/svg+xml"])}
    if not _SHOWN.isdisjoint(shown):
        return shown
    if _WIDGET in data:
        name = re.match(r"[A-Za-z_]\w*(?=\()", data.get("text/plain", ""))
        if name:
            return _missing_line(f"a widget ({name[0]})")
        return _missing_line("a widget")
    if "text/plain" in shown or "application/javascript" in shown:
        return shown
    return _missing_line(f"an output of the kind {', '.join(shown)}")


def _chart_data(data: Mapping[str, Any], key: str, charts: PageCharts) -> dict[str, Any]:
    """Give a chart of plotly, with a picture of it for where no script runs."""
    picture = data.get("image/svg+xml")
    if picture is None:
        try:
            picture = svg_as_shown(data[PLOTLY], key)
        except ExportError as error:
            return _missing_line(f"a figure of plotly ({error})")
    return {"text/html": charts.add(data[PLOTLY], picture)}


def _missing_line(what: str) -> dict[str, Any]:
    line = f"Here is {what}, which this page cannot show; open the notebook to see it."
    return {"text/html": f"<p><em>{html.escape(line)}</em></p>"}


def html_page(title: str, body: str, style: str) -> bytes:
    """Put a body into a page with a title and a style."""
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{style}</style>'
    page = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'
    return page.encode("utf-8", "replace")
