"""The notebooks: how they are kept, that they run to the last cell, and that they end in what they found."""

from __future__ import annotations

import ast
import base64
import html
import json
import re
import shutil
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jupytext
import nbformat
import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import DataError, ExportError
from memlab.experiments.result_folders import choose_result_folder
from memlab.figures import browser_rendering
from memlab.notebooks import copy_shipped_notebooks, run_notebooks, write_results_page
from memlab.notebooks.executed_notebook import ANSWER, answer_text
from memlab.notebooks.notebook_execution import _is_up_to_date
from memlab.notebooks.notebook_pages import write_notebook_page
from memlab.notebooks.results_page import former_results_note_or_empty

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "notebooks"
NOTEBOOKS = sorted(SOURCE.glob("[0-9]*.ipynb"))
MOVES = re.compile(r"\d+(?:\.\d+)? ?%|\d\.\d|(?<![\w`])\.\d")
"""A number that another processor may compute otherwise: a percentage or a decimal."""
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def exported(path: Path) -> set[str]:
    """The names of the figures that a notebook exports."""
    return set(re.findall(r'export\(\s*[\w.()]+,\s*"([^"]+)"', path.with_suffix(".py").read_text()))


@each
def test_its_pair_says_the_same_without_outputs_in_short_cells(path: Path) -> None:
    book, script = jupytext.read(path), jupytext.read(path.with_suffix(".py"))
    assert "ipynb,py:percent" in book.metadata["jupytext"]["formats"]
    assert book.metadata["kernelspec"] == script.metadata["kernelspec"]
    pair = [
        [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in each.cells]
        for each in (book, script)
    ]
    assert pair[0] == pair[1], "run: jupytext --sync notebooks/*.py"
    for cell in cells(path):
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert not set(cell["metadata"]) - {"tags", "lines_to_next_cell"}
    lines = [
        sum(bool(line.strip()) for line in c["source"])
        for c in cells(path)
        if c["cell_type"] == "code"
    ]
    assert max(lines) <= 10
    assert sum(lines) <= 60


@each
def test_it_asks_takes_parameters_defines_nothing_and_answers(path: Path) -> None:
    found, tree = cells(path), ast.parse(path.with_suffix(".py").read_text())
    opening = "".join(found[0]["source"])
    assert opening.splitlines()[0].endswith("?")
    assert re.search(r"^On the committed sample\b", opening, re.MULTILINE)
    assert MOVES.findall(opening) == [], "numbers are the run's, the opening has words"
    [picture] = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", opening)
    assert (path.parent / picture).resolve().is_file()
    (tagged,) = (cell for cell in found if "parameters" in cell["metadata"].get("tags", []))
    given = ast.parse("".join(tagged["source"])).body
    names = {node.targets[0].id for node in given if isinstance(node, ast.Assign)}  # type: ignore[attr-defined]
    assert {"seed", "store", "figures"} <= names
    assert len(names) == len(given), "nothing but parameters"
    read = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    assert names <= read, "a parameter that nothing reads"
    prose = "\n".join("".join(cell["source"]) for cell in found if cell["cell_type"] == "markdown")
    assert re.search(
        "answer|finding", re.findall(r"^#+ .*", prose, re.MULTILINE)[-1], re.IGNORECASE
    )
    tags = [cell["metadata"].get("tags", []) for cell in found]
    assert [i for i, own in enumerate(tags) if ANSWER in own] == [len(found) - 1]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    if path.stem != "07_your_memory":  # there the reader writes a memory
        assert not [node for node in ast.walk(tree) if isinstance(node, kinds)]
    assert 2 <= len(exported(path)) <= 3


def assert_finished(executed: Path, figures: Path) -> None:
    """An executed notebook has run to its end, answers in words, and left its figures."""
    book = cells(executed)
    assert all(cell["execution_count"] for cell in book if cell["cell_type"] == "code")
    answer = answer_text(jupytext.read(executed))
    assert re.search(r"\d", answer)
    assert not re.search(r"\b(nan|None|inf)\b", answer)
    assert len(re.findall(r"^- ", answer, re.MULTILINE)) <= 7
    pages = [
        "".join(o.get("data", {}).get("text/html", ""))
        for cell in book
        for o in cell.get("outputs", [])
    ]
    for table in (page for page in pages if "<table" in page):
        assert table.partition("</thead>")[0].count("<th>") <= 8, table
        assert "<small>" not in table, "polars' own: call evaluate.show_tables()"
    for name in exported(SOURCE / executed.name):
        for kind in ("html", "svg", "pdf", "png", "json", "column.pdf", "column.png", "column.svg"):
            assert (figures / f"{name}.{kind}").stat().st_size > 0, f"{name}.{kind}"
        sidecar = json.loads((figures / f"{name}.json").read_text())
        assert sidecar["caption"]
        assert sidecar["provenance"].get("fingerprint") or sidecar["provenance"]["labels"]


