"""Who wrote the questions that were measured, as tables, figures and reports say it beside n.

Frames of means say it in ``question_sources``, a text beside ``n``, which is there only where some
question is not written by a person or a benchmark (:data:`memlab.records.dataset.SOURCES`).
"""

from __future__ import annotations

import polars as pl

_PROPOSED, _ACCEPTED = "proposed", "accepted"
COLUMN = "question_sources"
_ONE = {
    _PROPOSED: "proposed by a model, not read by a person",
    _ACCEPTED: "proposed by a model, accepted by a person",
}
_ALL = {
    _PROPOSED: "The questions were proposed by a model and not read by a person.",
    _ACCEPTED: "The questions were proposed by a model and accepted by a person.",
}
_SOME = "Proposed questions were written by a model, and no person has read them."


def format_count(n: int | str, sources: str | None) -> str:
    """Write a number of questions, and who wrote them where not all are written.

    :param sources: what :func:`memlab.records.dataset.describe_sources` gives.

    >>> from memlab.source_labels import format_count
    >>> format_count(1200, ""), format_count(60, "all proposed")
    ('1,200', '60, all proposed')
    >>> format_count(60, "40 proposed, 20 accepted")
    '60: 40 proposed, 20 accepted'
    """
    text = n
    if isinstance(n, int):
        text = f"{n:,}"
    if not sources:
        return str(text)
    if sources.startswith("all "):
        return f"{text}, {sources}"
    return f"{text}: {sources}"


def explain_sources(*described: str | None) -> str:
    """Say in a sentence what one must know of questions that a model proposed; empty where none
    did.

    :param described: what :func:`memlab.records.dataset.describe_sources` gives, of each group of
        questions.

    >>> from memlab.source_labels import explain_sources
    >>> explain_sources("all accepted")
    'The questions were proposed by a model and accepted by a person.'
    >>> explain_sources("1 proposed, 2 accepted", "all proposed")
    'Proposed questions were written by a model, and no person has read them.'
    >>> explain_sources("")
    ''
    """
    given = set(described) - {None, ""}
    for source, sentence in _ALL.items():
        if given == {f"all {source}"}:
            return sentence
    if any(_PROPOSED in str(text) for text in given):
        return _SOME
    return ""


def explain_question(source: object) -> str:
    """Say of one question who wrote it; empty where a person or a benchmark did.

    >>> from memlab.source_labels import explain_question
    >>> explain_question("proposed"), explain_question(None)
    ('proposed by a model, not read by a person', '')
    """
    return _ONE.get(str(source), "")


def source_note(frame: pl.DataFrame) -> str:
    """Say of a frame of means who wrote its questions: what stands below a table or a figure.

    :param frame: with ``question_sources`` and ``n``; without them the note is empty.

    >>> import polars as pl
    >>> from memlab.source_labels import source_note
    >>> means = pl.DataFrame({"n": [3], "question_sources": ["1 proposed, 2 accepted"]})
    >>> counts, said, _ = source_note(means).split(".")
    >>> counts
    'n = 3: 1 proposed, 2 accepted'
    >>> said
    ' Proposed questions were written by a model, and no person has read them'
    >>> source_note(pl.DataFrame({"n": [3]}))
    ''

    Where rows with one text have several n, such as those of causes, the n are of something else:

    >>> source_note(pl.DataFrame({"n": [3, 5], "question_sources": "1 proposed, 2 accepted"}))[:34]
    'Questions: 1 proposed, 2 accepted.'
    """
    if COLUMN not in frame.columns:
        return ""
    # Null where a row is of no questions.
    described = frame[COLUMN].drop_nulls().unique(maintain_order=True).to_list()
    explained = explain_sources(*described)
    if len(described) == 1 and str(described[0]).startswith("all "):
        return explained
    counted = []
    if "n" in frame.columns:
        pairs = frame.select("n", COLUMN).drop_nulls(COLUMN)
        counted = _count_by_text(pairs.unique(maintain_order=True))
    parts = ["; ".join(counted), explained.removesuffix(".")]
    said = ". ".join(filter(None, parts))
    if not said:
        return ""
    return f"{said}."


def _count_by_text(pairs: pl.DataFrame) -> list[str]:
    """Write each n with who wrote its questions, and no n where a text has several."""
    described = pairs[COLUMN].unique(maintain_order=True).to_list()
    if len(described) == 1 and pairs.height > 1:
        return [f"Questions: {text}" for text in described if text]
    return [f"n = {format_count(n, sources)}" for n, sources in pairs.iter_rows() if sources]
