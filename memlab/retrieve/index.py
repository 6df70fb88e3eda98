"""What is searched: the documents of a level, and what is worked out from them, each thing once.

A bench and every bench made of it share one :class:`Corpus`. Statistics of words are those of a scope, since a memory
knows nothing of other people's: :meth:`Documents.words_in` gives them, for BM25 and for every stage that weighs words.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.text import session_lines, session_texts, turn_texts
from memlab.errors import DataError
from memlab.language.analysis import tokenize
from memlab.language.tokens import PIECE
from memlab.records import Level
from memlab.retrieve.arrays import units

PASSAGE_K1, PASSAGE_B = 0.9, 0.4

TIES = 0
"""Seed of the order of documents that tie."""

# Of questions that are scored at a time, so that sparse products stay small.
_BLOCK = 256


class Lazy:
    """A field that may be given as a function, called when the field is read; ``None`` by default."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        value = None if instance is None else instance.__dict__[self.name]
        return value() if callable(value) else value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value


def rarity(frequency: np.ndarray, n: float) -> np.ndarray:
    """Give the inverse document frequency of words, as BM25 has it.

    :param frequency: in how many of the ``n`` documents each word stands.

    >>> import numpy as np
    >>> from memlab.retrieve.index import rarity
    >>> rarity(np.array([1.0, 9.0]), 9).round(2).tolist()
    [1.9, 0.05]
    """
    rare: np.ndarray = np.log1p((n - frequency + 0.5) / (frequency + 0.5))
    return rare


@dataclass(frozen=True, eq=False)
class ScopeWords:
    """The words of one scope's n documents.

    :param number: word → its row.
    :param counts: (v, n) sparse: how often each word stands in each document.
    :param lengths: (n,) words of each document.
    :param weight: (n,) how many documents each stands for.
    """

    number: Mapping[str, int]
    counts: Any
    lengths: np.ndarray
    weight: np.ndarray
    _weights: dict[tuple[float, float], Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], weight: np.ndarray | None = None) -> ScopeWords:
        """Count the words of texts that are split already."""
        from scipy.sparse import csr_array

        number: dict[str, int] = {}
        rows = numbered(texts, number)
        lengths = np.array([len(words) for words in texts], dtype=np.int64)
        columns = np.repeat(np.arange(len(texts)), lengths)
        counts = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(number), len(texts)))
        return cls(number, counts, lengths, np.ones(len(texts)) if weight is None else weight)

    @cached_property
    def n(self) -> float:
        """Say how many documents there are."""
        return float(self.weight.sum())

    @cached_property
    def mean_length(self) -> float:
        """Give the words of a document on average; 1 where there are none."""
        return float(self.lengths @ self.weight / self.n) if self.lengths.any() else 1.0

    @cached_property
    def frequency(self) -> np.ndarray:
        """Say in how many documents each word stands: (v,)."""
        frequency: np.ndarray = np.add.reduceat(np.r_[self.weight[self.counts.indices], 0], self.counts.indptr[:-1])
        return frequency

    @cached_property
    def rarity(self) -> np.ndarray:
        """Give each word's inverse document frequency: (v,); see :func:`rarity`."""
        return rarity(self.frequency, self.n)

    @cached_property
    def normalisation(self) -> tuple[float, float]:
        """Choose BM25's k1 and b for turns of such lengths.

        Turns of people who chat are all short, and their length says little. Where an assistant writes pages between
        them, its turns hold every word, and must be read against their length. So b is the squared coefficient of
        variation of the lengths, from the usual b of passages (0.4), which holds where people talk to each other
        (about 0.25), to 1, where lengths spread as wide as their mean.

        Source: k1 and the least b: the usual ones for passages (Anserini); why texts that are long by verbosity need
        normalisation: Robertson and Walker (SIGIR 1994). Measured over k1 from 0.5 to 3 and b from 0.2 to 1, turns
        all@10, against b = 0.4: LoCoMo (spread .29) and pooled LongMemEval (.24) are as they were; LoCoMo with one
        speaker's turns drawn out to 500 characters (.7) .571 → .576 and to 3,000 (1.3) .487 → .513, LongMemEval with
        long answers between (1.1) .478 → .659.
        """
        variance = (self.lengths - self.mean_length) ** 2 @ self.weight / self.n
        spread = float(variance / self.mean_length**2)
        return PASSAGE_K1, min(1.0, max(PASSAGE_B, spread))

    def matches(self, k1: float, b: float) -> Any:
        """Say how well each document matches each word, from 0 (absent) towards 1, as BM25 counts it: (v, n) sparse.

        :param k1: how soon further occurrences stop to count.
        :param b: how much a long document loses.
        """
        norm = k1 * (1 - b + b * self.lengths / self.mean_length)
        matches = self.counts.copy()
        matches.data = matches.data / (matches.data + norm[matches.indices])
        return matches

    def weights(self, k1: float, b: float) -> Any:
        """Give each document's BM25 score for each word alone: (v, n) sparse float64."""
        from scipy.sparse import dia_array

        if (k1, b) not in self._weights:
            v = len(self.number)
            rarity = dia_array((self.rarity[None], [0]), shape=(v, v))
            self._weights[k1, b] = (rarity @ self.matches(k1, b)).tocsr()
        return self._weights[k1, b]

    def holding(self, words: Iterable[str]) -> np.ndarray:
        """Say which documents hold which of some words: (n, w) bool."""
        numbers = np.array([self.number.get(word, -1) for word in words], np.int64)
        there = np.zeros((len(self.lengths), len(numbers)), bool)
        known = numbers >= 0
        there[:, known] = self.counts[numbers[known]].toarray().T > 0
        return there

    def asked(self, texts: Sequence[Sequence[str]]) -> Any:
        """Count the scope's words in other texts, such as questions: (q, v) sparse."""
        from scipy.sparse import csr_array

        numbers = [[self.number[word] for word in words if word in self.number] for words in texts]
        rows = np.repeat(np.arange(len(numbers)), [len(words) for words in numbers])
        columns = np.array([number for words in numbers for number in words], dtype=np.int64)
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(numbers), len(self.number)))

    def scores(self, texts: Sequence[Sequence[str]], k1: float, b: float) -> np.ndarray:
        """Score every document for questions by BM25 (Lucene's variant): (q, n) float32."""
        asked, weights = self.asked(texts), self.weights(k1, b)
        scores = np.zeros((asked.shape[0], len(self.lengths)), np.float32)
        for start in range(0, len(scores), _BLOCK):
            scores[start : start + _BLOCK] = (asked[start : start + _BLOCK] @ weights).toarray()
        return scores


