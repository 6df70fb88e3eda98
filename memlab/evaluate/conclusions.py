"""Sentences that follow from a table: an answer first, then the figures that carry it.

Each function takes frames as the rest of memlab gives them, and gives :class:`Conclusions`. A
sentence says no more than its table: a share stands with its interval and the number of questions,
a difference with its interval and corrected p, and where there are too few questions for any test
to be significant, the sentence says so and gives no number.

Shares are rounded to whole percent and p to two decimals. One question more or less, which is what
rankings of two processors differ by, then mostly leaves a sentence as it is; the tables have all
digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from memlab.evaluate.confidence_intervals import Unit, mean_intervals, scopes_if_they_are_the_unit
from memlab.evaluate.evaluation_report import Report
from memlab.evaluate.groups_of_questions import (
    ALL_QUESTIONS,
    MULTI_SESSION,
    SEVERAL_SESSIONS,
    add_question_sources_column,
    multi_session_by_and_group,
)
from memlab.evaluate.significance_tests import ALPHA, fewest_units_for_significance
from memlab.interval_and_p_labels import format_confidence_level
from memlab.question_source_labels import question_sources_note_or_empty
from memlab.terminal_text import count_noun

_PHRASES = {
    ALL_QUESTIONS: "all {n:,} questions with evidence",
    SEVERAL_SESSIONS: "the {n:,} questions with evidence in two or more sessions",
}
_BUDGET = re.compile(r"recall_all@\d+ tokens")


class Conclusions(tuple[str, ...]):
    """Sentences, the answer first; printed or shown by a notebook, each is a point.

    >>> from memlab.evaluate.conclusions import Conclusions
    >>> print(Conclusions(["No system is better."]) + Conclusions(["It costs more."]))
    - No system is better.
    - It costs more.
    """

    __slots__ = ()

    def __add__(self, others: Iterable[str]) -> Conclusions:  # type: ignore[override]
        """Give both, and what both say once, at its later place."""
        later = tuple(others)
        earlier = (sentence for sentence in self if sentence not in later)
        return Conclusions((*earlier, *later))

    def __str__(self) -> str:
        return "\n".join(f"- {sentence}" for sentence in self)

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return str(self)


# How numbers are written.


def format_percent(share: float) -> str:
    """Write a share in whole percent, and never one that is not quite 0 or 1 as 0 or 1.

    >>> from memlab.evaluate.conclusions import format_percent
    >>> format_percent(0.197), format_percent(0.001), format_percent(0.999), format_percent(1.0)
    ('20 %', 'under 1 %', 'over 99 %', '100 %')
    """
    whole_percent = round(100 * share)
    if whole_percent == 0 and share > 0:
        return "under 1 %"
    if whole_percent == 100 and share < 1:
        return "over 99 %"
    return f"{whole_percent} %"


def format_points(difference: float) -> str:
    """Write a difference of shares in whole points, with its sign.

    >>> from memlab.evaluate.conclusions import format_points
    >>> format_points(0.157), format_points(-0.093), format_points(-0.001)
    ('+16', '−9', '0')
    """
    whole_points = round(100 * difference)
    if whole_points == 0:
        return "0"
    return f"{whole_points:+d}".replace("-", "−")


def format_share_with_interval(
    row: Mapping[str, Any], value_column: str = "mean", interval_prefix: str = "mean_"
) -> str:
    """Write a share with its interval and the level of it: ``20 % [95 %: 14 to 26]``.

    :param row: of a table: ``value_column``, and its ends ``low`` and ``high`` after the prefix.
    """
    low_share = row[f"{interval_prefix}low"]
    high_share = row[f"{interval_prefix}high"]
    if low_share is None or high_share is None:
        return f"{round(row[value_column] * row['n']):,} of {row['n']:,}"
    level_name = format_interval_level(row, f"{interval_prefix}level")
    return (
        f"{format_percent(row[value_column])} [{level_name}: {round(100 * low_share)} to "
        f"{round(100 * high_share)}]"
    )


def format_paired_difference(comparison_row: Mapping[str, Any]) -> str:
    """Write a paired difference with its interval and the level of it.

    ``+16 points [95 %: +11 to +21]``
    """
    low_end = comparison_row["low"]
    high_end = comparison_row["high"]
    if low_end is None or high_end is None:
        return f"{comparison_row['win']:,} won and {comparison_row['loss']:,} lost"
    difference = comparison_row["difference"]
    gain_text = format_points(difference)
    # Beside two equal shares a whole point would contradict them.
    if 0 < abs(difference) < 0.0095:
        gain_text = f"{difference * 100:+.1f}".replace("-", "−")
    point_noun = "point" if gain_text.strip("+−") == "1" else "points"
    return (
        f"{gain_text} {point_noun} [{format_interval_level(comparison_row, 'level')}: "
        f"{format_points(low_end)} to "
        f"{format_points(high_end)}]"
    )


def format_p(p: float, n_tests: int = 1) -> str:
    """Write a p value to two decimals, and what it is corrected for.

    >>> from memlab.evaluate.conclusions import format_p
    >>> format_p(0.0004, 8), format_p(0.0312), format_p(0.049)
    ('p < .001, corrected for 8 tests', 'p = .03', 'p = .049')
    """
    if p < 0.001:
        rounded_p = "p < .001"
    elif p < 0.01 or round(p, 2) == ALPHA:
        # Two decimals would not say on which side of .05 it lies.
        rounded_p = f"p = {p:.3f}".replace("0.", ".")
    elif p < 0.995:
        rounded_p = f"p = {p:.2f}".replace("0.", ".")
    else:
        rounded_p = "p = 1"
    if n_tests > 1:
        rounded_p = f"{rounded_p}, corrected for {n_tests} tests"
    return rounded_p


def join_as_sentence_list(words: Iterable[str]) -> str:
    """Join words as a sentence does.

    >>> from memlab.evaluate.conclusions import join_as_sentence_list
    >>> join_as_sentence_list(["a", "b", "c"])
    'a, b and c'
    """
    *earlier_words, last_word = words
    if not earlier_words:
        return last_word
    return f"{', '.join(earlier_words)} and {last_word}"


def format_interval_level(interval_row: Mapping[str, Any], level_column: str = "level") -> str:
    """Write the level of a row's interval.

    Where memories are the unit, it says over how many.
    """
    level = interval_row.get(level_column, interval_row.get("level"))
    if interval_row.get("unit") != "scope":
        return format_confidence_level(level)
    return f"{format_confidence_level(level)} over {interval_row['units']} memories"


def _count_independent_units(comparison_row: Mapping[str, Any]) -> int:
    """Count what was taken as independent: questions, or the memories that they are about."""
    return int(
        comparison_row["units"] if comparison_row.get("unit") == "scope" else comparison_row["n"]
    )


def _has_enough_units_for_significance(comparison_row: Mapping[str, Any], n_tests: int = 1) -> bool:
    return _count_independent_units(comparison_row) >= fewest_units_for_significance(n_tests)


def _phrase_for_question_group(group: str, n_questions: int) -> str:
    """Name the questions of a group: ``the 178 questions with evidence in two sessions``."""
    if n_questions == 1:
        phrase = _PHRASES.get(group, "").partition("questions")[2]
        return f"the one question{phrase}"
    return _PHRASES.get(group, f"the {{n:,}} questions ({group})").format(n=n_questions)


def _in_backticks(name: str) -> str:
    return f"`{name}`"


def _phrase_for_measure(measure: str) -> str:
    """Say what a measure counts."""
    measure_name, _, depth = measure.partition("@")
    evidence_phrase = {"recall_all": "all evidence", "recall_any": "some evidence"}.get(
        measure_name
    )
    if evidence_phrase is None:
        return measure
    if depth.isdigit():
        return f"{evidence_phrase} among the first {depth}"
    return f"{evidence_phrase} within {depth}"


# What cannot be said.


def sentence_on_no_question_with_evidence(n_questions: int = 0) -> str:
    """Say that no question has evidence, so that nothing can be said."""
    subject_text = "no question has"
    if n_questions:
        subject_text = f"none of the {n_questions:,} questions has"
    return (
        f"Nothing can be said: {subject_text} evidence. "
        "Label some questions with the turns that answer them."
    )


def too_few_questions_sentence(
    comparison_row: Mapping[str, Any],
    n_tests: int,
    open_question: str,
    *,
    group: str = ALL_QUESTIONS,
    noun: str = "question",
) -> str:
    """Say that so few questions cannot answer, and how many could.

    :param comparison_row: of a comparison: ``n``, and where scopes are the unit, ``unit`` and
        ``units``.

    >>> from memlab.evaluate.conclusions import too_few_questions_sentence
    >>> said = too_few_questions_sentence({"n": 5}, 8, "whether another system finds more")
    >>> said.partition(": ")[0]
    'These 5 questions cannot say whether another system finds more'
    >>> said.partition(": ")[2]
    'with 8 tests, no difference is significant below 9 questions.'
    """
    tests_text = "one test" if n_tests == 1 else f"{n_tests} tests"
    questions_text = _these_questions_phrase(comparison_row["n"], noun, group)
    unit_noun = f"{noun}s"
    if comparison_row.get("unit") == "scope":
        questions_text = f"{questions_text}, about {comparison_row['units']} memories,"
        unit_noun = "memories"
    return (
        f"{questions_text} cannot say {open_question}: with {tests_text}, no difference is "
        "significant "
        f"below {fewest_units_for_significance(n_tests)} {unit_noun}."
    )


def _these_questions_phrase(n_questions: int, noun: str, group: str) -> str:
    """Name the questions of a group at the beginning of a sentence: ``These 5 questions``."""
    if group == SEVERAL_SESSIONS:
        evidence_phrase = "with evidence in two or more sessions"
        if n_questions == 1:
            return f"The one {noun} {evidence_phrase}"
        return f"The {n_questions:,} {noun}s {evidence_phrase}"
    if n_questions == 1:
        return f"This one {noun}"
    return f"These {n_questions:,} {noun}s"


def notes_if_no_multi_session_question(groups: Iterable[str]) -> list[str]:
    """Say that no question has evidence in several sessions, where that is so."""
    if SEVERAL_SESSIONS in groups:
        return []
    return [
        "No question has evidence in two or more sessions: about such questions nothing can be "
        "said."
    ]


def notes_if_single_memory(n_scopes: int) -> list[str]:
    """Say that all questions are about one memory, where that is so."""
    if n_scopes != 1:
        return []
    return ["All questions are about one memory: what holds for others cannot be said."]


def notes_on_question_sources(per_query: pl.DataFrame) -> list[str]:
    """Say who wrote the questions, where not all are by a person or a benchmark.

    >>> import polars as pl
    >>> from memlab.evaluate.conclusions import notes_on_question_sources
    >>> (said,) = notes_on_question_sources(pl.DataFrame({"source": ["proposed", "accepted"]}))
    >>> said.split(".")[:2]
    ['n = 2: 1 proposed, 1 accepted',
     ' Proposed questions were written by a model, and no person has read them']
    >>> notes_on_question_sources(pl.DataFrame({"source": [None]}))
    []
    """
    count_row = pl.DataFrame({"n": [per_query.height]})
    return _note_lines_on_question_sources(add_question_sources_column(count_row, per_query))


def note_if_other_data_used(wanted_data: str, used_data: str, *, missing_noun: str) -> Conclusions:
    """Say that the questions are those of other data, where the data that were wanted have none.

    >>> from memlab.evaluate.conclusions import note_if_other_data_used
    >>> print(note_if_other_data_used("mine", "sample", missing_noun="question about a fact"))
    - mine has no question about a fact, so nothing can be said about it; what follows is of sample.
    """
    if wanted_data == used_data:
        return Conclusions()
    sentence = (
        f"{wanted_data} has no {missing_noun}, so nothing can be said about it; what follows is of "
        f"{used_data}."
    )
    return Conclusions([sentence])


# What is found.


def on_recall(group_comparisons: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say which system finds all evidence of more questions than the baseline.

    :param group_comparisons: what
        :func:`memlab.evaluate.system_comparison.compare_reports_by_group` gave.

    >>> import memlab
    >>> from memlab.evaluate import conclusions
    >>> from memlab.evaluate.system_comparison import compare_reports_by_group
    >>> options = {"encoder": None, "store": None, "levels": ["turn"]}
    >>> done = memlab.run(["bm25(b=0)", "bm25"], memlab.sample(), **options)
    >>> compared = compare_reports_by_group(done.reports, measure="recall_all@10")
    >>> said = conclusions.on_recall(compared, measure="recall_all@10")
    >>> said[0].partition(" for ")[0]
    'No system finds all evidence among the first 10'
    """
    tests = group_comparisons["p"].count()
    if not group_comparisons["n"].sum():
        return Conclusions([sentence_on_no_question_with_evidence()])
    sentences: list[str] = []
    largest = group_comparisons.sort("n", descending=True, maintain_order=True).row(0, named=True)
    if tests and not _has_enough_units_for_significance(largest, tests):
        too_few_text = too_few_questions_sentence(
            largest, tests, "whether another system finds more"
        )
        return Conclusions(
            [too_few_text, *notes_if_no_multi_session_question(group_comparisons["group"])]
        )
    for (group,), rows in reversed([*group_comparisons.group_by("group", maintain_order=True)]):
        n_questions = rows["n"][0]
        baseline_row = rows.filter(pl.col("p").is_null()).row(0, named=True)
        other_rows = rows.drop_nulls("p").sort("mean", descending=True, maintain_order=True)
        if other_rows.is_empty():
            share_phrase = (
                f"{format_share_with_interval(baseline_row)} of "
                f"{_phrase_for_question_group(group, n_questions)}"
            )
            sentences.append(
                f"{_in_backticks(baseline_row['system'])} finds {_phrase_for_measure(measure)} for "
                f"{share_phrase}."
            )
        elif not _has_enough_units_for_significance(baseline_row, tests):
            open_question = (
                f"whether another system finds more than {_in_backticks(baseline_row['system'])}"
            )
            sentences.append(
                too_few_questions_sentence(baseline_row, tests, open_question, group=group)
            )
        else:
            sentences.append(
                _sentence_on_best_system(
                    other_rows.row(0, named=True), baseline_row, group, tests, measure
                )
            )
            sentences += _sentences_on_worse_systems(other_rows, baseline_row, measure)
    return Conclusions(
        [*sentences, *notes_if_no_multi_session_question(group_comparisons["group"])]
    )


