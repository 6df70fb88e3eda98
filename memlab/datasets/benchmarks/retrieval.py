"""Retrieval folders as MTEB, BEIR and LMEB (Zhao et al., 2026) publish them; ``memlab.datasets.folders`` writes them.

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
a turn of each. A scope is one session, unless a document says more: that
writer puts ``scope``, ``session``, ``speaker``, ``role``, ``timestamp`` and ``caption`` beside the fields of the
layout, and questions get ``scope``, ``answer`` and ``type``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import Bad, Record, moment, show
from memlab.datasets.reading import Source
from memlab.datasets.streams import lines
from memlab.records import id_part

FILES = ("queries.jsonl", "*/queries.jsonl")
"""Where the questions of a folder are."""
_NUMBER = re.compile(r"\s*-?\d+(\.\d*)?\s*")
_QRELS = ("qrels.tsv", "qrels/test.tsv", "qrels/*.tsv")


@dataclass
class _Scope:
    """The documents of a scope, ``None`` for all of the corpus, and its questions: id, record, documents cited."""

    documents: list[str] | None = None
    asked: list[tuple[str, Record, list[str]]] = field(default_factory=list)


def detect(source: Source) -> bool:
    return "_id" in source.first


def records(source: Source) -> Iterator[Record]:
    """Read the scopes of a folder; the corpus is held whole."""
    folder = source if source.path.is_dir() else replace(source, path=source.path.parent)
    corpus = {_id(record): record for _, record in _identified(_file(folder, "corpus.jsonl"))}
    of_scope: dict[str, list[str]] = {}
    for doc_id, record in corpus.items():
        of_scope.setdefault(str(record.get("scope") or ""), []).append(doc_id)
    scopes: dict[str, _Scope] = {}
    for file in folder.files(*FILES):
        _ask(folder, file, of_scope, scopes)
    if scopes.keys() & of_scope.keys():  # a memory of which nothing is asked is one still
        scopes |= {scope: _Scope(of_scope[scope]) for scope in of_scope if scope and scope not in scopes}
    for name, about in scopes.items():
        turns: dict[str, tuple[str, str]] = {}
        yield from _turns(folder, name, corpus, corpus if about.documents is None else about.documents, turns)
        for query, record, cited in about.asked:
            with folder.record(f"queries.jsonl: {query!r}", record):
                evidence = dict(turns[doc_id] for doc_id in cited if doc_id in turns)
                if lost := [doc_id for doc_id in cited if doc_id not in turns]:
                    found = f"{lost[0]!r}, which its scope does not hold"
                    folder.note(f"qrels: {query}", found, "dropped evidence")
                text = record.take("text", fields.name)
                about_it = {"scope": name, "query_id": record["query_id"], "question": text, "evidence": [*evidence]}
                kept = {key: record[key] for key in ("answer", "type", "timestamp", "rubric") if key in record}
                yield Record(about_it | kept | {"evidence_sessions": [*dict.fromkeys(evidence.values())]})


def _ask(folder: Source, file: Source, of_scope: dict[str, list[str]], scopes: dict[str, _Scope]) -> None:
    """Add the questions of a file to their scopes; a folder within names their kind."""
    own = replace(file, path=file.path.parent)
    kind = "" if own.path == folder.path else own.path.name
    evidence, scenes, names = _evidence(own), _scenes(own, folder), dict[tuple[str, ...], str]()
    for scene, members in scenes.items():
        names.setdefault(tuple(members), scene)
    for number, record in _identified(file):
        with file.record(f"line {number}", record):
            query, scope = _id(record), record.take("scope", fields.name, None)
            documents: list[str] | None = None
            if scope in of_scope:
                documents = of_scope[scope]
            elif scenes:
                documents = scenes.get(query) or scenes.get("_".join(query.split("_")[:2]))
                if documents is None:
                    raise Bad("_id", f"{query!r}, which has no scene in candidates.jsonl", "a scene for each question")
                scope = names[tuple(documents)]
            scope = scope or folder.path.resolve().name
            if scope in scopes and scopes[scope].documents != documents:  # folders may name their scenes alike
                scope = f"{kind}/{scope}"
            encoded = "/".join(id_part(part) for part in [kind, *query.split("/")] if part)
            record["query_id"] = query if "scope" in record else encoded  # written from a dataset, it is its id
            record["type"] = record.take("type", fields.name, kind.replace("_", "-") or "unspecified")
            scopes.setdefault(scope, _Scope(documents)).asked.append((query, record, evidence.pop(query, [])))
    for query in list(evidence)[:1]:
        what = f"{len(evidence)} questions that {file.path.name} does not hold ({query!r} …)"
        folder.note(f"{kind or own.path.name}: qrels", what, "ignored")


def _turns(
    folder: Source, scope: str, corpus: dict[str, Record], documents: Any, turns: dict[str, tuple[str, str]]
) -> Iterator[Record]:
    """Read the documents of a scope.

    :param turns: filled with the turn and the session of each document.
    """
    counts: dict[str, int] = {}
    for doc_id in documents:
        record = corpus.get(doc_id)
        if record is None:
            found = f"{doc_id!r}, which corpus.jsonl does not hold"
            folder.note(f"candidates.jsonl: {scope}", found, "ignored")
            continue
        with folder.record(f"corpus.jsonl: {doc_id!r}", record):
            session = record.take("session", fields.name, "s1")
            n = counts[session] = counts.get(session, 0) + 1
            session_id = f"{id_part(scope)}/{id_part(session)}"
            own = "scope" in record and doc_id.startswith(
                f"{id_part(scope)}/"
            )  # written from a dataset, whose id it is
            about = {"scope": scope, "session": session, "n": n, "id": doc_id if own else None, **_said(record)}
            about["timestamp"] = moment(record.take("timestamp", fields.time, (None, True))[0])
            turns[doc_id] = doc_id if own else f"{session_id}/{n}", session_id
            yield Record(about)


def _said(record: Record) -> dict[str, str | None]:
    """Give speaker, role, text and caption; a title stands before the text, as MTEB and LMEB join them."""
    text, caption = record.take("text", fields.text), record.take("caption", fields.text, None)
    speaker, role = record.take("speaker", fields.name, None), record.take("role", fields.name, "other")
    title = record.take("title", fields.text, "")
    text = f"{title} {text}".strip() if speaker is None else text.removesuffix(f" ({caption})")
    return {"sender": speaker or "document", "role": role, "text": text, "caption": caption}


def _id(record: Record) -> str:
    """Give the id; where both are there, LMEB means the one without an underscore."""
    return record.take("id" if record.get("id") is not None else "_id", fields.name)


def _identified(file: Source) -> Iterator[tuple[int, Record]]:
    """Stream lines whose id is a name and stands once."""
    seen: dict[str, int] = {}
    for number, record in lines(file):
        with file.record(f"line {number}", record):
            called = _id(record)
            if seen.setdefault(called, number) != number:
                raise Bad("_id", f"{called!r} again (first on line {seen[called]})", "an id of its own")
            yield number, record


def _file(folder: Source, name: str) -> Source:
    """Give a file of the folder, or of the one above."""
    for place in (folder.path, folder.path.resolve().parent):
        if (place / name).is_file():
            return replace(folder, path=place / name, name=name)
    folder.fail(f"holds no {name}, and the folder above it neither; a retrieval folder has one")


def _evidence(folder: Source) -> dict[str, list[str]]:
    """Read the qrels: the documents of each question whose score is above 0."""
    files = folder.files(*_QRELS)
    if len(files) != 1:
        there = f"{len(files)} files in qrels/ ({files[0].name} …) and no test.tsv" if files else "no qrels"
        folder.fail(f"holds {there}; expected qrels.tsv, qrels/test.tsv, or one .tsv in qrels/")
    judged: dict[str, list[str]] = {}
    with files[0].open() as stream:
        text = stream.read().decode("utf-8", "replace")
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter="\t"), 1):
        if not row or (number == 1 and not _NUMBER.fullmatch(row[-1])):
            continue
        with files[0].record(f"line {number}", row):
            if len(row) != 3 or not _NUMBER.fullmatch(row[2]):
                raise Bad("", show("\t".join(row)), "query-id, corpus-id and a score, with tabs between them")
            if float(row[2]) > 0:
                judged.setdefault(row[0], []).append(row[1])
    return judged


def _scenes(own: Source, folder: Source) -> dict[str, list[str]]:
    """Read the documents of each scene, from the folder of the questions or that of the corpus."""
    paths = [each.path / "candidates.jsonl" for each in (own, folder)]
    scenes: dict[str, list[str]] = {}
    for path in [path for path in paths if path.is_file()][:1]:
        file = replace(folder, path=path, name=path.name)
        for number, record in lines(file):
            with file.record(f"line {number}", record):
                scenes[record.take("scene_id", fields.name)] = record.take("candidate_doc_ids", fields.names)
    return scenes
