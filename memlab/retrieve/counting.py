"""Counting the words and tokens of large scopes when they are ingested, and in which turns each of them stands.

What :mod:`memlab.retrieve.narrow` needs of a whole scope, so that no question waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.embed.tokens import TokenEncoder, TokenVectors, signs
from memlab.records import LEVELS, Level
from memlab.retrieve import narrow
from memlab.retrieve.arrays import starts
from memlab.retrieve.bench import Bench
from memlab.retrieve.index import numbered
from memlab.retrieve.late import scope_tokens, token_pairs
from memlab.retrieve.passages import passage_vectors
from memlab.store.postings import Posting, Shared

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.store import MemoryStore

BLOCK = 3_000
"""Turns whose tokens are looked up together."""

TIDY = 50
"""Such blocks, after which the files of the tokens are joined."""

MEAN_OF = 256
"""Tokens of a number whose mean is taken for all."""


def fill(store: MemoryStore, dataset: str, encoder: Encoder, *, progress: bool = True) -> int:
    """Count the words of large scopes, embed their tokens and keep where both stand, so that no question waits for it.

    What is embedded already is not embedded again. Scopes that are not indexed are left out: nobody would look there.

    :returns: of how many turns there are tokens now, those of the large scopes.
    """
    from tqdm.auto import tqdm

    from memlab.store import cached

    large = [scope for scope in store.scopes(dataset) if narrow.applies(store, dataset, scope, encoder)]
    total = sum(store.search.size(dataset, scope) for scope in large)
    column = store.vectors.column(encoder)
    language = store.datasets().filter(name=dataset)["language"][0] if large else ""
    with tqdm(total=total, desc="words and tokens", unit=" turns", disable=not progress or not total) as bar:
        for scope in large:
            listed, counted = store.search.sessions_of(dataset, scope), Gathering()
            block = listed["n_turns"].cum_sum() // BLOCK
            for (at,), part in listed.group_by(block, maintain_order=True):
                if at % TIDY == TIDY - 1 and isinstance(encoder, TokenEncoder):
                    store.tokens.arrange(encoder)  # what is looked up among ever more files takes ever longer
                turns, sessions, vectors = store.search.turns_of(dataset, scope, part["place"].to_list(), column=column)
                own: dict[str, Any] = {"store": store, "encoder": cached(store, encoder), "language": language}
                own |= {"turns": turns.drop("at"), "sessions": sessions.drop("place"), "turn_vectors": vectors}
                counted.add(Bench(dataset, queries=narrow.NO_QUESTIONS, **own))
                bar.update(turns.height)
            store.search.keep_counts(encoder, dataset, scope, language, counted.counts())
            store.postings.keep(encoder, dataset, scope, counted.terms(), counted.shared())
    if not large or not isinstance(encoder, TokenEncoder):
        return 0
    store.tokens.arrange(encoder)
    return total


class Gathering:
    """Where the words and tokens of a scope stand, gathered some turns at a time, in the order of the scope."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.lengths: dict[Level, np.ndarray] = {level: np.zeros(0, np.int32) for level in LEVELS}
        self._number: dict[str, int] = {}
        self._parts: dict[str, list[tuple[np.ndarray, ...]]] = {}
        self._signs: list[np.ndarray] = []
        self._sums, self._seen = np.zeros((0, 0), np.float32), np.zeros(0, np.int64)

    def add(self, bench: Bench) -> None:
        """Add some sessions, whole: words, vectors, and the tokens of their turns where the encoder gives any."""
        for level in LEVELS:
            self.words(level, bench.documents(level).words)
        if isinstance(bench.encoder, TokenEncoder) and bench.turns.height:
            read = scope_tokens(bench, slice(0, bench.turns.height))
            turn, token = token_pairs(read.texts, read.inverse, read.start)
            self._keep("token", token, len(self.ids) + turn, np.ones(len(turn)))
            self._mean(read.texts)
        passage_vectors(bench, ())  # a store remembers them
        self._signs.append(signs(bench.documents("turn").vectors()))
        self.ids.extend(bench.documents("turn").ids.tolist())

    def words(self, level: Level, texts: Sequence[Sequence[str]]) -> None:
        """Add the words of turns or of sessions."""
        number, lengths = self._number, np.array([len(own) for own in texts], np.int64)
        terms = numbered(texts, number)
        size = 1 + len(number)
        pairs, counts = np.unique(np.repeat(np.arange(len(texts)), lengths) * size + terms, return_counts=True)
        self._keep(level, pairs % size, len(self.lengths[level]) + pairs // size, counts)
        self.lengths[level] = np.r_[self.lengths[level], lengths.astype(np.int32)]

    def _keep(self, kind: str, term: np.ndarray, at: np.ndarray, count: np.ndarray) -> None:
        small = term.astype(np.int32), at.astype(np.int32), np.minimum(count, 255).astype(np.uint8)
        self._parts.setdefault(kind, []).append(small)

    def _mean(self, texts: TokenVectors) -> None:
        size, width = 1 + int(texts.ids.max(initial=-1)), 8 * texts.vectors.shape[1]
        more = max(0, size - len(self._seen))
        self._seen = np.pad(self._seen, (0, more))
        self._sums = np.pad(self._sums, ((0, more), (0, width - self._sums.shape[1])))
        few = np.flatnonzero(self._seen[texts.ids] < MEAN_OF)
        if len(few):
            order = few[np.argsort(texts.ids[few], kind="stable")]
            first = starts(texts.ids[order])
            bits = np.unpackbits(texts.vectors[order], axis=1).astype(np.float32)
            self._sums[texts.ids[order[first]]] += np.add.reduceat(bits, first, axis=0)
            self._seen += np.bincount(texts.ids[order], minlength=len(self._seen))

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Give the numbers of the tokens that are there, (v,), and the mean signs of each: (v, d) from -1 to 1."""
        there = np.flatnonzero(self._seen)
        return there, 2 * self._sums[there] / self._seen[there, None] - 1

    def shared(self) -> Shared:
        """Give what every question needs."""
        codes = np.concatenate(self._signs)
        wide = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8))).view(np.uint64)
        turns, sessions = (self.lengths[level] for level in LEVELS)
        return Shared(pl.Series(self.ids), turns, sessions, *self.means(), np.ascontiguousarray(wide.T))

    def counts(self) -> dict[str, list[Any]]:
        """Give in how many turns and sessions words and tokens stand, and how long these are: columns of ``counts``."""
        tokens = self._frequency("token")
        lengths = {f"{level}s": own.astype(np.int64) for level, own in self.lengths.items()}
        return {
            "words": list(self._number),
            **{f"of_{level}s": self._frequency(level, len(self._number)).tolist() for level in LEVELS},
            "tokens": [*tokens.tolist(), 0] if len(tokens) else [],  # the last for tokens of no turn
            **{name: [len(own), int(own.sum()), int(own @ own)] for name, own in lengths.items()},
        }

    def _frequency(self, kind: str, size: int = 0) -> np.ndarray:
        """Count where each term stands; the parts hold whole turns and sessions, so none is in two."""
        parts = [term for term, _, _ in self._parts.get(kind, [])]
        size = max([size, *(1 + int(term.max(initial=-1)) for term in parts)])
        return sum((np.bincount(term, minlength=size) for term in parts), np.zeros(size, np.int64))

    def terms(self) -> Iterator[Posting]:
        """Give each term with where it stands: ``turn:word``, ``session:word`` and ``token:number``."""
        words = list(self._number)
        for kind, parts in self._parts.items():
            term, at, count = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.argsort(term, kind="stable")
            ends = np.r_[starts(term[order]), len(order)]
            for first, end in pairwise(ends):
                of = int(term[order[first]])
                name = of if kind == "token" else words[of]
                yield f"{kind}:{name}", at[order[first:end]], count[order[first:end]]