def run(dataset: Path, folder: Path, *, only: str = "", jobs: int = 1, **parameters: Any) -> None:
    """Run notebooks, and check each."""
    figures, out, source = folder / "figures", folder / "out", folder / "notebooks"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns(".*"))
    kept = {path.name: path.read_bytes() for path in source.iterdir()}
    chosen = {
        "dataset": str(dataset),
        "store": str(folder / "store"),
        "figures": str(figures),
        "seed": 0,
        **parameters,
    }
    executed = [path for path, _ in run_notebooks(source, out, chosen, only=only, jobs=jobs)]
    assert {path.name: path.read_bytes() for path in source.iterdir()} == kept
    assert sorted(path.stem for path in executed) == [
        p.stem for p in NOTEBOOKS if fnmatch(p.stem, f"*{only}*")
    ]
    for path in executed:
        assert_finished(path, figures)


PLOT = """
from memlab.figures import bars, export
import polars as pl
frame = pl.DataFrame({"cause": ["a", "b"], "group": "all", "n": [1, n], "share": [0.5, 0.5]})
"""


def write_notebook(
    folder: Path, name: str, *codes: str, plot: str = PLOT, kernel: str = "python3"
) -> None:
    cells = [nbformat.v4.new_code_cell("figures = 'x'\nn = 1", metadata={"tags": ["parameters"]})]
    cells += [nbformat.v4.new_code_cell(plot + code) for code in codes]
    about = {"kernelspec": {"name": kernel, "display_name": "Python 3", "language": "python"}}
    (folder / name).write_text(
        nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=about))
    )


@pytest.mark.slow
def test_a_cell_that_fails_is_named_and_a_figure_says_what_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    export = 'export(bars.share_bars(frame), "wanted", directory=figures)'
    places = 'display({"text/html": f"<td>{figures}</td>", "application/json": {"in": [figures]}}, raw=True)'
    write_notebook(tmp_path, "00_a.ipynb", f"{export}\n{places}", "1 / (n - n)")
    target = tmp_path / "figures"
    with pytest.raises(
        ExportError, match=r"00_a\.ipynb: cell 3 failed: ZeroDivisionError: division by zero"
    ):
        list(run_notebooks(".", "out", {"figures": str(target), "n": 3}))
    partial = (tmp_path / "out" / "00_a.ipynb").read_text()
    assert "<td>figures</td>" in partial, "what was run so far is kept"
    assert not [place for place in (tmp_path, ROOT, Path.home()) if f"{place}/" in partial]
    made_by = json.loads((target / "wanted.json").read_text())["made_by"]
    assert made_by["notebook"] == "00_a.ipynb"
    assert made_by["parameters"] == {"n": 3}


@each
def test_the_demo_ran_it_on_the_sample_and_its_page_says_first_what_was_found(path: Path) -> None:
    """The demo is the run on the sample; .ci/run makes it before the tests."""
    executed = ROOT / "results" / "sample" / "notebooks" / path.name
    if not executed.exists():
        pytest.skip("make demo was not run")
    sources = ["".join(cell["source"]) for cell in cells(path)]
    ran = {"".join(cell["source"]).replace("](../../../", "](../") for cell in cells(executed)}
    if [source for source in sources if source not in ran]:
        pytest.skip("make demo ran an older notebook")
    assert_finished(executed, ROOT / "figures" / "sample")
    gallery = (ROOT / "figures" / "sample" / "index.html").read_text()
    assert not [name for name in exported(path) if f'id="{name}"' not in gallery]
    page = executed.with_suffix(".html").read_text(encoding="utf-8")
    assert page.index("Found in this run") < page.index("On the committed sample")


