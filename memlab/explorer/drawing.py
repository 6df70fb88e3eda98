"""What the explorer draws of a scene: in the browser, and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from memlab.explorer.scene import Scene
from memlab.records import decode_id_part
from memlab.retrieve import Bench

COLOURS = ("cluster", "session", "speaker", "time", "score")
"""What a colour may mean."""


def scene_payload(scene: Scene, bench: Bench) -> dict[str, Any]:
    """Give what the browser draws of a scene: buffers for the points, names for their colours."""
    from memlab.figures.style import darken_colour

    turns = scene.turns
    asked = bench.queries.filter(pl.col("scope") == scene.scope)
    groups = _colour_groups(scene)
    tints = _group_tints(scene, groups)
    centres = (
        turns.filter(pl.col("label") >= 0)
        .group_by("label")
        .agg(pl.col("x", "y").median(), size=pl.len())
        .sort("size", "label", descending=[True, False])
    )
    labels = [
        {
            "x": x,
            "y": y,
            "text": scene.names.get(label, f"cluster {label}"),
            "sentence": scene.sentences.get(label, ""),
            "size": size,
            "code": label,
            "ink": darken_colour(tints["cluster"][label], 0.5),
        }
        for label, x, y, size in centres.iter_rows()
    ]
    colours = {
        kind: {
            "codes": codes.cast(pl.Int32).to_numpy().tobytes(),
            "names": names,
            "tints": tints[kind],
        }
        for kind, (codes, names) in groups.items()
    }
    return {
        "scope": scene.scope,
        "n": turns.height,
        "x": turns["x"].to_numpy().tobytes(),
        "y": turns["y"].to_numpy().tobytes(),
        "times": _times(turns),
        "dated": _is_dated(turns),
        "colours": colours,
        "labels": labels,
        "questions": [list(row) for row in asked.select("query_id", "text").iter_rows()],
        "scopes": list(bench.documents("turn").spans),
    }


def _times(turns: pl.DataFrame) -> bytes | None:
    """Give milliseconds since 1970 as float64, NaN for a turn without a date, or nothing."""
    if turns["timestamp"].null_count() == turns.height:
        return None
    ms = turns["timestamp"].dt.epoch("ms").cast(pl.Float64).fill_null(float("nan"))
    return ms.to_numpy().tobytes()


def _is_dated(turns: pl.DataFrame) -> bool:
    return turns["timestamp"].null_count() == 0


def _colour_groups(scene: Scene) -> dict[str, tuple[pl.Series, list[str]]]:
    """Give the code of each turn's cluster, session and speaker, and their names by code."""
    turns = scene.turns
    last = -1
    if turns.height:
        last = max([*scene.names, *turns["label"].unique().to_list(), 0])
    clusters = [scene.names.get(i, f"cluster {i}") for i in range(last + 1)]
    groups = {"cluster": (turns["label"], clusters)}
    sessions = turns["session_id"]
    speakers = turns["speaker"].fill_null("")
    said = speakers.value_counts(name="n")
    by_size = said.sort("n", "speaker", descending=[True, False])["speaker"]
    for kind, values, order in (
        ("session", sessions, sessions.unique(maintain_order=True)),
        ("speaker", speakers, by_size),
    ):
        codes = values.replace_strict(order, pl.int_range(len(order), eager=True))
        groups[kind] = codes, [name or "nobody" for name in order]
    return groups