def _sentence_on_best_system(
    best_row: Mapping[str, Any],
    baseline_row: Mapping[str, Any],
    group: str,
    n_tests: int,
    measure: str,
) -> str:
    """Answer for one group whether the best of the other systems is better than the baseline."""
    questions_text = _phrase_for_question_group(group, best_row["n"])
    gain_text = f"{format_paired_difference(best_row)}, {format_p(best_row['p_holm'], n_tests)}"
    baseline_name = _in_backticks(baseline_row["system"])
    best_name = _in_backticks(best_row["system"])
    if best_row["verdict"] == "better":
        return (
            f"{best_name} finds {_phrase_for_measure(measure)} for significantly more of "
            f"{questions_text} than {baseline_name}: {format_share_with_interval(best_row)} "
            f"against {format_share_with_interval(baseline_row)}, {gain_text}."
        )
    best_text = f"the highest, {best_name}"
    if best_row["difference"] <= 0:
        best_text = f"no other is above it, the nearest is {best_name}"
    return (
        f"No system finds {_phrase_for_measure(measure)} for significantly more of "
        f"{questions_text} than {baseline_name}, which does for "
        f"{format_share_with_interval(baseline_row)}; {best_text}: {gain_text}."
    )


def _sentences_on_worse_systems(
    tested_rows: pl.DataFrame, baseline_row: Mapping[str, Any], measure: str
) -> list[str]:
    worse_rows = tested_rows.filter(verdict="worse").to_dicts()
    if not worse_rows:
        return []
    loss_list = join_as_sentence_list(
        f"{_in_backticks(row['system'])} ({format_paired_difference(row)})" for row in worse_rows
    )
    plural_verb = "finds" if len(worse_rows) == 1 else "find"
    questions_text = _phrase_for_question_group(baseline_row["group"], baseline_row["n"])
    return [
        f"{loss_list} {plural_verb} {_phrase_for_measure(measure)} for significantly fewer "
        f"of {questions_text} than {_in_backticks(baseline_row['system'])}."
    ]


