"""A saved run is made again on what it saw, whatever was written since; or it is said why it cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from talk import excerpt

from memlab import Bench, Dataset, MemoryStore, Run, pipeline, retrieve
from memlab.errors import StoreError
from memlab.experiments.replaying import replay
from memlab.pipelines import stages


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore.open(tmp_path / "store")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return excerpt(400, scopes=("nadia", "owen"))


def changed(data: Dataset) -> Dataset:
    return replace(data, turns=data.turns.with_columns(text=pl.col("text").str.reverse()))


def saved(store: MemoryStore, data: Dataset, text: str, *, level: Any = "turn", **settings: Any) -> tuple[str, Run]:
    run = pipeline(text).run(Bench.of(data, **{"encoder": "hashing:32", **settings}, store=store), level=level)
    return store.runs.save(run), run


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("bm25", "session"),
        ("hybrid | mmr(k=5) | budget(tokens=80)", "turn"),
    ],
)
def test_the_same_ranks_after_the_store_went_on(store: MemoryStore, data: Dataset, text: str, level: Any) -> None:
    run_id, run = saved(store, data, text, level=level)
    now = Bench.of(changed(data), encoder="hashing:32", store=store)
    assert not pipeline(text).run(now, level=level).frame.equals(run.frame)
    store.optimize()
    again = replay(store, run_id)
    assert_frame_equal(again.frame, run.frame)
    assert (again.name, again.level, again.provenance) == (run.name, run.level, run.provenance)
    assert again.text_of is not None
    assert again.text_of(run.frame["doc_id"][:3].to_list()) == run.text_of(run.frame["doc_id"][:3].to_list())


def test_with_a_header_without_an_encoder_and_of_some_scopes(store: MemoryStore, data: Dataset) -> None:
    whole = saved(store, data, "dense", header=("participants", "time"))
    part = saved(store, data.take(data.scopes[1:]), "bm25", encoder=None)
    assert "scopes" not in whole[1].provenance
    assert part[1].provenance["scopes"] == data.scopes[1:]
    for run_id, run in (whole, part):
        assert replay(store, run_id).provenance == run.provenance
        assert_frame_equal(replay(store, run_id).frame, run.frame)


def test_a_run_that_does_not_say_how_it_was_made(store: MemoryStore, data: Dataset) -> None:
    run = pipeline("bm25").run(Bench.of(data, encoder=None))
    with pytest.raises(StoreError, match="does not say its"):
        replay(store, store.runs.save(run))
    with pytest.raises(StoreError, match="dataset, fingerprint, pipeline"):
        replay(store, store.runs.save(replace(run, provenance={})))
    with pytest.raises(StoreError, match="no run 'none'"):
        replay(store, "none")


def test_another_encoder(store: MemoryStore, data: Dataset) -> None:
    run_id, run = saved(store, data, "dense")
    assert replay(store, run_id, encoder="hashing:32").frame.equals(run.frame)
    with pytest.raises(StoreError, match=r"the run saw encoder 'hashing .* 32-d.*; this is 'hashing .* 64-d"):
        replay(store, run_id, encoder="hashing:64")
    local = replace(run, provenance={**run.provenance, "encoder": "transformer my-model (0a1b), 384-d, mean pooling"})
    with pytest.raises(StoreError, match=r"cannot be loaded by a name; give it: replay\(…, encoder=…\)"):
        replay(store, store.runs.save(local))


def test_ranks_that_differ(store: MemoryStore, data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, _ = saved(store, data, "bm25(k=9)")

    def other(bench: Bench, *, level: Any = "turn", k: int = 200) -> Run:
        run = retrieve.bm25(bench, level=level, k=k)
        return replace(run, frame=run.frame.with_columns(pl.col("doc_id").reverse().over("query_id")))

    monkeypatch.setitem(stages, "bm25", other)
    with pytest.raises(StoreError, match="ranks otherwise now, on the same data"):
        replay(store, run_id)


def test_a_model_file_is_what_is_in_it(
    store: MemoryStore, data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memlab import run

    def toy(run: Run, bench: Bench, *, model: str = "") -> Run:
        return run

    monkeypatch.setitem(stages, "toy", toy)
    file = tmp_path / "model.bin"
    file.write_text("one")
    chosen = pipeline(f"bm25 | toy(model={str(file)!r}) | toy(model='a/name')")
    assert list(chosen.dependencies()["files"]) == [str(file)]
    grids = [run([chosen], [data], store=store, encoder=None, levels=["turn"]) for _ in range(2)]
    assert [grid.cells["read"].item() for grid in grids] == [False, True]
    run_id = grids[0].cells["run_id"].item()
    assert replay(store, run_id).frame.height
    file.write_text("two")
    assert not run([chosen], [data], store=store, encoder=None, levels=["turn"]).cells["read"].item()
    with pytest.raises(StoreError, match=r"files, '.*model\.bin' is gone or is not the one"):
        replay(store, run_id)
