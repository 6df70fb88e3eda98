"""The widget without a browser: what is picked comes back, what is asked is drawn, what is saved can be loaded."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from explored import ASKED, BENCH, DATA, PLACES, SCOPE
from talk import write

import memlab
from memlab.errors import DataError
from memlab.figures.provenance import NOTEBOOK_VARIABLE


@pytest.fixture
def explorer(tmp_path: Path) -> Any:
    return memlab.explore(
        BENCH, ["bm25", "dense"], scope=SCOPE, places=PLACES, golden=tmp_path / "golden.jsonl"
    )


def test_it_opens_on_the_question_with_most_evidence_and_says_what_goes_wrong(
    explorer: Any,
) -> None:
    counts = {
        q: len(e)
        for q, e in DATA.questions.filter(scope=SCOPE).select("query_id", "evidence").iter_rows()
    }
    assert counts[explorer.question] == max(counts.values())
    assert [system["name"] for system in explorer.answer["systems"]] == ["bm25", "dense"]
    explorer.question, explorer.k = ASKED["query_id"], 3
    assert explorer.answer["text"] == ASKED["text"]
    assert all(len(system["rows"]) == 3 for system in explorer.answer["systems"])
    explorer.systems = ["nosuchstage"]
    assert "nosuchstage" in explorer.problem
    assert explorer.answer == {}, "nothing stale is shown"
    explorer.systems = ["dense"]
    assert explorer.problem == ""
    for systems, scope, message in (
        (["bm25", "dense", "hybrid"], SCOPE, "one or two systems apart, not 3"),
        (["bm25"], "nobody", "no scope 'nobody'"),
    ):
        with pytest.raises(DataError, match=message):
            memlab.explore(BENCH, systems, scope=scope, places=PLACES)
    explorer.question = f"{SCOPE}/q999"
    assert "has no question" in explorer.problem
    with pytest.raises(DataError, match="shows a bench, not a Dataset"):
        memlab.explore(DATA)
    explorer.question, explorer.systems = ASKED["query_id"], ["dense", "bm25"]
    assert f"{SCOPE}: first 3 of dense, then first 3 of bm25" in written(explorer)


def written(explorer: Any) -> str:
    return re.sub(
        "<[^>]*>", "", " ".join(note.text for note in explorer.picture().layout.annotations)
    )


def test_a_picture_has_the_colours_the_time_and_the_selection_of_the_map(explorer: Any) -> None:
    turns = explorer.scene.turns
    explorer.select(turns["turn_id"].head(7).to_list())
    explorer.colour, explorer.until = "speaker", turns["timestamp"].sort()[49]
    shown = turns.filter(pl.col("timestamp") <= explorer.until)
    drawn = {
        trace.name: len(trace.x) for trace in explorer.picture().data if trace.type == "scatter"
    }
    assert drawn["selected"] == shown.join(explorer.selection, on="turn_id", how="semi").height
    assert drawn.keys() & set(turns["speaker"])
    assert f"as of {explorer.until:%-d %b %Y}" in written(explorer)
    for colour, end in (("time", "● later"), ("score", "● higher score")):
        explorer.colour = colour
        assert end in written(explorer)


def test_a_selection_comes_back_as_a_frame_and_is_clustered_again(explorer: Any) -> None:
    assert explorer.selection.is_empty()
    explorer._picked = [4, 2]  # what a lasso sends
    assert (
        explorer.selection["turn_id"].to_list()
        == explorer.scene.turns["turn_id"].gather([4, 2]).to_list()
    )
    picked = explorer.scene.turns["turn_id"].head(30).to_list()
    explorer.select(picked)
    assert explorer.selection["turn_id"].to_list() == picked
    before = explorer.scene
    explorer.cluster_again()
    others = ~pl.col("turn_id").is_in(picked)
    rest = explorer.scene.turns.filter(others)
    assert rest["label"].to_list() == before.turns.filter(others)["label"].to_list()
    for label in rest["label"].unique():
        assert explorer.scene.names[label] == before.names[label], "names stay"
    new = set(explorer.scene.turns["label"]) - {-1, *before.turns["label"]}
    assert new <= explorer.scene.names.keys()
    explorer.select([])
    explorer.cluster_again()
    assert set(explorer.scene.names) == set(explorer.scene.turns["label"]) - {-1}


def test_what_the_browser_asked_last_is_answered_last(explorer: Any) -> None:
    explorer.set_state({"question": "Who called?", "_request": 3})
    assert explorer._answered == 3
    assert explorer._view["asked"] == explorer.question == "Who called?"
    explorer._asked(None, {"kind": "cluster", "request": 4}, [])
    assert explorer._answered == 4
    sent = list[Any]()
    explorer.send = sent.append
    rows = explorer.find("The  i").to_list()
    assert rows
    for row, text in enumerate(explorer.scene.turns["text"].str.to_lowercase()):
        assert (row in rows) == ("the" in text and "i" in text)
    explorer._asked(None, {"kind": "find", "words": "The  i", "request": 5}, [])
    explorer._asked(None, {"kind": "texts", "rows": [3, 1], "request": 6}, [])
    assert sent[0] == {"kind": "found", "words": "The  i", "rows": rows}
    assert [row for row, _ in sent[1]["rows"]] == [3, 1]
    assert explorer._answered == 6


def test_a_question_of_ones_own_is_evidence_that_loads(explorer: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="pick the turns"):
        explorer.save("What did I buy?")
    explorer.select(ASKED["evidence"])
    explorer._asked(None, {"kind": "save", "question": "What did I buy?", "answer": "a lamp"}, [])
    golden = tmp_path / "golden.jsonl"
    golden.write_text(golden.read_text().rstrip())  # as an editor may leave it
    assert explorer.save("And then?")["query_id"] == "golden-2"
    log = write(tmp_path / "log.jsonl", replace(DATA, questions=DATA.questions.clear()))
    log.write_text(log.read_text() + golden.read_text())
    asked = memlab.load(log).questions
    assert asked["text"].to_list() == ["What did I buy?", "And then?"]
    assert asked["answer"].to_list() == ["a lamp", None]
    assert sorted(asked["evidence"][0]) == sorted(ASKED["evidence"])


@pytest.mark.slow
def test_where_no_screen_is_it_is_a_picture(explorer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NOTEBOOK_VARIABLE, "{}")
    shown = explorer._repr_mimebundle_()
    assert shown["image/svg+xml"].startswith("<svg")
    assert set(shown) == {"text/plain", "image/svg+xml"}
