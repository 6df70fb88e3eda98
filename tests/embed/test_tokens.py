"""Token embeddings against transformers' own hidden states, on MiniLM and on a tiny model with prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.embed import models, transformer
from memlab.embed.token_vectors import (
    TokenVectors,
    _rotation,
    compress_tokens,
    token_cosines,
)

LONG = " ".join(f"item {i} of a long list that goes on" for i in range(200))
TEXTS = ["I saw the dentist on Tuesday.", "hi", "Grüße aus Köln! 医生说我很好 👩‍⚕️", "the the the", LONG]
CLOSE = 2e-3  # float16 keeps 11 bits of a number below 1


@pytest.fixture(scope="module")
def minilm() -> transformer.TransformerEncoder:
    return transformer.load_minilm()


class Reference:
    """The same by transformers alone: one text at a time, without padding."""

    def __init__(self, path: Path, length: int) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.model = AutoModel.from_pretrained(path).eval()
        self.length = length

    def ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]

    def __call__(self, text: str, before: str = "", prompt: str = "") -> tuple[list[int], np.ndarray]:
        import torch

        lead = [self.tokenizer.cls_token_id, *self.ids(prompt), *self.ids(before)[-(self.length // 2) :]]
        body = self.ids(text)[: self.length - len(lead) - 1]
        with torch.inference_mode():
            whole = torch.tensor([[*lead, *body, self.tokenizer.sep_token_id]])
            assert whole.shape[1] <= self.length
            hidden = self.model(input_ids=whole).last_hidden_state[0, len(lead) : -1].numpy()
        return body, hidden / np.linalg.norm(hidden, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def reference() -> Reference:
    found = models.minilm_path()
    assert found is not None
    return Reference(found, 256)


def text(tokens: TokenVectors, i: int) -> tuple[list[int], np.ndarray]:
    place = slice(tokens.start[i], tokens.start[i + 1])
    return tokens.ids[place].tolist(), tokens.vectors[place].astype(np.float32)


def worded(reference: Reference, ids: list[int], hidden: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Leave out what has no letter and no digit, as the encoder does."""
    names = reference.tokenizer.convert_ids_to_tokens(ids)
    keep = [any(map(str.isalnum, name)) for name in names]
    return [i for i, kept in zip(ids, keep, strict=True) if kept], hidden[keep]


def assert_same(ours: tuple[list[int], np.ndarray], theirs: tuple[list[int], np.ndarray]) -> None:
    assert ours[0] == theirs[0]
    np.testing.assert_allclose(ours[1], theirs[1], atol=CLOSE)


@pytest.mark.slow
def test_a_text_alone_is_the_models_last_hidden_state(minilm: Any, reference: Reference) -> None:
    import torch

    tokens = minilm.encode_tokens(TEXTS)
    assert (tokens.ids.dtype, tokens.vectors.dtype, len(tokens)) == (np.int32, np.float16, len(TEXTS))
    for i, one in enumerate(TEXTS):
        whole = reference.tokenizer(one, truncation=True, max_length=256, return_tensors="pt")
        with torch.inference_mode():
            hidden = reference.model(**whole).last_hidden_state[0, 1:-1].numpy()
        ids = whole["input_ids"][0, 1:-1].tolist()
        expected = worded(reference, ids, hidden / np.linalg.norm(hidden, axis=1, keepdims=True))
        assert_same(text(tokens, i), expected)
    assert tokens.start[-1] - tokens.start[-2] == 254
    assert text(tokens, 0)[0] == reference.ids("I saw the dentist on Tuesday")


@pytest.mark.slow
@pytest.mark.parametrize("before", ["What did you buy?", LONG, "", " "], ids=["short", "long", "none", "blank"])
def test_what_is_read_before_is_read_and_gives_no_vector(minilm: Any, reference: Reference, before: str) -> None:
    tokens = minilm.encode_tokens(TEXTS, before=[before] * len(TEXTS))
    for i, one in enumerate(TEXTS):
        assert_same(text(tokens, i), worded(reference, *reference(one, before)))


@pytest.mark.parametrize("empty", ["", "   \n", "\x00\x01"])
def test_a_text_without_tokens_has_none(minilm: Any, empty: str) -> None:
    tokens = minilm.encode_tokens([empty, "hi", empty], before=["a", "b", LONG])
    assert np.diff(tokens.start).tolist() == [0, 1, 0]
    alone = minilm.encode_tokens([empty])
    assert (len(alone), alone.vectors.shape) == (1, (0, 384))


@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_codes_are_the_signs_of_a_rotation(dim: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n + 2, dim))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    tokens = TokenVectors(np.arange(n, dtype=np.int32), rows[2:], np.array([0, n]))
    codes = compress_tokens(tokens)
    assert (codes.vectors.shape, compress_tokens(codes)) == ((n, (dim + 7) // 8), codes)
    signs = np.where(rows[2:].astype(np.float32) @ _rotation(dim).T >= 0, 1.0, -1.0)
    expected = rows[:2].astype(np.float32) @ _rotation(dim).T @ signs.T * np.sqrt(np.pi / 2 / dim)
    np.testing.assert_allclose(token_cosines(rows[:2], codes.vectors), expected, atol=1e-5)
