"""The full-text index: for each language a table of the words of turns, and what came later.

The words are those of memlab's own analyser, so that a scope finds the same turns by their words
however large it is. LanceDB's analyser (0.40) stems before it folds accents and leaves out words of
40 letters and more, and its scores of rows that came after the index was made have other document
frequencies (https://lancedb.github.io/lancedb/fts). So LanceDB gives candidates among the rows that
are in the index, and nothing else: turns that came later are looked up apart.

The table is filled and indexed together, and rewritten only when many turns came. It stands beside
``turns``, since every row of a LanceDB table that gets a vector leaves the table's other indexes
until these are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import polars as pl

from memlab.store.database import Database, TableGroup, rebatch_arrow_table
from memlab.store.dataset_rows import read_dataset_entry
from memlab.store.table_schemas import TABLES, build_required_row_filter
from memlab.text.text_analyser import ANALYSER, tokenize

if TYPE_CHECKING:
    from lancedb.table import Table as LanceTable

T = TypeVar("T")

REFILLED_SHARE = 0.1
"""The index is filled again when more turns than this share of those in it came or went."""

SAMPLED_FROM = 20_000
"""Turns in the index from which a sixteenth of them, by the hash of what they say, shows first
whether about that many changed."""
_SAMPLE = "content_hash < '1'"

LOOKUP = 20_000
"""Turns up to which the database looks for each by its key; of more, all of the scope are read."""

_SAME = ["key", "session_id", "content_hash"]
_FOUND = ["key", "scope", "turn_id", "session_id", "content_hash", "position"]
_ROW = {name: TABLES["words"].columns[name] for name in _FOUND} | {"words": pl.List(pl.String())}


class IndexDifference(NamedTuple):
    """What a scope's turns have and its words in the index have not, and the other way round.

    :param added: ``key``, ``turn_id``, ``session_id``, ``content_hash``, ``position``, ``words``.
    :param removed: ``key``, ``session_id``, ``words``.
    """

    added: pl.DataFrame
    removed: pl.DataFrame


_NOTHING = IndexDifference(
    pl.DataFrame(schema=_ROW),
    pl.DataFrame(schema=_ROW).select(*_SAME, "words"),
)


class VersionedReads(TableGroup):
    """What is read once for each state of the turns and of what is listed."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._seen: tuple[Any, dict[tuple[Any, ...], Any]] = None, {}

    def _call_once_per_search_state(self, method: Callable[..., T], *arguments: Any) -> T:
        """Give what a method finds, once for a state."""
        with self.database.translating_errors("reading turns"):
            search_state = self.database.list_versions_of_search_tables()
            if self._seen[0] != search_state:
                self._seen = search_state, {}
            known_values = self._seen[1]
            call = (method.__name__, *arguments)
            if call not in known_values:
                known_values[call] = method(*arguments)
        return cast(T, known_values[call])