@pytest.mark.parametrize(
    "only",
    [
        pytest.param("0[0257]", marks=pytest.mark.nightly),
        pytest.param("0[13]", marks=pytest.mark.nightly),
    ],
)
def test_they_run_on_a_log_without_times_where_no_question_spans_sessions(
    tmp_path: Path, only: str
) -> None:
    """A person's own log with a few questions of one evidence item each; 04 and 06 would run on the sample."""
    records: list[dict[str, Any]] = [
        {
            "scope": "me",
            "session": f"s{n // 8}",
            "sender": "Ann",
            "text": f"Note {n} on {topic} and the {thing}.",
        }
        for n, (topic, thing) in enumerate(
            [(t, o) for t in ("cooking", "trains", "music") for o in THINGS]
        )
    ]
    records += [
        {"scope": "me", "question": f"What about the {o}?", "evidence": ["s0/1"]}
        for o in THINGS[:4]
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    run(tmp_path / "log.jsonl", tmp_path, only=only, jobs=2, n_seeds=1)


THINGS = (
    "garden",
    "piano",
    "ticket",
    "oven",
    "bridge",
    "letter",
    "window",
    "market",
    "river",
    "lamp",
)


@pytest.mark.slow
def test_what_is_chosen_goes_before_what_is_set_and_what_did_not_change_is_kept(
    tmp_path: Path,
) -> None:
    write_notebook(tmp_path, "00_a.ipynb", "1 / (n - 2)", plot="")
    given = {"n": 3, "figures": str(tmp_path / "figures")}
    [(path, seconds)] = run_notebooks(
        tmp_path, tmp_path / "out", given | {"n": 2}, chosen={"n": 3}, only="0[0-4]"
    )
    assert (path.name, seconds > 0) == ("00_a.ipynb", True)
    assert list(run_notebooks(tmp_path, tmp_path / "out", given, again=False)) == [(path, 0.0)]
    assert not _is_up_to_date(tmp_path / "00_a.ipynb", path, given | {"n": 4})
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "f.json").write_text('{"made_by": {"notebook": "00_a.ipynb"}}')
    assert not _is_up_to_date(tmp_path / "00_a.ipynb", path, given)


PARAMETERS: dict[str, tuple[Any, Any]] = {
    "tuple": ((5, 10), [5, 10]),
    "nested": ([(1, 2), {"a": (3,)}], [[1, 2], {"a": [3]}]),
    "numpy's integer": (np.int64(5), 5),
    "numpy's truth": (np.bool_(True), True),
    "numpy's float": (np.float32(0.5), 0.5),
    "array": (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "path": (Path("data") / "log.jsonl", "data/log.jsonl"),
    "infinity": (float("-inf"), float("-inf")),
    "text": ("a\n'\"\\", "a\n'\"\\"),
    "none": (None, None),
    "false": (False, False),
}


@pytest.mark.slow
def test_parameters_arrive_as_what_they_are(tmp_path: Path) -> None:
    """papermill 2.7 writes tuples, numpy's values and paths as texts in quotes, also within lists."""
    sent = {name: value for name, (value, _) in PARAMETERS.items()}
    write_notebook(tmp_path, "00_a.ipynb", "print(repr(n))", plot="")
    [(executed, _)] = run_notebooks(tmp_path, tmp_path / "out", {"n": sent, "figures": "x"})
    printed = "".join(cells(executed)[-1]["outputs"][0]["text"])
    arrived = eval(printed, {"inf": float("inf")})
    assert arrived == {name: value for name, (_, value) in PARAMETERS.items()}
    assert [type(value) for value in arrived.values()] == [type(v) for _, v in PARAMETERS.values()]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({5, 10}, "a set "),
        (frozenset({5}), "a frozenset "),
        (date(2026, 1, 1), "a date \\('2026-01-01'\\)"),
        (np.datetime64("2026-01-01"), "a date "),
        (b"5", "a bytes "),
        (Decimal("0.5"), "a Decimal "),
        (range(3), "a range "),
        (pl.Series([1]), "a Series "),
        ([1, {"a": {5}}], "a set "),
        ({1: 2}, "the key 1 "),
    ],
)
def test_a_parameter_that_would_arrive_as_text_is_refused(
    tmp_path: Path, value: Any, message: str
) -> None:
    write_notebook(tmp_path, "00_a.ipynb", "print(n)", plot="")
    with pytest.raises(DataError, match=f"parameter n: {message}.*text"):
        list(run_notebooks(tmp_path, tmp_path / "out", {"n": value}))
    assert not (tmp_path / "out").exists()


