"""An encoder whose texts workers read: what it says of itself, and which model a worker refuses."""

from __future__ import annotations

import numpy as np
import pytest

from memlab.embed import load
from memlab.embed.ray_encoder import TEXTS, load_worker_encoder, spread_encoder
from memlab.embed.token_vectors import TokenEncoder
from memlab.errors import ModelError


def test_few_texts_are_read_here_as_by_the_encoder_itself() -> None:
    own, spread_out = load("hashing:64"), spread_encoder("hashing:64")
    texts = [f"text {n}" for n in range(TEXTS - 1)]
    assert spread_out.identity == own.identity
    np.testing.assert_array_equal(spread_out.encode(texts, progress=False), own.encode(texts, progress=False))


def test_it_gives_tokens_where_its_encoder_does() -> None:
    assert isinstance(spread_encoder("minilm"), TokenEncoder)
    assert not isinstance(spread_encoder("hashing:64"), TokenEncoder)


def test_a_worker_refuses_another_model_of_the_same_name() -> None:
    assert load_worker_encoder("hashing:64", None, load("hashing:64").identity) is load_worker_encoder(
        "hashing:64", None, load("hashing:64").identity
    )
    with pytest.raises(ModelError, match="put the same model on every machine"):
        load_worker_encoder("hashing:64", None, load("hashing:32").identity)
