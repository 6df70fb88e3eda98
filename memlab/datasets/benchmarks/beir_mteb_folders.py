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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from memlab.datasets import record_fields
from memlab.datasets.message_identity import make_turn_record, turn_id_of_record
from memlab.datasets.record_fields import BadField, Record, describe_value
from memlab.datasets.record_sources import Source
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
class _DocumentsAndQuestions:
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
    folder = source
    if not source.path.is_dir():
        folder = replace(source, path=source.path.parent)
    corpus = _read_documents_by_id(folder)
    doc_ids_by_stated_scope: dict[str, list[str]] = {}
    for doc_id, record in corpus.items():
        doc_ids_by_stated_scope.setdefault(str(record.get("scope") or ""), []).append(doc_id)
    for scope_name, scope in _read_questions_of_all_scopes(folder, doc_ids_by_stated_scope).items():
        turns = _make_turn_by_doc_id_and_note_unknown(folder, scope_name, scope, corpus)
        yield from turns.values()
        for query_id, record, grades in scope.asked:
            with folder.record(f"queries.jsonl: {query_id!r}", record):
                _note_judgements_out_of_scope_as_issues(folder, query_id, grades, turns)
                yield _make_question_record(scope_name, record, grades, turns)


def _read_documents_by_id(folder: Source) -> dict[str, Record]:
    """Read the documents by their ids, of the folder or of the one above it."""
    folder_above = replace(folder, path=folder.path.resolve().parent)
    corpus_file = _find_file_in_folders("corpus.jsonl", folder, folder_above)
    corpus_files = [corpus_file] if corpus_file is not None else folder.files(*_CORPUS_TABLES)
    if not corpus_files:
        folder.fail(
            "holds no corpus.jsonl, and the folder above it neither; a retrieval folder has one"
        )
    return {
        _read_document_or_query_id(record): record
        for _, record in _stream_numbered_unique_records(*corpus_files)
    }


def _read_questions_of_all_scopes(
    folder: Source, doc_ids_by_stated_scope: dict[str, list[str]]
) -> dict[str, _DocumentsAndQuestions]:
    """Read the questions of all scopes; each file of them may lie in a folder of its own."""
    scopes: dict[str, _DocumentsAndQuestions] = {}
    question_files = folder.files(*FILES)
    if any(file.is_parquet for file in question_files):
        _add_questions_to_scopes(folder, folder, question_files, doc_ids_by_stated_scope, scopes)
    else:
        for file in question_files:
            file_folder = replace(file, path=file.path.parent)
            _add_questions_to_scopes(folder, file_folder, [file], doc_ids_by_stated_scope, scopes)
    if scopes.keys().isdisjoint(doc_ids_by_stated_scope):
        return scopes
    # A memory of which nothing is asked is one still.
    for scope_name, doc_ids in doc_ids_by_stated_scope.items():
        if scope_name:
            scopes.setdefault(scope_name, _DocumentsAndQuestions(doc_ids))
    return scopes


def _make_turn_by_doc_id_and_note_unknown(
    folder: Source,
    scope_name: str,
    scope: _DocumentsAndQuestions,
    document_by_id: dict[str, Record],
) -> dict[str, Record]:
    """Read the documents of a scope as turns; one without candidates has the whole corpus."""
    doc_ids: Iterable[str] = document_by_id
    if scope.documents is not None:
        doc_ids = scope.documents
    turns: dict[str, Record] = {}
    turn_counts = Counter[str]()
    for doc_id in doc_ids:
        if doc_id not in document_by_id:
            unknown_text = f"{doc_id!r}, which corpus.jsonl does not hold"
            folder.note(f"candidates.jsonl: {scope_name}", unknown_text, "ignored")
            continue
        with folder.record(f"corpus.jsonl: {doc_id!r}", document_by_id[doc_id]):
            turns[doc_id] = _count_and_make_next_turn(
                scope_name, doc_id, document_by_id[doc_id], turn_counts
            )
    return turns


