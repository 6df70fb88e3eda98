"""A saved run is made again on what it saw, whatever was written since; or it is said why it cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from talk import excerpt

import memlab
from memlab import Bench, Dataset, MemoryStore, Run, pipeline, retrieve
from memlab.embed import load
from memlab.errors import StoreError
from memlab.experiments.run_replay import replay
from memlab.registry import stages


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    return MemoryStore.open(tmp_path_factory.mktemp("replayed") / "store")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return excerpt(400, scopes=("nadia", "owen"))


def saved(
    store: MemoryStore, data: Dataset, text: str, *, level: Any = "turn", **settings: Any
) -> tuple[str, Run]:
    run = pipeline(text).run(
        Bench.of(data, **{"encoder": "hashing:32", **settings}, store=store), level=level
    )
    return store.runs.save(run), run


@pytest.mark.slow
def test_the_same_ranks_after_the_store_went_on(store: MemoryStore, data: Dataset) -> None:
    cases = [
        saved(store, data, "bm25", level="session"),
        saved(store, data, "hybrid | mmr(k=5) | budget(tokens=80)"),
        saved(store, data, "dense", encoder=load("hashing:32", header=("participants", "time"))),
        saved(store, data, "dense", encoder="hashing:32", token_encoder="minilm"),
        saved(store, data.take(data.scopes[1:]), "bm25", encoder=None),
    ]
    changed = replace(data, turns=data.turns.with_columns(text=pl.col("text").str.reverse()))
    now = Bench.of(changed, encoder="hashing:32", store=store)
    assert not pipeline("bm25").run(now, level="session").frame.equals(cases[0][1].frame)
    store.optimize()
    for run_id, run in cases:
        again = replay(store, run_id)
        assert_frame_equal(again.frame, run.frame)
        assert (again.name, again.level, again.provenance) == (run.name, run.level, run.provenance)
        assert again.text_of is not None
        assert again.text_of(run.frame["doc_id"][:3].to_list()) == run.text_of(
            run.frame["doc_id"][:3].to_list()
        )
    assert cases[-1][1].provenance["scopes"] == data.scopes[1:]


@pytest.mark.slow
def test_what_cannot_be_made_again_is_told(
    store: MemoryStore, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = pipeline("bm25").run(Bench.of(data, encoder=None))
    run_id, run = saved(store, data, "dense")
    assert replay(store, run_id, encoder="hashing:32").frame.equals(run.frame)
    local = replace(
        run,
        provenance={
            **run.provenance,
            "encoder": "transformer my-model (0a1b), 384-d, mean pooling",
        },
    )

    def other(bench: Bench, *, level: Any = "turn", k: int = 200) -> Run:
        run = retrieve.bm25(bench, level=level, k=k)
        return replace(
            run, frame=run.frame.with_columns(pl.col("doc_id").reverse().over("query_id"))
        )

    words = saved(store, data, "bm25(k=9)")[0]
    monkeypatch.setitem(stages, "bm25", other)
    for each, encoder, message in (
        (store.runs.save(bare), None, "does not say its"),
        (store.runs.save(replace(bare, provenance={})), None, "dataset, fingerprint, pipeline"),
        ("none", None, "no run 'none'"),
        (run_id, "hashing:64", r"the run saw encoder 'hashing .* 32-d.*; this is 'hashing .* 64-d"),
        (
            store.runs.save(local),
            None,
            r"cannot be loaded by a name; give it: replay\(…, encoder=…\)",
        ),
        (words, None, "ranks otherwise now, on the same data"),
    ):
        with pytest.raises(StoreError, match=message):
            replay(store, each, encoder=encoder)


def test_a_model_file_is_what_is_in_it(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def toy(run: Run, bench: Bench, *, model: str = "") -> Run:
        return run

    monkeypatch.setitem(stages, "toy", toy)
    store, file = MemoryStore.open(tmp_path / "store"), tmp_path / "model.bin"
    file.write_text("one")
    chosen = pipeline(f"bm25 | toy(model={str(file)!r}) | toy(model='a/name')")
    assert list(chosen.dependencies()["files"]) == [str(file)]

    def cells() -> pl.DataFrame:
        return memlab.run([chosen], [data], store=store, encoder=None, levels=["turn"]).cells

    first, second = cells(), cells()
    assert [first["read"].item(), second["read"].item()] == [False, True]
    assert replay(store, first["run_id"].item()).frame.height
    file.write_text("two")
    assert not cells()["read"].item()
    with pytest.raises(StoreError, match=r"files, '.*model\.bin' is gone or is not the one"):
        replay(store, first["run_id"].item())
