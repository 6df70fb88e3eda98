"""Passages: what a long message is cut into, so that an encoder reads all of it.

It ranks by its best part. A language model is shown short ones, with their day, their speaker and
what came before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import polars as pl

from memlab.embed.turn_texts import turn_texts
from memlab.retrieve.bench import Bench, cache_per_bench
from memlab.text.text_analyser import tokenize
from memlab.text.tokens_and_sentences import WORD_OR_SIGN, sentence_spans

LONG = 220
"""Words and signs of a turn up to which it is read as one: about what MiniLM reads, 256 tokens."""

SIZE = 45
"""Words and signs of a passage at most: about a turn between people, with which it competes."""

TOKENS = 256
CHARACTERS = 1_500
"""What an encoder has to read for both; they shrink with it.

They do not grow: of the long chats of ``data/heldout`` ``late`` completes .320 with
multilingual-e5-small, which reads 512 tokens, and .176 with passages twice as long (.180 where
turns of up to 440 words are read whole); see ``docs/evaluation/encoders.md``.
"""

_PIECE = re.compile(WORD_OR_SIGN)


@dataclass(frozen=True, eq=False)
class Passages:
    """The turns of a bench as passages; a turn that is not long is one, as it stands.

    :param texts: (p,) of the passages, who speaks before each.
    :param start: (n + 1,) where the passages of each turn begin; the last is p.
    """

    texts: list[str]
    start: np.ndarray

    @property
    def turn_of_passage(self) -> np.ndarray:
        """Which turn each passage belongs to: (p,)."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def passage_span_and_starts(self, turn_span: slice) -> tuple[slice, np.ndarray]:
        """Find the place of the passages of neighbouring turns, and where each turn's begin."""
        span_starts = self.start[turn_span]
        return slice(
            int(span_starts[0]), int(self.start[turn_span.stop])
        ), span_starts - span_starts[0]


def best_passage_scores(scores: np.ndarray, passage_starts: np.ndarray) -> np.ndarray:
    """Take the best score of each turn's passages: (q, p) → (q, n).

    ``passage_starts`` (n,) says where each turn's begin.
    """
    if scores.shape[1] == len(passage_starts):
        return scores
    best_scores: np.ndarray = np.maximum.reduceat(scores, passage_starts, axis=1)
    return best_scores


@lru_cache(maxsize=4_000)  # the questions of a large scope read the same turns again and again
def split_into_passages(text: str, max_words: int = SIZE) -> tuple[str, ...]:
    """Cut a text between sentences into parts of at most so many words and signs.

    Only a longer sentence is cut. Nothing but white space between the parts is lost.

    >>> from memlab.retrieve.passages import split_into_passages
    >>> split_into_passages("It rained. We stayed in and read. Then the sun came out.", max_words=9)
    ('It rained. We stayed in and read.', 'Then the sun came out.')
    """
    part_spans: list[tuple[int, int]] = []
    words_left = 0
    for span_start, span_end in sentence_spans(text):
        word_starts = [
            word_match.start() for word_match in _PIECE.finditer(text, span_start, span_end)
        ]
        if part_spans and len(word_starts) <= words_left:
            part_spans[-1] = part_spans[-1][0], span_end
            words_left -= len(word_starts)
            continue
        # A sentence of its own, or of several parts; the last of them may have room for the next.
        part_spans += pairwise([span_start, *word_starts[max_words::max_words], span_end])
        words_left = max_words - (len(word_starts) - 1) % max_words - 1
    return tuple(text[span_start:span_end].rstrip() for span_start, span_end in part_spans)