def _make_question_record(
    scope_name: str,
    query: Record,
    grade_by_document: dict[str, int],
    turn_by_document: dict[str, Record],
) -> Record:
    judged_turns = []
    for doc_id, grade in grade_by_document.items():
        if doc_id in turn_by_document:
            own_id = turn_by_document[doc_id]["id"] or turn_id_of_record(turn_by_document[doc_id])
            judged_turns.append({"id": own_id, "grade": grade})
    question = Record(
        {
            "scope": scope_name,
            "query_id": query["query_id"],
            "question": query.read_field("text", record_fields.check_name),
            "evidence": judged_turns,
        }
    )
    for kept_key in _KEPT:
        if kept_key in query:
            question[kept_key] = query[kept_key]
    return question


def _note_judgements_out_of_scope_as_issues(
    folder: Source,
    query_id: str,
    grade_by_document: dict[str, int],
    turn_by_document: dict[str, Record],
) -> None:
    """Note the documents that were judged for a question and that its scope does not hold."""
    lost_grades = {
        doc_id: grade
        for doc_id, grade in grade_by_document.items()
        if doc_id not in turn_by_document
    }
    lost_evidence = [doc_id for doc_id, grade in lost_grades.items() if grade > 0]
    if lost_evidence:
        lost_text = f"{lost_evidence[0]!r}, which its scope does not hold"
        folder.note(f"qrels: {query_id}", lost_text, "dropped evidence")
    if len(lost_grades) > len(lost_evidence):
        lost_text = (
            f"{len(lost_grades) - len(lost_evidence)} documents of grade 0 or less that its scope "
            "does not hold"
        )
        folder.note(f"qrels: {query_id}", lost_text, "dropped judgements")


def _add_questions_to_scopes(
    folder: Source,
    file_folder: Source,
    question_files: list[Source],
    doc_ids_by_stated_scope: dict[str, list[str]],
    scopes: dict[str, _DocumentsAndQuestions],
) -> None:
    """Add the questions of a file, or of the parts of a table, to their scopes.

    A folder within names their kind.

    :param file_folder: the folder of the questions, which holds their qrels.
    """
    first_file = question_files[0]
    folder_kind = ""
    if file_folder.path != folder.path:
        folder_kind = file_folder.path.name
    grades_by_query = _read_grade_by_query_and_document(file_folder)
    scenes = _read_doc_ids_by_scene(file_folder, folder)
    scene_by_members = dict[tuple[str, ...], str]()
    for scene, scene_members in scenes.items():
        scene_by_members.setdefault(tuple(scene_members), scene)
    for number, record in _stream_numbered_unique_records(*question_files):
        with first_file.record(f"line {number}", record):
            query_id = _read_document_or_query_id(record)
            scope = record.read_field("scope", record_fields.check_name, None)
            documents: list[str] | None = None
            if scope in doc_ids_by_stated_scope:
                documents = doc_ids_by_stated_scope[scope]
            elif scenes:
                documents = scenes.get(query_id) or scenes.get("_".join(query_id.split("_")[:2]))
                if documents is None:
                    fault_text = f"{query_id!r}, which has no scene in candidates.jsonl"
                    raise BadField("_id", fault_text, "a scene for each question")
                scope = scene_by_members[tuple(documents)]
            scope = scope or folder.path.resolve().name
            # Folders may give their scenes the same name.
            if scope in scopes and scopes[scope].documents != documents:
                scope = f"{folder_kind}/{scope}"
            # Where its scope stands beside it, the id is a dataset's own.
            record["query_id"] = query_id
            if "scope" not in record:
                id_parts = filter(None, [folder_kind, *query_id.split("/")])
                record["query_id"] = "/".join(map(encode_id_part, id_parts))
            usual_type = folder_kind.replace("_", "-") or "unspecified"
            record["type"] = record.read_field("type", record_fields.check_name, usual_type)
            grades = grades_by_query.pop(query_id, {})
            scopes.setdefault(scope, _DocumentsAndQuestions(documents)).asked.append(
                (query_id, record, grades)
            )
    if grades_by_query:
        first_unknown = next(iter(grades_by_query))
        fault_text = (
            f"{len(grades_by_query)} questions that {first_file.path.name} does not hold "
            f"({first_unknown!r} …)"
        )
        folder.note(f"{folder_kind or file_folder.path.name}: qrels", fault_text, "ignored")