WIDGET = {
    "application/vnd.jupyter.widget-view+json": {
        "model_id": "m",
        "version_major": 2,
        "version_minor": 0,
    }
}
FIGURE = {
    "application/vnd.plotly.v1+json": {
        "data": [{"type": "scatter", "x": [1, 2], "y": [3, 4]}],
        "layout": {"title": {"text": "Two points"}},
    }
}


def page_of(folder: Path, *outputs: dict[str, Any]) -> str:
    """The page of a notebook with these outputs, what is drawn in it as text."""
    made = [nbformat.v4.new_output("display_data", data) for data in outputs]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=made, id="c")])
    state = {"state": {"m": {"state": {"_esm": "script " * 1000}}}}
    book.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    before = json.dumps(book)
    write_notebook_page(book, folder / "00_a.ipynb")
    assert json.dumps(book) == before, "the notebook itself stays as it was executed"
    page = (folder / "00_a.html").read_text(encoding="utf-8")
    pictures = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page)
    return page + "".join(base64.b64decode(picture).decode() for picture in pictures)


def test_a_page_says_what_it_cannot_show(tmp_path: Path) -> None:
    """nbconvert 7.17 leaves each of these places empty, and takes a widget's view before its picture."""
    page = page_of(
        tmp_path,
        WIDGET | {"text/plain": "IntSlider(value=0)"},
        WIDGET | {"text/plain": "  0%| | 0/3"},
        WIDGET | {"text/plain": "?"},
        WIDGET | {"text/html": "<p>its picture</p>", "text/plain": "W()"},
        {"application/vnd.foo+json": {"<a>": 1}},
        {"application/vnd.bar+json": {"a": 1}, "text/plain": "Bar of one"},
    )
    assert "Here is a widget (IntSlider), which this page cannot show; open the notebook" in page
    assert page.count("Here is a widget, which this page cannot show") == 1, "no bar of progress"
    assert "<p>its picture</p>" in page
    assert "an output of the kind application/vnd.foo+json, which this page cannot show" in page
    assert "<pre>Bar of one</pre>" in page
    assert "widget-view" not in page
    assert len(page) < 20_000, "without the state of widgets"


def test_a_figure_of_plotly_alone_is_drawn_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_of(tmp_path, FIGURE, FIGURE | {"text/html": "<p>its own page</p>"})
    assert page.count('<svg class="main-svg"') >= 1
    assert "Two points" in page
    assert "<p>its own page</p>" in page
    assert page_of(tmp_path, FIGURE) == page_of(tmp_path, FIGURE), "the same bytes again"
    broken = {"application/vnd.plotly.v1+json": {"data": [{"type": "no such kind"}]}}
    assert "Here is a figure of plotly (" in page_of(tmp_path, broken)
    missing = Mock(side_effect=browser_rendering.NoBrowser("no browser to draw with"))
    monkeypatch.setattr(browser_rendering, "find_browser_path", missing)
    page = page_of(tmp_path, FIGURE)
    assert "Here is a figure of plotly (no browser to draw with), which this page" in page


def test_what_was_found_stands_under_the_title_of_the_page(tmp_path: Path) -> None:
    """The cell tagged answer is at the end of the notebook, and its output on the first screen of the page."""
    found = [nbformat.v4.new_output("execute_result", {"text/markdown": "- No: nothing more."})]
    other = [nbformat.v4.new_output("execute_result", {"text/markdown": "- Not this."})]
    opening = "# Does it help?\n\nOn the committed sample it does not."
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell(opening, id="o"),
            nbformat.v4.new_code_cell("x", outputs=found, metadata={"tags": [ANSWER]}, id="a"),
            nbformat.v4.new_code_cell("y", outputs=other, id="b"),
        ]
    )
    book.metadata["papermill"] = {"parameters": {"dataset": "../data/mine.jsonl"}}
    assert answer_text(book) == "- No: nothing more."
    write_notebook_page(book, tmp_path / "00_a.ipynb")
    page = (tmp_path / "00_a.html").read_text(encoding="utf-8")
    places = [page.index(text) for text in ("Does it help?", "Found in this run, on mine:")]
    places += [page.index("No: nothing more."), page.index("On the committed sample")]
    assert places == sorted(places)
    assert page.count("No: nothing more.") == 2, "at its own place, too"
    for scopes, named in ((3, "mine, 3 memories drawn"), (["ann", "bo"], "mine, of ann and bo")):
        book.metadata["papermill"]["parameters"]["part"] = {"scopes": scopes}
        write_notebook_page(book, tmp_path / "00_a.ipynb")
        page = (tmp_path / "00_a.html").read_text(encoding="utf-8")
        assert f"Found in this run, on {named}:" in page
    assert [cell.cell_type for cell in book.cells] == ["markdown", "code", "code"]