def numbered(texts: Iterable[Sequence[str]], number: dict[str, int]) -> np.ndarray:
    """Give the numbers of all words of texts, one text after the other: (t,) int64; new words get the next ones.

    >>> from memlab.retrieve.index import numbered
    >>> numbered([["a", "b"], ["a"]], {"b": 0}).tolist()
    [1, 0, 1]
    """
    words = list(chain.from_iterable(texts))
    for word in dict.fromkeys(words):
        number.setdefault(word, len(number))
    return np.fromiter(map(number.__getitem__, words), np.int64, len(words))


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of one level, grouped by scope: each scope's documents are neighbours, in order of time.

    :param ids: (n,) document ids.
    :param session: (n,) number of the session that each document belongs to.
    :param spans: scope → (first, last + 1) place of its documents.
    :param texts: (n,) what BM25 and encoders read.
    :param embeddings: (n, d) float32 unit rows; for sessions the normalised mean of their turns; ``None`` where no
        encoder was given.
    :param language: that the texts are read in.
    :param weight: (n,) how many of the scope's documents each stands for, see :mod:`memlab.retrieve.candidates`;
        ``None`` where all are here and each stands for itself.
    :param split: gives the words of the texts where that is sooner than to split them.
    :param made: what :func:`memlab.retrieve.bench.once` keeps.
    """

    ids: np.ndarray
    session: np.ndarray
    spans: Mapping[str, tuple[int, int]]
    texts: Lazy = Lazy()
    embeddings: Lazy = Lazy()
    language: str = "en"
    weight: np.ndarray | None = None
    split: Callable[[], list[list[str]]] | None = field(default=None, repr=False)
    made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)
    _words_in: dict[tuple[int, int], ScopeWords] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def place(self) -> pl.DataFrame:
        """Give the place of each id: ``doc_id``, ``at``."""
        return pl.DataFrame({"doc_id": pl.Series(self.ids, dtype=pl.String), "at": np.arange(len(self.ids))})

    @cached_property
    def lot(self) -> np.ndarray:
        """Give the order in which documents stand that tie: (n,) a permutation, by a seeded hash of their texts.

        Not by age, which says where a benchmark put its evidence, and not by id, which in some gives the label away.
        Of equal texts each has a hash of its own.
        """
        seen: dict[str, int] = {}
        hashes = np.zeros(len(self.ids), np.uint64)
        for i, text in enumerate(self.texts):
            seen[text] = seen.get(text, 0) + 1
            read = f"{TIES}:{seen[text]}:{text}".encode("utf-8", "surrogatepass")
            hashes[i] = int.from_bytes(blake2b(read, digest_size=8).digest())
        return np.argsort(np.argsort(hashes, kind="stable"), kind="stable")

    @cached_property
    def n_tokens(self) -> np.ndarray:
        """Count each document's words and punctuation marks: (n,) a token count that needs no model."""
        return pl.Series(self.texts, dtype=pl.String).str.count_matches(PIECE).to_numpy().astype(np.int64)

    @cached_property
    def words(self) -> list[list[str]]:
        """Give each document's words, see :func:`memlab.language.analysis.tokenize`."""
        return tokenize(self.texts, language=self.language) if self.split is None else self.split()

    def words_in(self, span: slice) -> ScopeWords:
        """Give the statistics of words of one scope.

        :param span: where the scope's documents are.
        """
        place = span.start, span.stop
        if place not in self._words_in:
            self._words_in[place] = ScopeWords.of(self.words[span], self.weight_in(span))
        return self._words_in[place]

    def rarities(self, words: pl.DataFrame) -> pl.DataFrame:
        """Look words up in their scopes.

        :param words: ``scope``, ``word``.
        :returns: ``scope``, ``word``, ``rarity``, ``frequency`` (in how many documents it stands); each once, and only
            what the scope has.
        """
        schema = {"scope": pl.String, "word": pl.String, "rarity": pl.Float64, "frequency": pl.Float64}
        parts = [pl.DataFrame(schema=schema)]
        by_scope = words.group_by("scope", maintain_order=True).agg(pl.col("word").unique(maintain_order=True))
        for scope, wanted in by_scope.iter_rows():
            known = self.words_in(slice(*self.spans[scope]))
            inside = [word for word in wanted if word in known.number]
            at = np.array([known.number[word] for word in inside], dtype=np.int64)
            columns = {"word": inside, "rarity": known.rarity[at], "frequency": known.frequency[at]}
            parts.append(pl.DataFrame({"scope": [scope] * len(inside), **columns}, schema=schema))
        return pl.concat(parts)

    def weight_in(self, span: slice) -> np.ndarray | None:
        """Give how many documents each of a scope's stands for, see :attr:`weight`."""
        return None if self.weight is None else self.weight[span]

    def at(self, doc_ids: pl.Series) -> np.ndarray:
        """Give the places of ids.

        :raises DataError: for an id that is not among the documents.
        """
        places = pl.DataFrame({"doc_id": doc_ids}).join(self.place, on="doc_id", how="left", maintain_order="left")
        if places["at"].null_count():
            missing = doc_ids.filter(places["at"].is_null())[0]
            raise DataError(f"document {missing!r} is not in this bench; rank with the dataset that the bench holds")
        return places["at"].to_numpy()

    def vectors(self) -> np.ndarray:
        """Give the embeddings.

        :raises DataError: when the bench was made without an encoder.
        """
        vectors: np.ndarray | None = self.embeddings
        if vectors is None:
            raise DataError("this stage needs embeddings: make the bench with an encoder, such as encoder='minilm'")
        return vectors