def _count_and_make_next_turn(
    scope: str, doc_id: str, document: Record, turn_count_by_session: Counter[str]
) -> Record:
    """Read a document as a turn; a title stands before the text, as MTEB and LMEB join them.

    :param turn_count_by_session: the turns that each session has.
    """
    session = document.read_field("session", record_fields.check_name, "s1")
    turn_count_by_session[session] += 1
    text = document.read_field("text", record_fields.check_text)
    caption = document.read_field("caption", record_fields.check_text, None)
    speaker = document.read_field("speaker", record_fields.check_name, None)
    role = document.read_field("role", record_fields.check_name, "other")
    title = document.read_field("title", record_fields.check_text, "")
    text = f"{title} {text}".strip() if speaker is None else text.removesuffix(f" ({caption})")
    turn_fields = {"id": None, "sender": speaker or "document", "caption": caption}
    # The id of a dataset's own turn is kept.
    if "scope" in document and doc_id.startswith(f"{encode_id_part(scope)}/"):
        turn_fields["id"] = doc_id
    time = document.read_field("timestamp", record_fields.parse_time, None)
    return make_turn_record(
        scope, session, turn_count_by_session[session], role, text, timestamp=time, **turn_fields
    )


def _read_document_or_query_id(record: Record) -> str:
    """Give the id; where both are there, LMEB means the one without an underscore."""
    if record.get("id") is not None:
        return record.read_field("id", record_fields.check_name)
    return record.read_field("_id", record_fields.check_name)


def _stream_numbered_unique_records(*files: Source) -> Iterator[tuple[int, Record]]:
    """Stream lines, or the rows of the parts of a table, whose id is a name and stands once."""
    place_by_id: dict[str, str] = {}
    for file in files:
        numbered_values = file.values() if file.is_parquet else file.stream_numbered_json_lines()
        for number, raw_record in numbered_values:
            with file.record(f"line {number}", raw_record):
                record = Record(raw_record)
                record_id = _read_document_or_query_id(record)
                record_place = f"{file.name} {number}"
                if place_by_id.setdefault(record_id, record_place) != record_place:
                    first_place = place_by_id[record_id].removeprefix(f"{file.name} ")
                    raise BadField(
                        "_id",
                        f"{record_id!r} again (first on line {first_place})",
                        "an id of its own",
                    )
                yield number, record


def _read_grade_by_query_and_document(folder: Source) -> dict[str, dict[str, int]]:
    """Read the qrels: the grades of the documents that were judged for each question."""
    qrel_files = folder.files(*_QRELS)
    tables = folder.files(*_QREL_TABLES)
    if not qrel_files and tables:
        return _read_grades_of_test_split_tables(folder, tables)
    if len(qrel_files) != 1:
        fault_text = "no qrels"
        if qrel_files:
            first_name = qrel_files[0].name
            fault_text = f"{len(qrel_files)} files in qrels/ ({first_name} …) and no test.tsv"
        folder.fail(
            f"holds {fault_text}; expected qrels.tsv, qrels/test.tsv, or one .tsv in qrels/"
        )
    with qrel_files[0].open() as stream:
        qrel_text = stream.read().decode("utf-8", "replace")
    qrel_rows = list(enumerate(csv.reader(qrel_text.splitlines(), delimiter="\t"), 1))
    if qrel_rows and qrel_rows[0][1] and not _NUMBER.fullmatch(qrel_rows[0][1][-1]):
        qrel_rows = qrel_rows[1:]
    grades_by_query: dict[str, dict[str, int]] = {}
    _add_grades_and_note_repeated_rows(qrel_files[0], qrel_rows, grades_by_query)
    return grades_by_query


