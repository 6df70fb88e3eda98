"""The hashing encoder: its laws, by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.embed import load


@given(st.lists(st.text(max_size=60), max_size=12))
@settings(max_examples=25, deadline=None)
def test_rows_are_unit_finite_and_independent_of_the_batch(texts: list[str]) -> None:
    encoder = load("hashing:64")
    together = encoder.encode(texts)
    assert (together.shape, together.dtype) == ((len(texts), 64), np.float32)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    for row, text in enumerate(texts):
        np.testing.assert_array_equal(together[row], encoder.encode([text], kind="query")[0])


def test_features_match_a_plain_reading_of_the_definition() -> None:
    """Two texts with no hash collision: the cosine follows from counting words, pairs and trigrams by hand."""
    bags = [
        # words, pairs, trigrams
        {"ab": 2, "cd": 1, "ab cd": 1, "cd ab": 1, "t ab": 2, "tab ": 2, "t cd": 1, "tcd ": 1},
        {"ab": 1, "cd": 1, "cd ab": 1, "t cd": 1, "tcd ": 1, "t ab": 1, "tab ": 1},
    ]
    weights = {name: 0.3 if name[0] == "t" else 0.6 if " " in name else 1.0 for bag in bags for name in bag}
    x, y = (np.array([weights[n] * np.log1p(bag[n]) if n in bag else 0.0 for n in weights]) for bag in bags)
    u, v = load("hashing:16384").encode(["ab cd ab", "  CD ab\n"])
    assert abs(u @ v - x @ y / np.linalg.norm(x) / np.linalg.norm(y)) < 1e-6


def test_hostile_texts_and_many_batches() -> None:
    texts = ["\x00", "\ud800", "a" * 1_200_000, "'; --", "医生 👩‍⚕️", *(f"message {i}" for i in range(900))]
    vectors = load("hashing:32").encode(texts, progress=False)
    assert np.isfinite(vectors).all()
    np.testing.assert_array_equal(vectors[800], load("hashing:32").encode([texts[800]])[0])
