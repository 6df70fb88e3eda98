"""How fast texts become vectors, as ratios measured in one run. Run with ``make bench``."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from memlab.embed import load, transformer
from memlab.embed.pooling import pool

ROUNDS, TEXTS = 5, 256


@pytest.fixture(scope="module")
def turns() -> list[str]:
    """Short chat turns: log-normal lengths with a median of 20 words, like people's own."""
    rng = np.random.default_rng(0)
    words = np.array(["I", "you", "doctor", "said", "the", "of", "and", "to", "dentist", "Tuesday", "lovely", "garden"])
    lengths = np.clip(rng.lognormal(3.0, 0.6, ROUNDS * TEXTS), 1, 150).astype(int)
    return [" ".join(rng.choice(words, n)) for n in lengths]


@pytest.fixture(scope="module")
def minilm() -> transformer.TransformerEncoder:
    encoder = transformer.load_minilm()
    encoder.encode(["warm up"] * 32)
    return encoder


def rates(turns: list[str], ways: dict[str, Callable[[list[str]], object]]) -> dict[str, float]:
    """Texts a second of each way, the ways taking turns on the same texts so that a busy machine slows all alike."""
    spent = dict.fromkeys(ways, 0.0)
    for start in range(0, len(turns), TEXTS):
        for name, way in ways.items():
            begin = time.perf_counter()
            way(turns[start : start + TEXTS])
            spent[name] += time.perf_counter() - begin
    found = {name: len(turns) / seconds for name, seconds in spent.items()}
    print("\n" + ", ".join(f"{name}: {rate:.0f} texts/s" for name, rate in found.items()))
    return found


def in_order(encoder: transformer.TransformerEncoder, texts: list[str], size: int = 32) -> None:
    tokens = encoder._ids(texts, truncation=True, max_length=encoder.identity.max_length)
    for start in range(0, len(tokens), size):
        pool(*encoder._hidden(tokens[start : start + size]), ("mean",))


def test_sorted_batches_beat_batches_in_order(minilm: transformer.TransformerEncoder, turns: list[str]) -> None:
    found = rates(
        turns,
        {"sorted": lambda t: minilm.encode(t, progress=False), "in order": lambda t: in_order(minilm, t)},
    )
    assert found["sorted"] > 1.1 * found["in order"]


def test_ours_keeps_up_with_sentence_transformers(minilm: transformer.TransformerEncoder, turns: list[str]) -> None:
    library = pytest.importorskip("sentence_transformers")
    theirs = library.SentenceTransformer(str(transformer.minilm_path()), device="cpu", local_files_only=True)
    found = rates(
        turns,
        {
            "ours": lambda t: minilm.encode(t, progress=False),
            "sentence-transformers": lambda t: theirs.encode(t, show_progress_bar=False),
        },
    )
    assert found["ours"] > 0.9 * found["sentence-transformers"]


def test_hashing(benchmark, turns: list[str]) -> None:
    encoder = load("hashing")
    benchmark(encoder.encode, turns, progress=False)
    assert len(turns) / benchmark.stats.stats.min > 10_000
