"""Follow-ups as they are asked, rewritten, and in the form that stands alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memlab import llm
from memlab.conversation import read_follow_ups
from memlab.conversation.question_rewriting import Rewritten
from memlab.experiments import compare_follow_up_forms, follow_up_forms_table
from memlab.records import Dataset, Session, Turn, frame
from memlab.retrieve import Bench

FIRST = {
    "thread": "t1", "scope": "u", "kind": "first", "history": [], "question": "What did the oak desk cost?",
    "standalone": "What did the oak desk cost?", "answer": "$210.", "evidence": ["u/1"],
}  # fmt: skip
NEXT = FIRST | {
    "kind": "ellipsis", "question": "And the vet?", "standalone": "What did the vet of Churro cost?",
    "history": [{"role": "user", "content": FIRST["question"]}, {"role": "assistant", "content": FIRST["answer"]}],
    "answer": "62.", "evidence": ["u/2"],
}  # fmt: skip


def test_each_form_is_searched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["The oak desk cost $210.", "Churro was at the vet: 62 pounds.", "Rain.", "Sun."]
    turns = [Turn(f"u/{n}", "u", "u/s", n, "Ann", "user", text) for n, text in enumerate(texts, 1)]
    sessions = frame(Session, [Session("u/s", "u", 1, None, None, len(turns), [])])
    bench = Bench.of(Dataset("small", "chatlog", frame(Turn, turns), sessions), encoder=None)
    (tmp_path / "follow-ups.jsonl").write_text("\n".join(map(json.dumps, (FIRST, NEXT))))
    rows = read_follow_ups(tmp_path / "follow-ups.jsonl")

    def ask(requests: list[llm.Request], service: str | None) -> list[llm.Answer]:
        written = Rewritten(question="And the vet of Churro?")
        return [
            llm.Answer(written if service else None, "" if service else "no service")
            for _ in requests
        ]

    monkeypatch.setattr(llm, "ask", ask)
    done = compare_follow_up_forms(rows, bench, pipeline="bm25", k=[1])
    assert done["form"].to_list() == ["as asked", "fallback", "model", "standalone"]
    assert done["question"].to_list()[1:3] == [
        "And the vet? (oak desk cost 210)",
        "And the vet of Churro?",
    ]
    assert done["complete"].to_list() == [True, False, True, True]
    table = follow_up_forms_table(done)
    assert table.filter(kind="all")["mean"].to_list() == [1, 0, 1, 1]
    assert table.filter(kind="all")["p"].null_count() == 1
    both = compare_follow_up_forms(rows, bench, pipeline="bm25", k=[1, 3])
    assert both.filter(k=1).equals(done)
    assert both.filter(k=3)["complete"].all()
    assert follow_up_forms_table(both).filter(k=1).equals(table)
    without = compare_follow_up_forms(rows, bench, pipeline="bm25", service=None)
    assert "model" not in without["form"].to_list()
