"""What the explorer draws of a scene: in the browser, and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from memlab.explorer.scene import Scene
from memlab.records import decode_id_part
from memlab.retrieve import Bench

COLOURS = ("cluster", "session", "speaker", "time", "score")
"""What a colour may mean."""


def scene_payload(scene: Scene, bench: Bench) -> dict[str, Any]:
    """Give what the browser draws of a scene: buffers for the points, names for their colours."""
    turns = scene.turns
    times = (
        turns["timestamp"].dt.epoch("ms").cast(pl.Float64).to_numpy().tobytes()
        if _is_dated(turns)
        else None
    )
    asked = bench.queries.filter(pl.col("scope") == scene.scope)
    groups = _colour_groups(scene)
    centres = (
        turns.filter(pl.col("label") >= 0)
        .group_by("label")
        .agg(pl.col("x", "y").median(), size=pl.len())
    )
    labels = [
        {"x": x, "y": y, "text": scene.names.get(label, f"cluster {label}"), "size": size}
        for label, x, y, size in centres.sort("size", "label", descending=[True, False]).iter_rows()
    ]
    return {
        "scope": scene.scope, "n": turns.height, "x": turns["x"].to_numpy().tobytes(),
        "y": turns["y"].to_numpy().tobytes(), "times": times,
        "colours": {kind: {"codes": codes.cast(pl.Int32).to_numpy().tobytes(), "names": names}
                    for kind, (codes, names) in groups.items()},
        "labels": labels, "questions": [list(row) for row in asked.select("query_id", "text").iter_rows()],
        "scopes": list(bench.documents("turn").spans),
    }  # fmt: skip


def _is_dated(turns: pl.DataFrame) -> bool:
    return turns["timestamp"].null_count() == 0


def _colour_groups(scene: Scene) -> dict[str, tuple[pl.Series, list[str]]]:
    """Give the code of each turn's cluster, session and speaker, and their names by code."""
    turns = scene.turns
    clusters = [scene.names.get(i, f"cluster {i}") for i in range(max(scene.names, default=-1) + 1)]
    groups = {"cluster": (turns["label"], clusters)}
    sessions, speakers = turns["session_id"], turns["speaker"].fill_null("")
    by_size = speakers.value_counts(sort=True)["speaker"]
    for kind, values, order in (
        ("session", sessions, sessions.unique(maintain_order=True)),
        ("speaker", speakers, by_size),
    ):
        codes = values.replace_strict(order, pl.int_range(len(order), eager=True))
        groups[kind] = codes, [name or "nobody" for name in order]
    return groups


def draw_view(
    scene: Scene, view: Mapping[str, Any], *, k: int, colour: str, until: datetime | None, picked: Sequence[int],
    problem: str = "",
) -> Any:  # fmt: skip
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
    i, said = pl.col("i"), [f"first {k} of {one['name']}" for one in systems]
    turns = scene.turns.with_row_index("i").with_columns(
        evidence=i.is_in(view.get("evidence", [])), second=i.is_in(list(second)), selected=i.is_in(list(picked)),
        rank=i.replace_strict(first, default=None, return_dtype=pl.Int32),
    )  # fmt: skip
    note = ": ".join(filter(None, (decode_id_part(scene.scope), ", then ".join(said) or problem)))
    groups, dated = _colour_groups(scene), _is_dated(turns)
    colour = "cluster" if colour == "time" and not dated else colour
    codes, names = groups.get(colour, groups["cluster"])
    turns = turns.with_columns(label=codes)
    if colour not in groups:
        scores = dict(systems[0]["scores"]) if systems else {}
        scored = i.replace_strict(scores, default=None, return_dtype=pl.Float64)
        value = pl.col("timestamp").dt.epoch("ms").cast(pl.Float64) if colour == "time" else scored
        spread = value.max() - value.min()
        share = pl.when(spread > 0).then((value - value.min()) / spread).otherwise(1.0)
        turns = turns.with_columns(shade=pl.when(value.is_not_null()).then(share))
    if dated and until:
        turns = turns.filter(pl.col("timestamp").dt.epoch("ms") <= until.timestamp() * 1000)
        note += f"; as of {until:%-d %b %Y}"
    return maps.embedding_map(
        turns.drop("i"), terms=pl.DataFrame({"label": range(len(names)), "terms": names}), kind=colour,
        question=(view["x"], view["y"]) if view else None, title=view.get("text", ""), note=note,
    )  # fmt: skip
