"""The page of all results: by dataset a picture, what was found, its table, and its figures."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from memlab.experiments.result_folders import read_marker
from memlab.figures.export import write_files_atomically
from memlab.figures.gallery import STYLE, render_markdown
from memlab.figures.provenance import read_sidecar
from memlab.notebooks.executed import answer_points, data_and_part, read_notebook, split_opening
from memlab.notebooks.html_page import html_page
from memlab.system_names import hide_model_files

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
    folder = Path(results)
    links, sections = "", ""
    for part in _find_results(folder):
        links += f'<a href="#{_escape(part.folder.name)}">{_escape(part.name)}</a>'
        sections += _dataset_section(part, folder)
    others = _other_tables(folder)
    header = f"<header><h1>Results</h1><nav><p>{links}</p></nav></header>"
    body = f"{header}<main>{sections}{others}</main>"
    write_files_atomically(folder, {"index.html": html_page("Results", body, STYLE + _STYLE)})
    return folder / "index.html"


def former_results(results: Path, figures: Path) -> str:
    """Say what a former version, which kept no datasets apart, left; "" where there is nothing."""
    left = []
    if any((results / NOTEBOOKS).glob("[0-9]*.ipynb")):
        left.append(str(results / NOTEBOOKS))
    made_by_notebooks = any(
        card is not None and "notebook" in card["made_by"]
        for card in map(read_sidecar, figures.glob("*.json"))
    )
    if made_by_notebooks:
        left.append(f"figures in {figures} itself")
    if not left:
        return ""
    what = " and ".join(left)
    return f"{what}: of a former version of memlab, or your own; left as they are, and on no page"


def _find_results(folder: Path) -> Iterator[ResultsOfDataset]:
    """Find the folders that say of which dataset they are, and have something to show."""
    for place in sorted(folder.iterdir()):
        about = read_marker(place)
        if about is None:
            continue
        places = about["places"]
        kept = place / str(places.get("notebooks", NOTEBOOKS))
        executed = [
            path
            for path in sorted(kept.glob("[0-9]*.ipynb"))
            if path.with_suffix(".html").is_file()
        ]
        report = None
        if (place / "report.md").is_file():
            report = place / "report.md"
        if not executed and report is None:
            continue
        yield ResultsOfDataset(
            folder=place,
            name=data_and_part(about["name"], about.get("part")),
            notebooks=executed,
            report=report,
            figures=place / str(places.get("figures", "figures")),
        )


def _dataset_section(part: ResultsOfDataset, folder: Path) -> str:
    figures = _exported_figures(part.figures)
    beside = _link(part.figures, folder)
    links = []
    if (part.figures / "index.html").is_file():
        links.append(f'<a href="{beside}/index.html">all figures</a>')
    table = ""
    if part.report:
        links.append(f'<a href="{_link(part.report, folder)}">tables</a>')
        table = _report_table(part.report)
    picture, thumbnails, answers = "", "", ""
    for name in (*_KEY_PICTURES, *figures):
        if name in figures:
            picture = _picture(name, figures[name], beside, 'width="430"')
            break
    for name, caption in figures.items():
        thumbnails += _picture(name, caption, beside, 'loading="lazy"', short=True)
    for path in part.notebooks:
        answers += _notebook_answer(path, folder)
    if not answers:
        answers = _conclusions(part.folder)
    head = f"<h2>{_escape(part.name)}</h2><p>{' · '.join(links)}</p>"
    return (
        f'<section id="{_escape(part.folder.name)}">{head}'
        f'<div class="pictures">{picture}{table}</div><div class="answers">{answers}</div>'
        f'<div class="thumbnails">{thumbnails}</div></section>'
    )


def _exported_figures(folder: Path) -> dict[str, str]:
    """Give the captions of the figures of a folder that have a picture, by name."""
    captions = {}
    for path in sorted(folder.glob("*.json")):
        card = read_sidecar(path)
        if card is not None and path.with_suffix(".svg").is_file():
            captions[path.stem] = card["caption"]
    return captions


def _picture(name: str, caption: str, beside: str, size: str, *, short: bool = False) -> str:
    """Show a figure, with a link to its page."""
    place = f"{beside}/{quote(name)}"
    image = f'<img src="{place}.svg" alt="{_escape(name)}" {size}>'
    words = caption
    if short:
        words = name
    linked = f'<a href="{place}.html" title="{_escape(caption)}">{image}</a>'
    return f"<figure>{linked}<figcaption>{_escape(words)}</figcaption></figure>"


def _notebook_answer(path: Path, folder: Path) -> str:
    notebook = read_notebook(path)
    question = split_opening(notebook).title
    points = answer_points(notebook)[:_MOST_POINTS]
    said = render_markdown("\n".join(f"- {point}" for point in points))
    place = _link(path.with_suffix(".html"), folder)
    return f'<section><h3><a href="{place}">{_escape(question)}</a></h3>{said}</section>'


def _conclusions(folder: Path) -> str:
    """Give what ``memlab evaluate`` found, in sentences."""
    try:
        text = (folder / "conclusions.md").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    return f"<section>{render_markdown(text)}</section>"


def _report_table(report: Path) -> str:
    """Give the table of a report with recall by number of evidence sessions."""
    text = report.read_text(encoding="utf-8")
    pattern = r"^\*\*turns, \S+ by number of evidence sessions\*\*\n\n(?:\|[^\n]*\n)+"
    table = re.search(pattern, text, re.MULTILINE)
    if table is None:
        return ""
    return f"<div>{render_markdown(hide_model_files(table[0]))}</div>"


def _other_tables(folder: Path) -> str:
    """Link to the tables of folders that do not say of which dataset they are."""
    reports = [
        report
        for report in sorted(folder.glob("*/report.md"))
        if read_marker(report.parent) is None
    ]
    if not reports:
        return ""
    links = " · ".join(
        f'<a href="{_link(report, folder)}">{_escape(report.parent.name)}</a>' for report in reports
    )
    return f"<section><h2>Other tables</h2><p>{links}</p></section>"


def _link(path: Path, folder: Path) -> str:
    return quote(Path(os.path.relpath(path, folder)).as_posix(), errors="replace")


def _escape(value: object) -> str:
    return html.escape(str(value))
