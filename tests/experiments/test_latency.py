"""Times of pipelines: by the processor, in turn, and never a difference that is noise."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest

import memlab
from memlab import experiments
from memlab.embed.numpy_bert import Bert
from memlab.experiments import system_rankings
from memlab.experiments.parameter_sweeps import latency, time_pipelines_in_turn_ms
from memlab.experiments.system_rankings import AskingOptions

READ = Bert._read_tokens_and_hidden_states
SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def bench() -> memlab.Bench:
    return memlab.Bench.of(memlab.sample(turns=200), encoder=None)


def test_pipelines_take_turns_question_by_question(bench: memlab.Bench) -> None:
    asked: list[tuple[str, str]] = []
    now = [0.0]

    def pipeline(name: str, seconds: float) -> SimpleNamespace:
        def run(part: memlab.Bench) -> None:
            asked.append((name, part.queries["query_id"].item()))
            assert part.store is None
            now[0] += seconds

        return SimpleNamespace(run=run)

    pipelines = [pipeline("a", 0.002), pipeline("b", 0.003), pipeline("c", 0.005)]
    parts = [np.array([row]) for row in (4, 0, 2)]
    times = time_pipelines_in_turn_ms(pipelines, bench, parts, clock=lambda: now[0])  # type: ignore[arg-type]
    assert times == pytest.approx(np.array([[2.0] * 3, [3.0] * 3, [5.0] * 3]))
    ids = bench.queries["query_id"]
    expected = [
        (name, ids[row]) for before, now in ((2, 4), (4, 0), (0, 2)) for name in "abc"
        for row in (before, now)
    ]  # fmt: skip
    assert asked == expected


@pytest.mark.parametrize("pipelines", [["dense", "hybrid"], ["hybrid", "dense"]])
def test_what_one_pipeline_read_of_a_question_is_read_again_by_the_next(
    pipelines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoder remembers its last texts: a sum, asked after its part, would seem the faster of them."""
    read: list[str] = []

    def counted(reader: Bert, text: str) -> tuple[np.ndarray, np.ndarray]:
        read.append(text)
        return READ(reader, text)

    monkeypatch.setattr(Bert, "_read_tokens_and_hidden_states", counted)
    said = [
        {"scope": "ann", "sender": "Ann", "text": text} for text in ("Tea.", "A boat.", "Rain.")
    ]
    said += [{"scope": "ann", "question": text} for text in ("What do I drink?", "How was it?")]
    data = memlab.datasets.chatlog.dataset(said, "said")
    made = memlab.Bench.of(data, encoder=memlab.embed.load("minilm"), progress=False)
    stages = [memlab.pipeline(text) for text in pipelines]
    for each in stages:
        each.run(made.with_query_rows(np.array([0])))
    read.clear()
    time_pipelines_in_turn_ms(stages, made, [np.array([0]), np.array([1])])
    texts = made.queries["text"].to_list()[:2]
    assert read == [text for pair in (texts[::-1], texts) for _ in pipelines for text in pair]


def test_the_median_and_its_quartiles_are_of_the_given_clock(bench: memlab.Bench) -> None:
    ticks = itertools.count()
    times = latency(["bm25", "bm25(k=5)"], bench, queries=4, clock=lambda: next(ticks) / 1000)
    assert times["n"].to_list() == [4, 4]
    assert times.select("single_ms", "low_ms", "high_ms").rows() == [pytest.approx((1, 1, 1))] * 2
    assert times["batch_ms"].to_list() == pytest.approx([0.25, 0.25])
    assert inspect.signature(latency).parameters["clock"].default is time.process_time
    assert inspect.signature(latency).parameters["queries"].default == 40


def test_the_table_of_speed_has_these_times(
    bench: memlab.Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in (
        "bm25s",
        "ir_measures",
        "sentence_transformers",
        "sklearn.mixture",
        "torch",
        "umap",
    ):
        monkeypatch.setitem(
            sys.modules, library, Mock()
        )  # what the other rows import takes half a minute
    place = importlib.util.spec_from_file_location("bench_script", SCRIPTS / "bench.py")
    assert place is not None
    assert place.loader is not None
    script = importlib.util.module_from_spec(place)
    place.loader.exec_module(script)
    asked: list[list[str]] = []

    def measured(pipelines: list[str], given: memlab.Bench) -> pl.DataFrame:
        asked.append(pipelines)
        assert given is bench
        columns = {"n": 40, "batch_ms": 1.0, "single_ms": 21.5, "low_ms": 20.0, "high_ms": 24.0}
        return pl.DataFrame({"system": pipelines}).with_columns(
            **{name: pl.lit(value) for name, value in columns.items()}
        )

    monkeypatch.setattr(experiments, "latency", measured)
    monkeypatch.setattr(script, "largest", lambda *_: bench)
    rows = [*script.question(None, None)]
    assert [row[0] for row in rows] == [f"one question, `{text}`" for text in asked[0]]
    assert rows[0][1:] == ("", "40 questions, quartiles 20.0 to 24.0 ms", 0.0215, None)


def test_a_comparison_times_its_pipelines_in_turn_by_the_wall_clock(
    bench: memlab.Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memories wait for other processes, and pipelines for language models: that is part of a search."""
    asked: list[list[str]] = []

    def measured(pipelines: list[memlab.Pipeline], *_: object, clock: object) -> np.ndarray:
        asked.append([str(stages) for stages in pipelines])
        assert clock is time.perf_counter
        return np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    monkeypatch.setattr(system_rankings, "time_pipelines_in_turn_ms", measured)
    options = AskingOptions(encoder=None, k=5)
    named = options.read_systems_and_run_files_by_name(
        ["bm25", "bm25(k=5)"], memlab.sample(turns=200)
    )
    found = list(
        options.ask_systems_and_iter_texts_and_ms(
            named, bench, memlab.sample(turns=200), with_search_times=True
        )
    )
    assert asked == [["bm25", "bm25(k=5)"]]
    assert [times.tolist() for _, times in found] == [[1, 2, 3], [4, 5, 6]]
    assert [texts.name for texts, _ in found] == ["bm25", "bm25(k=5)"]
    assert all(
        not times.size
        for _, times in options.ask_systems_and_iter_texts_and_ms(
            named, bench, memlab.sample(turns=200)
        )
    )
