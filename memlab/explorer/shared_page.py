"""The explorer as one file to share: a page that needs neither a kernel nor a network."""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memlab.explorer.map_drawing import scene_payload
from memlab.explorer.map_scene import Scene, answer_payload, single_question_bench
from memlab.pipelines import pipeline
from memlab.records import Run
from memlab.retrieve import Bench

_HERE = Path(__file__).parent
_SCORED = 200
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<style>body{{margin:0;padding:8px;background:#fff;font:12px/1.4 Arial,sans-serif}}
h1{{font-size:15px;margin:0 0 6px}}p{{color:#555;margin:6px 0 0}}{style}</style></head>
<body><h1>{title}</h1><div id="map"></div><p>{note}</p>
<script type="text/plain" id="memlab-map">{state}</script>
<script type="text/plain" id="memlab-texts">{texts}</script>
<script type="module">{script}</script></body></html>
"""
# Nothing is fetched, whatever a text holds. The library writes its drawing code as it runs, and
# builds the search index of many points in a worker.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'unsafe-inline'; "
    "img-src data: blob:; worker-src blob:"
)


def map_script() -> str:
    """Give the script that draws the map, with the library that it draws with."""
    script_names = ("regl-scatterplot.min.js", "explorer.js")
    return "\n".join((_HERE / script_name).read_text("utf-8") for script_name in script_names)


def map_css_rules() -> str:
    """Give the CSS rules of the map."""
    return (_HERE / "explorer.css").read_text("utf-8")


def answered_questions(
    scene: Scene,
    bench: Bench,
    systems: Sequence[str | Run],
    *,
    k: int,
    most: int,
    first: str = "",
) -> dict[str, dict[str, Any]]:
    """Answer the questions of a scope for a page, which cannot ask.

    :param systems: pipelines, each of which ranks all questions at once, or runs.
    :param most: how many questions are answered: those with most evidence.
    :param first: a ``query_id`` that is among them in any case.
    :returns: what :func:`memlab.explorer.answer_payload` gives, by ``query_id``, with ``scored``:
        how many turns have a score.
    """
    gold_evidence = bench.evidence("turn")
    turns_by_question = dict[str, list[str]]()
    if gold_evidence is not None:
        turns_by_question = dict(gold_evidence.frame.group_by("query_id").agg("doc_id").iter_rows())
    scope_questions = bench.queries.with_row_index("row").filter(scope=scene.scope)
    by_evidence = sorted(
        scope_questions.select("row", "query_id", "text").iter_rows(),
        key=lambda query: (query[1] != first, -len(turns_by_question.get(query[1], ()))),
    )[:most]
    if not by_evidence:
        return {}
    questions_bench = bench.with_query_rows(
        np.array([question_row for question_row, _, _ in by_evidence])
    )
    system_runs = []
    system_names = []
    for system in systems:
        if isinstance(system, Run):
            system_runs.append(system)
            system_names.append(system.name)
        else:
            system_runs.append(pipeline(system).run(questions_bench))
            system_names.append(system)
    view_by_question = dict[str, dict[str, Any]]()
    for _, query_id, question in by_evidence:
        single_bench = single_question_bench(bench, scene.scope, question, query_id)
        evidence_items = turns_by_question.get(query_id, ())
        question_view = answer_payload(
            scene,
            single_bench,
            question,
            system_runs,
            k=k,
            query_id=query_id,
            evidence=evidence_items,
        )
        for system_name, system_view in zip(system_names, question_view["systems"], strict=True):
            system_view["name"] = system_name
            system_view["scores"] = system_view["scores"][:_SCORED]
        view_by_question[query_id] = question_view | {"scored": _SCORED}
    return view_by_question


def shared_page_bytes(
    scene: Scene,
    bench: Bench,
    views: Mapping[str, dict[str, Any]],
    *,
    systems: Sequence[str],
    k: int,
    question: str,
    colour: str,
    title: str,
    note: str,
) -> bytes:
    """Write the page: the map, the texts of all turns, and the answers.

    Texts, names and questions stand in it packed and are drawn as text, so none of them is read as
    mark-up.

    :param views: answers by question, see :func:`answered_questions`; the first stands for a
        question that has none.
    """
    payload = scene_payload(scene, bench)
    payload["questions"] = [
        [query_id, shown_view["text"]] for query_id, shown_view in views.items()
    ]
    payload["scopes"] = [scene.scope]
    for buffer_name in ("x", "y", "times"):
        payload[buffer_name] = _base64_text(payload[buffer_name])
    for colour_group in payload["colours"].values():
        colour_group["codes"] = _base64_text(colour_group["codes"])
    shown_question = question if question in views else next(iter(views), "")
    shown_view = views[shown_question] | {"asked": shown_question} if shown_question else {}
    page_state = {
        "_scene": payload,
        "_view": shown_view,
        "views": views,
        "question": shown_question,
        "colour": colour,
        "systems": list(systems),
        "k": k,
        "scope": scene.scope,
    }
    page_script = "\n".join([map_script(), (_HERE / "shared_page.js").read_text("utf-8")])
    page_text = _PAGE.format(
        title=html.escape(title),
        note=html.escape(note),
        policy=html.escape(_POLICY),
        style=map_css_rules(),
        state=_gzipped_base64_json(page_state),
        texts=_gzipped_base64_json(scene.turns["text"].to_list()),
        script=page_script,
    )
    return page_text.encode("utf-8", errors="replace")


def _base64_text(raw_bytes: bytes | None) -> str | None:
    return None if raw_bytes is None else base64.b64encode(raw_bytes).decode()


def _gzipped_base64_json(json_value: Any) -> str:
    """Pack a value as JSON; the same value gives the same text."""
    json_bytes = json.dumps(json_value, ensure_ascii=True, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(json_bytes, mtime=0)).decode()
