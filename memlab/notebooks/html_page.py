"""Executed notebooks as HTML pages, and the page of all results."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from memlab.errors import ExportError
from memlab.figures.export import svg_as_shown, write_files_atomically
from memlab.figures.gallery import STYLE, render_markdown
from memlab.system_names import hide_model_files

_PLOTLY = "application/vnd.plotly.v1+json"
_WIDGET = "application/vnd.jupyter.widget-view+json"
# What a page without scripts shows of an output, text alone aside.
_SHOWN = frozenset(
    ["text/html", "text/markdown", "text/latex", "image/svg+xml", "image/png", "image/jpeg"]
)
_CELLS = """
main{max-width:980px;padding:2rem 1rem}main p,main li{max-width:46rem}
.prompt,.jp-InputPrompt,.jp-OutputPrompt,.anchor-link{display:none}
.highlight{background:#fff;border:1px solid #e4e4e0;border-radius:4px}.highlight pre{background:none}
td{word-break:normal}td:first-child{color:inherit}table{font-family:inherit}
.output_area,.jp-OutputArea-output{overflow-x:auto;margin:.6rem 0}main img,main svg{max-width:672px;height:auto}
"""
_INDEX = """
.pictures{align-items:center}.answers h2{font-size:1.05rem;margin:1.2rem 0 0}ul{margin:.3rem 0}
td,th{padding:.1rem .6rem .1rem 0}table{font-family:inherit}td:first-child{color:inherit}
.answers{display:grid;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr));gap:0 2rem;margin-bottom:3rem}
"""


ANSWER = "answer"
"""The tag of the cell whose output is what a notebook found."""


def write_notebook_page(notebook: Any, target: Path) -> None:
    """Write an executed notebook as one HTML page beside it, with its pictures, that needs no network.

    What this run found, the output of the cell tagged :data:`ANSWER`, stands under the title too: a
    committed opening speaks of the sample, in words. What libraries print to stderr is left to the
    notebook. A figure of plotly that brought no picture is drawn; a line stands for a widget, and
    for whatever else the page cannot show.
    """
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    shown = deepcopy(notebook)
    # The state of widgets, with their scripts: megabytes that nothing on the page reads.
    shown.metadata.pop("widgets", None)
    shown.cells = _with_findings_first(shown)
    for i, cell in enumerate(shown.cells):
        if cell.cell_type != "code":
            continue
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for j, output in enumerate(cell.outputs):
            if "data" in output:
                output.data = _still_data(output.data, f"{target.stem} {i} {j}")
    exporter = HTMLExporter(template_name="basic", embed_images=True)
    body, _ = exporter.from_notebook_node(shown, {"metadata": {"path": str(target.parent)}})
    style = STYLE + _CELLS + HtmlFormatter(style="default").get_style_defs(".highlight")
    write_files_atomically(
        target.parent,
        {f"{target.stem}.html": _html_page(target.stem, f"<main>{body}</main>", style)},
    )


def _with_findings_first(notebook: Any) -> list[Any]:
    """Give the cells of a notebook with what it found under its title, above the words of its opening."""
    from nbformat.v4 import new_markdown_cell

    cells, text = [*notebook.cells], answer_text(notebook)
    if not text or not cells or cells[0].cell_type != "markdown":
        return cells
    title, _, opening = cells[0].source.partition("\n")
    read = _data_and_part(notebook.metadata)
    head = f"**Found in this run, on {read}:**" if read else "**Found in this run:**"
    # The same cells get the same ids, so that the page is the same at every run.
    texts = (title, f"{head}\n\n{text}", opening.strip())
    ids = ("title", "findings", "opening")
    first = [new_markdown_cell(each, id=name) for each, name in zip(texts, ids, strict=True)]
    return [*first, *cells[1:]]


def answer_text(notebook: Any) -> str:
    """Give what an executed notebook found: the Markdown of the cell tagged :data:`ANSWER`, else of its last cell."""
    tagged = [cell for cell in notebook.cells if ANSWER in cell.metadata.get("tags", [])]
    outputs = [*tagged, *notebook.cells[-1:]][0].get("outputs", []) if notebook.cells else []
    texts = (output.get("data", {}).get("text/markdown", "") for output in outputs)
    return "\n".join(text for text in texts if text)


def _still_data(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Give an output as a page without scripts shows it.

    That is as it is, as a picture, or as a line that says what is missing.

    nbconvert 7.17 prefers the view of a widget to a picture beside it, and leaves out a kind of
    output that it does not know, such as the only one that plotly 7.1 gives in a kernel.

    :param data: by kind (MIME type).
    :param key: of the output, on its page.
    """
    still = {kind: content for kind, content in data.items() if kind != _WIDGET}
    if not _SHOWN.isdisjoint(still):
        return still
    if _PLOTLY in data:
        return _still_figure(data[_PLOTLY], key)
    if _WIDGET in data:
        name = re.match(r"[A-Za-z_]\w*(?=\()", data.get("text/plain", ""))
        return _missing_line(f"a widget ({name[0]})" if name else "a widget")
    if "text/plain" in still or "application/javascript" in still:
        return still
    return _missing_line(f"an output of the kind {', '.join(still)}")


