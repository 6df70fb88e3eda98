"""Questions of several sources: no table, figure or report mixes them in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import memlab
from memlab import evaluate
from memlab.datasets import chatlog
from memlab.errors import DataError
from memlab.evaluate import comparison
from memlab.figures import curves, intervals, style
from memlab.records import Dataset

WORDS = ["bakery", "marathon", "violin", "camera", "garden", "harbour"]
SAID = [
    {
        "scope": "u",
        "sender": "Ann",
        "id": word,
        "session": f"s{place}",
        "text": f"The {word} is new.",
    }
    for place, word in enumerate(WORDS)
]
READ = "Proposed questions were written by a model, and no person has read them."
NOT_READ = "The questions were proposed by a model and not read by a person."


def asked(*sources: str | None) -> Dataset:
    questions: list[dict[str, Any]] = []
    for word, source in zip(WORDS, sources, strict=False):
        question = {"scope": "u", "question": f"What of the {word}?", "evidence": [word]}
        questions.append(question | {"answer": "new", "source": source})
    return chatlog.dataset([*SAID, *questions], "log")


def measured(data: Dataset) -> memlab.experiments.Experiment:
    return memlab.run(["bm25", "bm25(b=0)"], data, encoder=None, levels=["turn"])


@pytest.fixture(scope="module")
def mixed() -> memlab.experiments.Experiment:
    return measured(asked("proposed", "proposed", "accepted", None))


COUNTED = "n = 4: 1 written, 2 proposed, 1 accepted"


def test_a_table_says_who_wrote_its_questions(mixed: Any) -> None:
    printed = str(mixed)
    assert f"all questions with evidence ({COUNTED})" in printed
    assert f"| system ({COUNTED}) |" in printed
    assert READ in printed
    compared = mixed.compare()
    assert f"{COUNTED}. {READ}" in str(compared)
    assert "question_sources" not in str(compared)
    assert READ in compared._repr_html_()
    assert READ in compared.to_latex()
    assert f"{COUNTED}. {READ}" in mixed.conclusions()
    assert mixed.reports[0].summary()["question_sources"][0] == COUNTED.removeprefix("n = 4: ")
    assert "4 questions (1 written, 2 proposed, 1 accepted)" in mixed.reports[0]._repr_html_()
    table = mixed.table(by="question_type", group="unspecified")
    assert READ in str(table)
    assert mixed.worst(1)["source"].item() in ("written", "proposed", "accepted")
    only = mixed.compare(where="source = 'accepted'")
    assert only["n"].to_list() == [1, 1]
    assert "n = 1" not in str(only)
    assert "The questions were proposed by a model and accepted by a person." in str(only)


def test_where_all_are_proposed_it_is_said_once() -> None:
    done = measured(asked("proposed", "proposed"))
    for part in str(done).split("**turns")[1:]:
        assert part.count(NOT_READ) == 1
    assert str(done.compare()).count(NOT_READ) == 1
    grouped = comparison.groups_table(done.reports, "recall_all@10", by="question_type")
    assert grouped.columns == ["system", "unspecified (n = 2)"]
    assert str(grouped).count(NOT_READ) == 1


def test_questions_that_persons_wrote_are_not_spoken_of() -> None:
    done = measured(asked(None, None))
    assert "source" not in done.reports[0].per_query.columns
    assert "question_sources" not in done.compare().columns
    assert "proposed" not in f"{done}{done.conclusions()}{done.data.describe()}"


def test_the_files_of_a_report_keep_sources_apart(mixed: Any, tmp_path: Path) -> None:
    mixed.export(tmp_path)
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "(n = 4 questions with evidence: 1 written, 2 proposed, 1 accepted)" in report
    assert "by source of the question" in report
    groups = json.loads((tmp_path / "report.json").read_text())["reports"][0]["summary"]["source"]
    assert {group["group"] for group in groups} == {"written", "proposed", "accepted"}
    assert READ in (tmp_path / "report.tex").read_text(encoding="utf-8")
    kept = pl.read_parquet(tmp_path / "bm25.turn.parquet")["source"]
    assert kept.to_list() == ["proposed", "proposed", "accepted", "written"]


def written(fig: Any, width: style.Width) -> str:
    notes = style.copy_for_width(fig, width).layout.annotations
    return " ".join(note.text for note in notes).replace("<br>", " ")


def test_a_figure_says_who_wrote_its_questions(mixed: Any) -> None:
    curve = evaluate.cutoff_curve(mixed.at("turn"))
    steps = comparison.compare_by_group(mixed.reports, measure="recall_all@10", stepwise=True)
    for fig in (curves.recall_curves(curve), intervals.ablation(steps)):
        for width in style.WIDTHS:
            assert f"{COUNTED}. {READ}" in written(fig, width)
    plain = measured(asked(None, None))
    assert "proposed" not in written(
        curves.recall_curves(evaluate.cutoff_curve(plain.at("turn"))), "full"
    )


def test_memories_and_answers_say_it_too() -> None:
    data = asked("proposed", "accepted")
    done = memlab.compare(["bm25", "bm25(b=0)"], data, encoder=None)
    counted = f"n = 2: 1 proposed, 1 accepted. {READ}"
    assert counted in done.tables()["Found"].pipe(evaluate.tables.to_markdown)
    assert counted in str(done.tests)
    assert counted in done.conclusions()
    assert "(proposed by a model, not read by a person)" in str(done.why("u/q0"))
    answers = memlab.answer_questions("bm25", data, bounds=[], encoder=None)
    assert counted in str(answers)
    with pytest.raises(DataError, match="no predicate over"):
        measured(asked(None)).compare(where="source = 'accepted'")


def test_questions_of_one_source_are_loaded(tmp_path: Path) -> None:
    lines = [
        {"scope": "u", "question": f"{i}?", "evidence": ["violin"], "source": source}
        for i, source in enumerate(("proposed", "accepted", None))
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, [*SAID, *lines])))
    assert memlab.datasets.load(path, sources="accepted").questions["text"].to_list() == ["1?"]
    assert memlab.datasets.load(path, sources=["accepted", "written"]).questions.height == 2
    with pytest.raises(DataError, match="no source is called 'gold'"):
        memlab.datasets.load(path, sources="gold")
