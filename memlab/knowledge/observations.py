"""Facts that a source carries already, such as LoCoMo's observations."""

from __future__ import annotations

import re

import polars as pl

from memlab.records import Dataset, Fact, frame

_VERBS = r"(?:is|are|was|were|has|have|had|does|did|will|can|could|would|\w+s|\w+ed|no longer \w+)"


def from_observations(data: Dataset) -> pl.DataFrame:
    """Read a dataset's observations ("Caroline is planning to adopt children") as facts.

    The subject is the speaker whom the observation is about, the predicate its first verb, the object the rest; where
    the speaker does not open the sentence the fact is "speaker | is described by | sentence". The time is that of the
    latest turn of the evidence, else of the session.

    :returns: rows of :class:`memlab.records.Fact`, in the order of the annotations.
    """
    turns = dict(data.turns.select("turn_id", "timestamp").iter_rows())
    starts = dict(data.sessions.select("session_id", "start").iter_rows())
    facts = []
    for row in data.annotations.filter(kind="observation").iter_rows(named=True):
        times = [turns[turn] for turn in row["evidence"] if turns.get(turn) is not None]
        speaker, sentence = row["speaker"], " ".join(row["text"].split()).rstrip(".!")
        parts = re.match(rf"{re.escape(speaker)} (?P<verb>{_VERBS}) (?P<rest>.+)$", sentence, re.I)
        said = (parts["verb"], parts["rest"]) if parts else ("is described by", sentence)
        facts.append(
            Fact(row["annotation_id"], row["scope"], speaker, *said, "observed", row["evidence"],
                 max(times, default=starts.get(row["session_id"])), None, speaker, row["text"], row["session_id"])
        )  # fmt: skip
    return frame(Fact, facts)
