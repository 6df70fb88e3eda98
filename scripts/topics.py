"""Hold topics against summaries of sessions that a dataset brings: python scripts/topics.py FILE [SCOPE ...].

Of the stems of a session's topics, the share that its summary has, and of the stems of the summary the share that the
topics have; beside it the mean over the summaries of the other sessions of the same scope.
"""

from __future__ import annotations

import sys

import polars as pl

import memlab
from memlab.language.tokens import stem, words
from memlab.language.words import COURTESY, STOP_WORDS
from memlab.summarize import split, topics
from memlab.summarize import words as told

LEFT_OUT = STOP_WORDS | COURTESY


def stems(texts: list[str]) -> set[str]:
    return set(stem(word for text in texts for word in words(text) if word not in LEFT_OUT))


def main(path: str, *scopes: str) -> None:
    data = memlab.datasets.load(path)
    data = data.take(list(scopes) or data.scopes)
    named = dict(topics(split(data.turns)).iter_rows())
    people = data.turns.select("scope", "speaker", session_id=pl.lit(None, pl.String), text=pl.lit("")).unique()
    summaries = data.sessions.drop_nulls("summary").select("scope", "session_id", speaker=pl.lit(""), text="summary")
    rows = pl.concat([summaries, people.select(summaries.columns)])
    content = told(rows).filter(pl.col("content") & ~pl.col("time") & ~pl.col("number"))
    content = content.join(rows.select("session_id").with_row_index("row"), on="row").drop_nulls("session_id")
    reference = {one: set(its) for one, its in content.group_by("session_id").agg("stem").iter_rows()}
    pairs = []
    for session, other in summaries.join(summaries, on="scope").select("session_id", "session_id_right").iter_rows():
        phrases, its = named[session], reference[other]
        both = len(stems(phrases) & its)
        whole = sum(stems([phrase]) <= its for phrase in phrases)
        shares = (both / max(len(stems(phrases)), 1), whole / max(len(phrases), 1), both / max(len(its), 1))
        pairs.append(("its own" if session == other else "another", session, *shares))
    table = pl.DataFrame(pairs, ["summary", "session_id", "precision", "whole phrases", "recall"], orient="row")
    per_session = table.group_by("summary", "session_id").mean()
    shares = per_session.group_by("summary").agg(pl.len().alias("sessions"), pl.col(pl.Float64).mean().round(3))
    print(shares.sort("summary", descending=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
