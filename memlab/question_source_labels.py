"""Who wrote the questions that were measured, as tables, figures and reports say it beside n.

Frames of means say it in ``question_sources``, a text beside ``n``, which is there only where some
question is not written by a person or a benchmark (:data:`memlab.records.dataset.SOURCES`).
"""

from __future__ import annotations

import polars as pl

_PROPOSED = "proposed"
_ACCEPTED = "accepted"
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


def format_question_count(n: int | str, source_text: str | None) -> str:
    """Write a number of questions, and who wrote them where not all are written.

    :param source_text: what
        :func:`memlab.records.dataset.describe_question_sources_or_empty` gives.

    >>> from memlab.question_source_labels import format_question_count
    >>> format_question_count(1200, ""), format_question_count(60, "all proposed")
    ('1,200', '60, all proposed')
    >>> format_question_count(60, "40 proposed, 20 accepted")
    '60: 40 proposed, 20 accepted'
    """
    count_text = n
    if isinstance(n, int):
        count_text = f"{n:,}"
    if not source_text:
        return str(count_text)
    if source_text.startswith("all "):
        return f"{count_text}, {source_text}"
    return f"{count_text}: {source_text}"


def explain_question_sources_or_empty(*source_texts: str | None) -> str:
    """Say in a sentence what one must know of questions that a model proposed; empty where none
    did.

    :param source_texts: what
        :func:`memlab.records.dataset.describe_question_sources_or_empty` gives, for each group of
        questions.

    >>> from memlab.question_source_labels import explain_question_sources_or_empty
    >>> explain_question_sources_or_empty("all accepted")
    'The questions were proposed by a model and accepted by a person.'
    >>> explain_question_sources_or_empty("1 proposed, 2 accepted", "all proposed")
    'Proposed questions were written by a model, and no person has read them.'
    >>> explain_question_sources_or_empty("")
    ''
    """
    given_texts = set(source_texts) - {None, ""}
    for source, sentence in _ALL.items():
        if given_texts == {f"all {source}"}:
            return sentence
    if any(_PROPOSED in str(given_text) for given_text in given_texts):
        return _SOME
    return ""


def explain_question_source_or_empty(source: object) -> str:
    """Say of one question who wrote it; empty where a person or a benchmark did.

    >>> from memlab.question_source_labels import explain_question_source_or_empty
    >>> explain_question_source_or_empty("proposed"), explain_question_source_or_empty(None)
    ('proposed by a model, not read by a person', '')
    """
    return _ONE.get(str(source), "")


def question_sources_note_or_empty(frame: pl.DataFrame) -> str:
    """Say of a frame of means who wrote its questions: what stands below a table or a figure.

    :param frame: with ``question_sources`` and ``n``; without them the note is empty.

    >>> import polars as pl
    >>> from memlab.question_source_labels import question_sources_note_or_empty
    >>> means = pl.DataFrame({"n": [3], "question_sources": ["1 proposed, 2 accepted"]})
    >>> counts, said, _ = question_sources_note_or_empty(means).split(".")
    >>> counts
    'n = 3: 1 proposed, 2 accepted'
    >>> said
    ' Proposed questions were written by a model, and no person has read them'
    >>> question_sources_note_or_empty(pl.DataFrame({"n": [3]}))
    ''

    Where rows with one text have several n, such as those of causes, the n are of something else:

    >>> causes = pl.DataFrame({"n": [3, 5], "question_sources": "1 proposed, 2 accepted"})
    >>> question_sources_note_or_empty(causes)[:34]
    'Questions: 1 proposed, 2 accepted.'
    """
    if COLUMN not in frame.columns:
        return ""
    # Null where a row is of no questions.
    source_texts = frame[COLUMN].drop_nulls().unique(maintain_order=True).to_list()
    explanation = explain_question_sources_or_empty(*source_texts)
    if len(source_texts) == 1 and str(source_texts[0]).startswith("all "):
        return explanation
    count_texts = []
    if "n" in frame.columns:
        counts_and_sources = frame.select("n", COLUMN).drop_nulls(COLUMN)
        count_texts = _counts_with_source_texts(counts_and_sources.unique(maintain_order=True))
    note_parts = ["; ".join(count_texts), explanation.removesuffix(".")]
    note_text = ". ".join(filter(None, note_parts))
    if not note_text:
        return ""
    return f"{note_text}."


def _counts_with_source_texts(counts_and_sources: pl.DataFrame) -> list[str]:
    """Write each n with who wrote its questions, and no n where a text has several."""
    source_texts = counts_and_sources[COLUMN].unique(maintain_order=True).to_list()
    if len(source_texts) == 1 and counts_and_sources.height > 1:
        return [f"Questions: {text}" for text in source_texts if text]
    return [
        f"n = {format_question_count(n, sources)}"
        for n, sources in counts_and_sources.iter_rows()
        if sources
    ]