def on_some_versus_all_evidence(report: Report, *, measure: str) -> Conclusions:
    """Set the questions of which some evidence is found beside those of which all is.

    :param report: one that has ``recall_any`` at the depth of ``measure``, else there is no
        sentence.
    """
    any_measure = measure.replace("recall_all", "recall_any")
    if any_measure == measure or any_measure not in map(str, report.measures):
        return Conclusions()
    grouping, group = multi_session_by_and_group(report.per_query)
    rows = report.summary(grouping, measures=[any_measure, measure]).filter(group=group).to_dicts()
    if not rows or not _has_enough_units_for_significance(rows[0]):
        return Conclusions()
    some_row, all_row = rows
    asked_group = ALL_QUESTIONS if grouping == "all" else SEVERAL_SESSIONS
    return Conclusions(
        [
            f"{_in_backticks(report.name)} finds {_phrase_for_measure(any_measure)} for "
            f"{format_share_with_interval(some_row, interval_prefix='')} of "
            f"{_phrase_for_question_group(asked_group, some_row['n'])}, "
            f"and all of it for {format_share_with_interval(all_row, interval_prefix='')}."
        ]
    )


def on_one_versus_several_sessions(report: Report, *, measure: str) -> Conclusions:
    """Set questions with evidence in one session beside those with evidence in several."""
    summary = report.summary("evidence_sessions", measures=measure)
    rows_by_group = {group_row["group"]: group_row for group_row in summary.to_dicts()}
    share_phrases = []
    for group, sessions_phrase in (("1", "one session"), (MULTI_SESSION, "several")):
        group_row = rows_by_group.get(group)
        if group_row is None or not _has_enough_units_for_significance(group_row):
            return Conclusions()
        share_phrase = format_share_with_interval(group_row, interval_prefix="")
        share_phrases.append(
            f"{share_phrase} of the {group_row['n']:,} questions with evidence in {sessions_phrase}"
        )
    return Conclusions(
        [
            f"{_in_backticks(report.name)} finds {_phrase_for_measure(measure)} for "
            f"{share_phrases[0]}, and "
            f"for {share_phrases[1]}."
        ]
    )


