"""From texts that a memory wrote back to the turns that they come from."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl

from memlab.embed import Encoder
from memlab.embed.text import turn_texts
from memlab.language.analysis import tokenize
from memlab.language.sentences import sentences
from memlab.memories.collecting import Returned
from memlab.records import Dataset, Level, Run, run_from_scores, session_of

THRESHOLD = 0.5
"""Least likeness of a sentence and its source; chosen on the observations of LoCoMo, see ``docs/memories.md``."""
NEAR_COPY = 0.9
_FEWEST_WORDS = 4
HOW = pl.Enum(["given", "span", "copy", "matched", "none"])


def attribute(returned: Returned, data: Dataset, encoder: Encoder | None) -> pl.DataFrame:
    """Find the turns behind each returned text.

    ``given``: the memory named them. ``span``: the text stands in a turn word for word, or turns in it. Else each
    sentence has as its source the turn that is most like it, by the mean of the cosine and the share of its words,
    weighed by rarity, that the turn holds, where that is :data:`THRESHOLD` or more: ``copy`` where the turns hold
    :data:`NEAR_COPY` of every sentence's words, else ``matched``. ``none``: nothing is like it, and the text counts as
    no evidence.

    :param encoder: gives the cosines; ``None`` leaves them out, and matches by words alone.
    :returns: ``query_id``, ``rank``, ``how`` and ``turn_ids``, in the order of the rows.

    >>> import memlab
    >>> from memlab.memories import attribute, collect, memory
    >>> data = memlab.sample(turns=200)
    >>> done = collect(memory(lambda turns, query, k: turns["text"].tail(k)), data, name="latest", k=2)
    >>> attribute(done, data, None)["how"].unique().to_list()
    ['span']
    """
    scopes = data.questions.select("query_id", "scope")
    rows = returned.rows.join(scopes, on="query_id", how="left", maintain_order="left")
    texts = rows.filter(pl.col("source_ids").is_null()).select("scope", "text").unique(maintain_order=True)
    parts = [_sources(part, data, encoder) for part in texts.partition_by("scope", maintain_order=True)]
    schema: dict[str, Any] = {"scope": pl.String, "text": pl.String, "how": HOW, "turn_ids": pl.List(pl.String)}
    found = pl.concat([pl.DataFrame(schema=schema), *parts])
    named = pl.col("source_ids").is_not_null()
    given = pl.when(pl.col("source_ids").list.len() > 0).then(pl.lit("given")).otherwise(pl.lit("none")).cast(HOW)
    return rows.join(found, on=["scope", "text"], how="left", maintain_order="left").select(
        "query_id",
        "rank",
        how=pl.when(named).then(given).otherwise("how"),
        turn_ids=pl.when(named).then("source_ids").otherwise("turn_ids"),
    )


def _sources(texts: pl.DataFrame, data: Dataset, encoder: Encoder | None) -> pl.DataFrame:
    """Attribute the texts of one scope."""
    turns = data.turns.filter(pl.col("scope") == texts["scope"][0])
    ids, spoken = turns["turn_id"].to_numpy(), [_plain(text) for text in turns["text"]]
    hows: list[str] = []
    sources: list[list[str]] = []
    loose: list[tuple[int, str]] = []
    for row, text in enumerate(texts["text"]):
        plain = _plain(text)
        at = [place for place, turn in enumerate(spoken) if _spans(plain, turn)]
        hows.append("span" if at else "none")
        sources.append([ids[place] for place in at])
        loose += [] if at else [(row, sentence) for sentence in sentences(text)]
    if loose:
        written = [sentence for _, sentence in loose]
        share = score = shared_words(written, turns["text"].to_list(), data.language)
        if encoder is not None:
            embedded = encoder.encode(turn_texts(turns), progress=False)
            score = (share + encoder.encode(written, progress=False) @ embedded.T) / 2
        best = score.argmax(1)
        every = np.arange(len(best))
        enough, copied = score[every, best] >= THRESHOLD, share[every, best] >= NEAR_COPY
        for (row, _), turn, like, copy in zip(loose, best, enough, copied, strict=True):
            if like:
                first = not sources[row]
                hows[row] = "copy" if copy and (first or hows[row] == "copy") else "matched"
                sources[row] = list(dict.fromkeys([*sources[row], ids[turn]]))
    return texts.with_columns(how=pl.Series(hows, dtype=HOW), turn_ids=pl.Series(sources, dtype=pl.List(pl.String)))


def _plain(text: str) -> str:
    return " " + " ".join(re.findall(r"[^\W_]+", text.lower())) + " "


def _spans(text: str, turn: str) -> bool:
    """Say whether one stands in the other word for word, by :data:`_FEWEST_WORDS` words or more, or whole."""
    short, long = (text, turn) if len(text) < len(turn) else (turn, text)
    return short in long and (short.count(" ") > _FEWEST_WORDS or short == long)


def shared_words(texts: list[str], turns: list[str], language: str) -> np.ndarray:
    """Give the share of each text's words, weighed by rarity among the turns, that each turn holds: (texts, turns)."""
    from sklearn.feature_extraction.text import CountVectorizer

    words = tokenize([*texts, *turns], language=language)
    table = CountVectorizer(analyzer=lambda each: each, binary=True, dtype=np.float64)
    try:
        counts = table.fit_transform(words)
    except ValueError:  # no word anywhere
        return np.zeros((len(texts), len(turns)))
    wanted, spoken = counts[: len(texts)], counts[len(texts) :]
    rarity = np.log1p(len(turns) / (1 + np.asarray(spoken.sum(0)).ravel()))
    weighed = wanted.multiply(rarity).tocsr()
    return (weighed @ spoken.T).toarray() / np.maximum(np.asarray(weighed.sum(1)), 1e-9)


def ranked(
    returned: Returned, attributed: pl.DataFrame, level: Level = "turn", *, turns: pl.DataFrame | None = None
) -> Run:
    """Give the turns, or sessions, in the order in which the returned texts bring them: what measures read.

    :param attributed: what :func:`attribute` gave.
    :param turns: say which session each turn is of, where the ids do not, as in a chat log.
    """
    each = attributed.explode("turn_ids").drop_nulls("turn_ids").select("query_id", doc_id="turn_ids")
    if level == "session":
        each = each.with_columns(session_of("doc_id", turns))
    each = each.unique(maintain_order=True)
    place = each.select(pl.int_range(pl.len()).over("query_id"))[:, 0].to_numpy()
    ids = each["query_id"].to_numpy(), each["doc_id"].to_numpy()
    run = run_from_scores(*ids, -place.astype(float), level=level, k=max(1, each.height))
    return Run(run.frame, level, name=returned.name, provenance=returned.provenance)
