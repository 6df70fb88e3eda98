"""The widget without a browser: what is picked comes back, what is asked is drawn, what is saved can be loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from explored import ASKED, BENCH, DATA, PLACES, SCOPE

import memlab
from memlab.errors import DataError
from memlab.figures.provenance import NOTEBOOK_VARIABLE


@pytest.fixture
def explorer(tmp_path: Path) -> Any:
    return memlab.explore(BENCH, ["bm25", "dense"], scope=SCOPE, places=PLACES, golden=tmp_path / "golden.jsonl")


def test_it_opens_on_the_question_with_most_evidence(explorer: Any) -> None:
    counts = {q: len(e) for q, e in DATA.questions.filter(scope=SCOPE).select("query_id", "evidence").iter_rows()}
    assert counts[explorer.question] == max(counts.values())
    assert [system["name"] for system in explorer.answer["systems"]] == ["bm25", "dense"]
    explorer.question, explorer.k = ASKED["query_id"], 3
    assert explorer.answer["text"] == ASKED["text"]
    assert all(len(system["rows"]) == 3 for system in explorer.answer["systems"])


def test_what_goes_wrong_is_said_and_changes_nothing(explorer: Any) -> None:
    before = explorer.answer
    explorer.systems = ["nosuchstage"]
    assert "nosuchstage" in explorer.problem
    assert explorer.answer == before
    explorer.systems = ["dense"]
    assert explorer.problem == ""


def test_a_selection_comes_back_as_a_frame(explorer: Any) -> None:
    assert explorer.selection.is_empty()
    explorer._picked = [4, 2]  # what a lasso sends
    assert explorer.selection["turn_id"].to_list() == explorer.scene.turns["turn_id"].gather([4, 2]).to_list()
    explorer.select(ASKED["evidence"])
    assert sorted(explorer.selection["turn_id"]) == sorted(ASKED["evidence"])


def test_clustering_a_selection_again_leaves_the_rest_without_a_cluster(explorer: Any) -> None:
    picked = explorer.scene.turns["turn_id"].head(40).to_list()
    explorer.select(picked)
    explorer.cluster_again()
    rest = explorer.scene.turns.filter(~pl.col("turn_id").is_in(picked))
    assert rest["label"].unique().to_list() == [-1]


def test_a_question_of_ones_own_is_evidence_that_loads(explorer: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="pick the turns"):
        explorer.save("What did I buy?")
    explorer.select(ASKED["evidence"])
    explorer._asked(None, {"kind": "save", "question": "What did I buy?", "answer": "a lamp"}, [])
    golden = tmp_path / "golden.jsonl"
    golden.write_text(golden.read_text().rstrip())  # as an editor may leave it
    assert explorer.save("And then?")["query_id"] == "golden-2"
    log = tmp_path / "log.jsonl"
    turns = DATA.turns.filter(scope=SCOPE).select("session_id", "turn_id", "speaker", "text", "timestamp")
    lines = [
        {"scope": SCOPE, "session": session.rpartition("/")[2], "id": turn, "sender": speaker, "text": text,
         "timestamp": time.isoformat()}
        for session, turn, speaker, text, time in turns.iter_rows()
    ]  # fmt: skip
    log.write_text("\n".join(map(json.dumps, lines)) + "\n" + (tmp_path / "golden.jsonl").read_text())
    asked = memlab.datasets.load(log).questions
    assert asked["text"].to_list() == ["What did I buy?", "And then?"]
    assert asked["answer"].to_list() == ["a lamp", None]
    assert len(asked["evidence"][0]) == len(ASKED["evidence"])


def test_it_says_why_it_cannot_open() -> None:
    with pytest.raises(DataError, match="one or two systems apart, not 3"):
        memlab.explore(BENCH, ["bm25", "dense", "hybrid"], scope=SCOPE, places=PLACES)
    with pytest.raises(DataError, match="no scope 'nobody'"):
        memlab.explore(BENCH, scope="nobody")


@pytest.mark.slow
def test_where_no_screen_is_it_is_a_picture(explorer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NOTEBOOK_VARIABLE, "{}")
    shown = explorer._repr_mimebundle_()
    assert shown["image/svg+xml"].startswith("<svg")
    assert set(shown) == {"text/plain", "image/svg+xml"}