def on_ablation_steps(
    step_comparisons: pl.DataFrame, end_comparisons: pl.DataFrame, *, measure: str
) -> Conclusions:
    """Say which steps of an ablation are significant, and what all of them bring.

    :param step_comparisons: what :func:`memlab.evaluate.system_comparison.compare_reports_by_group`
        gave, stepwise.
    :param end_comparisons: the same, of the first and the last step alone.
    """
    tests = step_comparisons["p"].count()
    if not step_comparisons["n"].sum():
        return Conclusions([sentence_on_no_question_with_evidence()])
    sentences: list[str] = []
    testable_groups: list[pl.DataFrame] = []
    for (group,), rows in step_comparisons.group_by("group", maintain_order=True):
        first_row = rows.row(0, named=True)
        if _has_enough_units_for_significance(first_row, tests):
            testable_groups.append(rows)
        else:
            sentences.append(
                too_few_questions_sentence(first_row, tests, "which step adds", group=group)
            )
    if testable_groups:
        sentences.insert(0, _sentence_on_significant_steps(pl.concat(testable_groups), tests))
    n_end_tests = end_comparisons["p"].count()
    for row in reversed(end_comparisons.drop_nulls("p").to_dicts()):
        if _has_enough_units_for_significance(row, n_end_tests):
            first = end_comparisons.filter(pl.col("p").is_null(), group=row["group"]).row(
                0, named=True
            )
            gain_text = f"{format_paired_difference(row)}, {format_p(row['p_holm'], n_end_tests)}"
            sentences.append(
                f"From {_in_backticks(first['system'])} to {_in_backticks(row['system'])}, "
                f"{_phrase_for_measure(measure)} goes from {format_share_with_interval(first)} to "
                f"{format_share_with_interval(row)} of "
                f"{_phrase_for_question_group(row['group'], row['n'])}: {gain_text}."
            )
    sentences += notes_if_no_multi_session_question(step_comparisons["group"])
    return Conclusions([*sentences, *_note_lines_on_question_sources(step_comparisons)])


def _note_lines_on_question_sources(table: pl.DataFrame) -> list[str]:
    """Say who wrote the questions of a table, where not all are by a person or a benchmark."""
    source_line = question_sources_note_or_empty(table)
    if not source_line:
        return []
    return [source_line]


def _sentence_on_significant_steps(step_comparisons: pl.DataFrame, n_tests: int) -> str:
    significant_rows = step_comparisons.filter(
        pl.col("verdict").is_in(["better", "worse"])
    ).to_dicts()
    if not significant_rows:
        return f"No single step adds or loses significantly ({n_tests} tests)."
    step_texts = []
    for row in significant_rows:
        questions_text = _phrase_for_question_group(row["group"], row["n"])
        step_texts.append(
            f"{_in_backticks(row['system'])} over {questions_text} "
            f"({_format_difference_and_p(row)})"
        )
    plural_verb = "is" if len(step_texts) == 1 else "are"
    return (
        f"Of {count_noun(n_tests, 'tests')} of single steps {len(step_texts)} {plural_verb} "
        f"significant after correction: {join_as_sentence_list(step_texts)}."
    )


def on_missed_evidence(missed: pl.DataFrame, causes: pl.DataFrame, *, k: int) -> Conclusions:
    """Count what the last pipeline misses, and name the most frequent causes.

    :param missed: what :func:`memlab.evaluate.misses` gave.
    :param causes: what :func:`memlab.evaluate.count_by_cause` gave of them, with the ``group`` of
        questions.
    """
    if missed.is_empty():
        return Conclusions()
    n_near = (missed["rank"] <= 2 * k).sum()
    n_questions = missed["query_id"].n_unique()
    missed_sentence = (
        f"{missed.height:,} evidence items of {n_questions:,} questions are not among the first "
        f"{k}; {n_near:,} of them rank from {k + 1} to {2 * k}."
    )
    all_causes = causes.filter(pl.col("n") > 0, group=ALL_QUESTIONS)
    top_causes = all_causes.sort("n", descending=True, maintain_order=True).head(3)
    cause_list = join_as_sentence_list(
        f"{cause} ({n_items:,})" for cause, n_items in top_causes.select("cause", "n").iter_rows()
    )
    causes_sentence = f"Most frequent causes of the {missed.height:,}: {cause_list}."
    return Conclusions([missed_sentence, causes_sentence, *_note_lines_on_question_sources(causes)])


