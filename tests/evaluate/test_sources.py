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
from memlab.evaluate import (
    changed_values,
    cluster_spread,
    conclusions,
    evidence_tree,
    groups_of_questions,
    system_comparison,
)
from memlab.evaluate.causes_of_misses import count_by_cause_in_the_order_tried
from memlab.figures import bars, curves, intervals, style
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
    grouped = system_comparison.results_by_group_table(
        done.reports, "recall_all@10", by="question_type"
    )
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
    groups_of_questions = json.loads((tmp_path / "report.json").read_text())["reports"][0][
        "summary"
    ]["source"]
    assert {group["group"] for group in groups_of_questions} == {"written", "proposed", "accepted"}
    assert READ in (tmp_path / "report.tex").read_text(encoding="utf-8")
    kept = pl.read_parquet(tmp_path / "bm25.turn.parquet")["source"]
    assert kept.to_list() == ["proposed", "proposed", "accepted", "written"]


def written(fig: Any, width: style.Width) -> str:
    notes = style.copy_for_width(fig, width).layout.annotations
    return " ".join(note.text for note in notes).replace("<br>", " ")


def test_a_figure_says_who_wrote_its_questions(mixed: Any) -> None:
    curve = evaluate.cutoff_curve(mixed.at("turn"))
    steps = system_comparison.compare_reports_by_group(
        mixed.reports, measure="recall_all@10", stepwise=True
    )
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
    assert counted in done.tables()["Found"].pipe(evaluate.printed_tables.to_markdown)
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


def with_two_items(*sources: str | None) -> Dataset:
    """Questions of two evidence items each, and of a value that has changed."""
    questions: list[dict[str, Any]] = []
    for at, source in enumerate(sources):
        evidence = [WORDS[at], WORDS[at + 1]]
        question = {"scope": "u", "question": f"What of the {WORDS[at]}?", "evidence": evidence}
        question |= {"stale": [WORDS[at + 2]], "timestamp": "2026-03-01T09:00:00Z"}
        questions.append(question | {"answer": "new", "source": source})
    return chatlog.dataset([*SAID, *questions], "log")


MIXED = "Questions: 1 written, 1 proposed, 1 accepted."


@pytest.fixture(scope="module")
def clustered() -> dict[str, pl.DataFrame]:
    """The tables of trees and clusters, of questions with two items each."""
    data = with_two_items("proposed", "accepted", None)
    bench = memlab.Bench.of(data, encoder="hashing:64")
    evidence = groups_of_questions.list_evidence_items(
        groups_of_questions.keep_multi_session_questions(data.questions)
    )
    first = evidence.unique("query_id", maintain_order=True).drop("source")
    seeds = [0]
    found = evidence_tree.density_clusters_by_seed_and_scope(bench, seeds=seeds)
    labels = evidence_tree.cluster_label_table(bench, found, seeds)
    return {
        "merges": evidence_tree.evidence_merge_table(evidence, bench, draws=20),
        "places": evidence_tree.question_placement_table(evidence, bench, found, draws=20),
        "outliers": evidence_tree.evidence_outlier_table(evidence, first, bench, found),
        "spread": cluster_spread.spread_table(
            {"evidence": evidence}, {cluster_spread.CENTRED: labels}, data.turns
        ),
        "similarity": cluster_spread.evidence_similarity_quartiles(bench, data.questions),
    }


@pytest.mark.parametrize("name", ["merges", "places", "outliers", "spread", "similarity"])
def test_tables_of_clusters_say_who_wrote_their_questions(
    name: str, clustered: dict[str, pl.DataFrame]
) -> None:
    table = clustered[name]
    assert set(table["question_sources"]) == {"1 written, 1 proposed, 1 accepted"}
    assert READ in evaluate.printed_tables.to_markdown(table)
    brief = evaluate.printed_tables.select_columns_with_sources(table, "n", "mean")
    assert brief.columns == ["n", "mean", "question_sources"]


def test_the_answer_on_clusters_ends_with_who_wrote_the_questions(
    clustered: dict[str, pl.DataFrame],
) -> None:
    tables = (clustered[name] for name in ("merges", "places", "outliers", "spread"))
    assert READ in evidence_tree.conclude_on_trees_and_clusters(*tables, k=10)[-1]


def test_causes_of_misses_say_who_wrote_the_questions() -> None:
    data = with_two_items("proposed", "accepted", None)
    done = memlab.run("bm25", data, encoder=None, levels=["turn"])
    missed = done.misses(k=1)
    assert set(missed["source"]) == {"written", "proposed", "accepted"}
    causes = count_by_cause_in_the_order_tried(missed)
    assert f"{MIXED} {READ}" in evaluate.printed_tables.to_markdown(causes)
    assert f"{MIXED} {READ}" in written(bars.share_bars(causes), "full")
    assert conclusions.on_missed_evidence(missed, causes, k=1)[-1] == f"{MIXED} {READ}"
    plain = memlab.run("bm25", with_two_items(None, None), encoder=None, levels=["turn"])
    assert "source" not in plain.misses(k=1).columns
    assert "question_sources" not in count_by_cause_in_the_order_tried(plain.misses(k=1)).columns


def test_changed_values_say_who_wrote_the_questions() -> None:
    data = changed_values.questions_of_changed_values(
        with_two_items("proposed", "proposed", "proposed")
    )
    bench = memlab.Bench.of(data, encoder=None)
    runs = [memlab.pipeline(text).run(bench) for text in ("bm25", "bm25(b=0)")]
    messages = changed_values.score_current_message_first(runs, data)
    compared = changed_values.compare_with_first_condition({"messages": messages})
    assert compared["question_sources"].to_list() == ["all proposed"] * 2
    assert conclusions.on_changed_values(compared)[-1] == NOT_READ
    drawn = compared.with_columns(low="mean_low", high="mean_high", level="mean_level")
    fig = intervals.mean_intervals(drawn, rows="system", series="data")
    assert NOT_READ in written(fig, "column")


def test_what_two_answers_say_is_said_once_at_the_end() -> None:
    first = conclusions.Conclusions(["Yes.", NOT_READ])
    second = conclusions.Conclusions(["It costs more.", NOT_READ])
    assert first + second == ("Yes.", "It costs more.", NOT_READ)
    assert isinstance(first + second, conclusions.Conclusions)
