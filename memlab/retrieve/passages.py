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
    def of(self) -> np.ndarray:
        """Which turn each passage belongs to: (p,)."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def within(self, turns: slice) -> tuple[slice, np.ndarray]:
        """Find the place of the passages of neighbouring turns, and where each turn's begin."""
        first = self.start[turns]
        return slice(int(first[0]), int(self.start[turns.stop])), first - first[0]


def best_passage_scores(scores: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Take the best score of each turn's passages: (q, p) → (q, n).

    ``start`` (n,) says where each turn's begin.
    """
    if scores.shape[1] == len(start):
        return scores
    best: np.ndarray = np.maximum.reduceat(scores, start, axis=1)
    return best


@lru_cache(maxsize=4_000)  # the questions of a large scope read the same turns again and again
def split_text(text: str, size: int = SIZE) -> tuple[str, ...]:
    """Cut a text between sentences into parts of at most so many words and signs.

    Only a longer sentence is cut. Nothing but white space between the parts is lost.

    >>> from memlab.retrieve.passages import split_text
    >>> split_text("It rained. We stayed in and read. Then the sun came out.", size=9)
    ('It rained. We stayed in and read.', 'Then the sun came out.')
    """
    parts: list[tuple[int, int]] = []
    room = 0
    for start, end in sentence_spans(text):
        pieces = [match.start() for match in _PIECE.finditer(text, start, end)]
        if parts and len(pieces) <= room:
            parts[-1] = parts[-1][0], end
            room -= len(pieces)
            continue
        # A sentence of its own, or of several parts; the last of them may have room for the next.
        parts += pairwise([start, *pieces[size::size], end])
        room = size - (len(pieces) - 1) % size - 1
    return tuple(text[start:end].rstrip() for start, end in parts)


def passage_limits(bench: Bench) -> tuple[int, int]:
    """Work out the words and signs up to which a turn is read as one, and those of a passage.

    They follow from what the encoder reads. One that reads fewer tokens than MiniLM has shorter
    passages. One that reads more has the same, as has one that says nothing of its length, and a
    bench without one: a passage has to compete with turns between people.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.passages import passage_limits
    >>> passage_limits(retrieve.Bench.of(sample(turns=10), encoder="minilm", progress=False))
    (220, 45)
    """
    if bench.encoder is None:
        return LONG, SIZE
    identity = bench.encoder.identity
    if identity.max_length is None:
        return LONG, SIZE
    usual = TOKENS
    if identity.kind == "endpoint":
        usual = CHARACTERS
    read = min(identity.max_length, usual)
    return max(1, LONG * read // usual), max(1, SIZE * read // usual)


@cache_per_bench
def cut_passages(bench: Bench) -> Passages:
    """Cut the long turns of a bench into passages, once for all stages that encode them."""
    documents = bench.documents("turn")
    longest, _ = passage_limits(bench)
    if not (documents.n_tokens > longest).any():
        return Passages(documents.texts, np.arange(len(documents.texts) + 1))
    rows = _passage_rows(bench)
    counts = np.bincount(rows["at"].to_numpy(), minlength=len(documents.texts))
    return Passages(turn_texts(rows.drop("at")), np.r_[0, np.cumsum(counts)])


def _passage_rows(bench: Bench) -> pl.DataFrame:
    """Write the passages as turns, with ``at``, the place of the turn that each is of.

    A caption is with the last.
    """
    documents = bench.documents("turn")
    placed = documents.place.join(
        bench.turns, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left"
    )
    longest, size = passage_limits(bench)
    texts = []
    for text, n in zip(placed["text"], documents.n_tokens, strict=True):
        parts: tuple[str, ...] = ()
        if n > longest:
            parts = split_text(text, size)
        texts.append(parts or (text,))
    rows = placed.rename({"doc_id": "turn_id"}).with_columns(
        text=pl.Series(texts, dtype=pl.List(pl.String))
    )
    last = pl.col("at") != pl.col("at").shift(-1)
    return rows.explode("text").with_columns(caption=pl.when(last.fill_null(True)).then("caption"))


@cache_per_bench
def passage_vectors(bench: Bench) -> tuple[np.ndarray, np.ndarray]:
    """Embed the passages of long turns; the other turns are embedded already.

    :returns: (m, d) float32 unit rows, and (p,) which of them is that of each passage.
    :raises DataError: when the bench was made without an encoder.
    """
    turn_vectors = bench.documents("turn").vectors()
    passages = cut_passages(bench)
    if len(passages.texts) == len(turn_vectors):
        return turn_vectors, np.arange(len(turn_vectors))
    texts = passages.texts
    if bench.header:
        texts = turn_texts(_passage_rows(bench).drop("at"), header=bench.header)

    # A turn that is one passage has its vector; parts of others stand behind, equal texts once.
    rows = passages.of
    is_part = (np.diff(passages.start) > 1)[rows]
    parts = np.flatnonzero(is_part)
    part_texts = [texts[place] for place in parts]
    distinct = dict.fromkeys(part_texts)
    row_by_text = {text: row for row, text in enumerate(distinct, len(turn_vectors))}
    rows[parts] = [row_by_text[text] for text in part_texts]
    part_vectors = bench.embedder().encode(list(distinct))
    return np.concatenate([turn_vectors, part_vectors]), rows


WORDS = 60
"""Words of a passage at most."""

BEFORE = 12
"""Words at most of the message before it, by which short messages are understood."""

STEP = 15
"""Words between the beginnings of the passages among which that of a long message is chosen."""


def format_passages(rows: pl.DataFrame, bench: Bench) -> pl.DataFrame:
    """Write what a model reads of turns.

    A long message is cut to the passage of 60 words that shares most words with the question, the
    first of equals. A message of fewer words is shown with the end of the one before it in its
    session.

    :param rows: ``query_id``, ``doc_id`` of turns.
    :returns: ``rows`` with ``text``, the whole turn, and ``shown``: the day, in brackets the end of
        the message before, where it is shown, and the passage behind its speaker.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.passages import format_passages
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> format_passages(retrieve.bm25(bench, k=1).frame, bench)["shown"][0].split(".")[0]
    'Thu 11 Sep 2025'
    """
    documents = bench.documents("turn")
    days, before = _days_and_contexts(bench)
    question_words = [frozenset(words) for words in bench.query_words]
    questions = bench.asked(rows.select("query_id"), "row")["row"].to_list()
    turns = documents.at(rows["doc_id"]).tolist()
    texts = []
    shown = []
    for turn, question in zip(turns, questions, strict=True):
        text = documents.texts[turn]
        passage = _best_passage(text, question_words[question], bench.language)
        context = _end_of_message(before[turn], WORDS - len(passage.split()))
        texts.append(text)
        shown.append(f"{days[turn]}. {context}{passage}")
    return rows.with_columns(
        text=pl.Series(texts, dtype=pl.String), shown=pl.Series(shown, dtype=pl.String)
    )


def _end_of_message(text: str, room: int) -> str:
    """Write the last words of the message before, in brackets, as far as there is room."""
    n_words = min(BEFORE, room)
    if n_words <= 0 or not text:
        return ""
    return f"[{' '.join(text.split()[-n_words:])}] "


@cache_per_bench
def _days_and_contexts(bench: Bench) -> tuple[list[str], list[str]]:
    """List the day of each turn, and the text of the turn before it in its session.

    That of the first of a session is empty.
    """
    documents = bench.documents("turn")
    starts = bench.sessions.select("session_id", "start")
    turns = bench.turns.join(starts, on="session_id", how="left", maintain_order="left")
    times = turns.select(
        doc_id="turn_id", day=pl.coalesce("timestamp", "start").dt.strftime("%a %-d %b %Y")
    )
    placed = documents.place.join(times, on="doc_id", how="left", maintain_order="left")
    contexts = ["", *documents.texts[:-1]]
    is_first = np.concatenate([[True], documents.session[1:] != documents.session[:-1]])
    for place in np.flatnonzero(is_first):
        contexts[place] = ""
    return placed["day"].fill_null("").to_list(), contexts


def _best_passage(text: str, wanted: frozenset[str], language: str) -> str:
    """Cut a text to its best passage; who speaks stays before it."""
    words = text.split()
    if len(words) <= WORDS:
        return text
    starts = range(0, max(1, len(words) - WORDS + STEP), STEP)
    passages = [" ".join(words[start : start + WORDS]) for start in starts]
    terms_of_passages = tokenize(passages, language=language)
    shared = [len(wanted.intersection(terms)) for terms in terms_of_passages]
    best = int(np.argmax(shared))
    speaker, colon, _ = text.partition(": ")
    is_spoken = colon != "" and len(speaker.split()) <= 3
    # The first passage has its speaker.
    if best > 0 and is_spoken:
        return f"{speaker}: {passages[best]}"
    return passages[best]
