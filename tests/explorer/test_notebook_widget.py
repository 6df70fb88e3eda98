"""The widget without a browser: what is picked comes back, what is asked is drawn, what is saved can be loaded."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from explored import ASKED, BENCH, DATA, PLACES, SCOPE
from talk import write

import memlab
from memlab.errors import DataError, MemlabError
from memlab.figures.figure_provenance import NOTEBOOK_VARIABLE
from memlab.figures.style import attached_provenance


@pytest.fixture
def explorer(tmp_path: Path) -> Any:
    return memlab.explore(
        BENCH, ["bm25", "dense"], scope=SCOPE, places=PLACES, golden=tmp_path / "golden.jsonl"
    )


@pytest.mark.slow
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
    text = " ".join(note.text for note in explorer.picture().layout.annotations)
    return re.sub("<[^>]*>", "", text.replace("<br>", " "))


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


def test_a_picture_says_what_it_shows_where_its_export_is_given_nothing(explorer: Any) -> None:
    explorer.question = ASKED["query_id"]
    shown = attached_provenance(explorer.picture())
    assert (shown["scope"], shown["question"]) == (SCOPE, ASKED["query_id"])
    assert shown["pipeline"] == list(explorer.systems)
    assert shown["fingerprint"] == BENCH.provenance["fingerprint"]
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
    explorer._handle_browser_message(None, {"kind": "cluster", "request": 4}, [])
    assert explorer._answered == 4
    sent = list[Any]()
    explorer.send = sent.append
    rows = explorer.find("The  i").to_list()
    assert rows
    for row, text in enumerate(explorer.scene.turns["text"].str.to_lowercase()):
        assert (row in rows) == ("the" in text and "i" in text)
    explorer._handle_browser_message(None, {"kind": "find", "words": "The  i", "request": 5}, [])
    explorer._handle_browser_message(None, {"kind": "texts", "rows": [3, 1], "request": 6}, [])
    assert sent[0] == {"kind": "found", "words": "The  i", "rows": rows}
    assert [row for row, _ in sent[1]["rows"]] == [3, 1]
    assert explorer._answered == 6


def test_a_question_of_ones_own_is_evidence_that_loads(explorer: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="pick the turns"):
        explorer.save("What did I buy?")
    explorer.select(ASKED["evidence"])
    explorer._handle_browser_message(
        None, {"kind": "save", "question": "What did I buy?", "answer": "a lamp"}, []
    )
    golden = tmp_path / "golden.jsonl"
    golden.write_text(golden.read_text().rstrip())  # as an editor may leave it
    assert explorer.save("And then?")["query_id"] == "golden-2"
    log = write(tmp_path / "log.jsonl", replace(DATA, questions=DATA.questions.clear()))
    log.write_text(log.read_text() + golden.read_text())
    asked = memlab.load(log).questions
    assert asked["text"].to_list() == ["What did I buy?", "And then?"]
    assert asked["answer"].to_list() == ["a lamp", None]
    assert sorted(asked["evidence"][0]) == sorted(ASKED["evidence"])


def proposed(path: Path) -> Path:
    asked = {"scope": SCOPE, "question": "Which lamp?", "answer": "red", "source": "proposed"}
    asked |= {"evidence": ASKED["evidence"], "reasons": ["why"] * len(ASKED["evidence"])}
    others = [{"query_id": "p3", "scope": "elsewhere"}, {"query_id": "p4", "source": None}]
    lines = [asked | other for other in ({"query_id": "p1"}, {"query_id": "p2"}, *others)]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def test_proposals_are_accepted_mended_and_dropped(tmp_path: Path) -> None:
    golden = proposed(tmp_path / "proposed.jsonl")
    explorer = memlab.explore(BENCH, "bm25", scope=SCOPE, places=PLACES, golden=golden)

    def press(action: str, query_id: str, **more: Any) -> None:
        content = {"kind": "proposal", "action": action, "query_id": query_id, "request": 1}
        explorer._handle_browser_message(None, content | more, [])

    assert explorer._proposals["counts"] == f"2 proposed of {SCOPE}, in proposed.jsonl"
    assert [row["id"] for row in explorer._proposals["rows"]] == ["p1", "p2"]
    press("show", "p1")
    assert sorted(explorer.selection["turn_id"]) == sorted(ASKED["evidence"])
    assert explorer.answer["text"] == "Which lamp?"
    assert len(explorer.answer["evidence"]) == len(ASKED["evidence"])
    press("mend", "p1", question="Which lamp was it?", answer="green")
    assert explorer.proposals["query_id"].to_list() == ["p2", "p1"], "what is unread comes first"
    press("accept", "p2")
    others = explorer.scene.turns["turn_id"].head(2).to_list()
    explorer.select(others)
    press("evidence", "p2")
    assert explorer.proposals.filter(query_id="p2")["evidence"].to_list() == [others]
    assert explorer._proposals["counts"] == f"2 accepted of {SCOPE}, in proposed.jsonl"
    press("drop", "p2")
    assert explorer.proposals.select("question", "answer").rows() == [
        ("Which lamp was it?", "green")
    ]
    kept = [json.loads(line)["query_id"] for line in golden.read_text().splitlines()]
    assert kept == ["p1", "p3", "p4"]
    golden.write_text(golden.read_text() + "\n")
    press("drop", "p1")
    assert "proposed.jsonl was changed after it was read" in explorer.problem
    assert explorer._proposals["rows"], "nothing was written"
    press("drop", "p1")
    assert explorer.problem == ""
    assert explorer._proposals == {}
    with pytest.raises(DataError, match=r"no proposal of .* is called 'p9'"):
        explorer.show("p9")


@pytest.mark.slow
def test_where_no_screen_is_it_is_a_picture(explorer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NOTEBOOK_VARIABLE, "{}")
    shown = explorer._repr_mimebundle_()
    assert shown["image/svg+xml"].startswith("<svg")
    assert set(shown) == {"text/plain", "image/svg+xml"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k is 0; expected at least 1"),
        ({"k": "3"}, "k is '3'; expected a number, at least 1"),
        ({"seed": -1}, "seed is -1; expected at least 0"),
        ({"clustering": "k-means"}, "clustering is 'k-means'; choose from kmeans, "),
        ({"run": "bset"}, r"no stage is called 'bset' \(did you mean 'best'\?\)"),
        ({"run": ["best", "best | mmr(lambda_=2)"]}, "lambda_ is 2; expected at most 1"),
    ],
)
def test_what_cannot_be_used_is_refused_before_a_map_is_laid_out(
    arguments: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a map was laid out")

    monkeypatch.setattr("memlab.explorer.notebook_widget.build_scene", refuse)
    bench = memlab.Bench.of(memlab.sample(turns=60), encoder="hashing:32")
    with pytest.raises(MemlabError, match=message):
        memlab.explore(bench, **arguments)
