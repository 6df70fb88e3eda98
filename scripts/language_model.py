"""The tables and the picture of docs/evaluation/language-model.md, from recorded answers alone.

    python scripts/language_model.py [--store .memlab/store] [--picture FOLDER]

Pipelines are those of ``scripts/language-model.txt``. What is there in the store is read back.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import polars as pl

import memlab
from memlab.evaluate import Report, Table
from memlab.experiments.result_folders import choose_result_folder
from memlab.figures import curves, export
from memlab.interval_and_p_labels import describe_intervals_for_caption

ROOT = Path(__file__).parents[1]
TALK = {
    "sample": "sample/sample.jsonl",
    "long chats": "heldout/long.jsonl",
    "messengers": "heldout/messages.jsonl",
}
MEASURES = ["recall_all@5", "recall_all@10", "recall_all@20", "precision_returned"]
COMPARED = ("difference", "low", "high", "level", "unit", "units", "p_holm")
PRICED = "1,000 questions at 3/15"
AXIS = "US$ for 1,000 questions"
POINTS = ("none", "all", "50", "100", "150")
"""What a language model does at the points of a line, from the cheapest on; numbers are graded candidates."""
NOTE = (
    "none: no model; all: a model's other words and parts of a question, and its facts as keys of turns; "
    "a number: so many candidates are graded too"
)


def _figures_of_the_sample() -> Path:
    """Give the folder of the sample's figures, where `make gallery` looks for them."""
    file = ROOT / "data" / "sample" / "sample.jsonl"
    folder = choose_result_folder("sample", file, part={}, results="results", figures="figures")
    folder.write_owner_markers(notebooks=folder.results / "notebooks")
    return folder.figures


def main() -> None:
    """Print a table a kind of talk, and export the picture."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--store", default=".memlab/store")
    asked.add_argument("--picture", type=Path, help="a folder; figures/sample by default")
    asked.add_argument(
        "--redraw",
        type=Path,
        help="the JSON of an earlier picture, drawn anew and not measured again",
    )
    given = asked.parse_args()
    target = given.picture or _figures_of_the_sample()
    if given.redraw:
        earlier = json.loads(given.redraw.read_text(encoding="utf-8"))
        values = earlier["values"]
        _draw(_with_point_names(pl.DataFrame(values)), target, earlier.get("provenance", {}))
        return
    lines = (ROOT / "scripts" / "language-model.txt").read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line and not line.startswith("#")]
    together = [text for text in texts if "expand | decompose" in text and "least" not in text]
    points = []
    datasets = {}
    for talk, file in TALK.items():
        data = memlab.load(ROOT / "data" / file)
        done = memlab.run(
            texts, data, store=given.store, name=f"model-{data.name}", measures=MEASURES
        )
        described = done.runs[0].provenance
        datasets[talk] = {key: described.get(key) for key in ("dataset", "fingerprint")}
        costs, tested = done.costs(), done.compare("recall_all@10")
        turns, sessions = done.at("turn"), done.at("session")
        print(f"\n**{talk}**\n")
        print(
            Table(
                [
                    _row(*each)
                    for each in zip(
                        turns, sessions, tested.to_dicts(), costs.to_dicts(), strict=True
                    )
                ]
            )
        )
        for report, cost in zip(turns, costs.to_dicts(), strict=True):
            if report.name in (texts[0], *together) and not cost["unanswered"]:
                point = report.summary(measures="recall_all@10").drop("ceiling", "chance")
                name = f"{talk} (n = {report.per_query.height})"
                points.append(
                    point.with_columns(
                        system=pl.lit(name),
                        k=pl.lit(float(cost[PRICED])),
                        point=pl.lit(_point_name(report.name)),
                    )
                )
    about = {key: described.get(key) for key in ("encoder", "code")}
    _draw(pl.concat(points), target, {"dataset": datasets, "pipeline": texts, **about})


def _draw(points: pl.DataFrame, target: Path, provenance: dict[str, Any]) -> None:
    """Draw complete recall against the price, a line a kind of talk, and export it."""
    fig = curves.recall_curves(points, measure="recall_all@10", axis=AXIS, log_x=False, note=NOTE)
    drawn = describe_intervals_for_caption(points)
    caption = (
        "Complete recall against the price of a language model at US$ 3 and 15 a million tokens read and written, "
        "three kinds of talk; all: expand, decompose and second keys of facts; a number: so many candidates are graded too"
    )
    export(
        fig,
        "language-model",
        data=points,
        caption=f"{caption} ({drawn}).",
        provenance=provenance,
        directory=target,
    )


def _with_point_names(points: pl.DataFrame) -> pl.DataFrame:
    """Name the points of an earlier picture, which stand in the order of their price."""
    place = pl.int_range(pl.len()).over("system")
    return points.with_columns(point=place.replace_strict(dict(enumerate(POINTS))))


def _point_name(pipeline: str) -> str:
    """Name a pipeline on the picture: by how many candidates it grades, or one of the first of :data:`POINTS`."""
    graded = re.search(r"rerank_llm\(candidates=(\d+)", pipeline)
    if graded:
        return graded[1]
    if "expand" in pipeline:
        return POINTS[1]
    return POINTS[0]


def _row(
    turns: Report, sessions: Report, tested: dict[str, Any], cost: dict[str, Any]
) -> dict[str, Any]:
    several = turns.per_query.filter(pl.col("n_evidence_sessions") >= 2)
    row = {"pipeline": turns.name}
    row |= {f"@{k}": turns.per_query[f"recall_all@{k}"].mean() for k in (10, 20)}
    row |= {f"multi @{k}": several[f"recall_all@{k}"].mean() for k in (10, 20)}
    row |= {"sessions @5": sessions.per_query["recall_all@5"].mean()}
    row |= {name: tested[name] for name in COMPARED}
    row |= {name: turns.per_query[name].mean() for name in ("n_retrieved", "precision_returned")}
    return row | {name: value for name, value in cost.items() if name != "system"}


if __name__ == "__main__":
    main()
