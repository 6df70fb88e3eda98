"""What was missed: each cause by a case made for it; and what must not come back."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import memlab
from memlab import datasets
from memlab.errors import DataError
from memlab.evaluate import count_by_cause, misses, stale_table
from memlab.evaluate.causes_of_misses import CAUSES
from memlab.records import Dataset, Run, run_from_scores

FILLER = "Lovely weather here."


def chat(
    turns: dict[int, str | tuple[str, str]],
    *,
    question: str = "What pets does Ann have?",
    answer: str = "A ferret",
    evidence: tuple[int, ...] = (1,),
) -> Dataset:
    """One session of Ann's: forty turns, filler but for those given, some with a caption."""
    rows: list[dict[str, Any]] = []
    for i in range(1, 41):
        text, caption = said if isinstance(said := turns.get(i, FILLER), tuple) else (said, None)
        rows.append(
            {
                "scope": "a",
                "session": "s",
                "sender": "Ann",
                "id": str(i),
                "text": text,
                "caption": caption,
            }
        )
    asked = {
        "scope": "a",
        "query_id": "a/q",
        "question": question,
        "answer": answer,
        "evidence": [*map(str, evidence)],
    }
    return datasets.chatlog.dataset([*rows, asked], "chat")


def ranked(*order: int) -> Run:
    """The turns of the question, in that order."""
    ids = np.array([f"a/{i}" for i in order])
    scores = -np.arange(len(order), dtype=float)
    return run_from_scores(np.array(["a/q"] * len(order)), ids, scores, level="turn", k=100)


FAR = tuple(range(30, 41))
REST = {"question": "Does Ann rest?"}


@pytest.mark.parametrize(
    ("cause", "data", "order", "k"),
    [
        ("budget", chat({1: "My pets."}, evidence=(1, 20, 21)), FAR[:3], 2),
        ("caption", chat({1: ("Look at him!", "a photo of a ferret in a basket")}), FAR, 10),
        ("pronouns", chat({1: "And so is he, very much."}), FAR, 10),
        ("label", chat({1: "I painted the fence.", 31: "The ferret bit me."}), FAR, 10),
        ("implied", chat({1: "Slinky stole my socks."}), FAR, 10),
        ("other words", chat({1: "I bought a ferret."}), FAR, 10),
        ("near miss", chat({1: "I own some pets."}), (*FAR[:3], 1), 3),
        ("outranked", chat({1: "I own some pets."}), FAR, 10),
        ("follow-on", chat({29: "I bought Slinky, a ferret."}, evidence=(29,)), FAR, 10),
        (
            "common words",
            chat(dict.fromkeys(range(1, 20), "So many pets.") | {1: "Our pets nap upstairs."}),
            FAR,
            10,
        ),
        # A name of a speaker is no shared word.
        ("other words", chat({1: "Ann sleeps badly."}, answer="Ann: badly not", **REST), FAR, 10),
        ("implied", chat({1: "Ann sleeps badly."}, answer="No", **REST), FAR, 10),
    ],
)
def test_each_cause(cause: str, data: Dataset, order: tuple[int, ...], k: int) -> None:
    assert set(misses(ranked(*order), data, k=k)["cause"]) == {cause}


def test_a_row_says_what_was_missed_and_where() -> None:
    data = chat({1: ("Look at him!", "a ferret")}, evidence=(1, 30, 25))
    table = misses(ranked(*FAR, 25), data, k=10)
    shown = table.select("doc_id", "rank", "text", "answer", "n_evidence_sessions").rows()
    assert shown == [
        ("a/1", None, "Look at him! [image: a ferret]", "A ferret", 1),
        ("a/25", 12, FILLER, "A ferret", 1),
    ]
    run, bare = ranked(1), Dataset("bare", "chatlog", data.turns, data.sessions)
    for args, k in (((replace(run, level="session"), data), 10), ((run, data), 0)):
        with pytest.raises(DataError, match="give a ranking of turns, and k from 1"):
            misses(*args, k=k)
    none = misses(run, bare, k=10)
    assert none.is_empty()
    assert none.schema == table.schema
    assert count_by_cause(none)["n"].sum() == 0


def test_counts_by_cause_are_printed_with_their_whole_rules() -> None:
    missed = misses(ranked(*FAR, 25), chat({1: ("Look!", "a ferret")}, evidence=(1, 25)), k=10)
    causes = count_by_cause(missed)
    for shown in (str(causes), repr(causes), causes._repr_html_()):
        assert all(html.unescape(rule) in html.unescape(shown) for rule in CAUSES.values())


def test_each_value_of_stale_turns_is_what_its_name_says() -> None:
    lines = [{"scope": "a", "id": str(n), "sender": "Ann", "text": f"text {n}"} for n in range(14)]
    asked = {
        "scope": "a",
        "query_id": "a/q",
        "question": "Which?",
        "evidence": ["3", "4"],
        "stale": ["0", "1"],
    }
    data = datasets.chatlog.dataset([*lines, asked], "log")
    for order, expected in (
        ((3, 4, 2), (False, True, True)),
        ((3, 0, 4), (True, True, True)),
        ((0, 1, 3), (True, False, False)),
        ((2, 4), (False, False, True)),
        ((2, *range(5, 14), 0, 3, 4), (False, False, False)),
    ):
        assert stale_table([ranked(*order)], data).row(0)[2:] == expected


@pytest.mark.slow
def test_comparisons_show_stale_turns() -> None:
    updates = datasets.load("data/facts/updates.jsonl")
    done = memlab.compare(["bm25", "bm25(b=0)"], updates, encoder=None)
    assert done.tables()["What must not come back"]["system"].to_list() == ["bm25", "bm25(b=0)"]
    run = memlab.pipeline("bm25").run(memlab.Bench.of(updates, encoder=None))
    theirs = stale_table([run], updates).row(0, named=True)
    assert done.systems.row(0, named=True)["current first"] == theirs["current first"]
    with pytest.raises(DataError, match="stale"):
        stale_table([run], memlab.sample(turns=60))
