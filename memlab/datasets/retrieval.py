"""Retrieval folders as MTEB, BEIR and LMEB (Zhao et al., 2026) publish them: read, and written with :func:`write`.

====================  ================================================================================================
``corpus.jsonl``      a document a line: ``_id`` (LMEB: ``id``), ``title``, ``text``; in the folder or the one above
``queries.jsonl``     a question a line: ``_id`` (or ``id``), ``text``; in the folder, or in folders below it, whose
                      names are then the kinds of questions
``qrels.tsv``         query, document and score, with or without a line of names; or ``qrels/test.tsv``, or the only
                      ``.tsv`` of ``qrels/``. A score above 0 is evidence
``candidates.jsonl``  where there is one: ``scene_id`` and ``candidate_doc_ids``; beside the corpus or the questions
====================  ================================================================================================

A scope is the documents that a question is asked of: those of its scene, else the whole corpus. A question's scene has
its id, or as in LMEB the first two parts of it (``a_b`` of ``a_b_7``). A document that stands in several scopes becomes
a turn of each. A scope is one session, unless a document says more: ``write`` puts ``scope``, ``session``, ``speaker``,
``role``, ``timestamp`` and ``caption`` beside the fields of the layout, and questions get ``scope``, ``answer`` and
``type``.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from memlab.datasets._fields import Bad, Record, as_role, as_rubric, moment, show
from memlab.datasets._json import lines
from memlab.datasets._read import Rows, Source, matching
from memlab.errors import DataError
from memlab.files import atomic
from memlab.records import Dataset, Question, id_part, qrels, raw_part

QUERIES = ("queries.jsonl", "*/queries.jsonl")
"""Where the questions of a folder are."""
_NUMBER = re.compile(r"\s*-?\d+(\.\d*)?\s*")
_QRELS = ("qrels.tsv", "qrels/test.tsv", "qrels/*.tsv")


@dataclass
class _Asked:
    """The questions of a scope, and the documents that it holds; ``None`` for all of the corpus."""

    documents: list[str] | None = None
    questions: list[tuple[str, str, Record, list[str]]] = field(default_factory=list)


def read(source: Source) -> Iterator[Rows]:
    """Stream a retrieval folder: the rows of each scope; the corpus is held whole."""
    if not source.path.is_dir():
        source = replace(source, path=source.path.parent)
    corpus = {_id(record): record for _, record in _records(_file(source, "corpus.jsonl"))}
    of_scope: dict[str, list[str]] = {}
    for doc_id, record in corpus.items():
        of_scope.setdefault(str(record.get("scope") or ""), []).append(doc_id)
    asked: dict[str, _Asked] = {}
    for file in source.files(*QUERIES):
        _ask(source, file, of_scope, asked)
    if asked.keys() & of_scope.keys():  # a memory of which nothing is asked is one still
        asked |= {scope: _Asked(of_scope[scope]) for scope in of_scope if scope and scope not in asked}
    for scope, about in asked.items():
        rows = Rows()
        _fill(rows, source, scope, about, corpus)
        yield rows


def _ask(source: Source, file: Source, of_scope: dict[str, list[str]], asked: dict[str, _Asked]) -> None:
    """Add the questions of a file to their scopes."""
    own = file.path.parent
    kind = "" if own == source.path else own.name
    evidence = _evidence(replace(source, path=own))
    scenes = _scenes(replace(source, path=own), source.path)
    names: dict[tuple[str, ...], str] = {}
    for scene, members in scenes.items():
        names.setdefault(tuple(members), scene)
    for number, record in _records(file):
        with file.record(f"line {number}", record):
            query, scope = _id(record), record.name("scope", None)
            documents: list[str] | None = None
            if scope in of_scope:
                documents = of_scope[scope]
            elif scenes:
                documents = scenes.get(query) or scenes.get("_".join(query.split("_")[:2]))
                if documents is None:
                    raise Bad("_id", f"{query!r}, which has no scene in candidates.jsonl", "a scene for each question")
                scope = names[tuple(documents)]
            scope = scope or source.path.resolve().name
            if scope in asked and asked[scope].documents != documents:  # folders may name their scenes alike
                scope = f"{kind}/{scope}"
            cited = evidence.pop(query, [])
            asked.setdefault(scope, _Asked(documents)).questions.append((kind, query, record, cited))
    for query in list(evidence)[:1]:
        what = f"{len(evidence)} questions that {file.path.name} does not hold ({query!r} …)"
        source.note(f"{kind or own.name}: qrels", what, "ignored")


def _fill(rows: Rows, source: Source, name: str, about: _Asked, corpus: dict[str, Record]) -> None:
    """Make the turns and questions of a scope."""
    scope, counts, turns = id_part(name), dict[str, int](), dict[str, tuple[str, str]]()
    for doc_id in corpus if about.documents is None else about.documents:
        record = corpus.get(doc_id)
        if record is None:
            source.note(f"candidates.jsonl: {name}", f"{doc_id!r}, which corpus.jsonl does not hold", "ignored")
            continue
        with source.record(f"corpus.jsonl: {doc_id!r}", record):
            session = f"{scope}/{id_part(record.name('session', 's1'))}"
            n = counts[session] = counts.get(session, 0) + 1
            time, _ = record.time("timestamp")
            speaker, text, caption = _said(record)
            role = record.name("role", "other")
            rows.turns.append((scope, session, n, speaker, as_role(role), text, caption, time))
            turn = f"{session}/{n}"
            if "scope" in record and doc_id.startswith(f"{scope}/"):  # written from a dataset, whose id it is
                rows.named[turn] = turn = doc_id
            turns[doc_id] = turn, session
    for kind, query, record, cited in about.questions:
        with source.record(f"queries.jsonl: {query!r}", record):
            evidence = dict(turns[doc_id] for doc_id in cited if doc_id in turns)
            if len(evidence) < len(cited):
                lost = next(doc_id for doc_id in cited if doc_id not in turns)
                source.note(f"qrels: {query}", f"{lost!r}, which its scope does not hold", "dropped evidence")
            time, _ = record.time("timestamp")
            rows.questions.append(
                Question(
                    query_id=_query_id(kind, query, record),
                    scope=scope,
                    text=record.name("text"),
                    answer=record.answer("answer", None),
                    question_type=record.name("type", kind.replace("_", "-") or "unspecified"),
                    timestamp=moment(time),
                    evidence=[*evidence],
                    evidence_sessions=list(dict.fromkeys(evidence.values())),
                    rubric=record.read("rubric", as_rubric, None),
                )
            )


def _query_id(kind: str, query: str, record: Record) -> str:
    if "scope" in record:  # written from a dataset, whose ids they are
        return query
    return "/".join(id_part(part) for part in [kind, *query.split("/")] if part)


def _said(record: Record) -> tuple[str, str, str | None]:
    """Give speaker, text and caption; a title stands before the text, as MTEB and LMEB join them."""
    text, title = record.text("text"), record.text("title", "")
    speaker, caption = record.name("speaker", None), record.text("caption", None)
    if speaker is None:
        return "document", f"{title} {text}".strip(), caption
    return speaker, text.removesuffix(f" ({caption})"), caption


def _id(record: Record) -> str:
    """Give the id; where both are there, LMEB means the one without an underscore."""
    return record.name("id" if record.get("id") is not None else "_id")


def _records(file: Source) -> Iterator[tuple[int, Record]]:
    """Stream lines whose id is a name and stands once."""
    seen: dict[str, int] = {}
    for number, record in lines(file):
        with file.record(f"line {number}", record):
            called = _id(record)
            if seen.setdefault(called, number) != number:
                raise Bad("_id", f"{called!r} again (first on line {seen[called]})", "an id of its own")
            yield number, record


def _file(source: Source, name: str) -> Source:
    """Give a file of the folder, or of the one above."""
    for folder in (source.path, source.path.resolve().parent):
        if (folder / name).is_file():
            return replace(source, path=folder / name)
    source.fail(f"holds no {name}, and the folder above it neither; a retrieval folder has one")


def _evidence(folder: Source) -> dict[str, list[str]]:
    """Read the qrels: the documents of each question whose score is above 0."""
    paths = matching(folder.path, *_QRELS)
    if len(paths) != 1:
        there = f"{len(paths)} files in qrels/ ({paths[0].name} …) and no test.tsv" if paths else "no qrels"
        folder.fail(f"holds {there}; expected qrels.tsv, qrels/test.tsv, or one .tsv in qrels/")
    file, judged = replace(folder, path=paths[0]), dict[str, list[str]]()
    with file.open() as stream:
        text = stream.read().decode("utf-8", "replace")
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter="\t"), 1):
        if not row or (number == 1 and not _NUMBER.fullmatch(row[-1])):
            continue
        with file.record(f"line {number}", row):
            if len(row) != 3 or not _NUMBER.fullmatch(row[2]):
                raise Bad("", show("\t".join(row)), "query-id, corpus-id and a score, with tabs between them")
            if float(row[2]) > 0:
                judged.setdefault(row[0], []).append(row[1])
    return judged


def _scenes(source: Source, above: Path) -> dict[str, list[str]]:
    """Read the documents of each scene, from the folder of the questions or that of the corpus."""
    path = next((f / "candidates.jsonl" for f in (source.path, above) if (f / "candidates.jsonl").is_file()), None)
    scenes: dict[str, list[str]] = {}
    file = replace(source, path=path or source.path)
    for number, record in lines(file) if path else ():
        with file.record(f"line {number}", record):
            documents = record.names("candidate_doc_ids")
            scenes[record.name("scene_id")] = documents
    return scenes


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
    >>> folder = datasets.retrieval.write(data, Path(tempfile.mkdtemp(), "mine"))
    >>> sorted(path.name for path in folder.iterdir())
    ['corpus.jsonl', 'qrels', 'qrels.tsv', 'queries.jsonl']
    >>> datasets.load(folder).turns.equals(data.turns)
    True
    """
    folder, judged = Path(folder), qrels(data.questions, "turn").frame
    asked = data.questions.join(judged, on="query_id", how="semi", maintain_order="left")
    if not asked.height:
        raise DataError(f"{data.name}: no question has evidence among the turns; a retrieval folder needs qrels")
    _write_lines(folder / "corpus.jsonl", map(_document, data.turns.iter_rows(named=True)))
    _write_lines(folder / "queries.jsonl", map(_query, asked.iter_rows(named=True)))
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


def _document(turn: dict[str, Any]) -> dict[str, Any]:
    caption, speaker = turn["caption"], turn["speaker"]
    return {
        "_id": turn["turn_id"],
        "id": turn["turn_id"],
        "title": "" if speaker == turn["role"] else speaker,
        "text": turn["text"] + (f" ({caption})" if caption else ""),
        "scope": raw_part(turn["scope"]),
        "session": raw_part(turn["session_id"].rpartition("/")[2]),
        "speaker": speaker,
        "role": turn["role"],
        "timestamp": turn["timestamp"] and turn["timestamp"].isoformat(),
        "caption": caption,
    }


def _query(question: dict[str, Any]) -> dict[str, Any]:
    return {
        "_id": question["query_id"],
        "id": question["query_id"],
        "text": question["text"],
        "scope": raw_part(question["scope"]),
        "answer": question["answer"],
        "type": question["question_type"],
        "timestamp": question["timestamp"] and question["timestamp"].isoformat(),
        "rubric": question["rubric"],
    }
