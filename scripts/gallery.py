"""The pictures of README, docs and notebooks, from the figures that the demo exported: `make gallery`.

    python scripts/gallery.py [--figures FOLDER] [--only WORD]

Each picture is a figure of ``figures/sample`` at the width that pages need, and has a sidecar of its name
beside it: where it came from, and the values that it shows. The map is drawn here, from the store.
The picture of the language-model page is remade where ``scripts/language_model.py`` has exported its figure.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from PIL import Image

import memlab
from memlab.errors import ExportError, MemlabError
from memlab.figures import export
from memlab.figures.figure_provenance import read_sidecar, source_digest

ROOT = Path(__file__).parents[1]
PICTURES = {
    "figures/gallery/sample-recall-all.png": "recall-all",
    "figures/gallery/sample-cluster-map.png": "cluster-map",
    "figures/gallery/sample-evidence-tree.png": "evidence-tree",
    "figures/gallery/sample-selection-tests.png": "selection-tests",
    "figures/gallery/sample-ladder-turns.png": "ladder-turns",
    "figures/gallery/sample-decay-outranked.png": "decay-outranked",
    "figures/gallery/sample-rollups-time.png": "rollups-time",
    "figures/gallery/sample-follow-up-recall.png": "follow-up-recall",
    "figures/gallery/sample-memories-trade-off.png": "memories-trade-off",
    "docs/pictures/map.png": "map",
    "docs/pictures/language-model.png": "language-model",
}
"""The exported figure that feeds each picture."""
KEPT = {"language-model": "python scripts/language_model.py draws it, in some minutes"}
"""Figures that the notebooks do not export: where they were not drawn, the picture stays."""
MAP = {
    "scope": "owen",
    "pipelines": ["best", "bm25"],
    "question": "owen/q13",  # how much was spent on furniture in all: six evidence items
}
WIDTH, COLOURS = 1344, 255
MOST_ROWS = 100
MARKS = (
    "evidence, retrieved",
    "evidence, missed",
    "evidence, retrieved by the second pipeline",
    "retrieved, no evidence",
    "retrieved by the first pipeline alone, no evidence",
    "retrieved by both, no evidence",
    "retrieved by the second pipeline alone, no evidence",
    "the question",
)
"""What is counted of a map: coordinates and clusters are others on another machine."""
_NOT_DRAWN = re.compile(r"(?:^|.*[ _])(?:ms|s|MB|id|parent)")
_PROVENANCE = ("dataset", "fingerprint", "encoder", "pipeline", "code", "labels", "question")


def main() -> None:
    """Remake the pictures, and print a line for each."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--figures", type=Path, default=ROOT / "figures" / "sample")
    asked.add_argument("--only", default="", help="pictures whose name holds this")
    asked.add_argument("--store", default=str(ROOT / ".memlab" / "store"))
    given = asked.parse_args()
    wanted = {place: name for place, name in PICTURES.items() if given.only in place}
    if "map" in wanted.values():
        draw_map(given.figures, store=given.store)
    for line in remake(wanted, given.figures, ROOT):
        print(line, flush=True)


def remake(wanted: dict[str, str], figures: Path, root: Path) -> Iterator[str]:
    """Remake pictures and their sidecars; gives a line for each.

    :param wanted: the figure that feeds each picture, whose path is relative to ``root``.
    :param figures: where the figures were exported to.
    :raises ExportError: when a figure was not exported, or by an older notebook.
    """
    for place, name in wanted.items():
        if name in KEPT and not (figures / f"{name}.json").is_file():
            yield f"{place}  kept: {KEPT[name]}"
            continue
        about = describe_figure(name, figures)
        notebook = root / "notebooks" / about["made_by"].get("notebook", "")
        if notebook.is_file() and source_digest(notebook) != about["made_by"]["source"]:
            raise ExportError(f"{name} was drawn by an older {notebook.name}: run make gallery")
        target = root / place
        shrink(figures / f"{name}.png", target)
        target.with_suffix(".json").write_text(write_sidecar(about), encoding="utf-8")
        yield f"{place}  {target.stat().st_size / 1000:,.0f} kB, of {name}"


def draw_map(figures: Path, *, store: str) -> None:
    """Export the map of the documentation: a question, what two pipelines retrieve, and what is missed."""
    data = memlab.sample(scopes=[MAP["scope"]])
    bench = memlab.Bench.of(data, store=store)
    explorer = memlab.explore(bench, MAP["pipelines"])
    explorer.question = MAP["question"]
    text = data.questions.filter(query_id=MAP["question"])["text"].item()
    caption = f"“{text}”, asked of the sample's {MAP['scope']}: evidence, and what was retrieved."
    about = {**bench.provenance, "pipeline": MAP["pipelines"], "question": MAP["question"]}
    export(explorer.picture(), "map", caption=caption, provenance=about, directory=figures)


