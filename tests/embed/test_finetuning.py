"""Fine-tuning: what it learns, what it leaves alone, and the folder that it writes."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import memlab
from memlab.embed import load
from memlab.embed.finetuning import Examples, finetune, learned_from
from memlab.errors import DataError, ExportError
from memlab.files import atomic_folder
from memlab.rerank import finetuning_examples
from memlab.retrieve import Bench

ASKED = Examples(
    questions=["Where?"] * 8,
    evidence=[[0]] * 8,
    others=[[1]] * 8,
    rarity=[np.ones(2, np.float32)] * 8,
    turns=["In Bergen.", "Tea."],
    passages=["In Bergen.", "Tea."],
    before=["", ""],
    start=np.array([0, 1, 2]),
)


@pytest.fixture(scope="module")
def minilm() -> Any:
    return load("minilm")


def test_what_cannot_be_learned_from_is_said_and_nothing_is_written(tmp_path: Path, minilm: Any) -> None:
    few = replace(ASKED, questions=["Where?"] * 7)
    with pytest.raises(DataError, match="7 questions have evidence; fine-tuning takes at least 8"):
        finetune(minilm, [few], tmp_path / "new")
    with pytest.raises(DataError, match=r"hashing.*cannot be fine-tuned; take minilm"):
        finetune(load("hashing"), [ASKED], tmp_path / "new")
    with pytest.raises(DataError, match="epochs"):
        finetune(minilm, [ASKED], tmp_path / "new", epochs=0)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "new").mkdir()
    with pytest.raises(DataError, match="new is there already"):
        finetune(minilm, [ASKED], tmp_path / "new")


def test_only_a_fine_tuned_encoder_has_learned_from_conversations(tmp_path: Path, minilm: Any) -> None:
    assert learned_from(None) == learned_from(tmp_path) == learned_from(minilm.path) == ()
    (tmp_path / "memlab.json").write_text('{"scopes": ["a", "b"]}')
    assert learned_from(tmp_path) == ("a", "b")
    (tmp_path / "memlab.json").write_text("[]")
    assert learned_from(tmp_path) == ()


def test_examples_are_evidence_and_what_else_is_near_it(minilm: Any) -> None:
    data = memlab.sample(["owen"], turns=60)
    bench = Bench.of(data, encoder=minilm, progress=False)
    made = finetuning_examples(bench, data)
    ids = bench.documents("turn").ids
    wanted = {row["text"]: set(row["evidence"]) for row in data.questions.iter_rows(named=True) if row["evidence"]}
    assert set(made.questions) == set(wanted)
    for text, evidence, others in zip(made.questions, made.evidence, made.others, strict=True):
        assert set(ids[evidence]) == wanted[text]
        assert others
        assert not set(others) & set(evidence)
    assert len(made.turns) == len(ids) == len(made.start) - 1
    assert len(made.passages) == len(made.before) == made.start[-1]
    with pytest.raises(DataError, match="nothing to learn from"):
        finetuning_examples(bench, replace(data, questions=data.questions.clear()))


@pytest.mark.nightly
def test_it_learns_what_it_is_shown_and_writes_a_model_like_any_other(tmp_path: Path, minilm: Any) -> None:
    data = memlab.sample(["owen"], turns=200)
    examples = finetuning_examples(Bench.of(data, encoder=minilm, progress=False), data)
    few = {name: getattr(examples, name)[:8] for name in ("questions", "evidence", "others", "rarity")}
    shown = [replace(examples, **few)]
    paths = [
        finetune(minilm, shown, tmp_path / name, epochs=4, about={"scopes": ["x"]}, progress=False) for name in "ab"
    ]
    first, second = (load_file(path / "model.safetensors") for path in paths)
    base = load_file(minilm.path / "model.safetensors")
    changed = {name for name in first if not np.array_equal(first[name], base[name])}
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert {name.split(".")[2] for name in changed if "encoder.layer" in name} == {"2", "3", "4", "5"}
    assert not any("embeddings" in name for name in changed)
    assert learned_from(paths[0]) == ("x",)
    assert json.loads((paths[0] / "memlab.json").read_text())["questions"] == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]

    after = load(str(paths[0]))
    assert after.identity.key != minilm.identity.key
    gains = []
    for i, question in enumerate(shown[0].questions):
        right, wrong = shown[0].evidence[i][0], shown[0].others[i][0]
        texts = [shown[0].turns[right], shown[0].turns[wrong]]
        margins = []
        for encoder in (minilm, after):
            near = encoder.encode([question], kind="query") @ encoder.encode(texts).T
            margins.append(float(near[0, 0] - near[0, 1]))
        gains.append(margins[1] - margins[0])
    assert np.mean(gains) > 0


def test_a_folder_is_there_whole_or_not_at_all_and_what_was_killed_is_swept(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    left = tmp_path / f".model.{ended.pid}.partial"
    left.mkdir()
    (left / "weights").write_text("half")

    def half(place: Path) -> None:
        with atomic_folder(place) as folder:
            (folder / "weights").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "model").write_text("a file")
    with pytest.raises(ExportError, match="model: cannot be written"), atomic_folder(tmp_path / "model"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
