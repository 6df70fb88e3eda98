"""The learned reranker: its networks and its file, the bundled model, what it may not know, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from stand_in import StandIn
from talk import ranking

import memlab
from memlab import DataError, ModelError
from memlab.evaluate import evaluate
from memlab.records import Dataset
from memlab.rerank import (
    BUNDLED_MODEL,
    Model,
    held_out_recall,
    hold_out_scopes,
    learned,
    train,
    training_lists,
)
from memlab.rerank.learned_reranker import score_candidates
from memlab.rerank.network_ensemble import (
    BATCH,
    content_fingerprint_by_scope,
    fit_ranking_networks,
    predict_scores,
)
from memlab.rerank.reranker_features import best_candidate_places, candidate_features
from memlab.rerank.reranker_training import TrainingLists
from memlab.retrieve import Bench, best, hybrid

# Learn less: most of these tests ask for little.
quick = patch("memlab.rerank.network_ensemble.EPOCHS", 3)


@pytest.fixture(scope="module")
@quick
def model(lists: list[TrainingLists], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    train(lists).save(path)
    return str(path)


def test_a_session_ranks_by_the_shares_of_its_turns(lists: list[TrainingLists], model: str) -> None:
    trained, found = Model.load(model), lists[0].candidates
    turns = np.where(found.mask, np.exp(predict_scores(trained.sessions, found.values)), 0)
    sums = (turns[:, :, None] * (found.session[:, :, None] == np.arange(found.n_sessions))).sum(
        axis=1
    )
    ours = np.exp(score_candidates(trained, found, level="session"))
    theirs = sums / sums.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours / ours.sum(axis=1, keepdims=True), theirs, atol=1e-6)


def test_nothing_to_learn_from(small: Dataset, bench: Bench, lists: list[TrainingLists]) -> None:
    data = replace(small, questions=small.questions.clear())
    missed = [replace(one, turns=np.zeros_like(one.turns)) for one in lists]
    for learn, said in (
        (
            lambda: training_lists(Bench.of(data, encoder=StandIn()), data),
            "names a turn as evidence",
        ),
        (lambda: train([]), "no questions to learn from"),
        (lambda: train(missed), "no question has its evidence among its candidates"),
        (lambda: training_lists(Bench.of(small, encoder=None), small), "needs embeddings"),
    ):
        with pytest.raises(DataError, match=said):
            learn()


@quick
def test_a_quarter_of_the_conversations_is_held_out_and_measured_as_an_evaluation_does(
    small: Dataset, bench: Bench, lists: list[TrainingLists], tmp_path: Path
) -> None:
    rest, held_out = hold_out_scopes([*lists, *lists], seed=0)
    (name,) = {part.name for part in held_out}
    assert {part.name for part in rest} == set(small.scopes) - {name}
    assert len(held_out) == 2, "the same conversation in another file is held out too"
    assert {hold_out_scopes(lists, seed=s)[1][0].name for s in range(9)} == set(small.scopes)
    assert hold_out_scopes(lists[:1]) == (lists[:1], [])

    trained = train(rest)
    trained.save(path := tmp_path / "model.safetensors")
    only = small.take([name])
    for k in (1, 3):
        reached = held_out_recall(trained, held_out[:1], k=k)
        measured = {"n": reached["n"]}
        for system, run in (
            ("best", best(bench)),
            ("learned", learned(best(bench), bench, model=str(path))),
        ):
            found = run.frame.join(only.questions.select("query_id"), on="query_id", how="semi")
            report = evaluate(replace(run, frame=found), only, measures=[f"recall_all@{k}"])
            measured[system] = report.per_query[f"recall_all@{k}"].mean()
            assert reached["n"] == report.per_query.height
        assert reached == measured


@quick
def test_labels_of_a_held_out_conversation_do_not_reach_the_model(
    small: Dataset, lists: list[TrainingLists]
) -> None:
    """Give the held-out conversation wrong evidence: the weights stay, and what is measured changes."""
    rest, held_out = hold_out_scopes(lists)
    (part,) = held_out
    wrong = replace(part, turns=np.roll(part.turns, 5, axis=1))
    other, misled = hold_out_scopes([wrong if each is part else each for each in lists])
    one, two = train(rest), train(other)
    assert all(np.array_equal(one.turns[name], two.turns[name]) for name in one.turns)
    assert held_out_recall(one, held_out, k=3) != held_out_recall(two, misled, k=3)


def change(
    tensors: Callable[[dict[str, Any]], Any] = lambda held: None, **about: Any
) -> Callable[[Path], None]:
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
        (
            lambda p: save_file({"weight": np.ones(3)}, p),
            "cannot be read .*expected what memlab train writes",
        ),
        (
            lambda p: save_file({"weight": np.ones(3)}, p, {"memlab": '{"format": 2}'}),
            "lacks a part; train it again",
        ),
        (change(format=1), "another version of memlab"),
        (change(sum={"turn": 1.0, "session": float("nan")}), "lacks a part"),
        (change(lambda held: held.pop("sessions.weight_1")), "lacks a part"),
        (
            change(lambda held: held.update({"sessions.mean": np.ones(3, np.float32)})),
            "lacks a part",
        ),
        (
            change(
                lambda held: np.multiply(held["turns.weight_0"], np.nan, held["turns.weight_0"])
            ),
            "lacks a part",
        ),
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
    assert {query: set(turns) for query, turns in before.items()} == {
        q: set(turns) for q, turns in after.items()
    }
    assert after != before
    ids = bench.documents("turn").ids
    for one in lists:
        for i, row in enumerate(one.candidates.rows):
            evidence = set(small.questions["evidence"][int(row)])
            assert {ids[place] for place in one.candidates.at[i][one.turns[i]]} == evidence
            assert one.n_evidence[i] == len(evidence)


def test_any_encoder_and_header_will_do(small: Dataset, bench: Bench, model: str) -> None:
    run = hybrid(bench, k=20)
    ours = learned(run, bench, model=model)
    moved = bench.with_changes(provenance={**bench.provenance, "encoder": "another"})
    assert learned(run, moved, model=model).frame.equals(ours.frame)
    headed = Bench.of(small, encoder=memlab.embed.load(StandIn(), header=("time",)))
    assert learned(run, headed, model=model).frame.height == ours.frame.height
    assert learned(run, bench).frame.height == ours.frame.height


def test_a_bench_without_an_encoder_is_refused(small: Dataset, model: str) -> None:
    plain = Bench.of(small, encoder=None)
    with pytest.raises(DataError, match="no encoder to embed texts with; make it with one"):
        learned(memlab.retrieve.bm25(plain), plain, model=model)


def test_what_an_encoder_without_tokens_cannot_say_is_left_out_and_named(
    small: Dataset, bench: Bench
) -> None:
    plain = Bench.of(small, encoder="hashing:64")
    run = memlab.pipeline("best | learned | mmr").run(plain)
    assert run.provenance["left_out"] == ["late"]
    assert run.name == "best | learned | mmr (without late)"
    (part, *_) = candidate_features(plain, *best_candidate_places(plain, 20))
    (whole, *_) = candidate_features(bench, *best_candidate_places(bench, 20))
    assert part.names == whole.names
    unknown = {name for name in part.names if np.isnan(part.feature_values(name)).all()}
    assert unknown == {name for name in part.names if name.startswith("late_")}
    assert np.isfinite(part.values).sum() == part.values.size - len(unknown) * part.mask.size
    beside = Bench.of(small, encoder="hashing:64", token_encoder=StandIn())
    run = memlab.pipeline("best | learned").run(beside)
    assert run.name == "best | learned"
    assert "left_out" not in run.provenance


def test_what_is_not_known_counts_as_the_mean() -> None:
    values, positive, group, _ = planted(40)
    values[:10, :, 1] = np.nan
    values[:, :, 2] = np.nan
    network = fit_ranking_networks(values, positive, np.ones_like(positive), group_of_item=group)
    known = values[10:, :, 1]
    np.testing.assert_allclose(network["mean"][1], known.mean(), rtol=1e-4)
    np.testing.assert_allclose(network["spread"][1], known.std(), rtol=1e-4)
    assert (network["mean"][2], network["spread"][2]) == pytest.approx((0, 1e-6))
    filled = np.where(np.isnan(values), network["mean"], values)
    np.testing.assert_array_equal(predict_scores(network, values), predict_scores(network, filled))


Lists = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def planted(n: int, *, seed: int = 0) -> Lists:
    """Make lists of four groups: the positive item is the only one of its group, all of which share a mark."""
    rng = np.random.default_rng(seed)
    values, group = (
        rng.normal(size=(n, 12, 3)).astype(np.float32),
        np.tile(np.repeat(np.arange(4), 3), (n, 1)),
    )
    wanted = rng.integers(0, 4, n)
    values[..., 0] += 3 * (group == wanted[:, None])
    positive = np.zeros((n, 12), bool)
    positive[np.arange(n), wanted * 3 + rng.integers(0, 3, n)] = True
    return values * np.array([1, 100, 0.01], np.float32) + 7, positive, group, wanted


def learn(n: int, *, seed: int = 0) -> dict[str, np.ndarray]:
    values, positive, group, _ = planted(n)
    return dict(
        fit_ranking_networks(
            values, positive, np.ones_like(positive), group_of_item=group, seed=seed
        )
    )


def test_groups_are_learned_by_the_sum_of_their_items_and_lists_are_scored_alone() -> None:
    network, (values, _, _, wanted) = learn(200), planted(BATCH + 3, seed=1)
    scores = predict_scores(network, values)
    shares = np.exp(scores).reshape(-1, 4, 3).sum(axis=2)
    assert (shares.argmax(axis=1) == wanted).mean() > 0.9  # by chance 0.25
    for i in (0, BATCH - 1, BATCH, BATCH + 2):
        np.testing.assert_allclose(
            predict_scores(network, values[i : i + 1])[0], scores[i], atol=1e-5
        )
    order = np.random.default_rng(0).permutation(12)
    np.testing.assert_allclose(
        predict_scores(network, values[:, order]), scores[:, order], atol=1e-5
    )
    assert predict_scores(network, values[:0]).shape == (0, 12)


def test_the_seed_gives_the_weights_and_torchs_own_state_is_left_alone() -> None:
    import torch

    before = torch.random.get_rng_state()
    one = learn(40, seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(6)
    again, other = learn(40, seed=3), learn(40, seed=4)
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not np.array_equal(one["weight_0"], other["weight_0"])


@pytest.fixture(scope="module")
def box() -> Model:
    return Model.load(BUNDLED_MODEL)


@pytest.mark.slow
def test_it_learned_from_the_talk_that_is_here_by_features_that_are_still_computed(
    box: Model, lists: list[TrainingLists]
) -> None:
    talk, held_out = (
        [memlab.datasets.load(file) for file in sorted(Path(folder).glob("*.jsonl"))]
        for folder in ("data/train", "data/heldout")
    )
    assert box.about["data"] == [
        {"name": data.name, "fingerprint": data.fingerprint()} for data in talk
    ]
    scopes = {
        mark
        for data in talk
        for mark in content_fingerprint_by_scope(data.turns, data.scopes).values()
    }
    assert set(box.about["scopes"]) == scopes
    assert box.about["questions"] == sum((~data.questions["abstention"]).sum() for data in talk)
    assert not any(
        scopes & set(content_fingerprint_by_scope(data.turns, data.scopes).values())
        for data in held_out
    )
    assert box.about["features"] == list(lists[0].candidates.names)


@pytest.mark.parametrize("level", ["turn", "session"])
def test_the_untrained_sum_tempers_it(box: Model, lists: list[TrainingLists], level: str) -> None:
    part = lists[0].candidates
    alone, half, nearly_all = (
        score_candidates(
            replace(box, about={**box.about, "sum": {level: weight}}), part, level=level
        )
        for weight in (0.0, 0.5, 1e6)
    )
    for other in (half, nearly_all):
        assert (np.isfinite(other) == np.isfinite(alone)).all()
    for row, there in enumerate(np.isfinite(alone)):
        best = np.where(part.mask[row], part.feature_values("sum")[row], -np.inf).argmax()
        assert nearly_all[row].argmax() == (best if level == "turn" else part.session[row, best])
        assert half[row][there].mean() == pytest.approx(0, abs=1e-4)


@pytest.mark.nightly
def test_it_completes_more_answers_than_the_untrained_sum() -> None:
    done = memlab.run(
        ["best", "best | learned"], memlab.sample(), encoder="minilm", levels=["turn"]
    )
    untrained, learned = (report.per_query["recall_all@10"].mean() for report in done.reports)
    assert learned > untrained


def test_it_is_among_what_is_compared_where_nothing_is_named(small: Dataset) -> None:
    done = memlab.run(None, small, encoder=StandIn(), levels=["turn"])
    assert done.cells["pipeline"].to_list() == ["bm25", "dense", "hybrid", "best", "best | learned"]
    done = memlab.run(None, small, encoder=None, levels=["turn"])
    assert done.cells["pipeline"].to_list() == ["bm25", "best (without dense and late)"]
