"""What a running conversation has in play, and a bias towards it in a ranking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.records import Run, run_from_scores
from memlab.retrieve import Bench

FACTOR = 1.15
"""What scores of sessions in play are multiplied by."""

MOST_TERMS = 32
MOST_IN_PLAY = 64
TTL = timedelta(minutes=30)


@dataclass(frozen=True)
class SessionMemory:
    """What is kept of one conversation; a value: :func:`remember` gives a new one.

    :param turn_count: turns of the conversation that were noted.
    :param last_access: when the last one was.
    :param terms: pronoun or phrase, in lower case → what it last stood for; the newest first.
    :param in_play: id of a turn or session → the number of the turn that used it last; the newest first.
    """

    session_id: str
    turn_count: int = 0
    last_access: datetime | None = None
    terms: Mapping[str, str] = field(default_factory=dict)
    in_play: Mapping[str, int] = field(default_factory=dict)

    def recent(self, turns: int | None = None) -> list[str]:
        """List what is in play, the newest first; only what was in use within so many turns, where that is given."""
        ids = dict(self.in_play)
        return [name for name, turn in ids.items() if turns is None or self.turn_count - turn < turns]


def remember(
    memory: SessionMemory,
    *,
    now: datetime,
    terms: Mapping[str, str] | None = None,
    in_play: Iterable[str] = (),
    ttl: timedelta = TTL,
) -> SessionMemory:
    """Note one turn of a conversation; one that was idle for longer than ``ttl`` begins anew.

    :param terms: what was resolved in it: pronoun or phrase → what it stood for.
    :param in_play: ids of what was retrieved or used for it, the most useful first.
    :returns: the memory after the turn, with at most :data:`MOST_TERMS` terms and :data:`MOST_IN_PLAY` ids; what was
        out of use for longest is forgotten first.
    :raises DataError: when ``now`` lies before the last access, or only one of the two has a time zone.

    >>> from datetime import datetime
    >>> from memlab.conversation import SessionMemory, remember
    >>> noon = datetime(2026, 5, 1, 12)
    >>> memory = remember(SessionMemory("chat"), now=noon, terms={"She": "Dr. Lee"}, in_play=["u/s1"])
    >>> memory.terms["she"], memory.recent(), remember(memory, now=noon.replace(hour=13)).recent()
    ('Dr. Lee', ['u/s1'], [])
    """
    last = memory.last_access or now
    if (now.tzinfo is None) != (last.tzinfo is None) or now < last:
        raise DataError(
            f"now is {now.isoformat()}, and conversation {memory.session_id!r} was last used at {last.isoformat()}; "
            "give turns in order of time, all with a time zone or none"
        )
    if now - last > ttl:
        memory = SessionMemory(memory.session_id)
    turn = memory.turn_count + 1
    new_terms = {term.casefold(): meaning for term, meaning in (terms or {}).items()}
    new_ids = dict.fromkeys(in_play, turn)
    return replace(
        memory,
        turn_count=turn,
        last_access=now,
        terms=_newest(new_terms, memory.terms, MOST_TERMS),
        in_play=_newest(new_ids, memory.in_play, MOST_IN_PLAY),
    )


def _newest(new: Mapping[str, Any], old: Mapping[str, Any], most: int) -> dict[str, Any]:
    kept = {key: value for key, value in dict(old).items() if key not in new}
    return dict([*new.items(), *kept.items()][:most])


def bias(run: Run, bench: Bench, *, in_play: pl.DataFrame | Sequence[str], factor: float = FACTOR) -> Run:
    """Multiply the scores of sessions in play by a factor and rank anew; every document stays.

    A product needs positive scores: where a question's lowest is not above 0 (sums of standardised scores), its scores
    are first raised so that the lowest is 0.

    :param in_play: ids of sessions, for every question; or a frame of ``query_id`` and ``id``.
    :param factor: at least 1; 1 leaves the ranking as it is.
    :raises DataError: for a factor below 1.

    >>> from memlab import conversation, datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.load("data/sample/sample.jsonl"), encoder=None)
    >>> run = retrieve.bm25(bench, k=5)
    >>> raised = conversation.bias(run, bench, in_play=[bench.sessions["session_id"][0]])
    >>> sorted(raised.frame["doc_id"]) == sorted(run.frame["doc_id"])
    True
    """
    if not 1 <= factor < float("inf"):
        raise DataError(f"factor is {factor}; a bias is 1 or more, so that it hides nothing")
    if not isinstance(in_play, pl.DataFrame):
        ids = pl.DataFrame({"id": [*in_play]}, {"id": pl.String})
        in_play = run.frame.select(pl.col("query_id").unique()).join(ids, how="cross")
    own = run.frame["doc_id"]
    if run.level == "turn":
        turns, sessions = bench.documents("turn"), bench.documents("session")
        own = pl.Series(sessions.ids[turns.session[turns.at(own)]], dtype=pl.String)
    used = in_play.select("query_id", "id", used=pl.lit(True)).unique()
    rows = run.frame.with_columns(id=own).join(used, on=["query_id", "id"], how="left", maintain_order="left")
    lowest = pl.col("score").min().over("query_id")
    raised = pl.col("score") - pl.when(lowest > 0).then(0.0).otherwise(lowest)
    scores = rows.select(raised * pl.when("used").then(factor).otherwise(1.0))["score"].to_numpy()
    k = int(run.frame["rank"].to_numpy().max(initial=1))
    ranked = run_from_scores(rows["query_id"].to_numpy(), rows["doc_id"].to_numpy(), scores, level=run.level, k=k)
    return replace(bench.show(ranked), name=run.name, provenance=run.provenance)
