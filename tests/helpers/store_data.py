"""Small datasets for the tests of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection

import numpy as np
import polars as pl

from memlab.embed.token_vectors import TokenVectors
from memlab.records import Annotation, Dataset, Issue, Question, Session, Turn, frame

NOW = datetime(2026, 1, 2, tzinfo=UTC)
WORDS = [
    "dentist",
    "doctor",
    "garden",
    "guitar",
    "violin",
    "bicycle",
    "coffee",
    "train",
    "library",
    "museum",
]
WORDS += [
    "recipe",
    "lasagna",
    "marathon",
    "shoes",
    "kitten",
    "puppy",
    "birthday",
    "invoice",
    "piano",
    "yoga",
]


def build(
    n_scopes: int = 3, n_sessions: int = 2, n_turns: int = 4, *, name: str = "small", seed: int = 0
) -> Dataset:
    rng = np.random.default_rng(seed)
    start = datetime(2024, 5, 1, 13, 56, tzinfo=UTC)
    turns, sessions, questions = [], [], []
    for c in range(n_scopes):
        scope = f"scope-{c}"
        for s in range(n_sessions):
            session = f"{scope}/session_{s}"
            when = start + timedelta(days=s)
            sessions.append(Session(session, scope, s + 1, when, when, n_turns, ["Ann", "Bo"]))
            for n in range(1, n_turns + 1):
                text = " ".join(rng.choice(WORDS, 6))
                turns.append(
                    Turn(f"{session}/{n}", scope, session, n, "Ann", "user", text, None, when)
                )
        evidence = [f"{scope}/session_{s}/1" for s in range(n_sessions)]
        found_in = [f"{scope}/session_{s}" for s in range(n_sessions)]
        questions.append(
            Question(
                f"{scope}/q0", scope, "How many?", "2", "multi-session", None, evidence, found_in
            )
        )
    return Dataset(
        name, "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions)
    )


def edited(data: Dataset, turn_id: str, **columns: str) -> Dataset:
    """Give a dataset in which one turn has other values in some columns."""
    there = pl.col("turn_id") == turn_id
    new = {c: pl.when(there).then(pl.lit(v)).otherwise(c) for c, v in columns.items()}
    return replace(data, turns=data.turns.with_columns(**new))


def ingest_slowly(place: str, written: Connection) -> None:
    """Ingest many scopes, a batch each, and send each that is written; to be killed on the way."""
    from memlab.store import MemoryStore, ingestion

    ingestion.BATCH_TURNS, whole = 1, build(20, 2, 6)
    MemoryStore.open(place).ingest(
        written.send(scope) or whole.take([scope]) for scope in whole.scopes
    )


AWKWARD = [
    "'; --",
    "50%25",
    'say "hi"',
    "it's",
    "emoji 🦊",
    "naïve-Ωmega",
    "a\\b",
    "null",
    "*",
    "_",
]


def awkward() -> Dataset:
    """Ids, texts, lists and times that a careless store breaks."""
    when = datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC)
    turns, sessions = [], []
    for i, scope in enumerate(AWKWARD):
        session = f"{scope}/s"
        sessions.append(
            Session(
                session, scope, 1, None if i % 2 else when, None, 1, [] if i % 2 else [scope, "é"]
            )
        )
        text = ["", "NUL \x00 inside", " \n\t ", "🦊" * 50, "OR AND NOT (\"x' +-^~*"][i % 5]
        caption = None if i % 3 else scope
        turns.append(
            Turn(
                f"{session}/1",
                scope,
                session,
                1,
                scope,
                "other",
                text,
                caption,
                None if i % 2 else when,
            )
        )
    questions = [
        Question("q'1", AWKWARD[0], "a?", None, "x", when, [], [], True, ["say 'no'"]),
        Question(
            'q"2', AWKWARD[1], "b?", "", "x", None, [turns[0].turn_id, "a/b/1"], ["it's/s"], False
        ),
    ]
    notes = [Annotation("a'1", AWKWARD[0], sessions[0].session_id, "event", "Ann", "text", [])]
    issues = [
        Issue("f.json: record 1: text", "'; --", "repaired"),
        Issue("f.json: record 2: text", "\x00", "repaired"),
    ]
    return Dataset(
        "it's/50%",
        "chatlog",
        frame(Turn, turns),
        frame(Session, sessions),
        frame(Question, questions),
        frame(Annotation, notes),
        frame(Issue, issues),
    )


@dataclass(frozen=True)
class Identity:
    name: str
    dim: int

    @property
    def key(self) -> str:
        return f"{self.name}_{self.dim}"


class FakeEncoder:
    """Follows the protocol of encoders, and remembers what it was asked."""

    def __init__(self, dim: int = 8, *, name: str = "fake") -> None:
        self.identity = Identity(name, dim)
        self.dim = dim
        self.asked: list[tuple[str, str]] = []
        self.fail_after: int | None = None
        self.spoil: float | None = None

    def encode(
        self, texts: list[str], *, kind: str = "document", progress: bool = True
    ) -> np.ndarray:
        if self.fail_after is not None and len(self.asked) + len(texts) > self.fail_after:
            raise KeyboardInterrupt
        self.asked += [(kind, text) for text in texts]
        vectors = self.vectors([f"{kind}:{text}" for text in texts])
        if self.spoil is not None and len(vectors) > 1:
            vectors[1, 0] = self.spoil
        return vectors

    def vectors(self, keys: list[str]) -> np.ndarray:
        seeds = [list(hashlib.sha256(key.encode()).digest()) for key in keys]
        vectors = np.array(
            [np.random.default_rng(seed).standard_normal(self.dim) for seed in seeds]
        )
        vectors = vectors.reshape(len(keys), self.dim)
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


class Words(FakeEncoder):
    """One token a word; a text's vector is wider than a token's, as with two poolings."""

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: str = "document",
        progress: bool = True,
    ) -> TokenVectors:
        keys = [
            f"{kind}:{lead}|{text}"
            for lead, text in zip(before or [""] * len(texts), texts, strict=True)
        ]
        self.asked += [("text", key) for key in keys]
        words = [
            (key, word) for key, text in zip(keys, texts, strict=True) for word in text.split()
        ]
        vectors = self.vectors([f"{key} {word}" for key, word in words])[:, : self.dim // 2]
        start = np.r_[0, np.cumsum([len(text.split()) for text in texts])]
        return TokenVectors(
            np.array([len(word) for _, word in words], np.int32), vectors.astype(np.float16), start
        )
