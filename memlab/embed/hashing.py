"""An encoder without a model: signed feature hashing of words, word pairs and character trigrams."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import numpy as np

from memlab.embed.base import EncoderIdentity, Identified, Kind, check_texts, unit_rows
from memlab.errors import ModelError

DEFAULT_DIM = 512
MIN_DIM, MAX_DIM = 16, 16384

# Of words, pairs of words and trigrams, which outnumber words five to one.
_WEIGHTS = np.array([1.0, 0.6, 0.3])

_BATCH = 512  # texts, which bounds memory; their number takes at most 12 bits of a key
_ROW_SHIFT, _HASH_SHIFT, _FAMILY = np.uint64(52), np.uint64(12), np.uint64(3)
_BASE = np.uint64(0x100000001B3)
_EMPTY = "\x00"


class HashingEncoder(Identified):
    """Deterministic vectors from words alone, for tests and cheap first runs.

    Words, neighbouring word pairs and character trigrams are hashed to a column and a sign, weighted by sublinear
    term frequency (1 + ln tf) and summed; the sign keeps the expected error of an inner product at zero. Nothing but
    integer arithmetic on code points decides the column, so that vectors are the same on every machine.

    Source: Weinberger et al. 2009, Feature Hashing for Large Scale Multitask Learning, section 2.

    :raises ModelError: when ``dim`` is outside 16 to 16384.

    >>> from memlab.embed import load
    >>> a, b, c = load("hashing").encode(["my doctor called", "the doctor called me", "a red bicycle"])
    >>> bool(a @ b > a @ c)
    True
    """

    def __init__(self, dim: int = DEFAULT_DIM) -> None:
        if not MIN_DIM <= dim <= MAX_DIM:
            raise ModelError(f"hashing to {dim} dimensions; expected {MIN_DIM} to {MAX_DIM}, for example hashing:512")
        self.identity = EncoderIdentity(
            "hashing", "words-bigrams-trigrams", revision="1", pooling="sum", normalized=True, dim=dim
        )

    def encode(self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`. Queries and documents are treated the same.

        >>> from memlab.embed import load
        >>> load("hashing").encode([]).shape
        (0, 512)
        """
        checked = check_texts(texts, kind)
        out = np.empty((len(checked), self.dim), dtype=np.float32)
        with self.bar(len(checked), progress=progress, what="hashing", least=50_000) as bar:
            for start in range(0, len(checked), _BATCH):
                part = slice(start, start + _BATCH)
                out[part] = _encode(checked[part], self.dim)
                bar.update(len(out[part]))
        return out


def _encode(texts: list[str], dim: int) -> np.ndarray:
    keys, tf = np.unique(_features([_fold(t) for t in texts]), return_counts=True)
    rows = (keys >> _ROW_SHIFT).astype(np.int64)
    hashes = _mix(keys & ((np.uint64(1) << _ROW_SHIFT) - np.uint64(1)))
    sign = np.where(hashes >> np.uint64(63), 1.0, -1.0)
    values = sign * _WEIGHTS[(keys & _FAMILY).astype(np.int64)] * (1 + np.log(tf))
    cells = rows * dim + (hashes % np.uint64(dim)).astype(np.int64)
    summed = np.bincount(cells, weights=values, minlength=len(texts) * dim).reshape(len(texts), dim)
    # A text whose few features cancel out exactly gets the vector of an empty one.
    cancelled = ~summed.any(axis=1)
    if cancelled.any():
        summed[cancelled] = _encode([_EMPTY], dim)
    return unit_rows(summed, of="hashing")


def _fold(text: str) -> str:
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower().strip() or _EMPTY


def _features(texts: list[str]) -> np.ndarray:
    """Give one key for every feature of every text, repeats included: 12 bits of text, 50 of hash, 2 of family.

    All texts are one array of code points with a space at either end of each, so that no feature spans two texts.
    """
    padded = [f" {t} " for t in texts]
    code = np.frombuffer("".join(padded).encode("utf-32-le"), dtype=np.uint32)
    row = np.repeat(np.arange(len(padded), dtype=np.uint64), [len(t) for t in padded])
    space, in_word = _classes(code)
    starts = np.flatnonzero(in_word & ~np.concatenate(([False], in_word[:-1])))
    word_row, words = row[starts], _words(code, in_word, starts)
    same_text = word_row[1:] == word_row[:-1]
    letters = np.where(space, np.uint64(32), code.astype(np.uint64))
    bigrams = _mix(words[:-1] * _BASE + words[1:])[same_text]
    trigrams = _mix((letters[:-2] << np.uint64(42)) ^ (letters[1:-1] << np.uint64(21)) ^ letters[2:])
    whole = (row[:-2] == row[2:]) & ~space[1:-1]
    families = ((word_row, words), (word_row[1:][same_text], bigrams), (row[:-2][whole], trigrams[whole]))
    keys = [
        (rows << _ROW_SHIFT) | (hashes >> _HASH_SHIFT) & ~_FAMILY | np.uint64(family)
        for family, (rows, hashes) in enumerate(families)
    ]
    return np.concatenate(keys)


def _words(code: np.ndarray, in_word: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Hash every word: the sum of its letters, mixed with their place in the word, mixed again."""
    if not len(starts):
        return np.empty(0, dtype=np.uint64)
    at = np.flatnonzero(in_word)
    begins = np.searchsorted(at, starts)
    place = at - np.repeat(starts, np.diff(np.append(begins, len(at))))
    letters = _mix(code[at].astype(np.uint64) + (place.astype(np.uint64) + np.uint64(1)) * _BASE)
    return _mix(np.add.reduceat(letters, begins))


def _mix(x: np.ndarray) -> np.ndarray:
    """Scramble 64-bit integers (the finaliser of splitmix64; products wrap around)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _classes(code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Say of each code point whether it is a space, and whether it belongs to a word (letter, mark, digit, ``_``)."""
    present = np.flatnonzero(np.bincount(code))
    table = np.zeros((2, int(present[-1]) + 1), dtype=bool)
    for c in map(int, present):
        table[0, c] = chr(c).isspace()
        table[1, c] = c == ord("_") or unicodedata.category(chr(c))[0] in "LMN"
    return table[0, code], table[1, code]
