"""What every encoder shares, the texts that it reads; hashing, and an endpoint."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_server import ModelServer, send

from memlab import DataError, ModelError
from memlab.embed import Encoder, EncoderIdentity, load
from memlab.embed.encoder import check_and_scale_to_unit
from memlab.embed.turn_texts import query_texts, session_texts, turn_texts
from memlab.llm import Service
from memlab.records import Question, Session, Turn, encode_id_part, frame

IDENTITY = EncoderIdentity(
    "transformer", "owner/My-Model.v2", "abc", "cls", "query: ", "", 512, True, 384
)


@given(st.text(max_size=80), st.text(max_size=20))
def test_key_is_a_slug_and_identity_is_json(model: str, prompt: str) -> None:
    identity = replace(IDENTITY, model=model, query_prompt=prompt)
    assert re.fullmatch(r"[a-z0-9_]{1,48}", identity.key)
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
    good = check_and_scale_to_unit(np.array([[1e-30, 0.0], [0.0, -2e30]]), made_by="m")
    assert good.tolist() == [[1.0, 0.0], [0.0, -1.0]]
    assert (good.dtype, good.flags.c_contiguous) == (np.float32, True)
    for rows, said in (
        ([[1.0], [0.0]], r"m gave a zero vector for text 1 \(1 of 2"),
        ([[np.nan], [1.0]], "NaN"),
    ):
        with pytest.raises(ModelError, match=said):
            check_and_scale_to_unit(np.array(rows), made_by="m")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("minilmm", "no encoder 'minilmm'"),
        ("./no/such/dir", "there is no such directory"),
        ("minilm:fp8", "bf16 or nothing"),
        ("hashing:x", "'x' is no number of dimensions"),
        ("hashing:99999999", "expected 16 to 16384"),
        ("endpoint:nowhere", "no service 'nowhere' is known (known: none)"),
    ],
)
def test_unknown_specs_say_what_is_known(spec: str, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        load(spec)


@given(st.lists(st.text(max_size=60), max_size=12))
@settings(max_examples=25)
def test_hashed_rows_are_unit_finite_and_independent_of_the_batch(texts: list[str]) -> None:
    encoder, texts = load("hashing:64"), [*texts, "\x00", "\ud800", "'; --", "医生 👩‍⚕️"]
    together = encoder.encode(texts)
    assert (together.shape, together.dtype) == ((len(texts), 64), np.float32)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    for row, text in enumerate(texts):
        np.testing.assert_array_equal(together[row], encoder.encode([text], kind="query")[0])


DAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
SCOPE = encode_id_part("work/50 % 漢")
SAID = [
    ("s1", 1, "Mel", "other", "Guitar guitar lesson tomorrow", "a red guitar", DAY),
    ("s1", 2, "Caro", "other", "Which teacher?", None, DAY),
    ("s2", 1, "user", "user", "The garden wants water", "a hose", None),
    ("s2", 2, "assistant", "assistant", "", None, None),
]
TURNS = frame(
    Turn, [Turn(f"{SCOPE}/{s}/{n}", SCOPE, f"{SCOPE}/{s}", n, *rest) for s, n, *rest in SAID]
)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ((), [""] * 4),
        (("scope",), ["[scope: work/50 % 漢] "] * 4),
        (("time",), ["[time: 8 May 2023] "] * 2 + [""] * 2),
        (
            ("participants",),
            ["[participants: Mel, Caro] "] * 2 + ["[participants: user, assistant] "] * 2,
        ),
    ],
)
def test_names_are_written_and_roles_are_not_below_each_field_of_the_header(
    header: tuple[str, ...], expected: list[str]
) -> None:
    said = ["Mel: Guitar guitar lesson tomorrow Mel shared a red guitar.", "Caro: Which teacher?"]
    said += [
        "The garden wants water a hose.",
        "",
    ]  # of a speaker who is only a role, the caption alone is left
    assert turn_texts(TURNS, header=header) == [
        head + text for head, text in zip(expected, said, strict=True)
    ]


def test_a_session_is_its_date_and_its_turns() -> None:
    sessions = [
        Session(f"{SCOPE}/s{i}", SCOPE, i, DAY if i != 2 else None, None, 0, []) for i in (1, 2, 3)
    ]
    assert session_texts(TURNS, frame(Session, sessions)) == [
        "8 May 2023, Monday\nMel: Guitar guitar lesson tomorrow a red guitar\nCaro: Which teacher?",
        "The garden wants water a hose\n",
        "8 May 2023, Monday\n",
    ]


def test_a_question_has_the_header_of_its_scope() -> None:
    asked = frame(
        Question, [Question("q", SCOPE, "Where?", "SECRET", "t", DAY, ["SECRET"], ["SECRET"])]
    )
    for header, head in (
        ((), ""),
        (("scope", "time"), "[scope: work/50 % 漢 | time: 8 May 2023] "),
        (("participants",), "[participants: Mel, Caro, user, assistant] "),
    ):
        assert query_texts(asked, TURNS, header=header) == [f"{head}Where?"]


def test_an_endpoint_gives_unit_vectors_reads_prompts_and_keeps_its_width(
    server: ModelServer,
) -> None:
    options = {"max_input": 12, "query_prompt": "ask: ", "document_prompt": "doc: "}
    ours = load("endpoint:s", services={"s": Service("s", server.url, "letters", **options)})
    assert isinstance(ours, Encoder)
    assert ours.encode([]).shape == (0, ours.dim) == (0, 2)
    del server.requests[:]
    vectors = ours.encode(["where is it", " \n"], kind="query")
    ours.encode([""])
    sent = [text for request in server.requests for text in request["input"]]
    assert sent == ["ask: where i", "ask: (empty)", "doc: (empty)"]
    np.testing.assert_allclose(vectors, [np.array([12, 1]) / 145**0.5] * 2, atol=1e-6)
    server.modes = [send(200, {"data": [{"index": 0, "embedding": [1.0] * 5}]})]
    with pytest.raises(ModelError, match="gave vectors of 5 numbers, expected 2"):
        ours.encode(["a"])
