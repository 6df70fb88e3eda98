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
- *contradiction-resolution*: both statements; *instruction-following*: the turn that gives it; *event-ordering* and
  *summarization*: every turn that states one of the events or values;
- *preference*: both hints; *abstention*: nothing, the answer is "The conversations do not say.".

A month in "since the beginning of May" counts by the day of the event, not of the remark.

The file is a chat log (see :mod:`memlab.datasets.chatlog`): a header line with the parameters, then for each scope its
messages, its questions, and its facts, each under the single key ``fact``. The same parameters give the same bytes on
every machine: only ``random.Random.random`` and exact arithmetic are used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from memlab.datasets import chatlog
from memlab.datasets._read import Source
from memlab.datasets._synthetic_language import language
from memlab.datasets._synthetic_plan import build
from memlab.datasets._synthetic_questions import ask
from memlab.datasets._synthetic_talk import drawn_out, write_turns
from memlab.datasets._synthetic_world import World
from memlab.errors import DataError
from memlab.files import atomic
from memlab.records import TIMESTAMP, Dataset, Question, concat

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


@dataclass(frozen=True)
class Parameters:
    """What a synthetic dataset follows from.

    :param turns: number of turns, exactly; ``turns_per_scope`` on average, single scopes differ by up to a fifth.
    :param hazard_per_year: changes a year of an attribute of relative hazard 1; a phone number has 0.6, a podcast 5.
    :param answers: characters that each answer of the assistant is drawn out to at least, as real ones run to
        thousands; everything else is said as without.
    :param beam: also instructions given once, contradictions, orders of events and summaries, as BEAM asks (Tavakoli
        et al., 2025); other things are said then too.
    """

    turns: int = 2_000
    seed: int = 0
    turns_per_scope: int = 400
    hazard_per_year: float = 1.5
    answers: int = 0
    beam: bool = False

    def __post_init__(self) -> None:
        checks = (
            ("turns", self.turns >= 50, "a number from 50"),
            ("turns_per_scope", self.turns_per_scope >= 50, "a number from 50"),
            ("hazard_per_year", 0 <= self.hazard_per_year < 1_000, "a rate from 0 to 1000"),
            ("answers", 0 <= self.answers <= 100_000, "a number of characters from 0 to 100,000"),
        )
        for name, good, expected in checks:
            if not good:
                raise DataError(f"synthetic: {name} is {getattr(self, name)!r}; give {expected}")

    @property
    def name(self) -> str:
        """How the dataset is called."""
        name = f"synthetic-{self.turns}-seed{self.seed}" + (f"-answers{self.answers}" if self.answers else "")
        return name + ("-beam" if self.beam else "")


def _scopes(parameters: Parameters) -> Iterator[tuple[World, list[Question]]]:
    """Plan scope after scope, with its questions; sizes add up to the number of turns."""
    n = max(1, round(parameters.turns / parameters.turns_per_scope))
    width = max(4, len(str(n)))
    done = 0
    for i in range(n):
        # The bound between scopes i and i + 1 moves by at most a tenth: Weyl sequence, no state to carry.
        shift = 0.2 * (((i + 1) * 0.618033988749895) % 1.0) - 0.1
        upto = parameters.turns if i == n - 1 else int((i + 1 + shift) * parameters.turns / n)
        scope = f"user-{i + 1:0{width}d}"
        beam = parameters.beam
        world = build(scope, upto - done, parameters.seed, parameters.hazard_per_year, language(), standing=beam)
        yield world, [question for question, _ in ask(world, beam=beam)]
        done = upto


def generate(
    turns: int = 2_000,
    *,
    seed: int = 0,
    turns_per_scope: int = 400,
    hazard_per_year: float = 1.5,
    answers: int = 0,
    beam: bool = False,
) -> Dataset:
    """Make a dataset in memory; parameters as in :class:`Parameters`.

    :raises DataError: when a parameter is out of range.

    >>> from memlab.datasets import synthetic
    >>> data = synthetic.generate(120, seed=3)
    >>> data.turns.height, data.questions["question_type"].n_unique() >= 5
    (120, True)
    """
    parameters = Parameters(turns, seed, turns_per_scope, hazard_per_year, answers, beam)
    return concat(chatlog.read(Source(Path(parameters.name)), batch_turns=turns, records=_records(parameters)))


