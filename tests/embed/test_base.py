"""Encoder identity, the protocol and the checks that every encoder shares."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import DataError, ModelError
from memlab.embed import EncoderIdentity, load
from memlab.embed.base import unit_rows

IDENTITY = EncoderIdentity("transformer", "owner/My-Model.v2", "abc", "cls", "query: ", "", 512, True, 384)


@given(st.text(max_size=80), st.text(max_size=20))
def test_key_is_a_slug_and_identity_is_json(model: str, prompt: str) -> None:
    identity = replace(IDENTITY, model=model, query_prompt=prompt)
    assert re.fullmatch(r"[a-z0-9_]+", identity.key)
    assert len(identity.key) <= 48
    assert EncoderIdentity(**json.loads(json.dumps(asdict(identity)))) == identity


@pytest.mark.parametrize(
    ("texts", "kind", "message"),
    [
        ("hello", "document", "one string"),
        (["a", None], "document", "text 1 is NoneType"),
        (["a", b"b"], "document", "text 1 is bytes"),
        (["a"], "passage", "'passage'; expected one of document, query"),
    ],
)
def test_wrong_texts_are_named(texts: object, kind: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        load("hashing").encode(texts, kind=kind)  # type: ignore[arg-type]


def test_unit_rows_refuses_what_has_no_direction() -> None:
    good = unit_rows(np.array([[1e-30, 0.0], [0.0, -2e30]]), of="m")
    assert good.tolist() == [[1.0, 0.0], [0.0, -1.0]]
    assert good.dtype == np.float32
    assert good.flags.c_contiguous
    with pytest.raises(ModelError, match=r"m gave a zero vector for text 1 \(1 of 2"):
        unit_rows(np.array([[1.0], [0.0]]), of="m")
    with pytest.raises(ModelError, match="NaN or infinity for text 0"):
        unit_rows(np.array([[np.nan], [1.0]]), of="m")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("minilmm", "no encoder 'minilmm'"),
        ("", "no encoder ''"),
        ("./no/such/dir", "there is no such directory"),
        ("hashing:", "'' is no number of dimensions"),
        ("hashing:x", "'x' is no number of dimensions"),
        ("hashing:4", "expected 16 to 16384"),
        ("hashing:99999999", "expected 16 to 16384"),
        ("endpoint:nowhere", "no service 'nowhere' is known (known: none)"),
        ("endpoint:", "no service '' is known"),
    ],
)
def test_unknown_specs_say_what_is_known(spec: str, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        load(spec)


def test_import_is_light() -> None:
    code = (
        "import sys, memlab.embed, memlab.llm; memlab.embed.load('hashing');"
        "print([m for m in ('torch', 'transformers', 'sklearn', 'openai', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
