"""The first few texts are read in numpy, with the numbers of transformers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memlab.embed import bert, load, transformer

TEXTS = ["Where does she work?", "What did José — buy on Sunday?? 😊", "a", " ", "日本語 text", "I moved to Oslo " * 60]


@pytest.fixture(scope="module")
def both() -> tuple[transformer.TransformerEncoder, transformer.TransformerEncoder]:
    few, many = load("minilm"), load("minilm")
    assert isinstance(few, transformer.TransformerEncoder)
    assert isinstance(many, transformer.TransformerEncoder)
    many._read_light = transformer._FEW
    return few, many


def test_vectors_are_those_of_transformers(both) -> None:
    few, many = both
    assert np.abs(few.encode(TEXTS) - many.encode(TEXTS)).max() < 1e-6
    assert "_parts" not in vars(few)


def test_tokens_are_those_of_transformers(both) -> None:
    few, many = both
    some, all_ = few.encode_tokens(TEXTS), many.encode_tokens(TEXTS)
    assert "_parts" not in vars(few)
    assert np.array_equal(some.ids, all_.ids)
    assert np.array_equal(some.start, all_.start)
    assert np.abs(some.vectors.astype(np.float32) - all_.vectors).max() < 1e-3


def test_many_texts_are_left_to_torch() -> None:
    encoder = load("minilm")
    assert encoder._few(["a"] * transformer._FEW) is not None
    assert encoder._few(["a", "b"]) is None
    assert encoder._few(["a"]) is not None
    assert load("minilm")._few(["a" * (transformer._FEW_CHARS + 1)]) is None
    assert load("minilm")._few(["a"], "query: ") is None


def test_another_kind_of_model_goes_through_transformers(tmp_path: Path) -> None:
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).touch()
    for config, fit in (({}, True), ({"hidden_act": "relu"}, False), ({"model_type": "mpnet"}, False)):
        plain = {"model_type": "bert", "hidden_act": "gelu"} | config
        (tmp_path / "config.json").write_text(json.dumps(plain))
        assert bert.fits(tmp_path) is fit
