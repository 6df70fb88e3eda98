"""The hashing encoder: its laws, and its values pinned for every machine."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.embed import load

TEXTS = st.lists(st.text(max_size=60), max_size=12)


@given(TEXTS)
@settings(max_examples=25, deadline=None)
def test_rows_are_unit_finite_and_independent_of_the_batch(texts: list[str]) -> None:
    encoder = load("hashing:64")
    together = encoder.encode(texts)
    assert together.shape == (len(texts), 64)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    for row, text in enumerate(texts):
        np.testing.assert_array_equal(together[row], encoder.encode([text], kind="query")[0])


@given(st.lists(st.text(alphabet="abc ,é", min_size=1, max_size=30), min_size=1, max_size=8))
@settings(max_examples=20, deadline=None)
def test_case_and_outer_spaces_do_not_matter(texts: list[str]) -> None:
    encoder = load("hashing")
    np.testing.assert_array_equal(encoder.encode(texts), encoder.encode([f"  {t.upper()}\n" for t in texts]))


def test_values_are_the_same_on_every_machine() -> None:
    vectors = load("hashing:16").encode(["My doctor, Dr. Müller, called: 39 °C!", "", "医生 👩‍⚕️"])
    latin = "4 5 -9 0 5 0 -3 -12 -15 -4 3 -1 3 3 17 -3"
    assert " ".join(f"{v:.0f}" for v in vectors[0] / 0.03393046) == latin
    assert vectors[1].nonzero()[0].tolist() == [4]
    assert " ".join(f"{v:.0f}" for v in vectors[2] / 0.2300895) == "0 0 -2 2 -2 0 0 0 0 -1 -1 0 0 0 1 -1"


def test_features_match_a_plain_reading_of_the_definition() -> None:
    """Two texts with no hash collision: the cosine follows from counting words, pairs and trigrams by hand."""
    a, b = "ab cd ab", "cd ab"
    bags = [
        # words, pairs, trigrams (none has its middle on a space)
        {"ab": 2, "cd": 1, "ab cd": 1, "cd ab": 1, "t ab": 2, "tab ": 2, "t cd": 1, "tcd ": 1},
        {"ab": 1, "cd": 1, "cd ab": 1, "t cd": 1, "tcd ": 1, "t ab": 1, "tab ": 1},
    ]
    weights = {name: 0.3 if name[0] == "t" else 0.6 if " " in name else 1.0 for bag in bags for name in bag}
    x, y = (np.array([weights[n] * (1 + np.log(bag[n])) if n in bag else 0.0 for n in weights]) for bag in bags)
    expected = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
    u, v = load("hashing:16384").encode([a, b])
    assert abs(u @ v - expected) < 1e-6


def test_hostile_texts_and_many_batches() -> None:
    texts = ["\x00", "\ud800", "a" * 1_200_000, "'; --", *(f"message {i}" for i in range(9000))]
    vectors = load("hashing:32").encode(texts, progress=False)
    assert np.isfinite(vectors).all()
    np.testing.assert_array_equal(vectors[8000], load("hashing:32").encode([texts[8000]])[0])
