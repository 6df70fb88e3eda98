"""MiniLM's vectors and token embeddings against transformers' own hidden states, and the codes of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.embed import models, transformer
from memlab.embed.token_vectors import TokenVectors, _rotation, compress_tokens, token_cosines

LONG = " ".join(f"item {i} of a long list that goes on" for i in range(60))
TEXTS = ["I saw the dentist on Tuesday.", "hi", "Grüße aus Köln! 医生说我很好 👩‍⚕️", "the the the", LONG]
CLOSE = 2e-3  # float16 keeps 11 bits of a number below 1


@pytest.fixture(scope="module")
def minilm() -> transformer.TransformerEncoder:
    encoder = transformer.load_minilm()
    encoder._read_light = transformer._FEW  # read by torch from the first text on
    return encoder


class Reference:
    """The same by transformers alone: one text at a time, without padding."""

    def __init__(self, path: Path | None) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer, self.model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()

    def ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]

    def __call__(self, text: str, before: str = "") -> tuple[list[int], np.ndarray]:
        """Give the ids and the unit vectors of the tokens of a text that hold a letter or a digit."""
        import torch

        lead = [self.tokenizer.cls_token_id, *self.ids(before)[-128:]]
        body = self.ids(text)[: 256 - len(lead) - 1]
        with torch.inference_mode():
            whole = torch.tensor([[*lead, *body, self.tokenizer.sep_token_id]])
            hidden = self.model(input_ids=whole).last_hidden_state[0, len(lead) : -1].numpy()
        keep = [any(map(str.isalnum, name)) for name in self.tokenizer.convert_ids_to_tokens(body)]
        hidden = (hidden / np.linalg.norm(hidden, axis=1, keepdims=True))[keep]
        return [i for i, kept in zip(body, keep, strict=True) if kept], hidden


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(models.minilm_path())


@pytest.mark.parametrize("before", ["What did you buy?", LONG, "", " "], ids=["short", "long", "none", "blank"])
def test_tokens_are_the_models_last_hidden_states_and_what_is_read_before_gives_none(
    minilm: Any, reference: Reference, before: str
) -> None:
    tokens = minilm.encode_tokens(TEXTS, before=[before] * len(TEXTS) if before else None)
    assert (tokens.ids.dtype, tokens.vectors.dtype, len(tokens)) == (np.int32, np.float16, len(TEXTS))
    for i, text in enumerate(TEXTS):
        place = slice(tokens.start[i], tokens.start[i + 1])
        ids, vectors = reference(text, before)
        assert tokens.ids[place].tolist() == ids
        np.testing.assert_allclose(tokens.vectors[place].astype(np.float32), vectors, atol=CLOSE)


def test_a_text_without_tokens_has_none(minilm: Any) -> None:
    texts = ["", "hi", "   \n", "\x00\x01"]
    for before in (None, ["a", "b", LONG, ""]):
        assert np.diff(minilm.encode_tokens(texts, before=before).start).tolist() == [0, 1, 0, 0]
    assert minilm.encode_tokens([""]).vectors.shape == (0, 384)


def test_a_few_texts_are_read_in_numpy_with_the_same_numbers(minilm: Any) -> None:
    few = transformer.load_minilm()
    assert np.abs(few.encode(TEXTS) - minilm.encode(TEXTS)).max() < 1e-6
    few._read_light = 0
    some, every = few.encode_tokens(TEXTS), minilm.encode_tokens(TEXTS)
    assert ("_model" in vars(few), "_model" in vars(minilm)) == (False, True), "without torch"
    assert np.array_equal(some.ids, every.ids)
    assert np.array_equal(some.start, every.start)
    assert np.abs(some.vectors.astype(np.float32) - every.vectors).max() < 1e-3


@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_codes_are_the_signs_of_a_rotation(dim: int, n: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(n + 2, dim))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    codes = compress_tokens(TokenVectors(np.arange(n, dtype=np.int32), rows[2:], np.array([0, n])))
    assert (codes.vectors.shape, compress_tokens(codes)) == ((n, (dim + 7) // 8), codes)
    signs = np.where(rows[2:].astype(np.float32) @ _rotation(dim).T >= 0, 1.0, -1.0)
    expected = rows[:2].astype(np.float32) @ _rotation(dim).T @ signs.T * np.sqrt(np.pi / 2 / dim)
    np.testing.assert_allclose(token_cosines(rows[:2], codes.vectors), expected, atol=1e-5)
