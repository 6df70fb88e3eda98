"""Retrieval folders of MTEB, BEIR and LMEB out of a dataset; :mod:`memlab.datasets.benchmarks.retrieval` reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.files import atomic
from memlab.records import Dataset, decode_id_part, qrels


def write(data: Dataset, folder: str | Path) -> Path:
    """Write a dataset as a retrieval folder that MTEB, BEIR and LMEB read, and that :func:`read` gives back.

    The documents are its turns; questions without evidence are left out, since there is nothing to measure. Ids stay
    as they are, so that a ranking of these files is one of the dataset. Qrels are written for LMEB (``qrels.tsv``, no
    names) and for MTEB (``qrels/test.tsv``). Where there are several scopes, ``candidates.jsonl`` names each question's
    documents under the first two parts of its id, or under all of it where two scopes share these.

    :raises DataError: when no question has evidence.
    :raises ExportError: when a file cannot be written.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab import datasets, sample
    >>> data = sample(["owen"])
    >>> folder = datasets.folders.write(data, Path(tempfile.mkdtemp(), "mine"))
    >>> sorted(path.name for path in folder.iterdir())
    ['corpus.jsonl', 'qrels', 'qrels.tsv', 'queries.jsonl']
    >>> datasets.load(folder).turns.equals(data.turns)
    True
    """
    folder, judged = Path(folder), qrels(data.questions, "turn").frame
    asked = data.questions.join(judged, on="query_id", how="semi", maintain_order="left")
    if not asked.height:
        raise DataError(f"{data.name}: no question has evidence among the turns; a retrieval folder needs qrels")
    _write_lines(folder / "corpus.jsonl", map(_document_record, data.turns.iter_rows(named=True)))
    _write_lines(folder / "queries.jsonl", map(_query_record, asked.iter_rows(named=True)))
    table = judged.select(pl.col("query_id").alias("query-id"), pl.col("doc_id").alias("corpus-id"), score="relevance")
    for name, header in (("qrels.tsv", False), ("qrels/test.tsv", True)):
        with atomic(folder / name) as stream:
            table.write_csv(stream, separator="\t", include_header=header, quote_style="never")
    if len(data.scopes) > 1:
        documents = dict(data.turns.group_by("scope", maintain_order=True).agg("turn_id").iter_rows())
        scopes: dict[str, str] = {}
        for query, scope in asked.select("query_id", "scope").iter_rows():
            scene = "_".join(query.split("_")[:2])
            scopes[scene if scopes.get(scene, scope) == scope else query] = scope
        _write_lines(
            folder / "candidates.jsonl",
            ({"scene_id": scene, "candidate_doc_ids": documents[scope]} for scene, scope in scopes.items()),
        )
    return folder


def _write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    with atomic(path) as stream:
        for record in records:
            stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


def _document_record(turn: dict[str, Any]) -> dict[str, Any]:
    caption, speaker = turn["caption"], turn["speaker"]
    return {
        "_id": turn["turn_id"],
        "id": turn["turn_id"],
        "title": "" if speaker == turn["role"] else speaker,
        "text": turn["text"] + (f" ({caption})" if caption else ""),
        "scope": decode_id_part(turn["scope"]),
        "session": decode_id_part(turn["session_id"].rpartition("/")[2]),
        "speaker": speaker,
        "role": turn["role"],
        "timestamp": turn["timestamp"] and turn["timestamp"].isoformat(),
        "caption": caption,
    }


def _query_record(question: dict[str, Any]) -> dict[str, Any]:
    return {
        "_id": question["query_id"],
        "id": question["query_id"],
        "text": question["text"],
        "scope": decode_id_part(question["scope"]),
        "answer": question["answer"],
        "type": question["question_type"],
        "timestamp": question["timestamp"] and question["timestamp"].isoformat(),
        "rubric": question["rubric"],
    }
