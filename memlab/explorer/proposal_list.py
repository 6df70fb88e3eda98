"""What the explorer shows of questions that a model proposed, for a person to go through."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.datasets.reviewing_proposals import ProposalFile
from memlab.explorer.map_scene import Scene
from memlab.records import decode_id_part, encode_id_part, resolve_scope_name
from memlab.records.dataset import PROPOSED, count_questions_by_source

_COLUMNS = {
    **dict.fromkeys(("query_id", "source", "type", "question", "answer"), pl.String()),
    **dict.fromkeys(("evidence", "reasons", "distractors"), pl.List(pl.String())),
}


def proposals_of_scope(file: ProposalFile, scope: str) -> pl.DataFrame:
    """Give the proposals of a file that are about a scope, those that nobody has read first.

    :returns: ``query_id``, ``source``, ``type``, ``question``, ``answer``, and as lists
        ``evidence`` and ``distractors`` (turn ids) and ``reasons``, one for each of ``evidence``.
    """
    proposal_rows = []
    for record in file.records:
        if resolve_scope_name(str(record["scope"]), [scope]) != scope:
            continue
        stated_answer = record.get("answer")
        cited_turns = {}
        for cited_kind in ("evidence", "distractors"):
            cited_turns[cited_kind] = [
                _scoped_turn_id(scope, cited_entry) for cited_entry in record.get(cited_kind) or []
            ]
        proposal_rows.append(
            {
                "query_id": str(record["query_id"]),
                "source": record["source"],
                "type": record.get("type"),
                "question": record["question"],
                "answer": "" if stated_answer is None else str(stated_answer),
                **cited_turns,
                "reasons": _reasons_padded_to_count(record, len(cited_turns["evidence"])),
            }
        )
    proposals = pl.DataFrame(proposal_rows, schema=_COLUMNS)
    return proposals.sort(pl.col("source") != PROPOSED, maintain_order=True)


def _scoped_turn_id(scope: str, cited_turn: Any) -> str:
    """Give the turn that a question cites, by its turn id or by the message's own id."""
    cited_name = str(cited_turn.get("id") if isinstance(cited_turn, dict) else cited_turn)
    if cited_name.startswith(f"{scope}/"):
        return cited_name
    return f"{scope}/{encode_id_part(cited_name)}"


def _reasons_padded_to_count(proposal_record: dict[str, Any], n_reasons: int) -> list[str]:
    listed_reasons = proposal_record.get("reasons")
    if not isinstance(listed_reasons, list):
        listed_reasons = []
    reason_texts = [str(reason_entry) for reason_entry in listed_reasons[:n_reasons]]
    return reason_texts + [""] * (n_reasons - len(reason_texts))


def proposal_payload(file: ProposalFile, scene: Scene) -> dict[str, Any]:
    """Give what the browser lists of the proposals of a scene, fit for JSON.

    :returns: ``counts``, how many there are, and ``rows``: ``id``, ``source``, ``type``,
        ``question``, ``answer``, ``evidence`` (rows of the scene, ``None`` for a turn that is not
        there, each with its reason) and ``distractors`` (rows of the scene).
    """
    proposals = proposals_of_scope(file, scene.scope)
    if proposals.is_empty():
        return {}
    turn_ids = scene.turns["turn_id"].to_list()
    rows_of_turns = dict(zip(turn_ids, range(len(turn_ids)), strict=True))
    payload_rows = []
    for proposal in proposals.iter_rows(named=True):
        evidence_rows = [rows_of_turns.get(turn_id) for turn_id in proposal["evidence"]]
        distractor_rows = [
            rows_of_turns[turn_id]
            for turn_id in proposal["distractors"]
            if turn_id in rows_of_turns
        ]
        payload_rows.append(
            {
                "id": proposal["query_id"],
                "source": proposal["source"],
                "type": proposal["type"] or "",
                "question": proposal["question"],
                "answer": proposal["answer"],
                "evidence": list(map(list, zip(evidence_rows, proposal["reasons"], strict=True))),
                "distractors": distractor_rows,
            }
        )
    source_counts = [
        f"{n_questions:,} {source_name}"
        for source_name, n_questions in count_questions_by_source(proposals).items()
    ]
    counted = f"{', '.join(source_counts)} of {decode_id_part(scene.scope)}, in {file.path.name}"
    return {"counts": counted, "rows": payload_rows}