class TextIndex(VersionedReads):
    """The words of the turns of a store, and LanceDB's full-text index over them."""

    def open_or_create_words_table(self, language: str) -> LanceTable:
        """Give the table of the words of a language's turns; another analyser has another one."""
        return self.database.open_or_create_table(
            _words_table_name(language), TABLES["words"].arrow_schema()
        )

    def has_index(self, language: str) -> bool:
        """Say whether the words of a language's turns are indexed."""
        return self._call_once_per_search_state(self._has_indexed_words, language)

    def _has_indexed_words(self, language: str) -> bool:
        is_there = _words_table_name(language) in self.database.table_names()
        return is_there and bool(self.open_or_create_words_table(language).list_indices())

    def update_words_if_due(self, dataset: str) -> bool:
        """Bring the words of a dataset up to date, where that pays; :meth:`index` comes after it.

        :returns: whether it was done.
        """
        dataset_entry = read_dataset_entry(self.database, dataset)
        language = dataset_entry["language"]
        note_key = _index_note_key(dataset, language)
        table = self.open_or_create_words_table(language)
        if self._shows_few_changes_in_sample(dataset, language):
            return False
        turns, filled_rows = self._read_current_and_indexed_turns(dataset, None, language)
        added_rows, removed_rows = _find_added_and_removed_turns(turns, filled_rows)
        n_changed = added_rows.height + removed_rows.height
        if not n_changed or n_changed <= REFILLED_SHARE * filled_rows.height:
            return False
        index_difference = self._add_words_to_changed_turns(
            added_rows, removed_rows, dataset, language
        )
        # First nothing is noted, so that an interrupted filling is not taken for a finished one.
        self.database.upsert_row("store", note_key, value="")
        self._write_changed_words(table, dataset, index_difference)
        text_state = (
            dataset_entry["fingerprint"] if dataset_entry["complete"] else f"words {table.version}"
        )
        self.database.upsert_row("store", note_key, value=text_state)
        return True

    def _shows_few_changes_in_sample(self, dataset: str, language: str) -> bool:
        """Say whether far fewer turns of a long memory changed than make an update due."""
        words_table = self.open_or_create_words_table(language).name
        if self.database.count_rows(words_table, dataset=dataset) < SAMPLED_FROM:
            return False
        turns, filled_rows = self._read_current_and_indexed_turns(
            dataset, None, language, condition=_SAMPLE
        )
        added_rows, removed_rows = _find_added_and_removed_turns(turns, filled_rows)
        return added_rows.height + removed_rows.height < REFILLED_SHARE / 2 * filled_rows.height

    def index_unindexed_words(self, language: str) -> None:
        """Index the words of a language where any stand outside the index."""
        from lancedb.index import FTS, BTree

        table = self.open_or_create_words_table(language)
        index_statistics: dict[str, Any] = {
            index.columns[0]: table.index_stats(index.name) for index in table.list_indices()
        }
        word_index = FTS(
            base_tokenizer="whitespace",
            lower_case=False,
            stem=False,
            remove_stop_words=False,
            ascii_folding=False,
            max_token_length=None,
        )
        for column, config in (("scope", BTree()), ("words", word_index)):
            if table.count_rows() and (
                column not in index_statistics or index_statistics[column].num_unindexed_rows
            ):
                table.create_index(column, config=config)

    def state_of_indexed_words_or_empty(self, dataset: str) -> str:
        """Give a mark of the state of a dataset whose words are in the index; empty if unknown."""
        language = read_dataset_entry(self.database, dataset)["language"]
        noted_state = self.database.read_table(
            "store", ["value"], key=_index_note_key(dataset, language)
        )
        return noted_state["value"].item() if noted_state.height else ""

    def _write_changed_words(
        self, words_table: LanceTable, dataset: str, index_difference: IndexDifference
    ) -> None:
        rows = index_difference.added.with_columns(
            pl.col("words").list.join(" "), dataset=pl.lit(dataset)
        )
        source = rebatch_arrow_table(
            rows.select(words_table.schema.names).to_arrow().cast(words_table.schema)
        )
        builder = words_table.merge_insert("key").use_index(False)
        builder = builder.when_matched_update_all().when_not_matched_insert_all()
        if rows.height:
            self.database.retry_on_conflict(lambda: builder.execute(source))
        gone_rows = index_difference.removed.join(
            index_difference.added, on="key", how="anti", maintain_order="left"
        )
        self.database.delete_rows(words_table.name, dataset=dataset, key=gone_rows["key"])

    def find_candidate_turns(
        self, words: Sequence[str], dataset: str, scope: str, *, max_indexed_turns: int
    ) -> pl.DataFrame:
        """Give turns of a scope that may match words best: some in the index, all that came later.

        :returns: ``key``, ``scope``, ``turn_id``, ``session_id``, ``content_hash``, ``position``
            and the list of ``words`` of each.
        """
        from lancedb.query import MatchQuery

        index_difference = self.compare_turns_with_index(dataset, scope)
        if not words:
            return index_difference.added.clear()
        language = read_dataset_entry(self.database, dataset)["language"]
        match_query = MatchQuery(" ".join(words), "words")  # type: ignore[call-arg]
        query = self.open_or_create_words_table(language).search(match_query, query_type="fts")
        query = query.where(build_required_row_filter(dataset=dataset, scope=scope))
        # What is gone is left out below.
        query = query.limit(max_indexed_turns + index_difference.removed.height).select(
            [*_FOUND, "words"]
        )
        matching_turns = query.to_polars().select(*_FOUND, pl.col("words").str.extract_all(r"\S+"))
        matching_turns = matching_turns.join(
            index_difference.removed, on="key", how="anti", maintain_order="left"
        )
        return pl.concat([matching_turns, index_difference.added])

    def compare_turns_with_index(self, dataset: str, scope: str) -> IndexDifference:
        """Compare a scope's turns as they are with its words in the index."""
        return self._call_once_per_search_state(
            self._compare_turns_unless_up_to_date, dataset, scope
        )

    def _compare_turns_unless_up_to_date(self, dataset: str, scope: str) -> IndexDifference:
        dataset_entry = read_dataset_entry(self.database, dataset)
        if (
            dataset_entry["complete"]
            and self.state_of_indexed_words_or_empty(dataset) == dataset_entry["fingerprint"]
        ):
            return _NOTHING
        return self._read_and_compare_turns_with_index(dataset, scope, dataset_entry["language"])

    def _read_and_compare_turns_with_index(
        self, dataset: str, scope: str | None, language: str
    ) -> IndexDifference:
        turns, filled_rows = self._read_current_and_indexed_turns(dataset, scope, language)
        added_rows, removed_rows = _find_added_and_removed_turns(turns, filled_rows)
        return self._add_words_to_changed_turns(added_rows, removed_rows, dataset, language)

    def _read_current_and_indexed_turns(
        self,
        dataset: str,
        scope: str | None,
        language: str,
        *,
        condition: str | None = None,
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Read what turns are compared by, as they are and as the index has them.

        :param condition: of the rows of both, in SQL; all by default.
        """
        name = self.open_or_create_words_table(language).name
        wanted: dict[str, Any] = {"dataset": dataset, "scope": scope, "condition": condition}
        turns = self.database.read_table("turns", _SAME, **wanted)
        filled_rows = self.database.read_table(name, _SAME, **wanted)
        return turns, filled_rows

    def _add_words_to_changed_turns(
        self,
        added_turns: pl.DataFrame,
        removed_index_rows: pl.DataFrame,
        dataset: str,
        language: str,
    ) -> IndexDifference:
        """Give the words of turns the index has not, and those it has of turns that are gone."""
        other_columns = [column for column in _FOUND if column not in _SAME]
        added_turns = self._join_table_columns_by_key(
            "turns", [*other_columns, "content"], added_turns, dataset
        )
        word_table_name = self.open_or_create_words_table(language).name
        removed_index_rows = self._join_table_columns_by_key(
            word_table_name, ["words"], removed_index_rows, dataset
        )
        added_words = _tokenize_texts(added_turns["content"], language)
        return IndexDifference(
            added_turns.select(_FOUND).with_columns(words=added_words),
            removed_index_rows.with_columns(pl.col("words").str.extract_all(r"\S+")),
        )

    def _join_table_columns_by_key(
        self, table_name: str, columns: list[str], keyed_rows: pl.DataFrame, dataset: str
    ) -> pl.DataFrame:
        """Read more columns of some rows, in their order; by their keys where these are few."""
        if keyed_rows.height <= LOOKUP:
            column_rows = self.database.read_table(
                table_name, ["key", *columns], key=keyed_rows["key"]
            )
        else:
            column_rows = self.database.read_table(table_name, ["key", *columns], dataset=dataset)
        return keyed_rows.join(column_rows, on="key", how="left", maintain_order="left")


def _find_added_and_removed_turns(
    current_turns: pl.DataFrame, indexed_turns: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the turns that the index has not, and what it has of turns that are not there."""
    added_rows = current_turns.join(indexed_turns, on=_SAME, how="anti", maintain_order="left")
    removed_rows = indexed_turns.join(current_turns, on=_SAME, how="anti", maintain_order="left")
    return added_rows, removed_rows


def _words_table_name(language: str) -> str:
    return f"words_{language}_{ANALYSER}"


def _index_note_key(dataset: str, language: str) -> str:
    return f"{_words_table_name(language)}/{dataset}"


def _tokenize_texts(texts: pl.Series, language: str) -> pl.Series:
    """Give the words of texts, some thousand texts at a time, since lists of words are large."""
    word_parts = [pl.Series("words", [], dtype=pl.List(pl.String))]
    for part_start in range(0, len(texts), LOOKUP):
        part_words = tokenize(texts[part_start : part_start + LOOKUP].to_list(), language=language)
        word_parts.append(pl.Series("words", part_words, dtype=pl.List(pl.String)))
    return pl.concat(word_parts)
