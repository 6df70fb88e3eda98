"""What the explorer draws of a scene: in the browser, and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from memlab.explorer.map_scene import Scene
from memlab.records import decode_id_part
from memlab.retrieve import DEFAULT, Bench

COLOURS = ("cluster", "session", "speaker", "time", "score")
"""What a colour may mean."""


def scene_payload(scene: Scene, bench: Bench) -> dict[str, Any]:
    """Give what the browser draws of a scene: buffers for the points, names for their colours."""
    from memlab.figures.style import darken_colour

    scene_turns = scene.turns
    scope_questions = bench.queries.filter(pl.col("scope") == scene.scope)
    colour_groups = _group_codes_and_names_by_kind(scene)
    group_tints = _tints_by_colour_kind(scene, colour_groups)
    centres = (
        scene_turns.filter(pl.col("label") >= 0)
        .group_by("label")
        .agg(pl.col("x", "y").median(), size=pl.len())
        .sort("size", "label", descending=[True, False])
    )
    cluster_labels = [
        {
            "x": centre_x,
            "y": centre_y,
            "text": scene.names.get(cluster, f"cluster {cluster}"),
            "sentence": scene.sentences.get(cluster, ""),
            "size": n_turns,
            "code": cluster,
            "ink": darken_colour(group_tints["cluster"][cluster], 0.5),
        }
        for cluster, centre_x, centre_y, n_turns in centres.iter_rows()
    ]
    colours = {
        colour_kind: {
            "codes": group_codes.cast(pl.Int32).to_numpy().tobytes(),
            "names": group_names,
            "tints": group_tints[colour_kind],
        }
        for colour_kind, (group_codes, group_names) in colour_groups.items()
    }
    return {
        "scope": scene.scope,
        "n": scene_turns.height,
        "x": scene_turns["x"].to_numpy().tobytes(),
        "y": scene_turns["y"].to_numpy().tobytes(),
        "times": _timestamp_buffer(scene_turns),
        "dated": _has_all_timestamps(scene_turns),
        "colours": colours,
        "labels": cluster_labels,
        "questions": [
            list(question_row)
            for question_row in scope_questions.select("query_id", "text").iter_rows()
        ],
        "scopes": list(bench.documents("turn").spans),
    }


def _timestamp_buffer(turns: pl.DataFrame) -> bytes | None:
    """Give milliseconds since 1970 as float64, NaN for a turn without a date, or nothing."""
    if turns["timestamp"].null_count() == turns.height:
        return None
    milliseconds = turns["timestamp"].dt.epoch("ms").cast(pl.Float64).fill_null(float("nan"))
    return milliseconds.to_numpy().tobytes()


def _has_all_timestamps(turns: pl.DataFrame) -> bool:
    return turns["timestamp"].null_count() == 0


def _group_codes_and_names_by_kind(scene: Scene) -> dict[str, tuple[pl.Series, list[str]]]:
    """Give the code of each turn's cluster, session and speaker, and their names by code."""
    scene_turns = scene.turns
    last_label = -1
    if scene_turns.height:
        last_label = max([*scene.names, *scene_turns["label"].unique().to_list(), 0])
    clusters = [scene.names.get(label, f"cluster {label}") for label in range(last_label + 1)]
    colour_groups = {"cluster": (scene_turns["label"], clusters)}
    sessions = scene_turns["session_id"]
    speakers = scene_turns["speaker"].fill_null("")
    turn_counts = speakers.value_counts(name="n")
    by_size = turn_counts.sort("n", "speaker", descending=[True, False])["speaker"]
    for colour_kind, turn_values, value_order in (
        ("session", sessions, sessions.unique(maintain_order=True)),
        ("speaker", speakers, by_size),
    ):
        group_codes = turn_values.replace_strict(
            value_order, pl.int_range(len(value_order), eager=True)
        )
        colour_groups[colour_kind] = (
            group_codes,
            [value_name or "nobody" for value_name in value_order],
        )
    return colour_groups