def facts(
    turns: int, *, seed: int = 0, turns_per_scope: int = 400, hazard_per_year: float = 1.5, beam: bool = False
) -> pl.DataFrame:
    """Give the truth behind the same dataset: what held when, at which hazard, and which turns say so.

    Kinds: ``event`` (a day; ``value`` and ``unit`` where it has an amount), ``state`` (an attribute's value from
    ``valid_from`` until ``valid_to``, null while it holds), ``detail``, ``reply`` (what the assistant answered) and
    ``preference``, with ``beam`` also ``instruction`` and ``contradiction``. A state that changed again before the
    user could mention it has no evidence. ``status`` is ``retracted`` for what was said wrongly and corrected later:
    it never held.

    An attribute is observed from its first statement to the last session; in between its changes are a Poisson process
    of rate ``hazard_per_year``.

    >>> from memlab.datasets import synthetic
    >>> synthetic.facts(120, seed=3)["kind"].unique().sort().to_list()
    ['detail', 'event', 'preference', 'reply', 'state']
    """
    parameters = Parameters(turns, seed, turns_per_scope, hazard_per_year, beam=beam)
    rows = [fact for world, _ in _scopes(parameters) for fact in world.facts]
    return pl.DataFrame(rows, schema=FACT_SCHEMA, orient="row")


def with_stale(data: Dataset, facts: pl.DataFrame) -> Dataset:
    """Name for each question about what holds now the turns that must not come back: earlier and corrected values.

    :param facts: what :func:`facts` gave with the parameters of the data.

    >>> from memlab.datasets import synthetic
    >>> made = synthetic.with_stale(synthetic.generate(400, seed=0), synthetic.facts(400, seed=0))
    >>> made.questions["stale"].list.len().max() >= 1
    True
    """
    states = facts.filter((pl.col("kind") == "state") & (pl.col("evidence").list.len() > 0))
    holds = (pl.col("status") == "true") & pl.col("valid_to").is_null()
    former = states.filter(~holds).group_by("scope", "predicate").agg(stale=pl.col("evidence").explode())
    now = states.filter(holds).join(former, on=["scope", "predicate"]).select("evidence", "stale")
    updates = data.questions.filter(pl.col("question_type") == "knowledge-update").select("query_id", "evidence")
    named = updates.join(now, on="evidence").select(
        "query_id", stale=pl.col("stale").list.set_difference("evidence").list.sort()
    )
    questions = data.questions.drop("stale").join(
        named.filter(pl.col("stale").list.len() > 0), on="query_id", how="left", maintain_order="left"
    )
    return replace(data, questions=questions.select(data.questions.columns))


def write(
    path: str | Path,
    turns: int,
    *,
    seed: int = 0,
    turns_per_scope: int = 400,
    hazard_per_year: float = 1.5,
    answers: int = 0,
    beam: bool = False,
) -> Path:
    """Write the dataset as a chat log; the file appears under its name only when it is whole.

    :raises DataError: when a parameter is out of range.
    :raises ExportError: when the file cannot be written.
    """
    parameters = Parameters(turns, seed, turns_per_scope, hazard_per_year, answers, beam)
    target = Path(path)
    with atomic(target) as file:
        for record in _records(parameters):
            file.write((json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
    return target


def _iso(time: datetime | None) -> str | None:
    return None if time is None else f"{time:%Y-%m-%dT%H:%M:%S}Z"


def _records(parameters: Parameters) -> Iterator[dict[str, Any]]:
    """Give the lines of the chat log."""
    given = {name: value for name, value in asdict(parameters).items() if name not in ("answers", "beam") or value}
    yield {"memlab": {"format": "synthetic", "grouped": True, "version": 1, **given}}
    for world, questions in _scopes(parameters):
        spoken = write_turns(world)
        if parameters.answers:
            spoken = drawn_out(spoken, world, parameters.answers, seed=parameters.seed)
        for turn in spoken:
            yield {
                "scope": world.scope,
                "session": f"s{turn.session + 1:04d}",
                "sender": world.user if turn.role == "user" else turn.role,
                "role": turn.role,
                "text": turn.text,
                "timestamp": _iso(turn.timestamp),
            }
        for question in questions:
            yield {
                "query_id": question.query_id,
                "scope": question.scope,
                "question": question.text,
                "answer": question.answer,
                "type": question.question_type,
                "timestamp": _iso(question.timestamp),
                "evidence": question.evidence,
                "abstention": question.abstention,
            }
        for fact in world.facts:
            times = {"valid_from": _iso(fact.valid_from), "valid_to": _iso(fact.valid_to)}
            yield {"fact": {**fact._asdict(), **times}}
