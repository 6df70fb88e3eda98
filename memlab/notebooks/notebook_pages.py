"""Executed notebooks as HTML pages of one file."""

from __future__ import annotations

import ast
import html
import os
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.errors import ExportError
from memlab.figures.figure_export import svg_as_shown, write_files_atomically_and_remove_stale
from memlab.figures.figure_gallery import STYLE
from memlab.notebooks.charts_on_pages import PLOTLY, PageCharts
from memlab.notebooks.executed_notebook import (
    GALLERY_PICTURE,
    answer_text,
    dataset_of_metadata_or_empty,
    split_opening,
)

if TYPE_CHECKING:
    from nbformat import NotebookNode

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
_PROGRESS = re.compile(r"\d+%\|.*\|")


def write_notebook_page(
    notebook: NotebookNode, target: Path, *, figures: str | os.PathLike[str] | None = None
) -> None:
    """Write an executed notebook as one HTML page beside it that needs no network.

    What this run found, the output of the cell tagged
    :data:`memlab.notebooks.executed_notebook.ANSWER`, stands under the title too, with the figure
    of the opening as this run drew it: a committed opening speaks of the sample, and what it says
    of it comes last. What libraries print to stderr is left to the notebook. Charts of plotly can
    be zoomed and read (:mod:`memlab.notebooks.charts_on_pages`), in letters of the size of the
    text; a line stands for a widget, and for whatever else the page cannot show.

    :param figures: where the notebook exported its figures to.
    """
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    page_notebook = deepcopy(notebook)
    # The state of widgets, with their scripts: megabytes that nothing on the page reads.
    page_notebook.metadata.pop("widgets", None)
    page_charts = PageCharts()
    page_notebook.cells = _cells_with_findings_first(page_notebook, figures, page_charts)
    page_notebook.cells = _cells_with_one_parameter_cell(page_notebook.cells)
    for cell_number, page_cell in enumerate(page_notebook.cells):
        if page_cell.cell_type == "code":
            _make_outputs_displayable_in_place(
                page_cell, f"{target.stem} {cell_number}", page_charts
            )
    html_exporter = HTMLExporter(template_name="basic", embed_images=True)
    page_body, _ = html_exporter.from_notebook_node(
        page_notebook, {"metadata": {"path": str(target.parent)}}
    )
    page_style = STYLE + _CELLS + HtmlFormatter(style="default").get_style_defs(".highlight")
    page_content = build_html_page(
        target.stem,
        f"<main>{page_body}</main>{page_charts.chart_script()}",
        page_charts.font_face_rules() + page_style,
    )
    write_files_atomically_and_remove_stale(target.parent, {f"{target.stem}.html": page_content})


def _cells_with_findings_first(
    notebook: NotebookNode, figures: str | os.PathLike[str] | None, charts: PageCharts
) -> list[NotebookNode]:
    """Put what a notebook found under its title, and its words on the sample at the end."""
    from nbformat.v4 import new_markdown_cell

    notebook_cells = [*notebook.cells]
    findings_text = answer_text(notebook)
    if not findings_text or not notebook_cells or notebook_cells[0].cell_type != "markdown":
        return notebook_cells
    opening_parts = split_opening(notebook)
    dataset_read = dataset_of_metadata_or_empty(notebook.metadata)
    findings_head = "**Found in this run:**"
    if dataset_read:
        findings_head = f"**Found in this run, on {dataset_read}:**"
    words_by_cell = {
        "title": f"# {opening_parts.title}",
        "findings": f"{findings_head}\n\n{findings_text}",
        "picture": _opening_figure_html_or_empty(opening_parts.sample, figures, charts),
        "opening": opening_parts.words,
    }
    # The same cells get the same ids, so that the page is the same at every run.
    opening_cells = []
    for cell_name, cell_words in words_by_cell.items():
        if cell_words:
            opening_cells.append(new_markdown_cell(cell_words, id=cell_name))
    if opening_parts.sample:
        cell_words = (
            f"## What it found on the sample\n\n{GALLERY_PICTURE.sub('', opening_parts.sample)}"
        )
        notebook_cells.append(new_markdown_cell(cell_words, id="sample"))
    return [*opening_cells, *notebook_cells[1:]]


def _opening_figure_html_or_empty(
    opening: str, figures: str | os.PathLike[str] | None, charts: PageCharts
) -> str:
    """Give the figure of an opening as this run exported it; "" where it did not."""
    picture_link = GALLERY_PICTURE.search(opening)
    if picture_link is None or figures is None:
        return ""
    picture_path = Path(figures) / f"{picture_link[1]}.svg"
    if not picture_path.is_file():
        return ""
    return charts.static_picture_html(picture_path.read_text(encoding="utf-8"))


