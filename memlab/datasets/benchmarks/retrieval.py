"""Retrieval folders as MTEB, BEIR and LMEB (Zhao et al., 2026) publish them.

====================  =============================================================================
``corpus.jsonl``      a document a line: ``_id`` (LMEB: ``id``), ``title``, ``text``; in the folder
                      or the one above
``queries.jsonl``     a question a line: ``_id`` (or ``id``), ``text``; in the folder, or in folders
                      below it, whose names are then the kinds of questions
``qrels.tsv``         query, document and score, with or without a line of names; or
                      ``qrels/test.tsv``, or the only ``.tsv`` of ``qrels/``. Scores are whole
                      numbers: from 1 the grade of evidence, 0 or less of what was judged and is
                      none. A line that stands twice counts once, with an issue
``candidates.jsonl``  where there is one: ``scene_id`` and ``candidate_doc_ids``; beside the corpus
                      or the questions
====================  =============================================================================

The tables of MTEB on the Hugging Face Hub are read too: ``corpus/*.parquet``, ``queries/*.parquet``
and ``qrels/*.parquet`` (or ``data/`` or ``default/``), with the same columns; of several splits
``test`` is taken.

A scope is the documents that a question is asked of: those of its scene, else the whole corpus. A
question's scene has its id, or as in LMEB the first two parts of it (``a_b`` of ``a_b_7``). A
document that stands in several scopes becomes a turn of each. A scope is one session, unless a
document says more: ``scope``, ``session``, ``speaker``, ``role``, ``timestamp`` and ``caption`` may
stand beside the fields of the layout, and ``scope``, ``answer`` and ``type`` beside those of
questions.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from memlab.datasets import fields
from memlab.datasets.fields import BadField, Record, describe_value
from memlab.datasets.message_identity import turn_id, turn_record
from memlab.datasets.source import Source
from memlab.records import encode_id_part

_KEYS = {"_id", "text"}
FILES = ("queries.jsonl", "*/queries.jsonl", "queries.parquet", "queries/*.parquet")
"""Where the questions of a folder are."""
_NUMBER = re.compile(r"\s*-?\d+(\.\d*)?\s*")
_KEPT = ("answer", "type", "timestamp", "rubric")
_QRELS = ("qrels.tsv", "qrels/test.tsv", "qrels/*.tsv")
_CORPUS_TABLES = ("corpus.parquet", "corpus/*.parquet")
_QREL_TABLES = ("qrels.parquet", "qrels/*.parquet", "data/*.parquet", "default/*.parquet")
_QREL_COLUMNS = ("query-id", "corpus-id", "score")


@dataclass
class _Scope:
    """The documents of a scope, ``None`` for all of the corpus, and its questions: id, record,
    grades of documents.
    """

    documents: list[str] | None = None
    asked: list[tuple[str, Record, dict[str, int]]] = field(default_factory=list)


def is_retrieval_file(file: Source) -> bool:
    """Say whether a file holds documents or questions of a retrieval folder."""
    return file.first_keys >= _KEYS


def read_retrieval_folder(source: Source) -> Iterator[Record]:
    """Read the scopes of a folder; the corpus is held whole."""
    folder = source if source.path.is_dir() else replace(source, path=source.path.parent)
    file = _find_file("corpus.jsonl", folder, replace(folder, path=folder.path.resolve().parent))
    documents = [file] if file is not None else folder.files(*_CORPUS_TABLES)
    if not documents:
        folder.fail(
            "holds no corpus.jsonl, and the folder above it neither; a retrieval folder has one"
        )
    corpus = {_read_id(record): record for _, record in _stream_unique_records(*documents)}
    of_scope: dict[str, list[str]] = {}
    for doc_id, record in corpus.items():
        of_scope.setdefault(str(record.get("scope") or ""), []).append(doc_id)
    scopes: dict[str, _Scope] = {}
    asked = folder.files(*FILES)
    if any(file.is_parquet for file in asked):
        _add_questions(folder, folder, asked, of_scope, scopes)
    else:
        for file in asked:
            own = replace(file, path=file.path.parent)
            _add_questions(folder, own, [file], of_scope, scopes)
    if scopes.keys() & of_scope.keys():  # a memory of which nothing is asked is one still
        scopes |= {
            scope: _Scope(of_scope[scope]) for scope in of_scope if scope and scope not in scopes
        }
    for name, about in scopes.items():
        turns, counts = dict[str, Record](), Counter[str]()
        for doc_id in corpus if about.documents is None else about.documents:
            if doc_id not in corpus:
                what = f"{doc_id!r}, which corpus.jsonl does not hold"
                folder.note(f"candidates.jsonl: {name}", what, "ignored")
                continue
            with folder.record(f"corpus.jsonl: {doc_id!r}", corpus[doc_id]):
                turns[doc_id] = _read_document_turn(name, doc_id, corpus[doc_id], counts)
        yield from turns.values()
        for query, record, grades in about.asked:
            with folder.record(f"queries.jsonl: {query!r}", record):
                _note_lost(folder, query, grades, turns)
                judged = [
                    {"id": turns[doc_id]["id"] or turn_id(turns[doc_id]), "grade": grade}
                    for doc_id, grade in grades.items()
                    if doc_id in turns
                ]
                text = record.take("text", fields.check_name)
                said = {
                    "scope": name,
                    "query_id": record["query_id"],
                    "question": text,
                    "evidence": judged,
                }
                yield Record(said | {key: record[key] for key in _KEPT if key in record})


def _note_lost(
    folder: Source, query: str, grades: dict[str, int], turns: dict[str, Record]
) -> None:
    """Note the documents that were judged for a question and that its scope does not hold."""
    lost = {doc_id: grade for doc_id, grade in grades.items() if doc_id not in turns}
    evidence = [doc_id for doc_id, grade in lost.items() if grade > 0]
    if evidence:
        what = f"{evidence[0]!r}, which its scope does not hold"
        folder.note(f"qrels: {query}", what, "dropped evidence")
    if len(lost) > len(evidence):
        what = (
            f"{len(lost) - len(evidence)} documents of grade 0 or less that its scope does not hold"
        )
        folder.note(f"qrels: {query}", what, "dropped judgements")


def _add_questions(
    folder: Source,
    own: Source,
    files: list[Source],
    of_scope: dict[str, list[str]],
    scopes: dict[str, _Scope],
) -> None:
    """Add the questions of a file, or of the parts of a table, to their scopes.

    A folder within names their kind.

    :param own: the folder of the questions, which holds their qrels.
    """
    file = files[0]
    kind = "" if own.path == folder.path else own.path.name
    judged, scenes, names = (
        _read_qrels(own),
        _read_scenes(own, folder),
        dict[tuple[str, ...], str](),
    )
    for scene, members in scenes.items():
        names.setdefault(tuple(members), scene)
    for number, record in _stream_unique_records(*files):
        with file.record(f"line {number}", record):
            query, scope = _read_id(record), record.take("scope", fields.check_name, None)
            documents: list[str] | None = None
            if scope in of_scope:
                documents = of_scope[scope]
            elif scenes:
                documents = scenes.get(query) or scenes.get("_".join(query.split("_")[:2]))
                if documents is None:
                    what = f"{query!r}, which has no scene in candidates.jsonl"
                    raise BadField("_id", what, "a scene for each question")
                scope = names[tuple(documents)]
            scope = scope or folder.path.resolve().name
            if (
                scope in scopes and scopes[scope].documents != documents
            ):  # folders may name their scenes alike
                scope = f"{kind}/{scope}"
            encoded = "/".join(encode_id_part(part) for part in [kind, *query.split("/")] if part)
            record["query_id"] = (
                query if "scope" in record else encoded
            )  # where its scope stands beside it, it is a dataset's own
            record["type"] = record.take(
                "type", fields.check_name, kind.replace("_", "-") or "unspecified"
            )
            scopes.setdefault(scope, _Scope(documents)).asked.append(
                (query, record, judged.pop(query, {}))
            )
    if judged:
        first = next(iter(judged))
        what = f"{len(judged)} questions that {file.path.name} does not hold ({first!r} …)"
        folder.note(f"{kind or own.path.name}: qrels", what, "ignored")


def _read_document_turn(scope: str, doc_id: str, record: Record, counts: Counter[str]) -> Record:
    """Read a document as a turn; a title stands before the text, as MTEB and LMEB join them.

    :param counts: the turns that each session has.
    """
    session = record.take("session", fields.check_name, "s1")
    counts[session] += 1
    text, caption = (
        record.take("text", fields.check_text),
        record.take("caption", fields.check_text, None),
    )
    speaker, role = (
        record.take("speaker", fields.check_name, None),
        record.take("role", fields.check_name, "other"),
    )
    title = record.take("title", fields.check_text, "")
    text = f"{title} {text}".strip() if speaker is None else text.removesuffix(f" ({caption})")
    own = "scope" in record and doc_id.startswith(
        f"{encode_id_part(scope)}/"
    )  # of a dataset's own turn, it is its id
    more = {"id": doc_id if own else None, "sender": speaker or "document", "caption": caption}
    time = record.take("timestamp", fields.parse_time, None)
    return turn_record(scope, session, counts[session], role, text, timestamp=time, **more)


def _read_id(record: Record) -> str:
    """Give the id; where both are there, LMEB means the one without an underscore."""
    return record.take("id" if record.get("id") is not None else "_id", fields.check_name)


def _stream_unique_records(*files: Source) -> Iterator[tuple[int, Record]]:
    """Stream lines, or the rows of the parts of a table, whose id is a name and stands once."""
    seen: dict[str, str] = {}
    for file in files:
        lines = file.values() if file.is_parquet else file.stream_json_lines()
        for number, raw in lines:
            with file.record(f"line {number}", raw):
                record = Record(raw)
                called, place = _read_id(record), f"{file.name} {number}"
                if seen.setdefault(called, place) != place:
                    where = seen[called].removeprefix(f"{file.name} ")
                    raise BadField(
                        "_id", f"{called!r} again (first on line {where})", "an id of its own"
                    )
                yield number, record


def _read_qrels(folder: Source) -> dict[str, dict[str, int]]:
    """Read the qrels: the grades of the documents that were judged for each question."""
    files, tables = folder.files(*_QRELS), folder.files(*_QREL_TABLES)
    if not files and tables:
        return _read_qrel_tables(folder, tables)
    if len(files) != 1:
        there = (
            f"{len(files)} files in qrels/ ({files[0].name} …) and no test.tsv"
            if files
            else "no qrels"
        )
        folder.fail(f"holds {there}; expected qrels.tsv, qrels/test.tsv, or one .tsv in qrels/")
    with files[0].open() as stream:
        text = stream.read().decode("utf-8", "replace")
    rows = list(enumerate(csv.reader(text.splitlines(), delimiter="\t"), 1))
    if rows and rows[0][1] and not _NUMBER.fullmatch(rows[0][1][-1]):
        rows = rows[1:]
    judged: dict[str, dict[str, int]] = {}
    _add_judgements(files[0], rows, judged)
    return judged


def _read_qrel_tables(folder: Source, tables: list[Source]) -> dict[str, dict[str, int]]:
    """Read the qrels of a table, those of the split ``test`` where it has several."""
    splits = {table.path.name.partition("-")[0].removesuffix(".parquet") for table in tables}
    if len(splits) > 1:
        tables = [table for table in tables if table.path.name.startswith("test")]
        if not tables:
            folder.fail(f"holds qrels of {', '.join(sorted(splits))}, and none of test")
    judged: dict[str, dict[str, int]] = {}
    for table in tables:
        frame = table.read_table()
        wanted = [name for name in _QREL_COLUMNS if name in frame.columns] or frame.columns[:3]
        rows = [[str(cell) for cell in row] for row in frame.select(wanted).iter_rows()]
        _add_judgements(table, list(enumerate(rows, 1)), judged)
    return judged


def _add_judgements(
    file: Source, rows: list[tuple[int, list[str]]], judged: dict[str, dict[str, int]]
) -> None:
    """Add the grades of the documents of each question, of rows with the numbers of their lines."""
    again = 0
    for number, row in rows:
        if not row:
            continue
        with file.record(f"line {number}", row):
            query, doc_id, grade = _read_judgement(row)
            grades = judged.setdefault(query, {})
            again += doc_id in grades
            if grades.setdefault(doc_id, grade) != grade:
                found = f"{doc_id!r} again for {query!r}, graded {grade} and {grades[doc_id]}"
                raise BadField("", found, "one grade a document")
    if again:
        file.note(file.path.name, f"{again} lines that stand twice", "counted once")


def _read_judgement(row: list[str]) -> tuple[str, str, int]:
    """Read a line of qrels: question, document, grade."""
    if len(row) != 3 or not _NUMBER.fullmatch(row[2]):
        expected = "query-id, corpus-id and a score, with tabs between them"
        raise BadField("", describe_value("\t".join(row)), expected)
    return row[0], row[1], fields.check_grade(float(row[2]), "score")


def _read_scenes(own: Source, folder: Source) -> dict[str, list[str]]:
    """Read the documents of each scene, from the folder of the questions or that of the corpus."""
    file, scenes = _find_file("candidates.jsonl", own, folder), dict[str, list[str]]()
    if file is None:
        return scenes
    for number, raw in file.stream_json_lines():
        with file.record(f"line {number}", raw):
            record = Record(raw)
            scenes[record.take("scene_id", fields.check_name)] = record.take(
                "candidate_doc_ids", fields.check_names
            )
    return scenes


def _find_file(name: str, *folders: Source) -> Source | None:
    """Find a file in the first of some folders that has it."""
    found = (folder for folder in folders if (folder.path / name).is_file())
    return next((replace(folder, path=folder.path / name, name=name) for folder in found), None)
