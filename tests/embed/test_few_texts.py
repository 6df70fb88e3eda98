"""The first few texts are read in numpy, with the numbers of transformers."""

from __future__ import annotations

import numpy as np

from memlab.embed import load, transformer

TEXTS = ["Where does she work?", "What did José — buy on Sunday?? 😊", "a", " ", "日本語 text", "I moved to Oslo " * 60]


def test_vectors_and_tokens_are_those_of_transformers_and_torch_is_not_loaded() -> None:
    few, many = load("minilm"), load("minilm")
    many._read_light = transformer._FEW
    assert np.abs(few.encode(TEXTS) - many.encode(TEXTS)).max() < 1e-6
    few._read_light = 0
    some, every = few.encode_tokens(TEXTS), many.encode_tokens(TEXTS)
    assert ("_model" in vars(few), "_model" in vars(many)) == (False, True)
    assert np.array_equal(some.ids, every.ids)
    assert np.array_equal(some.start, every.start)
    assert np.abs(some.vectors.astype(np.float32) - every.vectors).max() < 1e-3