def _still_figure(spec: Any, key: str) -> dict[str, Any]:
    try:
        return {"image/svg+xml": svg_as_shown(spec, key)}
    except ExportError as error:
        return _missing_line(f"a figure of plotly ({error})")


def _missing_line(what: str) -> dict[str, Any]:
    line = f"Here is {what}, which this page cannot show; open the notebook to see it."
    return {"text/html": f"<p><em>{html.escape(line)}</em></p>"}


def write_results_page(
    results: str | os.PathLike[str], figures: str | os.PathLike[str], notebooks: Path
) -> Path:
    """Write ``index.html``: the map, the table of pipelines, and what each executed notebook found.

    :param results: where the reports of ``memlab evaluate`` are, and the page is written.
    :param figures: where figures were exported to.
    :param notebooks: where the executed notebooks are.
    :returns: the path of the page.
    :raises ExportError: when it cannot be written.
    """
    folder, beside = Path(results), os.path.relpath(figures, results)
    picture = ""
    if (Path(figures) / "cluster-map.svg").is_file():
        picture = f'<figure><a href="{beside}/cluster-map.html"><img src="{beside}/cluster-map.svg" width="430"></a>'
        picture += "<figcaption>A question on the map of one memory: stars are its evidence.</figcaption></figure>"
    shown = [
        path
        for path in sorted(notebooks.glob("[0-9]*.ipynb"))
        if path.with_suffix(".html").is_file()
    ]
    read = {_dataset_name(_metadata(path)) for path in shown}
    reports = sorted(
        folder.glob("*/report.md"), key=lambda path: (path.parent.name not in read, path)
    )
    tables = "".join(map(_report_table, reports[:1]))
    answers = "".join(_notebook_section(path, folder) for path in shown)
    links = [f'<a href="{beside}/index.html">all figures</a>'] * (
        Path(figures) / "index.html"
    ).is_file()
    links += [
        f'<a href="{path.parent.name}/report.md">tables of {path.parent.name}</a>'
        for path in reports
    ]
    body = f"<header><h1>Results</h1><p>{' · '.join(links)}</p></header><main>"
    body += (
        f'<div class="pictures">{picture}{tables}</div><div class="answers">{answers}</div></main>'
    )
    write_files_atomically(folder, {"index.html": _html_page("Results", body, STYLE + _INDEX)})
    return folder / "index.html"


def notebook_dataset(path: Path) -> str:
    """Give the name of the file that an executed notebook read, with the memories where it read some of them."""
    return _data_and_part(_metadata(path))


def _metadata(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))["metadata"])


def _dataset_name(metadata: Mapping[str, Any]) -> str:
    """Give the name of what a notebook was given to read, or "" where its sentences say it."""
    given = metadata.get("papermill", {}).get("parameters", {})
    return Path(given.get("dataset") or given.get("conversations") or "").stem


def _data_and_part(metadata: Mapping[str, Any]) -> str:
    """Give the name of what a notebook was given to read, with the memories where it was some of them."""
    name = _dataset_name(metadata)
    given = metadata.get("papermill", {}).get("parameters", {})
    part = given.get("part") or {}
    if part.get("questions"):
        name += f" with {Path(part['questions']).name}"
    scopes = part.get("scopes")
    if isinstance(scopes, int):
        return f"{name}, {scopes:,} memories drawn"
    if scopes:
        return f"{name}, of {' and '.join(scopes)}"
    return name


def findings(path: Path) -> list[str]:
    """Give the findings of an executed notebook: the points of its answer."""
    import nbformat

    text = answer_text(nbformat.read(path, as_version=4))
    return re.findall(r"^- (.*)", text, re.MULTILINE)


def _report_table(report: Path) -> str:
    """Give the table of a report with the recall of each pipeline by number of evidence sessions."""
    text = report.read_text(encoding="utf-8")
    tables = re.findall(
        r"^\*\*turns, \S+ by number of evidence sessions\*\*\n\n(?:\|[^\n]*\n)+", text, re.MULTILINE
    )
    head = f"<h2>{html.escape(report.parent.name)}</h2>"
    return f"<div>{head}{render_markdown(hide_model_files(tables[0]))}</div>" if tables else ""


def _notebook_section(path: Path, folder: Path) -> str:
    import nbformat

    question = nbformat.read(path, as_version=4).cells[0].source.splitlines()[0].removeprefix("# ")
    points = render_markdown("\n".join(f"- {point}" for point in findings(path)[:3]))
    place = os.path.relpath(path.with_suffix(".html"), folder)
    head = f'<a href="{place}">{html.escape(question)}</a> {html.escape(notebook_dataset(path))}'
    return f"<section><h2>{head}</h2>{points}</section>"


def _html_page(title: str, body: str, style: str) -> bytes:
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{style}</style>'
    page = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'
    return page.encode("utf-8", "replace")