def _tints_by_colour_kind(
    scene: Scene, colour_groups: Mapping[str, tuple[pl.Series, list[str]]]
) -> dict[str, list[str]]:
    """Give the colours of clusters (by where they lie), sessions (first to last) and speakers."""
    from memlab.figures.style import GREY, SPEAKER_TINTS, position_colours, scale_colours

    scene_turns = scene.turns
    tints_by_kind = {}
    _, clusters = colour_groups["cluster"]
    middles = dict.fromkeys(range(len(clusters)), (0.0, 0.0))
    centred = scene_turns.group_by("label").agg(pl.col("x", "y").median())
    for cluster, centre_x, centre_y in centred.filter(pl.col("label") >= 0).iter_rows():
        middles[cluster] = (centre_x, centre_y)
    if clusters:
        cluster_places = np.array(list(middles.values()))
        tints_by_kind["cluster"] = position_colours(
            cluster_places, scene_turns.select("x", "y").to_numpy()
        )
    else:
        tints_by_kind["cluster"] = []
    tints_by_kind["session"] = scale_colours(len(colour_groups["session"][1]))
    n_others = max(len(colour_groups["speaker"][1]) - len(SPEAKER_TINTS), 0)
    tints_by_kind["speaker"] = [*SPEAKER_TINTS, *[GREY] * n_others][
        : len(colour_groups["speaker"][1])
    ]
    return tints_by_kind


def _name_with_meaning(system_name: str) -> str:
    """Give the name of a pipeline, and what the default one is: a reader cannot know it."""
    if system_name == DEFAULT:
        return f"{system_name} (memlab's default pipeline)"
    return system_name


def _rank_by_scene_row(systems: Sequence[Mapping[str, Any]], system_number: int) -> dict[int, int]:
    """Give the ranks of the turns that the first or second system found; none without it."""
    if system_number >= len(systems):
        return {}
    return {row["i"]: row["rank"] for row in systems[system_number]["rows"]}


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
    first_ranks = _rank_by_scene_row(systems, 0)
    second_ranks = _rank_by_scene_row(systems, 1)
    turn_row = pl.col("i")
    systems_text = ", then ".join(
        f"first {k} of {_name_with_meaning(system_view['name'])}" for system_view in systems
    )
    drawn_turns = scene.turns.with_row_index("i").with_columns(
        evidence=turn_row.is_in(view.get("evidence", [])),
        second=turn_row.is_in(list(second_ranks)),
        selected=turn_row.is_in(list(picked)),
        rank=turn_row.replace_strict(first_ranks, default=None, return_dtype=pl.Int32),
    )
    key_note = ": ".join(filter(None, (decode_id_part(scene.scope), systems_text or problem)))
    if scene.laid_out_by:
        key_note += f"; layout: {scene.laid_out_by}"
    if scene.named_by and colour == "cluster":
        key_note += f"; names by a language model ({scene.named_by})"
    colour_groups = _group_codes_and_names_by_kind(scene)
    is_dated = _has_all_timestamps(drawn_turns)
    if colour == "time" and not is_dated:
        colour = "cluster"
    group_codes, group_names = colour_groups.get(colour, colour_groups["cluster"])
    drawn_turns = drawn_turns.with_columns(label=group_codes)
    if colour not in colour_groups:
        score_by_turn = {}
        if systems:
            score_by_turn = dict(systems[0]["scores"])
        shade_value = turn_row.replace_strict(score_by_turn, default=None, return_dtype=pl.Float64)
        if colour == "time":
            shade_value = pl.col("timestamp").dt.epoch("ms").cast(pl.Float64)
        value_spread = shade_value.max() - shade_value.min()
        value_share = (
            pl.when(value_spread > 0)
            .then((shade_value - shade_value.min()) / value_spread)
            .otherwise(1.0)
        )
        drawn_turns = drawn_turns.with_columns(
            shade=pl.when(shade_value.is_not_null()).then(value_share)
        )
    if is_dated and until:
        drawn_turns = drawn_turns.filter(
            pl.col("timestamp").dt.epoch("ms") <= until.timestamp() * 1000
        )
        key_note += f"; as of {until:%-d %b %Y}"
    question_place = None
    first_name = ""
    second_name = ""
    if systems:
        first_name = systems[0]["name"]
    if view:
        question_place = view["x"], view["y"]
    if len(systems) > 1:
        second_name = systems[1]["name"]
    return maps.embedding_map(
        drawn_turns.drop("i"),
        terms=pl.DataFrame({"label": range(len(group_names)), "terms": group_names}),
        kind=colour,
        question=question_place,
        title=view.get("text", ""),
        note=key_note,
        first=first_name,
        second=second_name,
    )
