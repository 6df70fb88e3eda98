"""The page of all results: by dataset a picture, what was found, its table, and its figures."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from memlab.experiments.result_folders import read_folder_marker
from memlab.figures.figure_export import write_files_atomically_and_remove_stale
from memlab.figures.figure_gallery import STYLE, render_markdown
from memlab.figures.figure_provenance import read_sidecar
from memlab.notebooks.executed_notebook import (
    answer_bullet_points,
    describe_dataset_part,
    opening_figure_or_empty,
    read_notebook,
    split_opening,
)
from memlab.notebooks.notebook_pages import build_html_page
from memlab.system_names import hide_model_files_in_pipeline_text

NOTEBOOKS = "notebooks"
"""Where in the folder of a dataset its executed notebooks are."""
_KEY_PICTURES = ("cluster-map", "recall-all")
_MOST_POINTS = 3
_STYLE = """
main>section{margin-bottom:3.5rem}.pictures{align-items:center}
.answers h3{font-size:1.05rem;margin:1.2rem 0 0}
ul{margin:.3rem 0}td,th{padding:.1rem .6rem .1rem 0}
table{font-family:inherit}td:first-child{color:inherit}
.answers{display:grid;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr))}
.answers{gap:0 2rem;margin-bottom:1.5rem}
.thumbnails{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:1rem}
.thumbnails figure{margin:0}.thumbnails img{width:100%;height:160px;object-fit:contain}
.thumbnails img{background:#fff;border:1px solid #e4e4e0;border-radius:4px}
"""


@dataclass(frozen=True)
class ResultsOfDataset:
    """What the page shows of one dataset.

    :param folder: of its results.
    :param name: of the dataset, with the part of it that was taken.
    :param notebooks: the executed notebooks that have a page.
    :param report: the tables of ``memlab evaluate``; ``None`` where it was not run.
    :param figures: the folder of its figures.
    """

    folder: Path
    name: str
    notebooks: list[Path]
    report: Path | None
    figures: Path


def write_results_page(results: str | os.PathLike[str]) -> Path:
    """Write ``index.html``: of each dataset a picture, what was found, its table and its figures.

    A dataset has a folder in ``results`` that says whose it is
    (:mod:`memlab.experiments.result_folders`). Of other folders with tables there are links.

    :param results: where the folders are, and the page is written.
    :returns: the path of the page.
    :raises ExportError: when it cannot be written.
    """
    results_folder = Path(results)
    page_links = ""
    dataset_sections = ""
    for dataset_results in _find_results_of_datasets(results_folder):
        anchor = _escape_html(dataset_results.folder.name)
        page_links += f'<a href="#{anchor}">{_escape_html(dataset_results.name)}</a>'
        dataset_sections += _dataset_section_html(dataset_results, results_folder)
    other_tables = _tables_beside_report_html(results_folder)
    header_markup = f"<header><h1>Results</h1><nav><p>{page_links}</p></nav></header>"
    page_body = f"{header_markup}<main>{dataset_sections}{other_tables}</main>"
    write_files_atomically_and_remove_stale(
        results_folder, {"index.html": build_html_page("Results", page_body, STYLE + _STYLE)}
    )
    return results_folder / "index.html"


def former_results_note_or_empty(results: Path, figures: Path) -> str:
    """Say what a former version, which kept no datasets apart, left; "" where there is nothing."""
    former_places = []
    if any((results / NOTEBOOKS).glob("[0-9]*.ipynb")):
        former_places.append(str(results / NOTEBOOKS))
    made_by_notebooks = any(
        figure_card is not None and "notebook" in figure_card["made_by"]
        for figure_card in map(read_sidecar, figures.glob("*.json"))
    )
    if made_by_notebooks:
        former_places.append(f"figures in {figures} itself")
    if not former_places:
        return ""
    former_text = " and ".join(former_places)
    return (
        f"{former_text}: of a former version of memlab, or your own; left as they are, and on "
        "no page"
    )


def _find_results_of_datasets(results_folder: Path) -> Iterator[ResultsOfDataset]:
    """Find the folders that say of which dataset they are, and have something to show."""
    for dataset_folder in sorted(results_folder.iterdir()):
        marker_content = read_folder_marker(dataset_folder)
        if marker_content is None:
            continue
        marked_places = marker_content["places"]
        notebooks_folder = dataset_folder / str(marked_places.get("notebooks", NOTEBOOKS))
        executed_paths = [
            notebook_path
            for notebook_path in sorted(notebooks_folder.glob("[0-9]*.ipynb"))
            if notebook_path.with_suffix(".html").is_file()
        ]
        report_path = None
        if (dataset_folder / "report.md").is_file():
            report_path = dataset_folder / "report.md"
        if not executed_paths and report_path is None:
            continue
        yield ResultsOfDataset(
            folder=dataset_folder,
            name=describe_dataset_part(marker_content["name"], marker_content.get("part")),
            notebooks=executed_paths,
            report=report_path,
            figures=dataset_folder / str(marked_places.get("figures", "figures")),
        )


def _dataset_section_html(dataset_results: ResultsOfDataset, folder: Path) -> str:
    caption_by_figure = _caption_by_exported_figure(dataset_results.figures)
    figures_link = _relative_link(dataset_results.figures, folder)
    section_links = []
    if (dataset_results.figures / "index.html").is_file():
        section_links.append(f'<a href="{figures_link}/index.html">all figures</a>')
    report_table = ""
    if dataset_results.report:
        section_links.append(
            f'<a href="{_relative_link(dataset_results.report, folder)}">tables</a>'
        )
        report_table = _report_table_html(dataset_results.report)
    key_picture = ""
    thumbnails = ""
    answers = ""
    opening_figures = [
        opening_figure_or_empty(read_notebook(notebook_path))
        for notebook_path in dataset_results.notebooks
    ]
    for figure_name in (*_KEY_PICTURES, *opening_figures, *caption_by_figure):
        if figure_name in caption_by_figure:
            key_picture = _figure_html(
                figure_name, caption_by_figure[figure_name], figures_link, 'width="430"'
            )
            break
    for figure_name, caption in caption_by_figure.items():
        thumbnails += _figure_html(
            figure_name, caption, figures_link, 'loading="lazy"', is_short=True
        )
    for notebook_path in dataset_results.notebooks:
        answers += _notebook_answer_html(notebook_path, folder)
    if not answers:
        answers = _conclusions_html(dataset_results.folder)
    section_head = (
        f"<h2>{_escape_html(dataset_results.name)}</h2><p>{' · '.join(section_links)}</p>"
    )
    return (
        f'<section id="{_escape_html(dataset_results.folder.name)}">{section_head}'
        f'<div class="pictures">{key_picture}{report_table}</div><div '
        f'class="answers">{answers}</div>'
        f'<div class="thumbnails">{thumbnails}</div></section>'
    )


def _caption_by_exported_figure(figures_folder: Path) -> dict[str, str]:
    """Give the captions of the figures of a folder that have a picture, by name."""
    caption_by_figure = {}
    for sidecar_path in sorted(figures_folder.glob("*.json")):
        figure_card = read_sidecar(sidecar_path)
        if figure_card is not None and sidecar_path.with_suffix(".svg").is_file():
            caption_by_figure[sidecar_path.stem] = figure_card["caption"]
    return caption_by_figure


def _figure_html(
    figure_name: str, caption: str, folder_link: str, size_attribute: str, *, is_short: bool = False
) -> str:
    """Show a figure, with a link to its page."""
    figure_link = f"{folder_link}/{quote(figure_name)}"
    image_markup = (
        f'<img src="{figure_link}.svg" alt="{_escape_html(figure_name)}" {size_attribute}>'
    )
    shown_caption = caption
    if is_short:
        shown_caption = figure_name
    linked_image = (
        f'<a href="{figure_link}.html" title="{_escape_html(caption)}">{image_markup}</a>'
    )
    return f"<figure>{linked_image}<figcaption>{_escape_html(shown_caption)}</figcaption></figure>"


def _notebook_answer_html(executed_path: Path, page_folder: Path) -> str:
    executed_notebook = read_notebook(executed_path)
    question = split_opening(executed_notebook).title
    answer_lines = answer_bullet_points(executed_notebook)[:_MOST_POINTS]
    answer_markup = render_markdown("\n".join(f"- {answer_line}" for answer_line in answer_lines))
    page_link = _relative_link(executed_path.with_suffix(".html"), page_folder)
    heading = f'<h3><a href="{page_link}">{_escape_html(question)}</a></h3>'
    return f"<section>{heading}{answer_markup}</section>"


def _conclusions_html(results_folder: Path) -> str:
    """Give what ``memlab evaluate`` found, in sentences."""
    try:
        conclusions_text = (results_folder / "conclusions.md").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    return f"<section>{render_markdown(conclusions_text)}</section>"


def _report_table_html(report: Path) -> str:
    """Give the table of a report with recall by number of evidence sessions."""
    report_text = report.read_text(encoding="utf-8")
    table_pattern = r"^\*\*turns, \S+ by number of evidence sessions\*\*\n\n(?:\|[^\n]*\n)+"
    table_match = re.search(table_pattern, report_text, re.MULTILINE)
    if table_match is None:
        return ""
    return f"<div>{render_markdown(hide_model_files_in_pipeline_text(table_match[0]))}</div>"


def _tables_beside_report_html(folder: Path) -> str:
    """Link to the tables of folders that do not say of which dataset they are."""
    report_paths = [
        report_path
        for report_path in sorted(folder.glob("*/report.md"))
        if read_folder_marker(report_path.parent) is None
    ]
    if not report_paths:
        return ""
    table_links = []
    for report_path in report_paths:
        link = _relative_link(report_path, folder)
        table_links.append(f'<a href="{link}">{_escape_html(report_path.parent.name)}</a>')
    return f"<section><h2>Other tables</h2><p>{' · '.join(table_links)}</p></section>"


def _relative_link(linked_path: Path, page_folder: Path) -> str:
    return quote(Path(os.path.relpath(linked_path, page_folder)).as_posix(), errors="replace")


def _escape_html(value: object) -> str:
    return html.escape(str(value))