def describe_figure(name: str, figures: Path) -> dict[str, Any]:
    """Give what a picture's sidecar says: where the figure came from, and the values that it shows.

    :raises ExportError: when the figure, or a picture of it, was not exported.
    """
    card, table = figures / f"{name}.json", figures / f"{name}.parquet"
    for file in (card, table, figures / f"{name}.png"):
        if not file.is_file():
            raise ExportError(f"{file} is not there: run make gallery, with a browser to draw")
    about = read_sidecar(card)
    if about is None:
        raise ExportError(f"{card} is not the sidecar of a figure")
    provenance = about["provenance"]
    made_by = {k: v for k, v in about["made_by"].items() if k != "parameters"}
    parameters = about["made_by"].get("parameters", {})
    return {
        "figure": name,
        "caption": about["caption"],
        "made_by": made_by,
        "parameters": {k: v for k, v in parameters.items() if k not in ("store", "figures")},
        "provenance": {k: provenance[k] for k in _PROVENANCE if k in provenance},
        "versions": about["versions"],
        "values": shown_values(pl.read_parquet(table)),
    }


def shown_values(table: pl.DataFrame) -> dict[str, list[Any]]:
    """Give the values of a figure's table, rounded, without what differs from run to run.

    Of a map, how many points each mark has: those of maps of the same turns are the same.
    """
    marked = table
    if {"panel", "rank"} <= {*table.columns}:
        marked = table.filter(panel=table["panel"][0]).with_columns(trace=_mark_turns())
    if "trace" in marked.columns and table.height > MOST_ROWS:
        counts = dict(marked["trace"].value_counts().iter_rows())
        marks = [mark for mark in MARKS if mark in counts]
        return {"mark": marks, "points": [counts[mark] for mark in marks]}
    values = {}
    for column in table:
        if column.null_count() == len(column) or _NOT_DRAWN.fullmatch(column.name):
            continue
        if column.dtype.is_float():
            column = column.round(4)
        values[column.name] = column.to_list()
    return values


def _mark_turns() -> pl.Expr:
    """Name how a map of speakers marks a turn."""
    retrieved = pl.col("rank").is_not_null()
    return (
        pl.when(pl.col("evidence") & retrieved)
        .then(pl.lit("evidence, retrieved"))
        .when("evidence")
        .then(pl.lit("evidence, missed"))
        .when(retrieved)
        .then(pl.lit("retrieved, no evidence"))
        .otherwise(pl.lit("other"))
    )


def write_sidecar(about: dict[str, Any]) -> str:
    """Write a sidecar, a line for each column of its values."""
    columns = [
        f"  {json.dumps(name)}: {json.dumps(column, ensure_ascii=False, default=str)}"
        for name, column in about["values"].items()
    ]
    rest = {key: value for key, value in about.items() if key != "values"}
    head = json.dumps(rest, ensure_ascii=False, indent=1, default=str).removesuffix("\n}")
    return f'{head},\n "values": {{\n' + ",\n".join(columns) + "\n }\n}\n"


def differences(shown: dict[str, list[Any]], now: dict[str, list[Any]]) -> list[str]:
    """Say in what the values of a picture differ from those of a run by more than one question.

    What differs between processors is passed over: p values, what follows from them, and a question
    more or less.
    """
    columns = {
        name for name in (*shown, *now) if name not in _UNSTABLE and not name.startswith("p ")
    }
    lengths = {
        name: [len(values.get(name, [])) for values in (shown, now)] for name in sorted(columns)
    }
    found = [f"{name}: {n[0]} and {n[1]} values" for name, n in lengths.items() if n[0] != n[1]]
    if found:
        return found
    for name in lengths:
        sizes = now.get("n", [None] * len(now[name]))
        for row, (old, new, n) in enumerate(zip(shown[name], now[name], sizes, strict=True)):
            if not _is_near(old, new, n, exact=name in _EXACT):
                found.append(f"{name}, row {row}: {old!r} and {new!r}")
    return found


_EXACT = ("n", "k", "n_turns")
_UNSTABLE = ("p", "p_holm", "p_equal", "verdict", "detectable")


def _is_near(old: Any, new: Any, n: int | None, *, exact: bool) -> bool:
    """Say whether two values are the same but for a question more or less.

    An interval's end may move by twice what its mean does.
    """
    numbers = all(isinstance(value, int | float) for value in (old, new))
    if exact or not numbers:
        return bool(old == new)
    if isinstance(old, int) and isinstance(new, int):
        return abs(old - new) <= 2
    slack = 2.0 / n if n else 0.05 * abs(old)
    return bool(abs(old - new) <= slack + 0.001)


def shrink(source: Path, target: Path) -> None:
    """Write a picture at the width of a page, with a palette."""
    with Image.open(source) as drawn:
        white = Image.new("RGB", drawn.size, "white")
        white.paste(drawn, mask=drawn.convert("RGBA").getchannel("A"))
    height = round(white.height * WIDTH / white.width)
    small = white.resize((WIDTH, height), Image.Resampling.LANCZOS)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Median cut, the default, spends the palette on shades of grey: colours would run into each other.
    # Its colours alone are rough: three rounds of k-means bring them near those that were drawn.
    rough = {"method": Image.Quantize.MAXCOVERAGE, "kmeans": 3, "dither": Image.Dither.NONE}
    small.quantize(COLOURS, **rough).save(target, optimize=True)


if __name__ == "__main__":
    try:
        main()
    except MemlabError as error:
        raise SystemExit(f"gallery: {error}") from error
