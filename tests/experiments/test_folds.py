"""Cross-validated measuring: finished folds are used again, and only where nothing that they depend on changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from stand_in import StandIn
from talk import purchases

from memlab import rerank
from memlab.experiments import replaying
from memlab.experiments.replaying import train_folds
from memlab.rerank import learned, model, training
from memlab.retrieve import Bench, hybrid


def test_folds_are_used_again_where_nothing_changed_and_a_kill_leaves_no_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, real = list[int](), training.train

    def count(lists: list[training.TrainingLists], *, seed: int = 0) -> rerank.Model:
        trained.append(seed)
        if trained.count(99) == 3:
            raise KeyboardInterrupt
        return real(lists, seed=seed)

    monkeypatch.setattr(model, "EPOCHS", 1)  # what it learns does not count here
    monkeypatch.setattr(training, "train", count)
    data = purchases()
    bench = Bench.of(data, encoder=StandIn())
    place = train_folds(bench, data, tmp_path)
    assert place == tmp_path / data.fingerprint()
    assert sorted(p.name for p in place.iterdir()) == [
        "about.json",
        *(f"fold-{i}.safetensors" for i in range(3)),
    ]
    written = {p: p.stat().st_mtime_ns for p in place.iterdir()}
    assert train_folds(Bench.of(data, encoder=StandIn()), data, tmp_path) == place
    assert trained == [0, 0, 0]
    assert {p: p.stat().st_mtime_ns for p in place.iterdir()} == written
    assert learned(hybrid(bench), bench, model=str(tmp_path)).frame.height, (
        "the folder of this dataset is found"
    )

    train_folds(bench, data, tmp_path, seed=1)
    assert trained == [0] * 3 + [1] * 3
    assert json.loads((place / "about.json").read_text())["seed"] == 1
    other = replace(bench, provenance={**bench.provenance, "encoder": "other", "header": ["time"]})
    train_folds(other, data, tmp_path, seed=1)
    monkeypatch.setattr(replaying, "code_version", lambda: "memlab of tomorrow")
    train_folds(other, data, tmp_path, seed=1)
    less = replace(data, questions=data.questions.filter(pl.int_range(pl.len()) > 0))
    assert train_folds(Bench.of(less, encoder=StandIn()), less, tmp_path, seed=1) != place
    assert len(trained) == 15
    with pytest.raises(KeyboardInterrupt):
        train_folds(bench, data, tmp_path, seed=99)
    assert sorted(p.name for p in place.iterdir()) == ["fold-0.safetensors", "fold-1.safetensors"]