def test_what_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_notebook(tmp_path, "00_a.ipynb", kernel="fortran")
    out = tmp_path / "out"
    for source, target, options, message in (
        (SOURCE, SOURCE, {}, "holds the notebooks themselves"),
        (SOURCE, out, {"only": "zz"}, "holds no notebook whose name holds 'zz'"),
        (SOURCE, tmp_path / "file" / "out", {}, "cannot be made"),
        (
            tmp_path,
            out,
            {"chosen": {"y": 3}},
            "no notebook that would run has a parameter 'y'; they have figures, n",
        ),
        (tmp_path, out, {}, r"00_a\.ipynb: could not be run.*fortran"),
    ):
        with pytest.raises((DataError, ExportError), match=message):
            list(run_notebooks(source, target, {}, **options))


@pytest.mark.nightly
@pytest.mark.shared_data
@pytest.mark.parametrize("only", ["0[15]_", "00", "02", "03_", "04", "06", "07"])
def test_they_run_on_locomo_unchanged(tmp_path: Path, locomo_path: Path, only: str) -> None:
    """Maps, clusters and rollups of real conversations; test_quality measures the pipelines."""
    run(locomo_path, tmp_path, only=only, encoder="minilm")


CARD = {"caption": "How much is complete.", "files": [], "provenance": {}, "made_by": {}}