@dataclass(frozen=True, eq=False)
class Corpus:
    """The conversations of a bench as documents of both levels.

    :param name: the dataset's name.
    :param turns: the dataset's turns, in the order of ``vectors``.
    :param sessions: the dataset's sessions; where they are some of many, ``weight`` says how many each stands for.
    :param vectors: (n turns, d) float32 unit rows, or ``None``.
    :param language: of the conversations.
    """

    name: str
    turns: pl.DataFrame
    sessions: pl.DataFrame
    vectors: Lazy = Lazy()
    language: str = "en"

    def made_of(self, turns: pl.DataFrame, sessions: pl.DataFrame, vectors: Any, language: str) -> bool:
        """Whether this is the corpus of just these: frames and vectors are not compared, they are the same objects."""
        own = self.__dict__["vectors"]
        same = own is vectors or (callable(own) and vectors is not None and self.vectors is vectors)
        same &= self.turns is turns and self.sessions is sessions
        return same and self.language == language

    @cached_property
    def levels(self) -> dict[Level, Documents]:
        """Put turns and sessions in order of scope and time.

        :raises DataError: for a turn of a session that is not listed.
        """
        order = self.sessions.sort("scope", "n", maintain_order=True).with_row_index("session")
        placed = self.turns.with_row_index("row").join(
            order.select("session_id", "session"), on="session_id", how="left", maintain_order="left"
        )
        homeless = placed.filter(pl.col("session").is_null())
        if homeless.height:
            turn, session = homeless.row(0, named=True)["turn_id"], homeless.row(0, named=True)["session_id"]
            raise DataError(f"turn {turn!r} belongs to session {session!r}, which dataset {self.name!r} does not list")
        placed = placed.sort("session", "n", maintain_order=True)
        rows = placed["row"].to_numpy()
        session = placed["session"].to_numpy().astype(np.int64)
        of_turns = of_sessions = None
        if self.__dict__["vectors"] is not None:
            of_turns = cache(lambda: np.ascontiguousarray(self.vectors[rows]))
            of_sessions = cache(lambda: mean_by(of_turns(), session, order.height))
        weight = order["weight"].to_numpy() if "weight" in order.columns else None
        turns = Documents(
            placed["turn_id"].to_numpy(),
            session,
            _spans(placed["scope"]),
            turn_texts(placed.drop("row", "session")),
            of_turns,
            self.language,
            None if weight is None else weight[session],
        )
        sessions = Documents(
            order["session_id"].to_numpy(),
            np.arange(order.height),
            _spans(order["scope"]),
            cache(lambda: session_texts(placed.drop("row", "session"), order.drop("session"))),
            of_sessions,
            self.language,
            weight,
            lambda: _session_words(turns, placed, order),
        )
        return {"turn": turns, "session": sessions}


