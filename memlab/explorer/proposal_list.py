"""What the explorer shows of questions that a model proposed, for a person to go through."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.datasets.question_files import ProposalFile
from memlab.explorer.scene import Scene
from memlab.records import decode_id_part, encode_id_part, resolve_scope_name
from memlab.records.dataset import PROPOSED, count_by_source

_COLUMNS = {
    **dict.fromkeys(("query_id", "source", "type", "question", "answer"), pl.String()),
    **dict.fromkeys(("evidence", "reasons", "distractors"), pl.List(pl.String())),
}


def proposals_of_scope(file: ProposalFile, scope: str) -> pl.DataFrame:
    """Give the proposals of a file that are about a scope, those that nobody has read first.

    :returns: ``query_id``, ``source``, ``type``, ``question``, ``answer``, and as lists
        ``evidence`` and ``distractors`` (turn ids) and ``reasons``, one for each of ``evidence``.
    """
    rows = []
    for record in file.records:
        if resolve_scope_name(str(record["scope"]), [scope]) != scope:
            continue
        answer = record.get("answer")
        cited = {}
        for name in ("evidence", "distractors"):
            cited[name] = [_turn_id(scope, each) for each in record.get(name) or []]
        rows.append(
            {
                "query_id": str(record["query_id"]),
                "source": record["source"],
                "type": record.get("type"),
                "question": record["question"],
                "answer": "" if answer is None else str(answer),
                **cited,
                "reasons": _list_reasons(record, len(cited["evidence"])),
            }
        )
    found = pl.DataFrame(rows, schema=_COLUMNS)
    return found.sort(pl.col("source") != PROPOSED, maintain_order=True)


def _turn_id(scope: str, cited: Any) -> str:
    """Give the turn that a question cites, by its turn id or by the message's own id."""
    name = str(cited.get("id") if isinstance(cited, dict) else cited)
    if name.startswith(f"{scope}/"):
        return name
    return f"{scope}/{encode_id_part(name)}"


def _list_reasons(record: dict[str, Any], count: int) -> list[str]:
    reasons = record.get("reasons")
    if not isinstance(reasons, list):
        reasons = []
    texts = [str(reason) for reason in reasons[:count]]
    return texts + [""] * (count - len(texts))


def proposal_payload(file: ProposalFile, scene: Scene) -> dict[str, Any]:
    """Give what the browser lists of the proposals of a scene, fit for JSON.

    :returns: ``counts``, how many there are, and ``rows``: ``id``, ``source``, ``type``,
        ``question``, ``answer``, ``evidence`` (rows of the scene, ``None`` for a turn that is not
        there, each with its reason) and ``distractors`` (rows of the scene).
    """
    listed = proposals_of_scope(file, scene.scope)
    if listed.is_empty():
        return {}
    turns = scene.turns["turn_id"].to_list()
    rows_of_turns = dict(zip(turns, range(len(turns)), strict=True))
    rows = []
    for proposal in listed.iter_rows(named=True):
        places = [rows_of_turns.get(turn) for turn in proposal["evidence"]]
        others = [rows_of_turns[turn] for turn in proposal["distractors"] if turn in rows_of_turns]
        rows.append(
            {
                "id": proposal["query_id"],
                "source": proposal["source"],
                "type": proposal["type"] or "",
                "question": proposal["question"],
                "answer": proposal["answer"],
                "evidence": list(map(list, zip(places, proposal["reasons"], strict=True))),
                "distractors": others,
            }
        )
    counts = [f"{n:,} {source}" for source, n in count_by_source(listed).items()]
    counted = f"{', '.join(counts)} of {decode_id_part(scene.scope)}, in {file.path.name}"
    return {"counts": counted, "rows": rows}
