"""The context that a model is given with a question: several sources, one token budget, and an account of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from typing import Any

import polars as pl

from memlab.context import tokens
from memlab.context.filling import NO_ROOM, ORDER, Taken, fill
from memlab.context.lines import TITLES, Line, shown
from memlab.context.sources import Sources
from memlab.context.tokens import Count
from memlab.errors import DataError
from memlab.records import TIMESTAMP

TEXT = {"query_id": pl.String(), "text": pl.String(), "n_tokens": pl.Int64(), "lines": pl.List(pl.String())}
PART = {
    "query_id": pl.String(), "source": pl.String(), "ref": pl.String(), "text": pl.String(), "n_tokens": pl.Int64(),
    "cut": pl.Boolean(), "turns": pl.List(pl.String()), "at": TIMESTAMP, "confidence": pl.Float64(),
}  # fmt: skip
ACCOUNT = {
    "query_id": pl.String(), "source": pl.String(), "share": pl.Int64(), "given": pl.Int64(), "n_tokens": pl.Int64(),
    "n_offered": pl.Int64(), "n_used": pl.Int64(), "n_overlap": pl.Int64(), "n_no_room": pl.Int64(),
}  # fmt: skip
LEFT_OUT = {"query_id": pl.String(), "source": pl.String(), "ref": pl.String(), "reason": pl.String()}


@dataclass(frozen=True)
class Budget:
    """Tokens for each source; together 1,100.

    200 are for the conversation that goes on, 800 for what was said before (messages, and summaries of sessions and
    weeks), 100 for facts. Room that a source does not need goes to the others.
    """

    recent: int = 200
    relevant: int = 500
    summaries: int = 200
    facts: int = 100
    rollups: int = 100

    def __post_init__(self) -> None:
        wrong = [f.name for f in fields(self) if getattr(self, f.name) < 0]
        if wrong:
            raise DataError(f"budget {wrong[0]} is {getattr(self, wrong[0])}; a share is 0 tokens or more")

    @property
    def total(self) -> int:
        """The most tokens of a context."""
        return sum(astuple(self))

    def to(self, total: int) -> Budget:
        """Give shares in the same proportion that sum to another total; what does not divide goes to ``relevant``.

        >>> from memlab.context import Budget
        >>> Budget().to(300)
        Budget(recent=54, relevant=138, summaries=54, facts=27, rollups=27)
        """
        parts = {name: share * total // max(self.total, 1) for name, share in asdict(self).items()}
        parts["relevant"] += total - sum(parts.values())
        return Budget(**parts)


@dataclass(frozen=True, eq=False)
class Contexts:
    """Contexts, and what they are made of.

    :param texts: ``query_id``, ``text``, ``n_tokens`` of the whole text, headings included, and ``lines``: what each
        line says, with the head or day that it stands under.
    :param parts: a row for each line that was taken: ``query_id``, ``source``, ``ref``, ``text``, ``n_tokens`` as it is
        written down, whether it was ``cut``, its ``turns``, when it was said (``at``) and its ``confidence``.
    :param account: a row for each question and source: its ``share``, the tokens ``given`` to it once room had flowed
        on, ``n_tokens`` of its lines and headings, and how many lines were offered, used, left out as overlap, and
        left out for want of room.
    :param left_out: ``query_id``, ``source``, ``ref``, ``reason``.
    """

    texts: pl.DataFrame
    parts: pl.DataFrame
    account: pl.DataFrame
    left_out: pl.DataFrame

    def text(self, query_id: str) -> str:
        """Give the context of a question."""
        texts = self.texts.filter(pl.col("query_id") == query_id)["text"]
        if not len(texts):
            raise DataError(f"no context was made for question {query_id!r}")
        return str(texts[0])


def assemble(
    sources: Sources,
    *,
    query_ids: Sequence[str] | None = None,
    budget: Budget | None = None,
    count: Count = tokens.count,
) -> Contexts:
    """Make the context of many questions, each within its budget, whatever the sources hold.

    Each source is given its share, or what it can use of it if that is less; the rest flows to relevant, summaries,
    facts, rollups and recent, in this order. They are filled in the order recent, relevant, summaries, facts, rollups,
    and what overlap saved goes to the next. A line is left out where its turn is quoted already, where all turns that
    it stands on are, or where it is near-identical to a line that is there. A source stops at the first line that has
    no room; a message is cut to the room that is left, if that is worth it. The text as a whole is counted at the end,
    and lines are taken back where a tokenizer counts it higher than the sum of its lines.

    :param query_ids: the questions, in the order wanted; by default those that the sources name.
    :param count: a tokenizer: texts in, numbers of tokens out, 0 for an empty text.

    >>> from memlab import context, retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> relevant = context.relevant_messages(retrieve.bm25(bench), bench)
    >>> made = context.assemble(context.Sources(relevant=relevant), budget=context.Budget().to(120))
    >>> made.texts["n_tokens"].max() <= 120
    True
    """
    budget = budget or Budget()
    frames = sources.frames()
    if query_ids is None:
        query_ids = pl.concat([rows["query_id"] for rows in frames.values()]).to_list()
    ids = list(dict.fromkeys(query_ids))
    offered = _offered(frames, count)
    titles = dict(zip(ORDER, map(int, count([TITLES[source] + "\n" for source in ORDER])), strict=True))
    made = [fill(offered.get(query, {}), asdict(budget), titles=titles, count=count) for query in ids]
    texts, sizes = _fit(made, budget.total, count)
    lines = [[line.under_day for line in taken.lines] for taken in made]

    def table(rows: Any, schema: dict[str, Any]) -> pl.DataFrame:
        named = ((query, *row) for query, taken in zip(ids, made, strict=True) for row in rows(taken))
        return pl.DataFrame(named, schema, orient="row")

    return Contexts(
        pl.DataFrame({"query_id": ids, "text": texts, "n_tokens": sizes, "lines": lines}, TEXT),
        table(_parts, PART),
        table(lambda taken: _account(taken, budget), ACCOUNT),
        table(lambda taken: taken.left, LEFT_OUT),
    )


def _offered(frames: dict[str, pl.DataFrame], count: Count) -> dict[str, dict[str, list[Line]]]:
    """Clean and count every different line once: question → source → lines."""
    rows = ((source, row) for source, each in frames.items() for row in each.iter_rows(named=True))
    lines = [(row["query_id"], Line.of(source, row)) for source, row in rows]
    texts = dict.fromkeys(text for _, line in lines for text in (line.written, line.head))
    # With the new line that stands behind it, for tokenizers that count one.
    sizes = dict(zip(texts, map(int, count([text + "\n" for text in texts])), strict=True))
    offered: dict[str, dict[str, list[Line]]] = {}
    for query, line in lines:
        sized = replace(line, size=sizes[line.written], head_size=sizes[line.head])
        offered.setdefault(query, {}).setdefault(line.source, []).append(sized)
    return offered


def _fit(made: list[Taken], total: int, count: Count) -> tuple[list[str], list[int]]:
    """Take lines back from contexts that are counted higher as a whole than as lines; give texts and their tokens."""
    texts = [shown(taken.lines) for taken in made]
    sizes = [int(size) for size in count(texts)]
    while over := [at for at, size in enumerate(sizes) if size > total and made[at].lines]:
        for at in over:
            made[at].take_back()
            texts[at] = shown(made[at].lines)
        for at, size in zip(over, count([texts[at] for at in over]), strict=True):
            sizes[at] = int(size)
    return texts, sizes


def _parts(taken: Taken) -> Iterator[tuple[Any, ...]]:
    for line in taken.lines:
        yield line.source, line.ref, line.text, line.size, line.cut, list(line.turns), line.at, line.confidence


def _account(taken: Taken, budget: Budget) -> Iterator[tuple[Any, ...]]:
    for source, share in asdict(budget).items():
        reasons = [reason for name, _, reason in taken.left if name == source]
        used = sum(line.source == source for line in taken.lines)
        no_room = reasons.count(NO_ROOM)
        spent = taken.spent[source] if used else 0
        yield source, share, taken.given[source], spent, used + len(reasons), used, len(reasons) - no_room, no_room