def on_selection(selection_tests: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say whether choosing otherwise among the candidates completes more, or less.

    :param selection_tests: all tests of one family, as :func:`memlab.evaluate.verdicts` gives them,
        with the columns ``group`` and ``base`` (the ranking that is chosen from).
    """
    tested_rows = selection_tests.drop_nulls("p")
    n_tests = tested_rows.height
    if not selection_tests["n"].sum():
        return Conclusions([sentence_on_no_question_with_evidence()])
    largest = tested_rows.sort("n", descending=True, maintain_order=True).row(0, named=True)
    if not _has_enough_units_for_significance(largest, n_tests):
        too_few_text = too_few_questions_sentence(
            largest, n_tests, "whether choosing differently completes more"
        )
        return Conclusions(
            [too_few_text, *notes_if_no_multi_session_question(selection_tests["group"])]
        )
    sentences = [_sentence_on_selector_verdicts(tested_rows, n_tests)]
    worse_rows = tested_rows.filter(verdict="worse")
    better_rows = tested_rows.filter(verdict="better")
    if worse_rows.height:
        largest_loss = _row_of_highest_or_lowest_difference(worse_rows, highest=False)
        sentences.append(
            "The largest loss by choosing differently is that of "
            f"{_describe_selector_test(largest_loss, n_tests)}."
        )
    if better_rows.height:
        largest_gain = _row_of_highest_or_lowest_difference(better_rows, highest=True)
        sentences.append(
            "The largest gain by choosing differently is that of "
            f"{_describe_selector_test(largest_gain, n_tests)}."
        )
    else:
        largest_gain = _row_of_highest_or_lowest_difference(tested_rows, highest=True)
        gain_text = _describe_selector_test(largest_gain, n_tests)
        opening = "The largest gain by choosing differently, not a significant one, is that of"
        if largest_gain["difference"] <= 0:
            opening = "No way of choosing differently gains anything; the smallest loss is that of"
        sentences.append(f"{opening} {gain_text}.")
    for (group,), rows in tested_rows.group_by("group", maintain_order=True):
        group_row = rows.row(0, named=True)
        if not _has_enough_units_for_significance(group_row, n_tests):
            sentences.append(
                too_few_questions_sentence(
                    group_row, n_tests, "whether it completes more", group=group
                )
            )
    sentences += notes_if_no_multi_session_question(selection_tests["group"])
    return Conclusions([*sentences, *_note_lines_on_question_sources(selection_tests)])


def _sentence_on_selector_verdicts(tested_rows: pl.DataFrame, n_tests: int) -> str:
    """Answer whether any choice is better or worse than the ranking that it chooses from."""
    better_rows = tested_rows.filter(verdict="better")
    worse_rows = tested_rows.filter(verdict="worse")
    n_equivalent = tested_rows.filter(verdict="equivalent").height
    n_inconclusive = tested_rows.filter(verdict="inconclusive").height
    baseline_names = join_as_sentence_list(
        map(_in_backticks, tested_rows["base"].unique(maintain_order=True))
    )
    return (
        f"Of {n_tests} comparisons of a selector with the plain {baseline_names}, "
        f"{better_rows.height or 'none'} completes significantly "
        f"more{_bracketed_system_names_or_empty(better_rows)}, "
        f"{worse_rows.height or 'none'} significantly "
        f"less{_bracketed_system_names_or_empty(worse_rows)}, "
        f"{n_equivalent} are equivalent and {n_inconclusive} inconclusive."
    )


def _bracketed_system_names_or_empty(tested_rows: pl.DataFrame) -> str:
    if tested_rows.is_empty():
        return ""
    system_names = tested_rows["system"].unique(maintain_order=True)
    return f" ({join_as_sentence_list(map(_in_backticks, system_names))})"


def _row_of_highest_or_lowest_difference(
    tested_rows: pl.DataFrame, *, highest: bool
) -> dict[str, Any]:
    """Find the row with the largest difference or the smallest."""
    ordered = tested_rows.sort("difference", descending=highest, maintain_order=True)
    return ordered.row(0, named=True)


def _format_difference_and_p(comparison_row: Mapping[str, Any], n_tests: int = 1) -> str:
    return (
        f"{format_paired_difference(comparison_row)}, {format_p(comparison_row['p_holm'], n_tests)}"
    )


def _describe_selector_test(comparison_row: Mapping[str, Any], n_tests: int) -> str:
    return (
        f"{_in_backticks(comparison_row['system'])} on {_in_backticks(comparison_row['base'])} "
        "over "
        f"{_phrase_for_question_group(comparison_row['group'], comparison_row['n'])}, "
        f"{format_paired_difference(comparison_row)}, "
        f"{format_p(comparison_row['p_holm'], n_tests)}"
    )


def on_evidence_similarity(pair_quartiles: pl.DataFrame) -> Conclusions:
    """Say whether the evidence items of an answer resemble each other more than other turns do.

    :param pair_quartiles: a row a kind of :data:`memlab.cluster.evidence_spread.PAIR_KINDS`:
        ``kind``, ``n`` (questions), ``mean`` (the median cosine), ``low`` and ``high`` (the
        quartiles).
    """
    rows_by_kind = {row["kind"]: row for row in pair_quartiles.to_dicts()}
    evidence_row = rows_by_kind.get("evidence, other session")
    controls = [row for kind, row in rows_by_kind.items() if "random" in kind]
    if evidence_row is None or not controls or evidence_row["n"] < fewest_units_for_significance():
        n_questions = evidence_row["n"] if evidence_row else 0
        too_few_text = (
            f"{n_questions} questions have evidence in two sessions, "
            f"and {fewest_units_for_significance()} are the fewest."
        )
        return Conclusions(
            [f"How similar the evidence items of one answer are cannot be said: {too_few_text}"]
        )
    highest_control = max(row["mean"] for row in controls)
    answer = "resemble" if evidence_row["low"] > highest_control else "do not clearly resemble"
    cosine_texts = []
    for row in (evidence_row, *controls):
        quartiles = f"quartiles {row['low']:.2f} and {row['high']:.2f}"
        cosine_texts.append(
            f"{row['mean']:.2f} ({row['kind']}; {quartiles}, {row['n']:,} questions)"
        )
    sentence = (
        f"Evidence items of different sessions {answer} each other more than they do a random "
        f"turn: median speaker-centred cosine {join_as_sentence_list(cosine_texts)}."
    )
    return Conclusions(
        [sentence.replace("-0.", "−0."), *_note_lines_on_question_sources(pair_quartiles)]
    )


def on_conditions(
    outcome_comparison: pl.DataFrame, *, question_noun: str, claim: str, source_name: str = ""
) -> Conclusions:
    """Say which conditions hold for more questions than the first one.

    :param outcome_comparison: what
        :func:`memlab.evaluate.system_comparison.compare_question_outcomes` gave.
    :param question_noun: of what questions, such as ``questions about a changed value``.
    :param claim: what holds, such as ``the current value ranks first``.
    :param source_name: what was searched, where several sources stand beside each other.
    """
    if outcome_comparison.is_empty():
        return Conclusions([f"Whether {claim} cannot be said: there are no {question_noun}."])
    tested_rows = outcome_comparison.drop_nulls("p").to_dicts()
    n_questions = outcome_comparison["n"][0]
    baseline_row = outcome_comparison.filter(pl.col("p").is_null()).row(0, named=True)
    if not _has_enough_units_for_significance(baseline_row, len(tested_rows)):
        other_systems = join_as_sentence_list(f"with {row['system']}" for row in tested_rows)
        question = f"whether {claim} for more of them {other_systems}"
        noun = question_noun.partition(" ")[0].removesuffix("s")
        return Conclusions(
            [too_few_questions_sentence(baseline_row, len(tested_rows), question, noun=noun)]
        )
    condition_texts = []
    for row in tested_rows:
        gain_text = _format_difference_and_p(row, len(tested_rows))
        comparison = "not for significantly more"
        if _is_significant_gain(row):
            comparison = "for significantly more"
        condition_texts.append(
            f"with {row['system']} {comparison}, {format_share_with_interval(row)} ({gain_text})"
        )
    source_text = f"Among {source_name}, with" if source_name else "With"
    baseline_text = (
        f"{source_text} {baseline_row['system']} {claim} for "
        f"{format_share_with_interval(baseline_row)} of "
        f"{n_questions:,} {question_noun}"
    )
    return Conclusions([f"{baseline_text}; {join_as_sentence_list(condition_texts)}."])


def on_changed_values(condition_comparisons: pl.DataFrame) -> Conclusions:
    """Say with which conditions the current value of something ranks above every stale one.

    :param condition_comparisons: of facts and of messages, as
        :func:`memlab.evaluate.changed_values.compare_with_first_condition` gives them.
    """
    sentences: list[str] = []
    for side in ("facts", "messages"):
        sentences += on_conditions(
            condition_comparisons.filter(data=side),
            question_noun="questions about a changed value",
            claim="the current value ranks above every stale one",
            source_name=side,
        )
    return Conclusions([*sentences, *_note_lines_on_question_sources(condition_comparisons)])


def _is_significant_gain(comparison_row: Mapping[str, Any]) -> bool:
    return comparison_row["p_holm"] < ALPHA and comparison_row["difference"] > 0


def _is_significant_loss(comparison_row: Mapping[str, Any]) -> bool:
    return comparison_row["p_holm"] < ALPHA and comparison_row["difference"] < 0


def on_decay_curves(curve_losses: pl.DataFrame, half_life_interval: pl.DataFrame) -> Conclusions:
    """Say which family of decay curves predicts held-out facts best.

    And after how long half no longer hold.

    :param curve_losses: what :func:`memlab.knowledge.decay_fitting.compare_curves` gave.
    :param half_life_interval: the intervals of an exponential fit: ``estimate``, ``low`` and
        ``high`` of the half-life in days, and ``level``.
    """
    if curve_losses.is_empty() or half_life_interval.is_empty():
        return Conclusions(
            ["How fast facts cease to hold cannot be said: there are too few labels."]
        )
    half_life_row = half_life_interval.row(0, named=True)
    curves_by_loss = curve_losses.sort("log_loss", maintain_order=True)
    fitted_curves = curves_by_loss.filter(~pl.col("family").is_in(["constant", "default"]))
    best_family = fitted_curves["family"][0]
    n_facts = curve_losses["n"][0]
    excluding_zero = curves_by_loss.filter(pl.col("difference_low") > 0)["family"].to_list()
    worse_families = [family for family in fitted_curves["family"] if family in excluding_zero]
    level_percent = format_percent(curve_losses["level"][0])
    interval_text = (
        f"the {level_percent} interval of the paired difference to it holds 0 for every other of "
        "them"
    )
    if worse_families:
        interval_text = (
            f"the {level_percent} interval of the paired difference to it excludes 0 for "
            f"{join_as_sentence_list(map(_in_backticks, worse_families))}"
        )
    sentences = [
        f"On {n_facts:,} labelled facts, of the fitted decay curves {_in_backticks(best_family)} "
        "has the "
        f"lowest log-loss; {interval_text}."
    ]
    beaten_controls = [family for family in ("default", "constant") if family in excluding_zero]
    if beaten_controls:
        plural_verb = "are" if len(beaten_controls) > 1 else "is"
        beaten_text = (
            "It predicts better than "
            f"{join_as_sentence_list(map(_in_backticks, beaten_controls))}, which {plural_verb} "
            "not fitted to age"
        )
        sentences.append(f"{beaten_text} (the {level_percent} interval excludes 0, not corrected).")
    sentences += _sentences_if_default_worse_than_constant(curves_by_loss)
    day_texts = {
        name: f"{float(f'{half_life_row[name]:.2g}'):,.0f}" for name in ("estimate", "low", "high")
    }
    interval_days = (
        f"[{format_interval_level(half_life_row, 'level')}: {day_texts['low']} to "
        f"{day_texts['high']}]"
    )
    sentences.append(
        f"The half-life of the exponential fit is {day_texts['estimate']} days {interval_days}: a "
        "parameter, which may lie beyond the oldest fact."
    )
    return Conclusions(sentences)


def _sentences_if_default_worse_than_constant(curve_losses: pl.DataFrame) -> list[str]:
    """Say where the default curve predicts worse than one chance at every age."""
    losses_by_family = dict(curve_losses.select("family", "log_loss").iter_rows())
    if (
        not {"default", "constant"} <= losses_by_family.keys()
        or losses_by_family["default"] <= losses_by_family["constant"]
    ):
        return []
    loss_texts = [
        f"{losses_by_family[family_name]:.3f}".removeprefix("0")
        for family_name in ("default", "constant")
    ]
    return [
        "The default curve predicts worse than one chance at every age (log-loss "
        f"{loss_texts[0]} against "
        f"{loss_texts[1]}, not tested); `memlab.knowledge.recommend(labels)` names a fitted one."
    ]


def on_cited_evidence(cited_shares: pl.DataFrame) -> Conclusions:
    """Say how much of the evidence summaries still cite.

    :param cited_shares: ``kind`` (of summary), ``form`` (``questions`` or ``turns``), ``n``,
        ``mean``, ``low`` and ``high``.
    """
    kind_texts = []
    for (kind,), rows in cited_shares.group_by("kind", maintain_order=True):
        rows_by_form = {row["form"]: row for row in rows.to_dicts()}
        questions = rows_by_form["questions"]
        if _has_enough_units_for_significance(questions):
            question_share = (
                f"{format_share_with_interval(questions, interval_prefix='')} of "
                f"{questions['n']:,} questions"
            )
            turn_share = format_percent(rows_by_form["turns"]["mean"])
            kind_texts.append(f"of a {kind}, for {question_share} ({turn_share} of the turns)")
    if not kind_texts:
        too_few_text = f"fewer than {fewest_units_for_significance()} questions have evidence"
        return Conclusions([f"What summaries keep cannot be said: {too_few_text}."])
    sentence = f"Summaries cite all evidence: {'; '.join(kind_texts)}."
    return Conclusions([sentence, *_note_lines_on_question_sources(cited_shares)])


def on_summary_sizes(word_counts: pl.DataFrame) -> Conclusions:
    """Say how much shorter summaries are than what was said.

    :param word_counts: what :func:`memlab.evaluate.cited_evidence.count_summary_words_by_kind`
        gave.
    """
    summary_rows = word_counts.filter(
        pl.col("kind") != "turn", pl.col("of_words").is_finite()
    ).to_dicts()
    if not summary_rows:
        return Conclusions()
    kind_texts = []
    for row in summary_rows:
        share_phrase = f"{format_percent(row['of_words'])} of the words of {row['turns']:,} turns"
        kind_texts.append(f"{row['n']:,} of a {row['kind']} ({share_phrase})")
    return Conclusions([f"There are these summaries: {join_as_sentence_list(kind_texts)}."])


def _list_systems_with_difference_and_p(comparison_rows: list[dict[str, Any]], n_tests: int) -> str:
    """List rankings with what changed, over how many questions and with which corrected p."""
    system_texts = []
    for row in comparison_rows:
        gain_text = (
            f"{format_paired_difference(row)} of {row['n']:,} questions ({format_p(row['p_holm'])})"
        )
        system_texts.append(f"{_in_backticks(row['system'])} {gain_text}")
    return "; ".join(system_texts) + _correction_suffix_or_empty(n_tests)


def _correction_suffix_or_empty(n_tests: int) -> str:
    if n_tests == 1:
        return ""
    return f"; p is corrected for {n_tests} tests"


def on_fused_rankings(fusion_verdicts: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say whether rankings that are fused with a baseline find more than it.

    :param fusion_verdicts: what :func:`memlab.evaluate.verdicts` gave, of one or several data sets
        beside each other: ``over`` names each.
    """
    tested_rows = fusion_verdicts.drop_nulls("p")
    n_tests = tested_rows.height
    if not fusion_verdicts["n"].sum():
        return Conclusions([sentence_on_no_question_with_evidence()])
    largest = tested_rows.sort("n", descending=True, maintain_order=True).row(0, named=True)
    if not _has_enough_units_for_significance(largest, n_tests):
        too_few_text = too_few_questions_sentence(
            largest, n_tests, "whether a search through summaries finds more"
        )
        return Conclusions([too_few_text])
    better_rows = tested_rows.filter(verdict="better").to_dicts()
    answer_text = f"Not one of {count_noun(n_tests, 'rankings')} through summaries"
    if better_rows:
        system_texts = []
        for row in better_rows:
            gain_text = f"{format_paired_difference(row)} of {row['n']:,} questions"
            system_texts.append(f"{_in_backticks(row['system'])} ({gain_text})")
        answer_text = join_as_sentence_list(system_texts)
    plural_verb = "find" if len(better_rows) > 1 else "finds"
    sentences = [
        f"{answer_text} {plural_verb} {_phrase_for_measure(measure)} for significantly more "
        "questions "
        "than `best`."
    ]
    worse_rows = tested_rows.filter(verdict="worse").to_dicts()
    if worse_rows:
        sentences.append(
            "Rankings through summaries that do so for significantly fewer questions than `best`: "
            f"{_list_systems_with_difference_and_p(worse_rows, n_tests)}."
        )
    other_rows = tested_rows.filter(pl.col("verdict").is_in(["better", "worse"]).not_())
    unclear_rows = [
        row for row in other_rows.to_dicts() if _has_enough_units_for_significance(row, n_tests)
    ]
    if unclear_rows:
        sentences.append(
            "Rankings through summaries without a significant difference to `best`: "
            f"{_list_systems_with_difference_and_p(unclear_rows, n_tests)}."
        )
    return Conclusions([*sentences, *_note_lines_on_question_sources(fusion_verdicts)])


def on_follow_ups(form_comparison: pl.DataFrame, *, k: int, conversations_name: str) -> Conclusions:
    """Say what follow-up questions lose as they are asked, and what brings it back.

    :param form_comparison: of one depth, as :func:`memlab.experiments.follow_up_forms_table` gives
        it.
    :param conversations_name: the name of the conversations.
    """
    rows_by_form = {row["form"]: row for row in form_comparison.filter(kind="all").to_dicts()}
    if not rows_by_form:
        return Conclusions(
            [f"Nothing can be said: {conversations_name} has no follow-up question."]
        )
    standalone_row = rows_by_form.pop("standalone")
    n_tests = len(rows_by_form)
    if not _has_enough_units_for_significance(standalone_row, n_tests):
        too_few_text = too_few_questions_sentence(
            standalone_row, n_tests, "what a follow-up loses", noun="follow-up"
        )
        return Conclusions([too_few_text])
    as_asked_row = rows_by_form.pop("as asked")
    loss = (
        "significantly fewer" if _is_significant_loss(as_asked_row) else "not significantly fewer"
    )
    sentences = [
        f"As asked, follow-ups in {conversations_name} have all evidence among the first {k} "
        f"for {loss} of {standalone_row['n']:,} than in the form that stands alone: "
        f"{format_share_with_interval(as_asked_row)} against "
        f"{format_share_with_interval(standalone_row)}, "
        f"{_format_difference_and_p(as_asked_row, n_tests)}."
    ]
    for form, row in rows_by_form.items():
        comparison = "not significantly different from"
        if _is_significant_loss(row):
            comparison = "significantly less than"
        sentences.append(
            f"Rewritten by `{form}`, follow-ups have all evidence among the first {k} for "
            f"{format_share_with_interval(row)}, {comparison} the form that "
            "stands alone "
            f"({_format_difference_and_p(row, n_tests)})."
        )
    return Conclusions([*sentences, *_sentences_on_worst_follow_up_kind(form_comparison)])


def _sentences_on_worst_follow_up_kind(form_comparison: pl.DataFrame) -> list[str]:
    """Name the kind of follow-up that loses most as asked, of those with enough questions."""
    testable_kinds = form_comparison.filter(
        pl.col("kind") != "all", pl.col("n") >= fewest_units_for_significance(), form="as asked"
    )
    if testable_kinds.is_empty():
        return []
    worst_row = testable_kinds.sort("difference", maintain_order=True).row(0, named=True)
    return [
        f"The kind that loses most as asked is `{worst_row['kind']}`: "
        f"{format_share_with_interval(worst_row)} of "
        f"{worst_row['n']:,}, {format_paired_difference(worst_row)}, not corrected for the choice "
        "among "
        f"{testable_kinds.height} kinds."
    ]


def on_memories(
    systems: pl.DataFrame, tests: pl.DataFrame, *, baseline: str, measure: str
) -> Conclusions:
    """Say which memories find all evidence of more questions than the baseline, and which of fewer.

    :param systems: :attr:`memlab.experiments.compare_systems.Comparison.systems`.
    :param tests: :attr:`memlab.experiments.compare_systems.Comparison.tests`.
    """
    baseline_row = systems.row(by_predicate=pl.col("system") == baseline, named=True)
    n_questions = baseline_row["n"]
    if not n_questions:
        return Conclusions([sentence_on_no_question_with_evidence()])
    test_rows = tests.filter(measure=measure).to_dicts() if tests.height else []
    if test_rows and not _has_enough_units_for_significance(test_rows[0], len(test_rows)):
        open_question = f"whether another system finds more than {_in_backticks(baseline)}"
        return Conclusions(
            [too_few_questions_sentence(test_rows[0], len(test_rows), open_question)]
        )
    better_rows = list(filter(_is_significant_gain, test_rows))
    worse_rows = list(filter(_is_significant_loss, test_rows))
    undecided_rows = [row for row in test_rows if row["p_holm"] >= ALPHA]
    baseline_share = ""
    if f"{measure}_low" in baseline_row:
        baseline_share = f" ({format_share_with_interval(baseline_row, measure, f'{measure}_')})"
    if not test_rows:
        return Conclusions(
            [f"There is nothing to compare {_in_backticks(baseline)} with{baseline_share}."]
        )
    answer = "At least one system finds" if better_rows else "No system finds"
    comparison_text = (
        f"significantly more of {n_questions:,} questions than "
        f"{_in_backticks(baseline)}{baseline_share}"
    )
    sentences = [f"{answer} {_phrase_for_measure(measure)} for {comparison_text}."]
    baseline_name = _in_backticks(baseline)
    rows_by_outcome = {
        f"Systems that do so for significantly more questions than {baseline_name}": better_rows,
        f"Systems that do so for significantly fewer questions than {baseline_name}": worse_rows,
        f"Systems without a significant difference to {baseline_name}": undecided_rows,
    }
    for outcome_name, outcome_rows in rows_by_outcome.items():
        if outcome_rows:
            system_texts = [
                f"{_in_backticks(row['system'])} ({_format_difference_and_p(row)})"
                for row in outcome_rows
            ]
            correction_suffix = _correction_suffix_or_empty(len(test_rows))
            listed_systems = join_as_sentence_list(system_texts)
            sentences.append(f"{outcome_name}: {listed_systems}{correction_suffix}.")
    return Conclusions(sentences)


def on_token_budgets(per_query: pl.DataFrame, *, system: str, unit: Unit = "auto") -> Conclusions:
    """Say what a memory finds in few tokens and in many.

    :param per_query: :attr:`memlab.experiments.compare_systems.Comparison.per_query`.
    :param unit: what intervals take as independent, as in the comparison.
    """
    system_rows = per_query.filter(system=system)
    budget_columns = [
        column_name for column_name in system_rows.columns if _BUDGET.fullmatch(column_name)
    ]
    end_columns = [budget_columns[0], budget_columns[-1]]
    scopes = scopes_if_they_are_the_unit(system_rows["scope"], unit)
    shares = np.array([True, True])
    intervals = mean_intervals(
        system_rows.select(end_columns).to_numpy(), scopes=scopes, shares=shares
    ).to_dicts()
    budget_texts = []
    for column_name, interval in zip(end_columns, intervals, strict=True):
        budget_row = {"n": system_rows.height, "mean": system_rows[column_name].mean(), **interval}
        if not _has_enough_units_for_significance(budget_row):
            return Conclusions()
        tokens = int(column_name.removeprefix("recall_all@").removesuffix(" tokens"))
        budget_texts.append(
            f"in {tokens:,} tokens for {format_share_with_interval(budget_row, interval_prefix='')}"
        )
    first_text = (
        f"{_in_backticks(system)} finds all evidence {budget_texts[0]} of the "
        f"{system_rows.height:,} "
        "questions"
    )
    return Conclusions([f"{first_text}, {budget_texts[1]}."])


def on_texts_missed_by_system(missed: pl.DataFrame, *, system: str) -> Conclusions:
    """Count how much of what a memory misses is not among its texts at all.

    :param missed: what :func:`memlab.evaluate.misses` gave.
    """
    if missed.is_empty():
        return Conclusions()
    n_absent = missed["rank"].null_count()
    return Conclusions(
        [
            f"{_in_backticks(system)} misses {missed.height:,} evidence items; {n_absent:,} of "
            "them are in "
            "none of its texts."
        ]
    )
