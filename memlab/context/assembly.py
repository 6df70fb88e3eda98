"""The context that a model is given with a question: several sources, one token budget, and an account of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from typing import Any

import polars as pl

from memlab.context import tokens
from memlab.context._filling import NO_ROOM, ORDER, TITLES, Line, Taken, fill, rendered, shown
from memlab.context.items import ITEM, Sources
from memlab.context.tokens import Count
from memlab.errors import DataError
from memlab.records import TIMESTAMP

PART = {
    "query_id": pl.String(), "source": pl.String(), "ref": pl.String(), "text": pl.String(), "n_tokens": pl.Int64(),
    "cut": pl.Boolean(), "turns": pl.List(pl.String()), "at": TIMESTAMP, "confidence": pl.Float64(),
}  # fmt: skip
ACCOUNT = {
    "query_id": pl.String(), "source": pl.String(), "share": pl.Int64(), "given": pl.Int64(), "n_tokens": pl.Int64(),
    "n_offered": pl.Int64(), "n_used": pl.Int64(), "n_overlap": pl.Int64(), "n_no_room": pl.Int64(),
}  # fmt: skip
LEFT_OUT = {"query_id": pl.String(), "source": pl.String(), "ref": pl.String(), "reason": pl.String()}

# Where room that a source does not need goes: to what helps most a token first.
FLOW = ("relevant", "summaries", "facts", "rollups", "recent")


@dataclass(frozen=True)
class Budget:
    """Tokens for each source; together 1,100.

    200 are for the conversation that goes on, 800 for what was said before (messages, and summaries of sessions and
    weeks), 100 for facts. Room that a source does not need goes to the others, in the order :data:`FLOW`.
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
        parts = {f.name: getattr(self, f.name) * total // max(self.total, 1) for f in fields(self)}
        parts["relevant"] += total - sum(parts.values())
        return Budget(**parts)


@dataclass(frozen=True, eq=False)
class Contexts:
    """Contexts, and what they are made of.

    :param texts: ``query_id``, ``text``, ``n_tokens`` of the whole text, headings included.
    :param parts: a row for each line that was taken: ``query_id``, ``source``, ``ref``, ``text``, ``n_tokens``,
        whether it was ``cut``, its ``turns``, when it was said (``at``) and its ``confidence``.
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
        found = self.texts.filter(pl.col("query_id") == query_id)["text"]
        if not len(found):
            raise DataError(f"no context was made for question {query_id!r}")
        return str(found[0])


def assemble(
    sources: Sources,
    *,
    query_ids: Sequence[str] | None = None,
    budget: Budget | None = None,
    count: Count = tokens.count,
) -> Contexts:
    """Make the context of many questions, each within its budget, whatever the sources hold.

    Each source is given its share, or what it can use of it if that is less; the rest flows to the others in the order
    :data:`FLOW`. Then they are filled in the order recent, relevant, summaries, facts, rollups, and what overlap saved
    goes to the next. A line is left out where its turn is quoted already, where all turns that it stands on are, or
    where it is near-identical to a line that is there. A source stops at the first line that has no room; a message is
    cut to the room that is left, if that is worth it. In the text the sources stand from the most general to the
    newest, each in order of time.

    The text as a whole is counted at the end, and lines are taken back where a tokenizer counts it higher than the sum
    of its lines.

    :param query_ids: the questions, in the order wanted; by default those that the sources name.
    :param budget: tokens for each source.
    :param count: a tokenizer: texts in, numbers of tokens out, 0 for an empty text.

    >>> from memlab import context, datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder=None)
    >>> relevant = context.relevant_messages(retrieve.bm25(bench), bench)
    >>> made = context.assemble(context.Sources(relevant=relevant), budget=context.Budget().to(120))
    >>> made.texts["n_tokens"].max() <= 120
    True
    """
    budget = budget or Budget()
    frames = sources.frames()
    ids = list(dict.fromkeys(query_ids if query_ids is not None else _named(frames)))
    offered = _offered(frames, count)
    titles = dict(zip(ORDER, map(int, count([TITLES[source] + "\n" for source in ORDER])), strict=True))
    made = [fill(offered.get(query, {}), asdict(budget), FLOW, titles=titles, count=count) for query in ids]
    texts, sizes = _fit(made, budget.total, count)
    named = pl.Series("query_id", ids, dtype=pl.String)
    return Contexts(
        pl.DataFrame([named, pl.Series("text", texts, dtype=pl.String)]).with_columns(
            n_tokens=pl.Series(sizes, dtype=pl.Int64)
        ),
        pl.DataFrame([(q, *row) for q, one in zip(ids, made, strict=True) for row in _parts(one)], PART, orient="row"),
        pl.DataFrame(
            [(q, *row) for q, one in zip(ids, made, strict=True) for row in _account(one, budget)],
            ACCOUNT,
            orient="row",
        ),
        pl.DataFrame([(q, *row) for q, one in zip(ids, made, strict=True) for row in one.left], LEFT_OUT, orient="row"),
    )


def _named(frames: dict[str, pl.DataFrame]) -> list[str]:
    return pl.concat([rows["query_id"] for rows in frames.values()]).unique(maintain_order=True).to_list()


def _offered(frames: dict[str, pl.DataFrame], count: Count) -> dict[str, dict[str, list[Line]]]:
    """Clean and count every different line once: question → source → lines."""
    lines = [
        (query, rendered(source, *row))
        for source, rows in frames.items()
        for query, *row in rows.select(*ITEM).iter_rows()
    ]
    texts = dict.fromkeys(text for _, each in lines for text in (each.text, each.head))
    # With the new line that stands behind it, for tokenizers that count one.
    sizes = dict(zip(texts, map(int, count([text + "\n" for text in texts])), strict=True))
    offered: dict[str, dict[str, list[Line]]] = {}
    for query, each in lines:
        sized = replace(each, size=sizes[each.text], head_size=sizes[each.head])
        offered.setdefault(query, {}).setdefault(each.source, []).append(sized)
    return offered


def _fit(made: list[Taken], total: int, count: Count) -> tuple[list[str], list[int]]:
    """Take lines back from contexts that are counted higher as a whole than as lines; give texts and their tokens."""
    texts = [shown(one.lines) for one in made]
    sizes = [int(size) for size in count(texts)]
    while over := [at for at, size in enumerate(sizes) if size > total and made[at].lines]:
        for at in over:
            made[at].take_back()
            texts[at] = shown(made[at].lines)
        for at, size in zip(over, count([texts[at] for at in over]), strict=True):
            sizes[at] = int(size)
    return texts, sizes


def _parts(one: Taken) -> Iterator[tuple[Any, ...]]:
    for each in one.lines:
        yield (
            each.source, each.ref, each.text, each.size, each.cut, list(each.turns), each.at, each.confidence,
        )  # fmt: skip


def _account(one: Taken, budget: Budget) -> Iterator[tuple[Any, ...]]:
    for source in (f.name for f in fields(budget)):
        reasons = [reason for name, _, reason in one.left if name == source]
        used = sum(each.source == source for each in one.lines)
        no_room = reasons.count(NO_ROOM)
        spent = one.spent.get(source, 0) if used else 0
        share = getattr(budget, source)
        yield source, share, one.given.get(source, 0), spent, used + len(reasons), used, len(reasons) - no_room, no_room