def _read_grades_of_test_split_tables(
    folder: Source, qrel_tables: list[Source]
) -> dict[str, dict[str, int]]:
    """Read the qrels of a table, those of the split ``test`` where it has several."""
    split_names = {
        table.path.name.partition("-")[0].removesuffix(".parquet") for table in qrel_tables
    }
    if len(split_names) > 1:
        qrel_tables = [table for table in qrel_tables if table.path.name.startswith("test")]
        if not qrel_tables:
            folder.fail(f"holds qrels of {', '.join(sorted(split_names))}, and none of test")
    grades_by_query: dict[str, dict[str, int]] = {}
    for table in qrel_tables:
        qrel_frame = table.read_table()
        known_columns = [name for name in _QREL_COLUMNS if name in qrel_frame.columns]
        qrel_columns = known_columns or qrel_frame.columns[:3]
        numbered_rows = []
        for number, row in enumerate(qrel_frame.select(qrel_columns).iter_rows(), 1):
            numbered_rows.append((number, list(map(str, row))))
        _add_grades_and_note_repeated_rows(table, numbered_rows, grades_by_query)
    return grades_by_query


def _add_grades_and_note_repeated_rows(
    file: Source,
    numbered_rows: list[tuple[int, list[str]]],
    grades_by_query: dict[str, dict[str, int]],
) -> None:
    """Add the grades of the documents of each question, of rows with the numbers of their lines."""
    n_repeated = 0
    for number, row in numbered_rows:
        if not row:
            continue
        with file.record(f"line {number}", row):
            query_id, doc_id, grade = _parse_query_document_and_grade(row)
            query_grades = grades_by_query.setdefault(query_id, {})
            n_repeated += doc_id in query_grades
            if query_grades.setdefault(doc_id, grade) != grade:
                fault_text = (
                    f"{doc_id!r} again for {query_id!r}, graded {grade} and {query_grades[doc_id]}"
                )
                raise BadField("", fault_text, "one grade a document")
    if n_repeated:
        file.note(file.path.name, f"{n_repeated} lines that stand twice", "counted once")


def _parse_query_document_and_grade(qrel_row: list[str]) -> tuple[str, str, int]:
    """Read a line of qrels: question, document, grade."""
    if len(qrel_row) != 3 or not _NUMBER.fullmatch(qrel_row[2]):
        expected = "query-id, corpus-id and a score, with tabs between them"
        raise BadField("", describe_value("\t".join(qrel_row)), expected)
    return qrel_row[0], qrel_row[1], record_fields.check_grade(float(qrel_row[2]), "score")


def _read_doc_ids_by_scene(question_folder: Source, corpus_folder: Source) -> dict[str, list[str]]:
    """Read the documents of each scene, from the folder of the questions or that of the corpus."""
    scene_file = _find_file_in_folders("candidates.jsonl", question_folder, corpus_folder)
    members_by_scene: dict[str, list[str]] = {}
    if scene_file is None:
        return members_by_scene
    for number, raw_scene in scene_file.stream_numbered_json_lines():
        with scene_file.record(f"line {number}", raw_scene):
            record = Record(raw_scene)
            doc_ids = record.read_field("candidate_doc_ids", record_fields.check_names)
            members_by_scene[record.read_field("scene_id", record_fields.check_name)] = doc_ids
    return members_by_scene


def _find_file_in_folders(file_name: str, *folders: Source) -> Source | None:
    """Find a file in the first of some folders that has it."""
    for folder in folders:
        path = folder.path / file_name
        if path.is_file():
            return replace(folder, path=path, name=file_name)
    return None