def _group_tints(
    scene: Scene, groups: Mapping[str, tuple[pl.Series, list[str]]]
) -> dict[str, list[str]]:
    """Give the colours of clusters (by where they lie), sessions (first to last) and speakers."""
    from memlab.figures.style import GREY, SPEAKER_TINTS, position_colours, scale_colours

    turns = scene.turns
    tints = {}
    _, clusters = groups["cluster"]
    middles = dict.fromkeys(range(len(clusters)), (0.0, 0.0))
    centred = turns.group_by("label").agg(pl.col("x", "y").median())
    for label, x, y in centred.filter(pl.col("label") >= 0).iter_rows():
        middles[label] = (x, y)
    if clusters:
        places = np.array(list(middles.values()))
        tints["cluster"] = position_colours(places, turns.select("x", "y").to_numpy())
    else:
        tints["cluster"] = []
    tints["session"] = scale_colours(len(groups["session"][1]))
    others = max(len(groups["speaker"][1]) - len(SPEAKER_TINTS), 0)
    tints["speaker"] = [*SPEAKER_TINTS, *[GREY] * others][: len(groups["speaker"][1])]
    return tints


def _evidence_counts(view: Mapping[str, Any]) -> str:
    """Say how much of the evidence each pipeline returned."""
    items = len(view.get("evidence", []))
    if not items:
        return ""
    counts = []
    for system in view["systems"]:
        hits = [row for row in system["rows"] if row["hit"]]
        counts.append(f"{system['name']} {len(hits)} of {items}")
    return f"; evidence items returned: {', '.join(counts)}"


def draw_view(
    scene: Scene,
    view: Mapping[str, Any],
    *,
    k: int,
    colour: str,
    until: datetime | None,
    picked: Sequence[int],
    problem: str = "",
) -> Any:
    """Draw what the browser shows, as a figure.

    :param view: what :func:`memlab.explorer.answer_payload` gave, or nothing.
    :param colour: one of :data:`COLOURS`; as in the browser ``cluster`` where ``time`` is not known
        of every turn.
    :param until: turns that are later are left out, where the time of all is known.
    :param picked: rows of the scene that are selected.
    :param problem: stands in the key where nothing was ranked.
    """
    from memlab.figures import maps

    systems = view.get("systems", [])
    first, second = (
        [*({row["i"]: row["rank"] for row in one["rows"]} for one in systems), {}, {}]
    )[:2]
    i = pl.col("i")
    ranked = ", then ".join(f"first {k} of {one['name']}" for one in systems)
    turns = scene.turns.with_row_index("i").with_columns(
        evidence=i.is_in(view.get("evidence", [])),
        second=i.is_in(list(second)),
        selected=i.is_in(list(picked)),
        rank=i.replace_strict(first, default=None, return_dtype=pl.Int32),
    )
    note = ": ".join(filter(None, (decode_id_part(scene.scope), ranked or problem)))
    note += _evidence_counts(view)
    if scene.named_by and colour == "cluster":
        note += f"; names by a language model ({scene.named_by})"
    groups = _colour_groups(scene)
    dated = _is_dated(turns)
    if colour == "time" and not dated:
        colour = "cluster"
    codes, names = groups.get(colour, groups["cluster"])
    turns = turns.with_columns(label=codes)
    if colour not in groups:
        scores = {}
        if systems:
            scores = dict(systems[0]["scores"])
        value = i.replace_strict(scores, default=None, return_dtype=pl.Float64)
        if colour == "time":
            value = pl.col("timestamp").dt.epoch("ms").cast(pl.Float64)
        spread = value.max() - value.min()
        share = pl.when(spread > 0).then((value - value.min()) / spread).otherwise(1.0)
        turns = turns.with_columns(shade=pl.when(value.is_not_null()).then(share))
    if dated and until:
        turns = turns.filter(pl.col("timestamp").dt.epoch("ms") <= until.timestamp() * 1000)
        note += f"; as of {until:%-d %b %Y}"
    question = None
    second_name = ""
    if view:
        question = view["x"], view["y"]
    if len(systems) > 1:
        second_name = systems[1]["name"]
    return maps.embedding_map(
        turns.drop("i"),
        terms=pl.DataFrame({"label": range(len(names)), "terms": names}),
        kind=colour,
        question=question,
        title=view.get("text", ""),
        note=note,
        second=second_name,
    )
