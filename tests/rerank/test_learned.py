"""The learned reranker: its file, what it may not know, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from stand_in import StandIn
from talk import ranking

from memlab import DataError, ModelError
from memlab.records import Dataset
from memlab.rerank import Model, cross_validate, learned, train, training_lists
from memlab.rerank.learned import score_candidates
from memlab.rerank.model import predict
from memlab.rerank.training import TrainingLists
from memlab.retrieve import Bench, hybrid


@pytest.fixture(scope="module", autouse=True)
def quick() -> Any:
    """Learn less: nothing here asks for much."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memlab.rerank.model.EPOCHS", 3)
        yield


@pytest.fixture(scope="module")
def model(lists: list[TrainingLists], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    train(lists).save(path)
    return str(path)


@pytest.fixture(scope="module")
def folder(lists: list[TrainingLists], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cross_validate(lists, tmp_path_factory.mktemp("models") / "folds")


def test_a_session_ranks_by_the_shares_of_its_turns(lists: list[TrainingLists], model: str) -> None:
    trained, found = Model.load(model), lists[0].candidates
    turns = np.where(found.mask, np.exp(predict(trained.sessions, found.values)), 0)
    sums = (turns[:, :, None] * (found.session[:, :, None] == np.arange(found.n_sessions))).sum(axis=1)
    ours = np.exp(score_candidates(trained, found, level="session"))
    theirs = sums / sums.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours / ours.sum(axis=1, keepdims=True), theirs, atol=1e-6)


def test_nothing_to_learn_from(small: Dataset, bench: Bench, lists: list[TrainingLists]) -> None:
    data = replace(small, questions=small.questions.clear())
    missed = [replace(one, turns=np.zeros_like(one.turns)) for one in lists]
    for learn, said in (
        (lambda: training_lists(Bench.of(data, encoder=StandIn()), data), "names a turn as evidence"),
        (lambda: train([]), "no questions to learn from"),
        (lambda: train(missed), "no question has its evidence among its candidates"),
        (lambda: training_lists(Bench.of(small, encoder="hashing:32"), small), "needs token embeddings"),
    ):
        with pytest.raises(DataError, match=said):
            learn()


def test_labels_of_a_conversation_do_not_reach_its_own_ranking(
    small: Dataset, bench: Bench, folder: Path, tmp_path: Path
) -> None:
    """Give one conversation wrong evidence: its ranking stays, bit for bit, and that of the others changes."""
    scope = small.scopes[1]
    last, wrong = small.turns.filter(scope=scope).row(-1, named=True), pl.col("scope") == scope
    questions = small.questions.with_columns(
        evidence=pl.when(wrong).then(pl.lit([last["turn_id"]])).otherwise("evidence"),
        evidence_sessions=pl.when(wrong).then(pl.lit([last["session_id"]])).otherwise("evidence_sessions"),
    )
    other = Bench.of(data := replace(small, questions=questions), encoder=StandIn())
    misled = cross_validate(training_lists(other, data), tmp_path / "folds")
    scopes = small.questions.select("query_id", "scope")
    for level in ("turn", "session"):
        one, two = (
            learned(hybrid(b), b, model=str(f), level=level).frame.join(scopes, on="query_id", maintain_order="left")
            for b, f in ((bench, folder), (other, misled))
        )
        assert one.filter(wrong).equals(two.filter(wrong))
        assert not one.filter(~wrong).equals(two.filter(~wrong))


def test_a_conversation_that_all_models_learned_from_is_refused(bench: Bench, model: str, tmp_path: Path) -> None:
    (tmp_path / "fold-0.safetensors").write_bytes(Path(model).read_bytes())
    with pytest.raises(DataError, match=r"each of 1 models .* learned from scope .*\(3 such scopes\)"):
        learned(hybrid(bench), bench, model=str(tmp_path))


def change(tensors: Callable[[dict[str, Any]], Any] = lambda held: None, **about: Any) -> Callable[[Path], None]:
    """Change the tensors of a file, and what it says about itself."""

    def harm(path: Path) -> None:
        with safe_open(str(path), framework="numpy") as file:
            said = json.loads(file.metadata()["memlab"]) | about
        held = load_file(path)
        tensors(held)
        save_file(held, path, {"memlab": json.dumps(said)})

    return harm


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda p: p.unlink(), "no model .* memlab train DATASET"),
        (lambda p: p.write_bytes(p.read_bytes()[:-1000]), "cannot be read"),
        (lambda p: save_file({"weight": np.ones(3)}, p), "cannot be read .*expected what memlab train writes"),
        (lambda p: save_file({"weight": np.ones(3)}, p, {"memlab": '{"format": 2}'}), "lacks a part; train it again"),
        (change(format=1), "another version of memlab"),
        (change(sum={"turn": 1.0, "session": float("nan")}), "lacks a part"),
        (change(lambda held: held.pop("sessions.weight_1")), "lacks a part"),
        (change(lambda held: held.update({"sessions.mean": np.ones(3, np.float32)})), "lacks a part"),
        (change(lambda held: np.multiply(held["turns.weight_0"], np.nan, held["turns.weight_0"])), "lacks a part"),
        (change(encoder="other"), "was trained with encoder 'other'"),
        (change(features=["a"]), "trained with other features"),
    ],
)
def test_what_is_no_model_is_refused_in_one_message(
    bench: Bench, model: str, tmp_path: Path, harm: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(Path(model).read_bytes())
    harm(path)
    with pytest.raises(ModelError, match=said) as error:
        learned(hybrid(bench), bench, model=str(path))
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_candidates_are_those_of_the_run_and_all_evidence_is_marked(
    small: Dataset, bench: Bench, lists: list[TrainingLists], model: str
) -> None:
    run = hybrid(bench, k=20)
    before, after = ranking(run), ranking(learned(run, bench, model=model))
    assert {query: set(turns) for query, turns in before.items()} == {q: set(turns) for q, turns in after.items()}
    assert after != before
    ids = bench.documents("turn").ids
    for one in lists:
        for i, row in enumerate(one.candidates.rows):
            evidence = set(small.questions["evidence"][int(row)])
            assert {ids[place] for place in one.candidates.at[i][one.turns[i]]} == evidence
            assert one.n_evidence[i] == len(evidence)


def test_an_encoder_is_known_by_its_weights_and_not_by_its_name(bench: Bench, model: str) -> None:
    encoder, run = str(bench.provenance["encoder"]), hybrid(bench, k=20)
    moved, changed = (
        bench.but(provenance={**bench.provenance, "encoder": encoder.replace(*names)})
        for names in ((" minilm ", " owner/all-MiniLM (L6) "), ("(stand-in)", "(another)"))
    )
    assert learned(run, moved, model=model).frame.equals(learned(run, bench, model=model).frame)
    with pytest.raises(ModelError, match="was trained with encoder"):
        learned(run, changed, model=model)
    with pytest.raises(ModelError, match=r"comes with memlab was trained with .*minilm.*: take the same"):
        learned(run, bench)
