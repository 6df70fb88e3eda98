"""Questions asked part by part; what knows English alone leaves other languages be."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import datasets, llm, retrieve
from memlab.pipelines import pipeline
from memlab.retrieve import Bench
from memlab.retrieve.decompose import WINDOWS, _best_turn_per_window, decompose, split_questions
from memlab.text.analysis import english_rules_apply
from memlab.text.questions import split_question


def asking(bench: Bench, *texts: str) -> Bench:
    ids = [f"new-{i}" for i in range(len(texts))]
    return bench.with_queries(pl.DataFrame({"query_id": ids, "scope": ["ann"] * len(ids), "text": list(texts)}))


def test_each_side_of_a_pair_gets_its_turn_to_the_front(odd: Bench) -> None:
    """The question's own list is full of doctors; the dentist is asked for alone."""
    ours = asking(odd, "What did I do for the doctor doctor doctor and the dentist?")
    run = retrieve.bm25(ours)
    got = decompose(run, ours, retriever="bm25", weight=4.0)
    before, after = (frame["doc_id"].index_of("ann/s1/2") for frame in (run.frame, got.frame))
    assert after < before


def test_a_window_brings_its_best_turn(chat: Bench) -> None:
    spans = chat.documents("session").spans
    scope, (first, end) = max(spans.items(), key=lambda each: each[1][1] - each[1][0])
    ours = chat.with_queries(pl.DataFrame({"scope": scope, "text": ["How many times did we talk of work?", "Why?"]}))
    run, documents, windows = retrieve.bm25(ours, k=999), ours.documents("turn"), min(WINDOWS, end - first)
    found = _best_turn_per_window(run, ours, ours.queries)
    assert found["query_id"].unique().to_list() == ["query-0"], "only what counts or lists"
    ranked = run.frame.filter(query_id="query-0")["doc_id"]
    window = (documents.session[documents.at(ranked)] - first) * windows // (end - first)
    best = dict(zip(window[::-1].tolist(), ranked.reverse(), strict=True))
    assert sorted(found["doc_id"]) == sorted(best.values())
    assert set(found["lists"]) == {windows}


def test_a_language_model_splits_the_questions(odd: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, answers = asking(odd, "a", "b", "c"), {"a": ["roses?", "", "tulips?"], "b": []}

    def ask(requests: list[llm.Request], service: str) -> list[llm.Answer]:
        assert service == "lab"
        split = [
            request.shape(questions=answers[text]) if (text := request.about[0]) in answers else None
            for request in requests
        ]
        return [llm.Answer(value, "" if value else "not recorded") for value in split]

    monkeypatch.setattr(llm, "ask", ask)
    with pytest.warns(UserWarning, match="1 of 3 decompositions"):
        split = split_questions(ours.queries, ours, "lab")
    assert split.rows() == [("new-0", "roses?"), ("new-0", "tulips?")]
    with pytest.warns(UserWarning, match="1 of 3 decompositions"):
        found = decompose(retrieve.bm25(ours), ours, service="lab", weight=9.0).frame
    assert {"ann/s3/4", "ann/s4/1"} & set(found.filter(query_id="new-0")["doc_id"].head(2))


PARTS = [
    ("What do Ann and Bob both like?", "What do {} like", "Ann; Bob"),
    ("What will Al do with Scout, Toby, and Buddy?", "What will Al do with {}", "Scout; Toby; Buddy"),
    ("How much did I spend on my coworker and brother?", "How much did I spend on my {}", "coworker; brother"),
    ("How many kitchen items did I replace or fix?", "How many kitchen items did I {}", "replace; fix"),
    ("What if I sold the old ring and the clay vase?", "What if I sold the {}", "old ring; clay vase"),
    ("How much more did I spend in Hawaii compared to Tokyo?", "How much more did I spend in {}", "Hawaii; Tokyo"),
    ("Which did I wash first, the bike or the car?", "Which did I wash first {}", "the bike; the car"),
    ("What passed between my trip and the show?", "What passed between {}", "my trip; the show"),
    ("How often did I play before? How often do I play now?", "How often {}", "did I play before; do I play now"),
    ("How many tops have I bought from H&M so far?", "", ""),
    ('What does "Salt and Pepper" mean to Tim?', "", ""),
    ("Where did I go and why?", "", ""),
    ("and, or", "", ""),
    ("?", "", ""),
]


@pytest.mark.parametrize(("text", "pattern", "members"), PARTS)
def test_parts(text: str, pattern: str, members: str) -> None:
    assert split_question(text) == [pattern.format(member) for member in members.split("; ") if member]


@given(st.text(max_size=60) | st.sampled_from(["Ann and Bob", "the a, the b, and", "'x' and 'y'?"]))
def test_parts_are_texts_of_their_own(text: str) -> None:
    parts = split_question(text)
    assert len(set(parts)) == len(parts)
    assert text not in parts
    assert all(part.strip() for part in parts)


def test_german_is_ranked_by_its_stems_and_its_questions_stay_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = ["Wir haben zwei Wohnungen besichtigt.", "Die Ärzte geben mir frei.", "Die Hunde bellen jede Nacht."]
    asked = ["Welche Wohnung hat Anna besichtigt?", "Welcher Arzt gab Anna frei?", "Wessen Hund und Nacht?"]
    rows = [{"memlab": {"format": "chatlog", "language": "de"}}]
    rows += [{"scope": "x", "sender": "Anna", "text": text, "id": f"m{n}"} for n, text in enumerate(said)]
    rows += [{"question": text, "scope": "x", "evidence": [f"m{n}"]} for n, text in enumerate(asked)]
    (tmp_path / "german.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    bench = Bench.of(datasets.load(tmp_path / "german.jsonl"), encoder="hashing:64")
    english_rules_apply.cache_clear()
    with caplog.at_level(logging.WARNING, "memlab"):
        plain, *others = (
            pipeline(f"bm25{after}").run(bench) for after in ("", " | decompose(retriever='bm25')", " | coverage")
        )
    assert plain.frame.filter(rank=1)["doc_id"].to_list() == ["x/m0", "x/m1", "x/m2"]
    assert others[0].frame["doc_id"].equals(plain.frame["doc_id"])
    assert plain.provenance["language"] == "de"
    assert len(caplog.records) == 1, "English rules are left out, which is said once"