def max_words_of_turn_and_passage(bench: Bench) -> tuple[int, int]:
    """Work out the words and signs up to which a turn is read as one, and those of a passage.

    They follow from what the encoder reads. One that reads fewer tokens than MiniLM has shorter
    passages. One that reads more has the same, as has one that says nothing of its length, and a
    bench without one: a passage has to compete with turns between people.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.passages import max_words_of_turn_and_passage
    >>> bench = retrieve.Bench.of(sample(turns=10), encoder="minilm", progress=False)
    >>> max_words_of_turn_and_passage(bench)
    (220, 45)
    """
    if bench.encoder is None:
        return LONG, SIZE
    identity = bench.encoder.identity
    if identity.max_length is None:
        return LONG, SIZE
    usual_length = TOKENS
    if identity.kind == "endpoint":
        usual_length = CHARACTERS
    read_length = min(identity.max_length, usual_length)
    return max(1, LONG * read_length // usual_length), max(1, SIZE * read_length // usual_length)


@cache_per_bench
def cut_long_turns_into_passages(bench: Bench) -> Passages:
    """Cut the long turns of a bench into passages, once for all stages that encode them."""
    documents = bench.documents("turn")
    max_words, _ = max_words_of_turn_and_passage(bench)
    if not (documents.n_tokens > max_words).any():
        return Passages(documents.texts, np.arange(len(documents.texts) + 1))
    passages_as_turns = _passages_as_turn_rows(bench)
    passage_counts = np.bincount(passages_as_turns["at"].to_numpy(), minlength=len(documents.texts))
    return Passages(turn_texts(passages_as_turns.drop("at")), np.r_[0, np.cumsum(passage_counts)])


def _passages_as_turn_rows(bench: Bench) -> pl.DataFrame:
    """Write the passages as turns, with ``at``, the place of the turn that each is of.

    A caption is with the last.
    """
    documents = bench.documents("turn")
    placed_turns = documents.place_of_id.join(
        bench.turns, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left"
    )
    max_words_of_turn, max_words_of_passage = max_words_of_turn_and_passage(bench)
    passages_of_turns = []
    for text, n_tokens in zip(placed_turns["text"], documents.n_tokens, strict=True):
        text_parts: tuple[str, ...] = ()
        if n_tokens > max_words_of_turn:
            text_parts = split_into_passages(text, max_words_of_passage)
        passages_of_turns.append(text_parts or (text,))
    turn_rows = placed_turns.rename({"doc_id": "turn_id"}).with_columns(
        text=pl.Series(passages_of_turns, dtype=pl.List(pl.String))
    )
    is_last = pl.col("at") != pl.col("at").shift(-1)
    return turn_rows.explode("text").with_columns(
        caption=pl.when(is_last.fill_null(True)).then("caption")
    )


@cache_per_bench
def distinct_vectors_and_row_of_passage(bench: Bench) -> tuple[np.ndarray, np.ndarray]:
    """Embed the passages of long turns; the other turns are embedded already.

    :returns: (m, d) float32 unit rows, and (p,) which of them is that of each passage.
    :raises DataError: when the bench was made without an encoder.
    """
    turn_vectors = bench.documents("turn").vectors()
    passages = cut_long_turns_into_passages(bench)
    if len(passages.texts) == len(turn_vectors):
        return turn_vectors, np.arange(len(turn_vectors))
    passage_texts = passages.texts
    if bench.header:
        passage_texts = turn_texts(_passages_as_turn_rows(bench).drop("at"), header=bench.header)

    # A turn that is one passage has its vector; parts of others stand behind, equal texts once.
    vector_rows = passages.turn_of_passage
    is_part = (np.diff(passages.start) > 1)[vector_rows]
    part_places = np.flatnonzero(is_part)
    part_texts = [passage_texts[place] for place in part_places]
    distinct_texts = dict.fromkeys(part_texts)
    row_of_text = {
        text: vector_row for vector_row, text in enumerate(distinct_texts, len(turn_vectors))
    }
    vector_rows[part_places] = [row_of_text[text] for text in part_texts]
    part_vectors = bench.embedder().encode(list(distinct_texts))
    return np.concatenate([turn_vectors, part_vectors]), vector_rows


WORDS = 60
"""Words of a passage at most."""

BEFORE = 12
"""Words at most of the message before it, by which short messages are understood."""

STEP = 15
"""Words between the beginnings of the passages among which that of a long message is chosen."""


def add_text_and_shown_passage(ranked_turns: pl.DataFrame, bench: Bench) -> pl.DataFrame:
    """Write what a model reads of turns.

    A long message is cut to the passage of 60 words that shares most words with the question, the
    first of equals. A message of fewer words is shown with the end of the one before it in its
    session.

    :param ranked_turns: ``query_id``, ``doc_id`` of turns.
    :returns: ``ranked_turns`` with ``text``, the whole turn, and ``shown``: the day, in brackets
        the end of the message before, where it is shown, and the passage behind its speaker.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.passages import add_text_and_shown_passage
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> add_text_and_shown_passage(retrieve.bm25(bench, k=1).frame, bench)["shown"][0].split(".")[0]
    'Thu 11 Sep 2025'
    """
    documents = bench.documents("turn")
    day_of_turn, text_before_turn = _day_and_previous_text_of_turns(bench)
    question_words = [frozenset(words) for words in bench.query_words]
    question_rows = bench.join_question_columns(ranked_turns.select("query_id"), "row")[
        "row"
    ].to_list()
    turn_places = documents.at(ranked_turns["doc_id"]).tolist()
    texts_of_turns = []
    shown_passages = []
    for turn_place, question_row in zip(turn_places, question_rows, strict=True):
        turn_text = documents.texts[turn_place]
        best_passage = _passage_with_most_question_words(
            turn_text, question_words[question_row], bench.language
        )
        context_words = _bracket_last_words_of_previous_turn(
            text_before_turn[turn_place], WORDS - len(best_passage.split())
        )
        texts_of_turns.append(turn_text)
        shown_passages.append(f"{day_of_turn[turn_place]}. {context_words}{best_passage}")
    return ranked_turns.with_columns(
        text=pl.Series(texts_of_turns, dtype=pl.String),
        shown=pl.Series(shown_passages, dtype=pl.String),
    )


def _bracket_last_words_of_previous_turn(message: str, words_left: int) -> str:
    """Write the last words of the message before, in brackets, as far as there is room."""
    n_words = min(BEFORE, words_left)
    if n_words <= 0 or not message:
        return ""
    return f"[{' '.join(message.split()[-n_words:])}] "


@cache_per_bench
def _day_and_previous_text_of_turns(bench: Bench) -> tuple[list[str], list[str]]:
    """List the day of each turn, and the text of the turn before it in its session.

    That of the first of a session is empty.
    """
    documents = bench.documents("turn")
    session_starts = bench.sessions.select("session_id", "start")
    timed_turns = bench.turns.join(
        session_starts, on="session_id", how="left", maintain_order="left"
    )
    turn_days = timed_turns.select(
        doc_id="turn_id", day=pl.coalesce("timestamp", "start").dt.strftime("%a %-d %b %Y")
    )
    placed_days = documents.place_of_id.join(
        turn_days, on="doc_id", how="left", maintain_order="left"
    )
    texts_before = ["", *documents.texts[:-1]]
    is_first_of_session = np.concatenate([[True], documents.session[1:] != documents.session[:-1]])
    for place in np.flatnonzero(is_first_of_session):
        texts_before[place] = ""
    return placed_days["day"].fill_null("").to_list(), texts_before


def _passage_with_most_question_words(
    turn_text: str, question_words: frozenset[str], language: str
) -> str:
    """Cut a text to its best passage; who speaks stays before it."""
    words = turn_text.split()
    if len(words) <= WORDS:
        return turn_text
    passage_starts = range(0, max(1, len(words) - WORDS + STEP), STEP)
    word_windows = [
        " ".join(words[window_start : window_start + WORDS]) for window_start in passage_starts
    ]
    terms_of_passages = tokenize(word_windows, language=language)
    shared_counts = [len(question_words.intersection(terms)) for terms in terms_of_passages]
    best_window = int(np.argmax(shared_counts))
    speaker, colon, _ = turn_text.partition(": ")
    is_spoken = colon != "" and len(speaker.split()) <= 3
    # The first passage has its speaker.
    if best_window > 0 and is_spoken:
        return f"{speaker}: {word_windows[best_window]}"
    return word_windows[best_window]
