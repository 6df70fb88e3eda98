"""Search for one question: the messages that answer it best, as a frame."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import polars as pl

from memlab import embed, pipelines
from memlab.config import settings
from memlab.embed.contextual_headers import header_fields_or_empty
from memlab.embed.encoder_wrapper import token_encoder_of
from memlab.errors import DataError, check_at_least, explained
from memlab.found_messages import HIT_COLUMNS, FoundMessages
from memlab.records import Dataset, Run, resolve_scope_name
from memlab.records.dataset import refuse_frame
from memlab.retrieve import DEFAULT, Bench, large_scope_candidates
from memlab.retrieve.bench_cache import BenchCache
from memlab.terminal_text import choose_name_or_only_one

if TYPE_CHECKING:
    from memlab.llm import Service
    from memlab.store import MemoryStore

_log = logging.getLogger("memlab")
_benches: WeakKeyDictionary[Dataset, dict[tuple[object, ...], Bench]] = WeakKeyDictionary()
_store_benches = BenchCache()
_ZERO_SCORE = 1e-6  # a score of zero, after ties were broken, is below


@explained
def search(
    data: Dataset | MemoryStore | str | PathLike[str],
    question: str,
    *,
    scope: str | None = None,
    k: int = 10,
    pipeline: str | None = None,
    encoder: str = "settings",
    history: Sequence[Any] = (),
    service: str | Service | None = "recorded",
) -> pl.DataFrame:
    """Find the messages that answer a question; warns where no message matches.

    :param data: a dataset, or the path of a file that :func:`memlab.datasets.load` reads, which is
        encoded once; or a store, whose last ingested dataset is asked.
    :param scope: whose memory is asked, by its id or its name; all of them by default.
    :param k: how many messages at most.
    :param pipeline: :data:`memlab.retrieve.DEFAULT` by default.
    :param encoder: see :func:`memlab.embed.load`; by default that of the settings, as the
        contextual header is.
    :param history: the messages before the question, which :func:`memlab.conversation.rewrite`
        makes stand alone.
    :param service: the model that does so.
    :returns: ``rank`` (from 1), ``score``, ``time``, ``speaker``, ``text``, ``session_id`` and
        ``turn_id``. It prints as lines to read; ``write_csv`` and the like give all of it.
    :raises DataError: for a question without a word, or an unknown scope.

    >>> import memlab
    >>> data = memlab.sample()
    >>> question = "What did the bookcase cost?"
    >>> found = memlab.search(data, question, scope="owen", k=3, pipeline="bm25")
    >>> found.height, found.columns[:4]
    (3, ['rank', 'score', 'time', 'speaker'])
    """
    check_at_least(1, k=k)
    refuse_frame(data, "search: data")
    stages = pipelines.pipeline(pipeline or DEFAULT)
    stages.check_services_and_models()
    if isinstance(data, str | PathLike):
        data = _load_or_reuse_dataset_of_path(data)
    if len(history):
        from memlab.conversation import rewrite

        question = rewrite(question, history=history, service=service)
    encoder = embed.encoder_name(encoder)
    if isinstance(data, Dataset):
        bench = _cached_bench_of_dataset(data, question, scope, encoder)
    else:
        bench = _new_or_cached_bench_of_store(data, question, scope, encoder)
    hits = hit_rows(stages.run(bench, level="turn").top(k), bench)
    if hits.is_empty():
        place = bench.queries["scope"][0] or "any scope"
        _log.warning("no message of %s matches %r", place, question)
    elif not has_turn_sharing_question_word(bench):
        _log.warning("no message shares a word with %r: these are the nearest by meaning", question)
    return FoundMessages(hits, question=question, pipeline=str(stages))


def _cached_bench_of_dataset(
    data: Dataset, question: str, scope: str | None, encoder: str
) -> Bench:
    """Give the bench of a question to a dataset, which is encoded once."""
    chosen_scope = _choose_scope_name_or_empty_for_all(data.scopes, scope)
    question_row = make_checked_question_frame(question, chosen_scope)
    settings_in_force = settings()[0]
    bench_key = (chosen_scope, encoder, settings_in_force.header, settings_in_force.token_encoder)
    benches = _benches.setdefault(data, {})
    if bench_key not in benches:
        scope_data = join_scopes_into_one(data)
        if chosen_scope:
            scope_data = data.take([chosen_scope])
        benches[bench_key] = Bench.of(scope_data, encoder=encoder)
    return benches[bench_key].with_queries(question_row)


def _new_or_cached_bench_of_store(
    store: MemoryStore, question: str, scope: str | None, encoder: str
) -> Bench:
    """Give the bench of a question to a store; that of a scope which is not large is kept."""
    dataset_name = _choose_dataset_name(store)
    scope_sizes = store.search.count_turns_by_scope(dataset_name)
    chosen_scope = _choose_scope_name_or_empty_for_all([*scope_sizes], scope)
    question_row = make_checked_question_frame(question, chosen_scope)
    loaded_encoder = embed.load(encoder)
    if scope_sizes.get(chosen_scope, 0) >= large_scope_candidates.LARGE:
        return question_bench(store, dataset_name, question_row, encoder=loaded_encoder)
    return _cached_scope_bench(store, dataset_name, chosen_scope, loaded_encoder).with_queries(
        question_row
    )


@lru_cache(maxsize=4)
def _load_dataset_of_file_state(path: str, modified_and_size: tuple[int, int]) -> Dataset:
    from memlab import datasets

    return datasets.load(path)


def _load_or_reuse_dataset_of_path(path: str | PathLike[str]) -> Dataset:
    """Load the dataset of a path; a file that has not changed is read once in a process."""
    file_path = Path(path)
    if not file_path.is_file():
        from memlab import datasets

        return datasets.load(file_path)
    file_state = file_path.stat()
    return _load_dataset_of_file_state(
        str(file_path.resolve()), (file_state.st_mtime_ns, file_state.st_size)
    )


def make_checked_question_frame(question: str, scope: str) -> pl.DataFrame:
    """Give a question of a scope as a frame.

    :raises DataError: for what is no valid text, or holds no word.
    """
    try:
        question.encode()
    except UnicodeEncodeError as error:
        fault = f"{question[error.start]!r} at {error.start}"
        raise DataError(
            f"the question is not valid text: {fault}; write it in the terminal's encoding"
        ) from None
    if not any(map(str.isalnum, question)):
        raise DataError(f"the question {question!r} holds no word; ask for something that was said")
    return pl.DataFrame({"scope": [scope], "text": [question]})


def _choose_dataset_name(store: MemoryStore) -> str:
    """Give the default dataset of a store, or the only one, for which no note is read."""
    dataset_names = store.datasets()["name"].to_list()
    chosen_name = None
    if len(dataset_names) > 1:
        chosen_name = store.chosen()
    return choose_name_or_only_one(
        dataset_names, chosen_name, "dataset", "memlab ingest FILE fills it"
    )


def _choose_scope_name_or_empty_for_all(scope_names: list[str], wanted_name: str | None) -> str:
    """Give the scope that is named, or the only one; of several all, whose name is empty."""
    if wanted_name is None and len(scope_names) > 1:
        return ""
    if wanted_name in scope_names:
        return wanted_name  # An id, as a dataset lists them, before a name that looks like one.
    if wanted_name:
        wanted_name = resolve_scope_name(wanted_name, scope_names)
    return choose_name_or_only_one(scope_names, wanted_name, "scope", "none")


def join_scopes_into_one(data: Dataset) -> Dataset:
    """Make all scopes one memory, whose name is empty."""
    nameless = pl.lit("").alias("scope")
    turns = data.turns.with_columns(nameless)
    return replace(data, turns=turns, sessions=data.sessions.with_columns(nameless))


def question_bench(
    store: MemoryStore,
    dataset_name: str,
    question_row: pl.DataFrame,
    *,
    encoder: embed.Encoder,
    language: str | None = None,
) -> Bench:
    """Make the bench of one question to a scope of a store; for a large scope, of candidates.

    :param question_row: one row of ``scope``, empty for all of them as one, and ``text``.
    :param encoder: one with a header reads the whole scope, as indexes hold turns without one.
    """
    scope = question_row["scope"][0]
    if not header_fields_or_empty(encoder) and large_scope_candidates.is_scope_large_and_indexed(
        store, dataset_name, scope, encoder
    ):
        if not language:
            language = store.datasets().filter(name=dataset_name)["language"][0] or "en"
        return large_scope_candidates.read_candidate_bench(
            store, dataset_name, question_row, encoder=encoder, language=language
        )
    return _make_scope_bench(store, dataset_name, scope, encoder, language).with_queries(
        question_row
    )


def _cached_scope_bench(
    store: MemoryStore, dataset_name: str, scope: str, encoder: embed.Encoder
) -> Bench:
    """Give the bench of a whole scope: that of the question before, if nothing changed since."""
    from memlab.store.table_states import read_table_states

    database = store.database
    token_encoder = token_encoder_of(encoder)
    encoder_keys = [encoder.identity.key, header_fields_or_empty(encoder)]
    if token_encoder is not None:
        encoder_keys.append(token_encoder.identity.key)
    bench_key = (database.uri, str(database.pinned), dataset_name, scope, *encoder_keys)
    tables_state = read_table_states(database, "turns", "sessions", "datasets")
    return _store_benches.get_or_make(
        bench_key, tables_state, partial(_make_scope_bench, store, dataset_name, scope, encoder)
    )


def _make_scope_bench(
    store: MemoryStore,
    dataset_name: str,
    scope: str,
    encoder: embed.Encoder,
    language: str | None = None,
) -> Bench:
    """Make the bench of a whole scope, without questions of ours."""
    scope_names = None
    if scope:
        scope_names = [scope]
    scope_data = store.dataset(dataset_name, scopes=scope_names)
    if not scope:
        scope_data = join_scopes_into_one(scope_data)
    if language:
        scope_data = replace(scope_data, language=language)
    return Bench.of(scope_data, encoder=encoder, store=store, ingest=False)


def hit_rows(run: Run, bench: Bench) -> pl.DataFrame:
    """Give the ranking of one question with the texts and times of its turns or sessions, without
    non-matches.

    A turn without a time has that of its session. At session level ``speaker`` and ``turn_id`` are
    null.
    """
    matches = pl.col("score").abs() > _ZERO_SCORE
    hits = run.frame.filter(matches)
    if hits.is_empty() and has_turn_sharing_question_word(bench):
        # Standardised scores are 0 where all are equal, as those of a memory of one message.
        hits = run.frame
    hits = hits.select("rank", "score", "doc_id")
    sessions = bench.sessions.select("session_id", start="start")
    if run.level == "session":
        hit_details = sessions.select(
            "session_id", doc_id="session_id", time="start", speaker=None, turn_id=None
        )
        texts = [""] * hits.height
        if run.text_of is not None and hits.height:
            texts = run.text_of(hits["doc_id"].to_list())
        hits = hits.with_columns(text=pl.Series(texts, dtype=pl.String))
    else:
        text = pl.when(pl.col("text") == "").then("caption").otherwise("text")
        turns = bench.turns.join(hits.select(turn_id="doc_id"), on="turn_id", how="semi")
        hit_details = turns.join(sessions, on="session_id", how="left").select(
            "session_id",
            "speaker",
            "turn_id",
            doc_id="turn_id",
            time=pl.coalesce("timestamp", "start"),
            text=text,
        )
    hits_with_details = hits.join(hit_details, on="doc_id", how="left", maintain_order="left")
    return hits_with_details.select(HIT_COLUMNS)


def has_turn_sharing_question_word(bench: Bench) -> bool:
    """Say whether any turn of the bench shares a word with the question."""
    documents = bench.documents("turn")
    for query_rows, turn_span in bench.by_scope("turn"):
        words_of_scope = documents.words_in(turn_span).number
        for query_row in query_rows:
            if not words_of_scope.keys().isdisjoint(bench.query_words[query_row]):
                return True
    return False
