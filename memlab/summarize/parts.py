"""Decisions, action items and open questions, found by rule: rows of the sentences that say them, with ``spoken``."""

from __future__ import annotations

import polars as pl

from memlab.language import cues
from memlab.summarize.sentences import shared, spoken, words

# Of a question's telling words, the share that a later statement needs to count as its answer.
COVERED = 0.5


def _does(*patterns: str) -> pl.Expr:
    """Say whether a sentence does any of these things."""
    return pl.any_horizontal(pl.col("text").str.contains(pattern) for pattern in patterns)


def decisions(sentences: pl.DataFrame) -> pl.DataFrame:
    """Find what was decided: "we decided …", "I'll go with …", "let's book …"; not what is still open.

    >>> import polars as pl
    >>> said = ["I'll go with the blue one.", "I haven't decided yet.", "Let's see."]
    >>> pl.DataFrame({"speaker": "Mel", "text": said}).pipe(decisions)["spoken"].to_list()
    ["Mel: I'll go with the blue one."]
    """
    settled = _does(cues.DECISION) & ~_does(cues.UNDECIDED, cues.LONG_AGO, cues.ASKS)
    return sentences.filter(settled).with_columns(spoken())


def action_items(sentences: pl.DataFrame) -> pl.DataFrame:
    """Find what somebody is to do: "I need to call …", "I'll send …", "don't forget to …", "can you book …?"

    Errands alone, no resolution ("I'll keep going"), plan ("we fly in May") or courtesy ("I'll check it out").

    >>> import polars as pl
    >>> said = ["I need to call the bank.", "I'm going to be fine.", "I'll check it out!"]
    >>> pl.DataFrame({"speaker": "Mel", "text": said}).pipe(action_items)["text"].to_list()
    ['I need to call the bank.']
    """
    told = _does(cues.NEED, cues.REMINDER, cues.WILL, cues.TOLD) & ~_does(cues.ASKS, cues.VAGUE, cues.NO_TASK)
    return sentences.filter(told | _does(cues.REQUEST)).with_columns(spoken())


def open_questions(sentences: pl.DataFrame, *, by: str = "session_id") -> pl.DataFrame:
    """Find the questions that nobody answers later in their group.

    A question is open when no turn of somebody else comes after it in the group, or when the next one only puts it
    off ("not sure yet"), only thanks, or only asks back; and when no later statement holds half of its telling words.
    A next turn that states something is taken for the answer, in whatever words: chats answer "any plans for the
    summer?" by "researching adoption agencies". Questions of courtesy and tags ("right?") are left out.

    :param sentences: what :func:`memlab.summarize.split` gives, in order of time; ``by`` is the column of the group.
    :returns: the rows of the questions, with ``spoken``.
    """
    if sentences.is_empty():
        return sentences.with_columns(spoken())
    tokens = words(sentences)
    telling = tokens.group_by("row").agg(n_telling=pl.col("content").sum())
    marked = (
        sentences.with_row_index("row")
        .join(telling, on="row", how="left", maintain_order="left")
        .with_columns(
            asks=_does(cues.ASKS),
            polite=_does(cues.COURTESY, cues.TAG),
            tells=pl.col("n_telling").fill_null(0) >= 2,
            put_off=_does(cues.PUT_OFF),
            turn=pl.col("turn_id").rle_id(),
        )
        .with_columns(
            states=~pl.col("asks") & ~pl.col("put_off") & pl.col("tells"), end=pl.col("row").max().over(by, "turn")
        )
    )
    asked = marked.filter(pl.col("asks") & ~pl.col("polite") & pl.col("tells"))
    asked = asked.join(_replied(marked, by), on=[by, "turn"], how="left").filter(~pl.col("replied").fill_null(False))
    stated = marked.filter("states").with_columns(other="row")
    covering = shared(asked, stated, tokens, by=by).filter(pl.col("share") >= COVERED)
    covered = covering.join(asked.select("row", "end"), on="row").filter(pl.col("other") > pl.col("end"))
    open_rows = asked.join(covered, on="row", how="anti")["row"].implode()
    return sentences.filter(pl.int_range(pl.len()).is_in(open_rows)).with_columns(spoken())


def _replied(marked: pl.DataFrame, by: str) -> pl.DataFrame:
    """Say of each turn whether the next turn of somebody else states something and puts nothing off."""
    turns = marked.group_by(by, "turn", maintain_order=True).agg(
        pl.col("speaker").first(), states=pl.col("states").any() & ~pl.col("put_off").any()
    )
    # Turns of one speaker in a row have the same reply: the run that follows theirs.
    turns = turns.with_columns(run=pl.struct(by, "speaker").rle_id())
    runs = turns.group_by(by, "run", maintain_order=True).agg(pl.col("states").any())
    runs = runs.with_columns(replied=pl.col("states").shift(-1).over(by))
    return turns.join(runs.select(by, "run", "replied"), on=[by, "run"]).select(by, "turn", "replied")
