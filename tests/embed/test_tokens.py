"""Token embeddings against transformers' own hidden states, on MiniLM and on a tiny model with prompts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import DataError
from memlab.embed import load, models, transformer
from memlab.embed.tokens import (
    TokenVectors,
    _rotation,
    compressed,
    joined,
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


def test_what_was_said_before_changes_what_a_pronoun_means(minilm: Any) -> None:
    they, dogs = (minilm.encode_tokens(["They were lovely"], before=[b]).vectors for b in ("", "I fed the dogs."))
    assert np.abs(they.astype(np.float32) - dogs).max() > 0.05


def test_a_text_without_tokens_has_none(minilm: Any) -> None:
    tokens = minilm.encode_tokens(["", "hi", "   \n", "\x00\x01"], before=["a", "b", LONG, ""])
    assert np.diff(tokens.start).tolist() == [0, 1, 0, 0]
    alone = minilm.encode_tokens([""])
    assert (len(alone), alone.vectors.shape) == (1, (0, 384))


@pytest.mark.slow
def test_a_text_does_not_depend_on_the_batch(minilm: Any) -> None:
    texts = [*TEXTS, *(f"turn {i}: " + "so " * (7 * i % 40) + "we went home" for i in range(20))]
    before = [texts[i - 1] if i % 3 else "" for i in range(len(texts))]
    tokens = minilm.encode_tokens(texts, before=before)
    for i in (0, 1, 3, 12, len(texts) - 1):
        assert_same(text(tokens, i), text(minilm.encode_tokens([texts[i]], before=[before[i]]), 0))
    backwards = minilm.encode_tokens(texts[::-1], before=before[::-1])
    for i in range(len(texts)):
        assert_same(text(tokens, i), text(backwards, len(texts) - 1 - i))


def test_lone_surrogates_and_what_is_no_list(minilm: Any) -> None:
    a, b = (minilm.encode_tokens([one]) for one in ("it is \ud83d", "it is \ufffd"))
    assert a.ids.tolist() == b.ids.tolist()
    with pytest.raises(DataError, match="texts is one string"):
        minilm.encode_tokens("one text")
    with pytest.raises(ValueError, match="zip"):
        minilm.encode_tokens(["a", "b"], before=["c"])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights, prompts, and a tokenizer that leaves lower-casing to who calls it."""
    import torch
    import transformers

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("models") / "tiny"
    config = transformers.BertConfig(
        num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=64, initializer_range=0.5
    )
    transformers.BertModel(config).save_pretrained(path)
    found = models.minilm_path()
    assert found is not None
    for name in ("tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(found / name, path)
    settings = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**settings, "do_lower_case": False}))
    tokenizer = json.loads((found / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    parts = [("", "Transformer"), ("1_Pooling", "Pooling")]
    rows = [
        {"idx": i, "name": str(i), "path": p, "type": f"sentence_transformers.models.{t}"}
        for i, (p, t) in enumerate(parts)
    ]
    (path / "1_Pooling").mkdir()
    both = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True, "word_embedding_dimension": 32}
    for name, value in (
        ("modules.json", rows),
        ("1_Pooling/config.json", both),
        ("sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": True}),
        ("config_sentence_transformers.json", {"prompts": {"query": "find an ANSWER: ", "document": "passage: "}}),
    ):
        (path / name).write_text(json.dumps(value))
    return path


@pytest.mark.parametrize(("kind", "prompt"), [("query", "find an answer: "), ("document", "passage: ")])
def test_another_model_with_prompts_lower_case_and_two_poolings(tiny: Path, kind: Any, prompt: str) -> None:
    encoder, reference = load(str(tiny)), Reference(tiny, 24)
    before = "We met OLD friends " + LONG
    tokens = encoder.encode_tokens(TEXTS, before=[before] * len(TEXTS), kind=kind)
    assert (encoder.dim, tokens.vectors.shape[1]) == (64, 32)
    for i, one in enumerate(TEXTS):
        assert_same(text(tokens, i), worded(reference, *reference(one.lower(), before.lower(), prompt)))


@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_codes_are_the_signs_of_a_rotation(dim: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n + 2, dim))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    tokens = TokenVectors(np.arange(n, dtype=np.int32), rows[2:], np.array([0, n]))
    codes = compressed(tokens)
    assert (codes.vectors.shape, compressed(codes)) == ((n, (dim + 7) // 8), codes)
    signs = np.where(rows[2:].astype(np.float32) @ _rotation(dim).T >= 0, 1.0, -1.0)
    expected = rows[:2].astype(np.float32) @ _rotation(dim).T @ signs.T * np.sqrt(np.pi / 2 / dim)
    np.testing.assert_allclose(token_cosines(rows[:2], codes.vectors), expected, atol=1e-5)


@pytest.mark.slow
def test_codes_keep_cosines_within_a_few_hundredths(minilm: Any) -> None:
    asked, read = minilm.encode_tokens(["Who saw the dentist?"]), minilm.encode_tokens(TEXTS)
    exact = asked.vectors.astype(np.float32) @ read.vectors.astype(np.float32).T
    error = token_cosines(asked.vectors, compressed(read).vectors) - exact
    assert (abs(error.mean()) < 0.02, error.std() < 0.05) == (True, True)


def test_token_embeddings_behind_each_other() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(6, 4)).astype(np.float16)
    whole = TokenVectors(np.arange(6, dtype=np.int32), vectors, np.array([0, 2, 2, 5, 6]))
    parts = [whole.take(np.array(rows, np.int64)) for rows in ([0], [1], [2, 3], [])]
    again = joined(parts, 4)
    assert again.start.tolist() == whole.start.tolist()
    np.testing.assert_array_equal(again.ids, whole.ids)
    np.testing.assert_array_equal(again.vectors, whole.vectors)
    for none in (joined([], 4), whole.take(np.zeros(0, np.int64))):
        assert (len(none), none.vectors.shape, none.start.tolist()) == (0, (0, 4), [0])
    unfilled = joined([whole.take(np.array([1, 1]))], 4)
    assert (len(unfilled), unfilled.vectors.shape, unfilled.start.tolist()) == (2, (0, 4), [0, 0, 0])
