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
from safetensors.numpy import load_file, save_file
from stand_in import StandIn

from memlab import DataError, ModelError
from memlab.records import Dataset, Level, Run
from memlab.rerank import Model, cross_validate, learned, train, training_lists
from memlab.rerank.learned import score_candidates
from memlab.rerank.listwise import predict
from memlab.rerank.model import scope_fingerprints
from memlab.rerank.training import TrainingLists
from memlab.retrieve import Bench, hybrid

LEVELS: tuple[Level, ...] = ("turn", "session")
Renamed = Callable[[Dataset], tuple[Dataset, dict[str, str]]]


@pytest.fixture(scope="module")
def lists(small: Dataset, bench: Bench) -> list[TrainingLists]:
    return training_lists(bench, small)


@pytest.fixture(scope="module")
def model(lists: list[TrainingLists], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    train(lists).save(path)
    return str(path)


@pytest.fixture(scope="module")
def folder(lists: list[TrainingLists], tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memlab.rerank.listwise.EPOCHS", 3)
        return cross_validate(lists, tmp_path_factory.mktemp("models") / "folds")


def ranking(run: Run) -> dict[str, list[str]]:
    return dict(run.frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())


# --- ranking


def test_a_session_ranks_by_the_shares_of_its_turns(lists: list[TrainingLists], model: str) -> None:
    trained = Model.load(model)
    for one in lists:
        found = one.candidates
        turns = predict(trained.sessions, found.values).astype(np.float64)
        ours = score_candidates(trained, found, level="session")
        for row in range(len(ours)):
            held = found.mask[row]
            sums = np.zeros(found.n_sessions)
            np.add.at(sums, found.session[row][held], np.exp(turns[row][held]))
            with np.errstate(divide="ignore"):
                theirs = np.log(sums)
            np.testing.assert_allclose(ours[row] - ours[row].max(), theirs - theirs.max(), atol=1e-6)
        assert np.array_equal(np.isfinite(score_candidates(trained, found)), found.mask)


# --- training


def test_the_same_seed_gives_the_same_model(lists: list[TrainingLists]) -> None:
    one, two, other = (train(lists, seed=seed) for seed in (0, 0, 1))
    for part in ("turns", "sessions"):
        a, b, c = (getattr(m, part) for m in (one, two, other))
        assert all(np.array_equal(a[name], b[name]) for name in a)
        assert not np.array_equal(a["weight_0"], c["weight_0"])
    assert one.about == two.about


def test_nothing_to_learn_from(small: Dataset, bench: Bench, lists: list[TrainingLists]) -> None:
    data = replace(small, questions=small.questions.clear())
    with pytest.raises(DataError, match="names a turn as evidence; there is nothing to learn from"):
        training_lists(Bench.of(data, encoder=StandIn()), data)
    with pytest.raises(DataError, match="no questions to learn from"):
        train([])
    missed = [replace(one, turns=np.zeros_like(one.turns)) for one in lists]
    with pytest.raises(DataError, match="no question has its evidence among its candidates"):
        train(missed)
    with pytest.raises(DataError, match="late interaction needs token embeddings"):
        training_lists(Bench.of(small, encoder="hashing:32"), small)


# --- cross-validation


def held_out(folder: Path) -> dict[str, list[str]]:
    return {path.name: Model.load(path).about["scopes"] for path in folder.glob("*.safetensors")}


def test_each_conversation_is_ranked_by_a_model_that_did_not_learn_from_it(
    small: Dataset, bench: Bench, folder: Path
) -> None:
    prints = scope_fingerprints(small.turns, small.scopes)
    seen = held_out(folder)
    assert len(seen) == len(prints) == 3
    whole = ranking(learned(hybrid(bench), bench, model=str(folder)))
    for scope, name in prints.items():
        (file,) = (file for file, learned_from in seen.items() if name not in learned_from)
        by_it = ranking(learned(hybrid(bench), bench, model=str(folder / file)))
        queries = small.questions.filter(scope=scope)["query_id"]
        assert {q: whole[q] for q in queries} == {q: by_it[q] for q in queries}


def test_labels_of_a_conversation_do_not_reach_its_own_ranking(
    small: Dataset, bench: Bench, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Give one conversation wrong evidence: its ranking stays, bit for bit, and that of the others changes."""
    scope = small.scopes[1]
    turns = small.turns.filter(scope=scope)
    last = turns.row(-1, named=True)
    wrong = pl.col("scope") == scope
    questions = small.questions.with_columns(
        evidence=pl.when(wrong).then(pl.lit([last["turn_id"]])).otherwise("evidence"),
        evidence_sessions=pl.when(wrong).then(pl.lit([last["session_id"]])).otherwise("evidence_sessions"),
    )
    data = replace(small, questions=questions)
    other = Bench.of(data, encoder=StandIn())
    monkeypatch.setattr("memlab.rerank.listwise.EPOCHS", 3)
    misled = cross_validate(training_lists(other, data), tmp_path / "folds")
    for level in LEVELS:
        one, two = (
            learned(hybrid(b), b, model=str(f), level=level).frame.join(
                small.questions.select("query_id", "scope"), on="query_id", maintain_order="left"
            )
            for b, f in ((bench, folder), (other, misled))
        )
        assert one.filter(wrong).equals(two.filter(wrong))
        assert not one.filter(~wrong).equals(two.filter(~wrong))


def test_a_conversation_that_all_models_learned_from_is_refused(bench: Bench, model: str, tmp_path: Path) -> None:
    (tmp_path / "fold-0.safetensors").write_bytes(Path(model).read_bytes())
    with pytest.raises(DataError, match=r"each of 1 models .* learned from scope .*\(3 such scopes\)"):
        learned(hybrid(bench), bench, model=str(tmp_path))


# --- the file


def about_of(path: Path) -> dict[str, Any]:
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        return json.loads(file.metadata()["memlab"])


def rewrite(path: Path, *, about: Any = None, **changes: Any) -> None:
    tensors = load_file(path)
    for name, value in changes.items():
        tensors.pop(name)
        if value is not None:
            tensors[name] = value
    save_file(tensors, path, {"memlab": json.dumps(about_of(path) if about is None else about)})


def spoil(name: str, value: float) -> Callable[[Path], None]:
    return lambda path: rewrite(path, **{name: np.full_like(load_file(path)[name], value)})


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda p: p.unlink(), "no model .* memlab train DATASET"),
        (lambda p: p.write_bytes(b""), "cannot be read"),
        (lambda p: p.write_bytes(p.read_bytes()[:-1000]), "cannot be read"),
        (lambda p: p.write_bytes(p.read_bytes()[:40]), "cannot be read"),
        (lambda p: save_file({"weight": np.ones(3)}, p), "cannot be read .*expected what memlab train writes"),
        (lambda p: save_file({"weight": np.ones(3)}, p, {"memlab": "[1]"}), "cannot be read"),
        (lambda p: save_file({"weight": np.ones(3)}, p, {"memlab": '{"format": 2}'}), "lacks a part; train it again"),
        (lambda p: rewrite(p, about={**about_of(p), "format": 1}), "another version of memlab"),
        (lambda p: rewrite(p, about={**about_of(p), "sum": 0.5}), "cannot be read"),
        (lambda p: rewrite(p, about={**about_of(p), "sum": {"turn": 1.0, "session": float("nan")}}), "lacks a part"),
        (lambda p: rewrite(p, about={"format": 2}), "lacks a part"),
        (lambda p: rewrite(p, **{"sessions.weight_1": None}), "lacks a part"),
        (lambda p: rewrite(p, **{"sessions.mean": np.ones(3, np.float32)}), "lacks a part"),
        (spoil("turns.weight_0", np.nan), "lacks a part"),
        (lambda p: rewrite(p, about={**about_of(p), "encoder": "other"}), "was trained with encoder 'other'"),
        (lambda p: rewrite(p, about={**about_of(p), "features": ["a"]}), "trained with other features"),
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
            query = small.questions.row(int(row), named=True)
            assert {ids[place] for place in one.candidates.at[i][one.turns[i]]} == set(query["evidence"])
            assert one.n_evidence[i] == len(set(query["evidence"]))


def test_the_bundled_model_says_which_encoder_it_takes(bench: Bench) -> None:
    with pytest.raises(ModelError, match=r"comes with memlab was trained with .*minilm.*: take the same"):
        learned(hybrid(bench), bench)


def test_the_same_weights_under_another_name_are_the_same_encoder(bench: Bench, model: str) -> None:
    encoder = str(bench.provenance["encoder"])
    run = hybrid(bench, k=20)
    moved, changed = (
        bench.but(provenance={**bench.provenance, "encoder": encoder.replace(*names)})
        for names in ((" minilm ", " owner/all-MiniLM (L6) "), ("(stand-in)", "(another)"))
    )
    assert learned(run, moved, model=model).frame.equals(learned(run, bench, model=model).frame)
    with pytest.raises(ModelError, match="was trained with encoder"):
        learned(run, changed, model=model)