def _session_words(turns: Documents, placed: pl.DataFrame, order: pl.DataFrame) -> list[list[str]]:
    """Give the words of sessions: those of their days and of their turns, of which only captions are written otherwise.

    :param placed: the turns, in the order of the documents, and ``order`` the sessions.
    """
    words = tokenize(session_texts(placed.clear(), order), language=turns.language)
    captioned = placed["caption"].is_not_null().to_numpy()
    bare = iter(tokenize(session_lines(placed.filter(captioned)), language=turns.language))
    for session, own, other in zip(turns.session, turns.words, captioned, strict=True):
        words[session] += next(bare) if other else own
    return words


def _spans(scopes: pl.Series) -> dict[str, tuple[int, int]]:
    runs = (
        pl.DataFrame({"scope": scopes})
        .with_row_index("at")
        .group_by("scope", maintain_order=True)
        .agg(first=pl.col("at").min(), last=pl.col("at").max() + 1)
    )
    return {scope: (first, last) for scope, first, last in runs.iter_rows()}


def mean_by(vectors: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Average unit rows within groups and normalise: (n_groups, d); a group without rows gives zeros."""
    from scipy.sparse import csr_array

    member = csr_array((np.ones(len(group), np.float32), (group, np.arange(len(group)))), shape=(n_groups, len(group)))
    means = np.asarray(member @ vectors, dtype=np.float32)
    return units(means)