def _cells_with_one_parameter_cell(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Put the values that a notebook was run with in the place of its own.

    papermill adds a second cell of them.
    """
    given_lines = {}
    for notebook_cell in cells:
        if "injected-parameters" in notebook_cell.metadata.get("tags", []):
            given_lines = _value_source_by_variable(notebook_cell.source)
    kept_cells = []
    for notebook_cell in cells:
        cell_tags = notebook_cell.metadata.get("tags", [])
        if "injected-parameters" in cell_tags:
            continue
        if "parameters" in cell_tags:
            line_by_name = {**_value_source_by_variable(notebook_cell.source), **given_lines}
            notebook_cell.source = "\n".join(line_by_name.values())
        kept_cells.append(notebook_cell)
    return kept_cells


def _value_source_by_variable(source: str) -> dict[str, str]:
    """Give the source of each assignment of a cell by its name, in order."""
    source_lines = source.splitlines()
    source_by_name = {}
    for syntax_node in ast.parse(source).body:
        if isinstance(syntax_node, ast.Assign) and isinstance(syntax_node.targets[0], ast.Name):
            source_by_name[syntax_node.targets[0].id] = "\n".join(
                source_lines[syntax_node.lineno - 1 : syntax_node.end_lineno]
            )
    return source_by_name


def _make_outputs_displayable_in_place(
    code_cell: NotebookNode, key: str, charts: PageCharts
) -> None:
    """Make the outputs of a cell what the page can show."""
    code_cell.outputs = [
        cell_output for cell_output in code_cell.outputs if not _is_progress_output(cell_output)
    ]
    for output_number, cell_output in enumerate(code_cell.outputs):
        if "data" in cell_output:
            cell_output.data = _displayable_mime_data(
                cell_output.data, f"{key} {output_number}", charts
            )


def _is_progress_output(output: NotebookNode) -> bool:
    """Say whether an output was for who waited: a line on stderr, or a bar of progress."""
    if output.get("name") == "stderr":
        return True
    output_data = output.get("data", {})
    return (
        _WIDGET in output_data and _PROGRESS.search(output_data.get("text/plain", "")) is not None
    )


def _displayable_mime_data(data: Mapping[str, Any], key: str, charts: PageCharts) -> dict[str, Any]:
    """Give an output as it is, as a chart, as a picture, or as a line that says what is missing.

    nbconvert 7.17 prefers the view of a widget to a picture beside it, and leaves out a kind of
    output that it does not know, such as the only one that plotly 7.1 gives in a kernel.

    :param data: by kind (MIME type).
    :param key: of the output, on its page.
    """
    shown_kinds = {
        content_kind: kind_content
        for content_kind, kind_content in data.items()
        if content_kind != _WIDGET
    }
    if PLOTLY in shown_kinds and "text/html" not in shown_kinds:
        return _plotly_chart_html(shown_kinds, key, charts)
    if "image/svg+xml" in shown_kinds:
        return {"text/html": charts.static_picture_html(shown_kinds["image/svg+xml"])}
    if not _SHOWN.isdisjoint(shown_kinds):
        return shown_kinds
    if _WIDGET in data:
        widget_name = re.match(r"[A-Za-z_]\w*(?=\()", data.get("text/plain", ""))
        if widget_name:
            return _missing_output_html(f"a widget ({widget_name[0]})")
        return _missing_output_html("a widget")
    if "text/plain" in shown_kinds or "application/javascript" in shown_kinds:
        return shown_kinds
    return _missing_output_html(f"an output of the kind {', '.join(shown_kinds)}")


def _plotly_chart_html(data: Mapping[str, Any], key: str, charts: PageCharts) -> dict[str, Any]:
    """Give a chart of plotly, with a picture of it for where no script runs."""
    picture = data.get("image/svg+xml")
    if picture is None:
        try:
            picture = svg_as_shown(data[PLOTLY], key)
        except ExportError as error:
            return _missing_output_html(f"a figure of plotly ({error})")
    return {"text/html": charts.add_chart_html(data[PLOTLY], picture)}


def _missing_output_html(missing_thing: str) -> dict[str, Any]:
    missing_text = (
        f"Here is {missing_thing}, which this page cannot show; open the notebook to see it."
    )
    return {"text/html": f"<p><em>{html.escape(missing_text)}</em></p>"}


def build_html_page(title: str, body: str, style: str) -> bytes:
    """Put a body into a page with a title and a style."""
    head_markup = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{style}</style>'
    page_text = (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head_markup}</head>\n<body>{body}</body></html>\n'
    )
    return page_text.encode("utf-8", "replace")
