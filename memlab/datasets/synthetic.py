"""Synthetic conversations with exact evidence: any size from 50 to a million turns, from one seed.

A scope is one user who talks with an assistant over 3 to 18 months. Into ordinary talk (questions and advice on fifteen
topics) the user drops remarks: events that can be counted, attributes that change at a known hazard rate, details,
hints at preferences. Around them stand look-alikes: other people's events, cancelled plans, wishes. Questions have the
kinds of LongMemEval (Wu et al., ICLR 2025, section 3) and are answered from the fact table, never from the text.

What counts as evidence:

- *aggregations*: every turn that states a counted event, repeat visits included;
- a mention over two user turns (the thing is named in the first, "I got one yesterday" follows): both;
- *knowledge-update*, current value: the turn of the last statement (of the correction, where it was corrected); value
  before: that of the one before as well;
- *preference*: both hints; *abstention*: nothing, the answer is "The conversations do not say.".

A month in "since the beginning of May" counts by the day of the event, not of the remark.

The file is a chat log (see :mod:`memlab.datasets.chatlog`): a header line with the parameters, then for each scope its
messages, its questions, and its facts, each under the single key ``fact``. The same parameters give the same bytes on
every machine: only ``random.Random.random`` and exact arithmetic are used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from memlab.datasets._synthetic_language import language
from memlab.datasets._synthetic_plan import build
from memlab.datasets._synthetic_questions import Asked, ask
from memlab.datasets._synthetic_talk import Spoken, write_turns
from memlab.datasets._synthetic_world import Fact, World
from memlab.errors import DataError
from memlab.files import atomic
from memlab.records import TIMESTAMP, Dataset, Question, Session, Turn, concat, schema

FACT_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("fact_id", "scope", "kind", "subject", "predicate", "object"), pl.String()),
    "value": pl.Float64(),
    "unit": pl.String(),
    "valid_from": TIMESTAMP,
    "valid_to": TIMESTAMP,
    "hazard_per_year": pl.Float64(),
    "status": pl.String(),
    "evidence": pl.List(pl.String()),
}
_BATCH_TURNS = 10_000


@dataclass(frozen=True)
class Parameters:
    """What a synthetic dataset follows from.

    :param turns: number of turns, exactly.
    :param seed: another seed gives other people.
    :param turns_per_scope: turns of one user on average; single scopes differ by up to a fifth.
    :param hazard_per_year: changes a year of an attribute of relative hazard 1; a phone number has 0.6, a podcast 5.
    """

    turns: int = 2_000
    seed: int = 0
    turns_per_scope: int = 400
    hazard_per_year: float = 1.5

    def __post_init__(self) -> None:
        checks = (
            ("turns", self.turns >= 50, "a number from 50"),
            ("turns_per_scope", self.turns_per_scope >= 50, "a number from 50"),
            ("hazard_per_year", 0 <= self.hazard_per_year < 1_000, "a rate from 0 to 1000"),
        )
        for name, good, expected in checks:
            if not good:
                raise DataError(f"synthetic: {name} is {getattr(self, name)!r}; give {expected}")

    @property
    def name(self) -> str:
        """How the dataset is called."""
        return f"synthetic-{self.turns}-seed{self.seed}"


@dataclass(frozen=True)
class _Scope:
    """A finished scope."""

    world: World
    spoken: list[Spoken]
    asked: list[Asked]


def _scopes(parameters: Parameters) -> Iterator[_Scope]:
    """Make scope after scope; sizes add up to the number of turns."""
    spoken_language = language()
    n = max(1, round(parameters.turns / parameters.turns_per_scope))
    width = len(str(n)) if n > 9_999 else 4
    done = 0
    for i in range(n):
        # The bound between scopes i and i + 1 moves by at most a tenth: Weyl sequence, no state to carry.
        shift = 0.2 * (((i + 1) * 0.618033988749895) % 1.0) - 0.1
        upto = parameters.turns if i == n - 1 else int((i + 1 + shift) * parameters.turns / n)
        scope = f"user-{i + 1:0{width}d}"
        world = build(scope, upto - done, parameters.seed, parameters.hazard_per_year, spoken_language)
        asked = ask(world)
        yield _Scope(world, list(write_turns(world)), asked)
        done = upto


def generate(turns: int = 2_000, *, seed: int = 0, turns_per_scope: int = 400, hazard_per_year: float = 1.5) -> Dataset:
    """Make a dataset in memory; parameters as in :class:`Parameters`.

    :raises DataError: when a parameter is out of range.

    >>> from memlab.datasets import synthetic
    >>> data = synthetic.generate(120, seed=3)
    >>> data.turns.height, data.questions["question_type"].n_unique() >= 5
    (120, True)
    """
    return concat(stream(turns, seed=seed, turns_per_scope=turns_per_scope, hazard_per_year=hazard_per_year))


def stream(turns: int, *, seed: int = 0, turns_per_scope: int = 400, hazard_per_year: float = 1.5) -> Iterator[Dataset]:
    """Make the dataset of :func:`generate` in parts of one or more whole scopes, with bounded memory."""
    parameters = Parameters(turns, seed, turns_per_scope, hazard_per_year)
    return _stream(parameters)


def _stream(parameters: Parameters) -> Iterator[Dataset]:
    batch: list[_Scope] = []
    n_turns = 0
    for scope in _scopes(parameters):
        batch.append(scope)
        n_turns += len(scope.spoken)
        if n_turns >= _BATCH_TURNS:
            yield _dataset(batch, parameters.name)
            batch, n_turns = [], 0
    if batch:
        yield _dataset(batch, parameters.name)


def _dataset(scopes: list[_Scope], name: str) -> Dataset:
    turns: dict[str, list[Any]] = {column: [] for column in schema(Turn)}
    sessions: list[Session] = []
    for scope in scopes:
        world = scope.world
        ids = [f"{world.scope}/s{s + 1:04d}" for s in range(len(world.sizes))]
        places = [place for size in world.sizes for place in range(1, size + 1)]
        of = [ids[turn.session] for turn in scope.spoken]
        roles = [turn.role for turn in scope.spoken]
        times = [turn.timestamp for turn in scope.spoken]
        turns["turn_id"] += [f"{session}/{n}" for session, n in zip(of, places, strict=True)]
        turns["scope"] += [world.scope] * len(of)
        turns["session_id"] += of
        turns["n"] += places
        turns["speaker"] += [world.user if role == "user" else role for role in roles]
        turns["role"] += roles
        turns["text"] += [turn.text for turn in scope.spoken]
        turns["caption"] += [None] * len(of)
        turns["timestamp"] += times
        at = 0
        for n, (session, size) in enumerate(zip(ids, world.sizes, strict=True), 1):
            ends = times[at], times[at + size - 1]
            sessions.append(Session(session, world.scope, n, *ends, size, [world.user, "assistant"]))
            at += size
    asked = [a.question for scope in scopes for a in scope.asked]
    frames = pl.DataFrame(turns, schema=schema(Turn)), _frame(Session, sessions), _frame(Question, asked)
    return Dataset(name, "synthetic", *frames)


def _frame(row_type: type, rows: list[Any]) -> pl.DataFrame:
    """Build a frame by columns, several times faster than by rows."""
    return pl.DataFrame({name: [getattr(r, name) for r in rows] for name in schema(row_type)}, schema=schema(row_type))


def facts(turns: int, *, seed: int = 0, turns_per_scope: int = 400, hazard_per_year: float = 1.5) -> pl.DataFrame:
    """Give the truth behind the same dataset: what held when, at which hazard, and which turns say so.

    Kinds: ``event`` (a day; ``value`` and ``unit`` where it has an amount), ``state`` (an attribute's value from
    ``valid_from`` until ``valid_to``, null while it holds), ``detail``, ``reply`` (what the assistant answered) and
    ``preference``. A state that changed again before the user could mention it has no evidence. ``status`` is
    ``retracted`` for what was said wrongly and corrected later: it never held.

    An attribute is observed from its first statement to the last session; in between its changes are a Poisson process
    of rate ``hazard_per_year``.

    >>> from memlab.datasets import synthetic
    >>> synthetic.facts(120, seed=3)["kind"].unique().sort().to_list()
    ['detail', 'event', 'preference', 'reply', 'state']
    """
    parameters = Parameters(turns, seed, turns_per_scope, hazard_per_year)
    rows = [fact for scope in _scopes(parameters) for fact in scope.world.facts]
    return pl.DataFrame(rows, schema=FACT_SCHEMA, orient="row")


def write(
    path: str | Path, turns: int, *, seed: int = 0, turns_per_scope: int = 400, hazard_per_year: float = 1.5
) -> Path:
    """Write the dataset as a chat log; the file appears under its name only when it is whole.

    :raises DataError: when a parameter is out of range.
    :raises ExportError: when the file cannot be written.
    """
    parameters = Parameters(turns, seed, turns_per_scope, hazard_per_year)
    target = Path(path)
    header = {"format": "synthetic", "grouped": True, "version": 1, **asdict(parameters)}
    with atomic(target) as file:
        file.write(_line({"memlab": header}))
        for scope in _scopes(parameters):
            file.writelines(map(_line, _records(scope)))
    return target


def _line(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _iso(time: datetime | None) -> str | None:
    return None if time is None else f"{time:%Y-%m-%dT%H:%M:%S}Z"


def _records(scope: _Scope) -> Iterator[dict[str, Any]]:
    world = scope.world
    for turn in scope.spoken:
        yield {
            "scope": world.scope,
            "session": f"s{turn.session + 1:04d}",
            "sender": world.user if turn.role == "user" else turn.role,
            "role": turn.role,
            "text": turn.text,
            "timestamp": _iso(turn.timestamp),
        }
    for q in (asked.question for asked in scope.asked):
        yield {
            "query_id": q.query_id,
            "scope": q.scope,
            "question": q.text,
            "answer": q.answer,
            "type": q.question_type,
            "timestamp": _iso(q.timestamp),
            "evidence": q.evidence,
            "abstention": q.abstention,
        }
    yield from ({"fact": _fact(fact)} for fact in world.facts)


def _fact(fact: Fact) -> dict[str, Any]:
    times = {"valid_from": _iso(fact.valid_from), "valid_to": _iso(fact.valid_to)}
    return {**fact._asdict(), **times}