def write_figure(folder: Path, name: str) -> None:
    """An exported figure, as far as a page of results reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.svg").write_text("<svg/>")
    (folder / f"{name}.json").write_text(json.dumps(CARD | {"name": name}))


def test_the_page_of_results_has_each_dataset_with_its_picture_answers_and_figures(
    tmp_path: Path,
) -> None:
    places = {"results": tmp_path / "results", "figures": tmp_path / "figures"}
    folders = {
        name: choose_result_folder(name, f"{name}.jsonl", part={}, **places)
        for name in ("aaa", "mine")
    }
    for name, folder in folders.items():
        data = replace(memlab.sample(scopes=["owen"]), name=name)
        done = memlab.run(["bm25"], data, encoder=None, store=None, levels=["turn"])
        done.export(folder.results)
        (folder.results / "conclusions.md").write_text(f"- {name} is half complete.\n")
        folder.write_owner_markers()
    executed = folders["mine"].results / "notebooks"
    folders["mine"].write_owner_markers(notebooks=executed)
    write_figure(folders["mine"].figures, "cluster-map")
    write_figure(folders["mine"].figures, "recall-all")
    answer = nbformat.v4.new_output(
        "execute_result", {"text/markdown": "- <b>Half</b> of it.\n- And more."}
    )
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# How much?\n\nWords."),
            nbformat.v4.new_code_cell(outputs=[answer]),
        ]
    )
    executed.mkdir()
    nbformat.write(book, executed / "00_a.ipynb")
    (executed / "00_a.html").write_text("")
    nbformat.write(book, executed / "00_stale.ipynb")
    (tmp_path / "results" / "before").mkdir()
    (tmp_path / "results" / "before" / "report.md").write_text("")
    text = write_results_page(tmp_path / "results").read_text(encoding="utf-8")
    first, second = text.index('<section id="aaa">'), text.index('<section id="mine">')
    assert "aaa is half complete" in text[first:second]
    mine = text[second:]
    assert 'href="mine/notebooks/00_a.html">How much?</a>' in mine
    assert "&lt;b&gt;Half" in mine
    assert "mine is half complete" not in mine, "its notebooks say it"
    assert "bm25</td>" in mine
    assert mine.count('src="../figures/mine/cluster-map.svg"') == 2, "key picture and thumbnail"
    assert mine.count('src="../figures/mine/recall-all.svg"') == 1
    assert 'href="mine/report.md"' in mine
    assert 'href="before/report.md"' in mine
    assert "00_stale" not in text


def test_what_a_former_version_left_is_said(tmp_path: Path) -> None:
    assert former_results_note_or_empty(tmp_path / "results", tmp_path / "figures") == ""
    write_figure(tmp_path / "figures", "own")
    assert former_results_note_or_empty(tmp_path / "results", tmp_path / "figures") == ""
    (tmp_path / "results" / "notebooks").mkdir(parents=True)
    (tmp_path / "results" / "notebooks" / "00_a.ipynb").write_text("{}")
    card = CARD | {"name": "old", "made_by": {"notebook": "00_a.ipynb"}}
    (tmp_path / "figures" / "old.json").write_text(json.dumps(card))
    said = former_results_note_or_empty(tmp_path / "results", tmp_path / "figures")
    assert f"{tmp_path / 'results' / 'notebooks'} and figures in {tmp_path / 'figures'}" in said


def test_a_page_opens_with_the_run_and_ends_with_the_sample(tmp_path: Path) -> None:
    opening = (
        "# Does it help?\n\nOn the committed sample:\n\n- It helps.\n\n"
        "![All of it](../../../figures/gallery/sample-recall-all.png)\n\nBelow: how."
    )
    found = [nbformat.v4.new_output("execute_result", {"text/markdown": "- No."})]
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell(opening, id="o"),
            nbformat.v4.new_code_cell("x", outputs=found, metadata={"tags": [ANSWER]}, id="a"),
        ]
    )
    write_figure(tmp_path / "figures", "recall-all")
    write_notebook_page(book, tmp_path / "00_a.ipynb", figures=tmp_path / "figures")
    page = (tmp_path / "00_a.html").read_text(encoding="utf-8")
    order = (
        "Does it help?",
        "Found in this run",
        "<img",
        "Below: how.",
        "What it found on the sample",
    )
    assert sorted(order, key=page.index) == [*order]
    assert page.index("What it found on the sample") < page.index("It helps.")
    assert page.count("<img") == 1, "the figure of the run, not the sample's picture"


def test_a_page_has_the_parameters_once_as_they_were_given(tmp_path: Path) -> None:
    own = "k = 10  # turns\npart = {}\nnames = [\n    1,\n]"
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(own, metadata={"tags": ["parameters"]}, id="p"),
            nbformat.v4.new_code_cell(
                "# Parameters\nk = 99\n", metadata={"tags": ["injected-parameters"]}, id="i"
            ),
        ]
    )
    write_notebook_page(book, tmp_path / "00_a.ipynb")
    page = re.sub(r"<[^>]*>", "", (tmp_path / "00_a.html").read_text(encoding="utf-8"))
    assert "k = 99\npart = {}\nnames = [\n    1,\n]" in html.unescape(page)
    assert "k = 10" not in page


def test_charts_come_to_life_in_letters_of_the_size_of_the_text_within_eight_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = '<svg width="672" height="300"><text style="font-size: 10px">recall</text></svg>'
    chart = FIGURE | {"image/svg+xml": picture}
    page = page_of(tmp_path, chart, chart, {"image/svg+xml": picture})
    assert page.count('style="width:1008px"') == 3
    assert page.count('data-chart="') == 2
    assert page.count("plotly.js v") == 1, "the script stands on the page once"
    assert 'src="http' not in page
    assert len(page.encode()) < 8_000_000
    monkeypatch.setattr("memlab.notebooks.charts_on_pages.MOST_BYTES", 100)
    assert 'data-chart="' not in page_of(tmp_path, chart), "a large one stays a picture"


def test_in_an_empty_folder_the_notebooks_of_the_package_are_copied_and_changed_ones_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copies = copy_shipped_notebooks("notebooks")
    assert [path.name for path in copies] == [path.name for path in NOTEBOOKS]
    copies[0].write_text("changed")
    assert copy_shipped_notebooks("notebooks") == []
    assert copies[0].read_text() == "changed"
    sample = memlab.datasets.load("../data/sample/sample.jsonl", scopes=["owen"])
    assert sample.scopes == ["owen"], "as a copied notebook names it"


def test_the_key_picture_of_one_notebook_is_that_of_its_opening(tmp_path: Path) -> None:
    places = {"results": tmp_path / "results", "figures": tmp_path / "figures"}
    folder = choose_result_folder("mine", "mine.jsonl", part={}, **places)
    executed = folder.results / "notebooks"
    executed.mkdir(parents=True)
    folder.write_owner_markers(notebooks=executed)
    for name in ("pair-similarity", "selection-tests"):
        write_figure(folder.figures, name)
    shutil.copy(SOURCE / "02_selection.ipynb", executed)
    (executed / "02_selection.html").write_text("")
    text = write_results_page(tmp_path / "results").read_text(encoding="utf-8")
    assert text.count('selection-tests.svg"') == 2, "key picture and thumbnail"
    assert text.count('pair-similarity.svg"') == 1
