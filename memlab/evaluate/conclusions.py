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

from memlab.evaluate.confidence_intervals import Unit, clustering_scopes, mean_intervals
from memlab.evaluate.evaluation_report import Report
from memlab.evaluate.groups_of_questions import (
    ALL_QUESTIONS,
    MULTI_SESSION,
    SEVERAL_SESSIONS,
    multi_session_group,
    with_sources,
)
from memlab.evaluate.significance_tests import ALPHA, fewest_units
from memlab.interval_and_p_labels import format_level
from memlab.question_source_labels import source_note
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


def percent(share: float) -> str:
    """Write a share in whole percent, and never one that is not quite 0 or 1 as 0 or 1.

    >>> from memlab.evaluate.conclusions import percent
    >>> percent(0.197), percent(0.001), percent(0.999), percent(1.0)
    ('20 %', 'under 1 %', 'over 99 %', '100 %')
    """
    whole_percent = round(100 * share)
    if whole_percent == 0 and share > 0:
        return "under 1 %"
    if whole_percent == 100 and share < 1:
        return "over 99 %"
    return f"{whole_percent} %"


def points(difference: float) -> str:
    """Write a difference of shares in whole points, with its sign.

    >>> from memlab.evaluate.conclusions import points
    >>> points(0.157), points(-0.093), points(-0.001)
    ('+16', '−9', '0')
    """
    whole_points = round(100 * difference)
    if whole_points == 0:
        return "0"
    return f"{whole_points:+d}".replace("-", "−")


def share_text(row: Mapping[str, Any], value: str = "mean", prefix: str = "mean_") -> str:
    """Write a share with its interval and the level of it: ``20 % [95 %: 14 to 26]``.

    :param row: of a table: ``value``, and its ends ``low`` and ``high`` after the prefix.
    """
    low_share = row[f"{prefix}low"]
    high_share = row[f"{prefix}high"]
    if low_share is None or high_share is None:
        return f"{round(row[value] * row['n']):,} of {row['n']:,}"
    level_name = level_text(row, f"{prefix}level")
    return (
        f"{percent(row[value])} [{level_name}: {round(100 * low_share)} to "
        f"{round(100 * high_share)}]"
    )


def difference_text(row: Mapping[str, Any]) -> str:
    """Write a paired difference with its interval and the level of it.

    ``+16 points [95 %: +11 to +21]``
    """
    low_end = row["low"]
    high_end = row["high"]
    if low_end is None or high_end is None:
        return f"{row['win']:,} won and {row['loss']:,} lost"
    difference = row["difference"]
    gain_text = points(difference)
    # Beside two equal shares a whole point would contradict them.
    if 0 < abs(difference) < 0.0095:
        gain_text = f"{difference * 100:+.1f}".replace("-", "−")
    point_noun = "point" if gain_text.strip("+−") == "1" else "points"
    return (
        f"{gain_text} {point_noun} [{level_text(row, 'level')}: {points(low_end)} to "
        f"{points(high_end)}]"
    )


def p_text(p: float, tests: int = 1) -> str:
    """Write a p value to two decimals, and what it is corrected for.

    >>> from memlab.evaluate.conclusions import p_text
    >>> p_text(0.0004, 8), p_text(0.0312), p_text(0.049)
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
    if tests > 1:
        rounded_p = f"{rounded_p}, corrected for {tests} tests"
    return rounded_p


def listed(words: Iterable[str]) -> str:
    """Join words as a sentence does.

    >>> from memlab.evaluate.conclusions import listed
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *earlier_words, last_word = words
    if not earlier_words:
        return last_word
    return f"{', '.join(earlier_words)} and {last_word}"


def level_text(row: Mapping[str, Any], column: str = "level") -> str:
    """Write the level of a row's interval.

    Where memories are the unit, it says over how many.
    """
    level = row.get(column, row.get("level"))
    if row.get("unit") != "scope":
        return format_level(level)
    return f"{format_level(level)} over {row['units']} memories"


def _units(row: Mapping[str, Any]) -> int:
    """Count what was taken as independent: questions, or the memories that they are about."""
    return int(row["units"] if row.get("unit") == "scope" else row["n"])


def _enough(row: Mapping[str, Any], tests: int = 1) -> bool:
    return _units(row) >= fewest_units(tests)


def _group_phrase(group: str, n_questions: int) -> str:
    """Name the questions of a group: ``the 178 questions with evidence in two sessions``."""
    if n_questions == 1:
        phrase = _PHRASES.get(group, "").partition("questions")[2]
        return f"the one question{phrase}"
    return _PHRASES.get(group, f"the {{n:,}} questions ({group})").format(n=n_questions)


def _code(name: str) -> str:
    return f"`{name}`"


def _measure_phrase(measure: str) -> str:
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


def nothing_measured(n_questions: int = 0) -> str:
    """Say that no question has evidence, so that nothing can be said."""
    subject_text = "no question has"
    if n_questions:
        subject_text = f"none of the {n_questions:,} questions has"
    return (
        f"Nothing can be said: {subject_text} evidence. "
        "Label some questions with the turns that answer them."
    )


def too_few(
    row: Mapping[str, Any],
    tests: int,
    what: str,
    *,
    group: str = ALL_QUESTIONS,
    noun: str = "question",
) -> str:
    """Say that so few questions cannot answer, and how many could.

    :param row: of a comparison: ``n``, and where scopes are the unit, ``unit`` and ``units``.

    >>> from memlab.evaluate.conclusions import too_few
    >>> said = too_few({"n": 5}, 8, "whether another system finds more")
    >>> said.partition(": ")[0]
    'These 5 questions cannot say whether another system finds more'
    >>> said.partition(": ")[2]
    'with 8 tests, no difference is significant below 9 questions.'
    """
    tests_text = "one test" if tests == 1 else f"{tests} tests"
    questions_text = _those_questions(row["n"], noun, group)
    unit_noun = f"{noun}s"
    if row.get("unit") == "scope":
        questions_text = f"{questions_text}, about {row['units']} memories,"
        unit_noun = "memories"
    return (
        f"{questions_text} cannot say {what}: with {tests_text}, no difference is significant "
        f"below {fewest_units(tests)} {unit_noun}."
    )


def _those_questions(n_questions: int, noun: str, group: str) -> str:
    """Name the questions of a group at the beginning of a sentence: ``These 5 questions``."""
    if group == SEVERAL_SESSIONS:
        evidence_phrase = "with evidence in two or more sessions"
        if n_questions == 1:
            return f"The one {noun} {evidence_phrase}"
        return f"The {n_questions:,} {noun}s {evidence_phrase}"
    if n_questions == 1:
        return f"This one {noun}"
    return f"These {n_questions:,} {noun}s"


def without_several_sessions(groups: Iterable[str]) -> list[str]:
    """Say that no question has evidence in several sessions, where that is so."""
    if SEVERAL_SESSIONS in groups:
        return []
    return [
        "No question has evidence in two or more sessions: about such questions nothing can be "
        "said."
    ]


def of_one_memory(n_scopes: int) -> list[str]:
    """Say that all questions are about one memory, where that is so."""
    if n_scopes != 1:
        return []
    return ["All questions are about one memory: what holds for others cannot be said."]


def of_sources(per_query: pl.DataFrame) -> list[str]:
    """Say who wrote the questions, where not all are by a person or a benchmark.

    >>> import polars as pl
    >>> from memlab.evaluate.conclusions import of_sources
    >>> (said,) = of_sources(pl.DataFrame({"source": ["proposed", "accepted"]}))
    >>> said.split(".")[:2]
    ['n = 2: 1 proposed, 1 accepted',
     ' Proposed questions were written by a model, and no person has read them']
    >>> of_sources(pl.DataFrame({"source": [None]}))
    []
    """
    count_row = pl.DataFrame({"n": [per_query.height]})
    return _note_of_sources(with_sources(count_row, per_query))


def asked_elsewhere(wanted: str, used: str, *, lacking: str) -> Conclusions:
    """Say that the questions are those of other data, where the data that were wanted have none.

    >>> from memlab.evaluate.conclusions import asked_elsewhere
    >>> print(asked_elsewhere("mine", "sample", lacking="question about a changed value"))
    - mine has no question about a changed value, so nothing can be said about it; what follows is
    of sample.
    """
    if wanted == used:
        return Conclusions()
    sentence = (
        f"{wanted} has no {lacking}, so nothing can be said about it; what follows is of {used}."
    )
    return Conclusions([sentence])


# What is found.


def recall(judged: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say which system finds all evidence of more questions than the baseline.

    :param judged: what :func:`memlab.evaluate.system_comparison.compare_by_group` gave.

    >>> import memlab
    >>> from memlab.evaluate import conclusions
    >>> from memlab.evaluate.system_comparison import compare_by_group
    >>> options = {"encoder": None, "store": None, "levels": ["turn"]}
    >>> done = memlab.run(["bm25(b=0)", "bm25"], memlab.sample(), **options)
    >>> compared = compare_by_group(done.reports, measure="recall_all@10")
    >>> said = conclusions.recall(compared, measure="recall_all@10")
    >>> said[0].partition(" for ")[0]
    'No system finds all evidence among the first 10'
    """
    tests = judged["p"].count()
    if not judged["n"].sum():
        return Conclusions([nothing_measured()])
    sentences: list[str] = []
    largest = judged.sort("n", descending=True, maintain_order=True).row(0, named=True)
    if tests and not _enough(largest, tests):
        too_few_text = too_few(largest, tests, "whether another system finds more")
        return Conclusions([too_few_text, *without_several_sessions(judged["group"])])
    for (group,), rows in reversed([*judged.group_by("group", maintain_order=True)]):
        n_questions = rows["n"][0]
        baseline_row = rows.filter(pl.col("p").is_null()).row(0, named=True)
        other_rows = rows.drop_nulls("p").sort("mean", descending=True, maintain_order=True)
        if other_rows.is_empty():
            share_phrase = f"{share_text(baseline_row)} of {_group_phrase(group, n_questions)}"
            sentences.append(
                f"{_code(baseline_row['system'])} finds {_measure_phrase(measure)} for "
                f"{share_phrase}."
            )
        elif not _enough(baseline_row, tests):
            open_question = (
                f"whether another system finds more than {_code(baseline_row['system'])}"
            )
            sentences.append(too_few(baseline_row, tests, open_question, group=group))
        else:
            sentences.append(
                _best_of(other_rows.row(0, named=True), baseline_row, group, tests, measure)
            )
            sentences += _significantly_worse(other_rows, baseline_row, measure)
    return Conclusions([*sentences, *without_several_sessions(judged["group"])])


def _best_of(
    best: Mapping[str, Any], baseline: Mapping[str, Any], group: str, tests: int, measure: str
) -> str:
    """Answer for one group whether the best of the other systems is better than the baseline."""
    questions_text = _group_phrase(group, best["n"])
    gain_text = f"{difference_text(best)}, {p_text(best['p_holm'], tests)}"
    baseline_name = _code(baseline["system"])
    best_name = _code(best["system"])
    if best["verdict"] == "better":
        return (
            f"{best_name} finds {_measure_phrase(measure)} for significantly more of "
            f"{questions_text} than {baseline_name}: {share_text(best)} against "
            f"{share_text(baseline)}, {gain_text}."
        )
    return (
        f"No system finds {_measure_phrase(measure)} for significantly more of {questions_text} "
        f"than {baseline_name}, which does for {share_text(baseline)}; the highest, {best_name}: "
        f"{gain_text}."
    )


def _significantly_worse(
    tested: pl.DataFrame, baseline: Mapping[str, Any], measure: str
) -> list[str]:
    worse_rows = tested.filter(verdict="worse").to_dicts()
    if not worse_rows:
        return []
    loss_list = listed(f"{_code(row['system'])} ({difference_text(row)})" for row in worse_rows)
    plural_verb = "finds" if len(worse_rows) == 1 else "find"
    questions_text = _group_phrase(baseline["group"], baseline["n"])
    return [
        f"{loss_list} {plural_verb} {_measure_phrase(measure)} for significantly fewer of "
        f"{questions_text} than {_code(baseline['system'])}."
    ]


def some_and_all(report: Report, *, measure: str) -> Conclusions:
    """Set the questions of which some evidence is found beside those of which all is.

    :param report: one that has ``recall_any`` at the depth of ``measure``, else there is no
        sentence.
    """
    any_measure = measure.replace("recall_all", "recall_any")
    if any_measure == measure or any_measure not in map(str, report.measures):
        return Conclusions()
    grouping, group = multi_session_group(report.per_query)
    rows = report.summary(grouping, measures=[any_measure, measure]).filter(group=group).to_dicts()
    if not rows or not _enough(rows[0]):
        return Conclusions()
    some_row, all_row = rows
    asked_group = ALL_QUESTIONS if grouping == "all" else SEVERAL_SESSIONS
    return Conclusions(
        [
            f"{_code(report.name)} finds {_measure_phrase(any_measure)} for "
            f"{share_text(some_row, prefix='')} of {_group_phrase(asked_group, some_row['n'])}, "
            f"and all of it for {share_text(all_row, prefix='')}."
        ]
    )


def sessions_apart(report: Report, *, measure: str) -> Conclusions:
    """Set questions with evidence in one session beside those with evidence in several."""
    summary = report.summary("evidence_sessions", measures=measure)
    rows_by_group = {group_row["group"]: group_row for group_row in summary.to_dicts()}
    share_phrases = []
    for group, sessions_phrase in (("1", "one session"), (MULTI_SESSION, "several")):
        group_row = rows_by_group.get(group)
        if group_row is None or not _enough(group_row):
            return Conclusions()
        share_phrase = share_text(group_row, prefix="")
        share_phrases.append(
            f"{share_phrase} of the {group_row['n']:,} questions with evidence in {sessions_phrase}"
        )
    return Conclusions(
        [
            f"{_code(report.name)} finds {_measure_phrase(measure)} for {share_phrases[0]}, and "
            f"for {share_phrases[1]}."
        ]
    )


def steps(judged: pl.DataFrame, whole: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say which steps of an ablation are significant, and what all of them bring.

    :param judged: what :func:`memlab.evaluate.system_comparison.compare_by_group` gave, stepwise.
    :param whole: the same, of the first and the last step alone.
    """
    tests = judged["p"].count()
    if not judged["n"].sum():
        return Conclusions([nothing_measured()])
    sentences: list[str] = []
    testable_groups: list[pl.DataFrame] = []
    for (group,), rows in judged.group_by("group", maintain_order=True):
        first_row = rows.row(0, named=True)
        if _enough(first_row, tests):
            testable_groups.append(rows)
        else:
            sentences.append(too_few(first_row, tests, "which step adds", group=group))
    if testable_groups:
        sentences.insert(0, _significant_steps(pl.concat(testable_groups), tests))
    n_end_tests = whole["p"].count()
    for row in reversed(whole.drop_nulls("p").to_dicts()):
        if _enough(row, n_end_tests):
            first = whole.filter(pl.col("p").is_null(), group=row["group"]).row(0, named=True)
            gain_text = f"{difference_text(row)}, {p_text(row['p_holm'], n_end_tests)}"
            sentences.append(
                f"From {_code(first['system'])} to {_code(row['system'])}, "
                f"{_measure_phrase(measure)} goes from {share_text(first)} to {share_text(row)} of "
                f"{_group_phrase(row['group'], row['n'])}: {gain_text}."
            )
    sentences += without_several_sessions(judged["group"])
    return Conclusions([*sentences, *_note_of_sources(judged)])


def _note_of_sources(judged: pl.DataFrame) -> list[str]:
    """Say who wrote the questions of a table, where not all are by a person or a benchmark."""
    source_line = source_note(judged)
    if not source_line:
        return []
    return [source_line]


def _significant_steps(judged: pl.DataFrame, tests: int) -> str:
    significant_rows = judged.filter(pl.col("verdict").is_in(["better", "worse"])).to_dicts()
    if not significant_rows:
        return f"No single step adds or loses significantly ({tests} tests)."
    step_texts = []
    for row in significant_rows:
        questions_text = _group_phrase(row["group"], row["n"])
        step_texts.append(f"{_code(row['system'])} over {questions_text} ({_gain_and_p(row)})")
    plural_verb = "is" if len(step_texts) == 1 else "are"
    return (
        f"Of {count_noun(tests, 'tests')} of single steps {len(step_texts)} {plural_verb} "
        f"significant after correction: {listed(step_texts)}."
    )


def still_missed(missed: pl.DataFrame, causes: pl.DataFrame, *, k: int) -> Conclusions:
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
    cause_list = listed(
        f"{cause} ({n_items:,})" for cause, n_items in top_causes.select("cause", "n").iter_rows()
    )
    causes_sentence = f"Most frequent causes of the {missed.height:,}: {cause_list}."
    return Conclusions([missed_sentence, causes_sentence, *_note_of_sources(causes)])


def selection(judged: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say whether choosing otherwise among the candidates completes more, or less.

    :param judged: all tests of one family, as :func:`memlab.evaluate.verdicts` gives them, with the
        columns ``group`` and ``base`` (the ranking that is chosen from).
    """
    tested_rows = judged.drop_nulls("p")
    n_tests = tested_rows.height
    if not judged["n"].sum():
        return Conclusions([nothing_measured()])
    largest = tested_rows.sort("n", descending=True, maintain_order=True).row(0, named=True)
    if not _enough(largest, n_tests):
        too_few_text = too_few(largest, n_tests, "whether choosing differently completes more")
        return Conclusions([too_few_text, *without_several_sessions(judged["group"])])
    sentences = [_choice_answer(tested_rows, n_tests)]
    worse_rows = tested_rows.filter(verdict="worse")
    better_rows = tested_rows.filter(verdict="better")
    if worse_rows.height:
        sentences.append(
            "The largest loss by choosing differently is that of "
            f"{_tested_text(_extreme(worse_rows, highest=False), n_tests)}."
        )
    if better_rows.height:
        sentences.append(
            "The largest gain by choosing differently is that of "
            f"{_tested_text(_extreme(better_rows, highest=True), n_tests)}."
        )
    else:
        largest_gain = _tested_text(_extreme(tested_rows, highest=True), n_tests)
        sentences.append(
            "The largest gain by choosing differently, not a significant one, is that of "
            f"{largest_gain}."
        )
    for (group,), rows in tested_rows.group_by("group", maintain_order=True):
        group_row = rows.row(0, named=True)
        if not _enough(group_row, n_tests):
            sentences.append(too_few(group_row, n_tests, "whether it completes more", group=group))
    sentences += without_several_sessions(judged["group"])
    return Conclusions([*sentences, *_note_of_sources(judged)])


def _choice_answer(tested: pl.DataFrame, tests: int) -> str:
    """Answer whether any choice is better or worse than the ranking that it chooses from."""
    better_rows = tested.filter(verdict="better")
    worse_rows = tested.filter(verdict="worse")
    n_equivalent = tested.filter(verdict="equivalent").height
    n_inconclusive = tested.filter(verdict="inconclusive").height
    baseline_names = listed(map(_code, tested["base"].unique(maintain_order=True)))
    return (
        f"Of {tests} comparisons of a selector with the plain {baseline_names}, "
        f"{better_rows.height or 'none'} completes significantly "
        f"more{_systems_in_brackets(better_rows)}, "
        f"{worse_rows.height or 'none'} significantly less{_systems_in_brackets(worse_rows)}, "
        f"{n_equivalent} are equivalent and {n_inconclusive} inconclusive."
    )


def _systems_in_brackets(tested: pl.DataFrame) -> str:
    if tested.is_empty():
        return ""
    return f" ({listed(map(_code, tested['system'].unique(maintain_order=True)))})"


def _extreme(tested: pl.DataFrame, *, highest: bool) -> dict[str, Any]:
    """Find the row with the largest difference or the smallest."""
    ordered = tested.sort("difference", descending=highest, maintain_order=True)
    return ordered.row(0, named=True)


def _gain_and_p(row: Mapping[str, Any], tests: int = 1) -> str:
    return f"{difference_text(row)}, {p_text(row['p_holm'], tests)}"


def _tested_text(row: Mapping[str, Any], tests: int) -> str:
    return (
        f"{_code(row['system'])} on {_code(row['base'])} over "
        f"{_group_phrase(row['group'], row['n'])}, {difference_text(row)}, "
        f"{p_text(row['p_holm'], tests)}"
    )


def similarity(pairs: pl.DataFrame) -> Conclusions:
    """Say whether the evidence items of an answer resemble each other more than other turns do.

    :param pairs: a row a kind of :data:`memlab.cluster.evidence_spread.PAIR_KINDS`: ``kind``, ``n``
        (questions), ``mean`` (the median cosine), ``low`` and ``high`` (the quartiles).
    """
    rows_by_kind = {row["kind"]: row for row in pairs.to_dicts()}
    evidence_row = rows_by_kind.get("evidence, other session")
    controls = [row for kind, row in rows_by_kind.items() if "random" in kind]
    if evidence_row is None or not controls or evidence_row["n"] < fewest_units():
        n_questions = evidence_row["n"] if evidence_row else 0
        too_few_text = (
            f"{n_questions} questions have evidence in two sessions, "
            f"and {fewest_units()} are the fewest."
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
        f"turn: median speaker-centred cosine {listed(cosine_texts)}."
    )
    return Conclusions([sentence.replace("-0.", "−0."), *_note_of_sources(pairs)])


def conditions(compared: pl.DataFrame, *, asked: str, what: str, source: str = "") -> Conclusions:
    """Say which conditions hold for more questions than the first one.

    :param compared: what :func:`memlab.evaluate.system_comparison.compare_outcomes` gave.
    :param asked: of what questions, such as ``questions about a changed value``.
    :param what: what holds, such as ``the current value ranks first``.
    :param source: what was searched, where several sources stand beside each other.
    """
    if compared.is_empty():
        return Conclusions([f"Whether {what} cannot be said: there are no {asked}."])
    tested_rows = compared.drop_nulls("p").to_dicts()
    n_questions = compared["n"][0]
    baseline_row = compared.filter(pl.col("p").is_null()).row(0, named=True)
    if not _enough(baseline_row, len(tested_rows)):
        other_systems = listed(f"with {row['system']}" for row in tested_rows)
        question = f"whether {what} for more of them {other_systems}"
        noun = asked.partition(" ")[0].removesuffix("s")
        return Conclusions([too_few(baseline_row, len(tested_rows), question, noun=noun)])
    condition_texts = []
    for row in tested_rows:
        gain_text = _gain_and_p(row, len(tested_rows))
        comparison = "for significantly more" if _is_gain(row) else "not for significantly more"
        condition_texts.append(
            f"with {row['system']} {comparison}, {share_text(row)} ({gain_text})"
        )
    source_text = f"Among {source}, with" if source else "With"
    baseline_text = (
        f"{source_text} {baseline_row['system']} {what} for {share_text(baseline_row)} of "
        f"{n_questions:,} {asked}"
    )
    return Conclusions([f"{baseline_text}; {listed(condition_texts)}."])


def changed_values(compared: pl.DataFrame) -> Conclusions:
    """Say with which conditions the current value of something ranks above every stale one.

    :param compared: of facts and of messages, as
        :func:`memlab.evaluate.changed_values.compare_sides` gives them.
    """
    sentences: list[str] = []
    for side in ("facts", "messages"):
        sentences += conditions(
            compared.filter(data=side),
            asked="questions about a changed value",
            what="the current value ranks above every stale one",
            source=side,
        )
    return Conclusions([*sentences, *_note_of_sources(compared)])


def _is_gain(row: Mapping[str, Any]) -> bool:
    return row["p_holm"] < ALPHA and row["difference"] > 0


def _is_loss(row: Mapping[str, Any]) -> bool:
    return row["p_holm"] < ALPHA and row["difference"] < 0


def decay_curves(losses: pl.DataFrame, exponential: pl.DataFrame) -> Conclusions:
    """Say which family of decay curves predicts held-out facts best.

    And after how long half no longer hold.

    :param losses: what :func:`memlab.knowledge.decay_fitting.compare_curves` gave.
    :param exponential: the intervals of an exponential fit: ``estimate``, ``low`` and ``high``
        of the half-life in days, and ``level``.
    """
    if losses.is_empty() or exponential.is_empty():
        return Conclusions(
            ["How fast facts cease to hold cannot be said: there are too few labels."]
        )
    half_life_row = exponential.row(0, named=True)
    curves_by_loss = losses.sort("log_loss", maintain_order=True)
    fitted_curves = curves_by_loss.filter(~pl.col("family").is_in(["constant", "default"]))
    best_family = fitted_curves["family"][0]
    n_facts = losses["n"][0]
    excluding_zero = curves_by_loss.filter(pl.col("difference_low") > 0)["family"].to_list()
    worse_families = [family for family in fitted_curves["family"] if family in excluding_zero]
    level_percent = percent(losses["level"][0])
    interval_text = (
        f"the {level_percent} interval of the paired difference to it holds 0 for every other of "
        "them"
    )
    if worse_families:
        interval_text = (
            f"the {level_percent} interval of the paired difference to it excludes 0 for "
            f"{listed(map(_code, worse_families))}"
        )
    sentences = [
        f"On {n_facts:,} labelled facts, of the fitted decay curves {_code(best_family)} has the "
        f"lowest log-loss; {interval_text}."
    ]
    beaten_controls = [family for family in ("default", "constant") if family in excluding_zero]
    if beaten_controls:
        plural_verb = "are" if len(beaten_controls) > 1 else "is"
        beaten_text = (
            f"It predicts better than {listed(map(_code, beaten_controls))}, which {plural_verb} "
            "not fitted to age"
        )
        sentences.append(f"{beaten_text} (the {level_percent} interval excludes 0, not corrected).")
    sentences += _default_beside_constant(curves_by_loss)
    day_texts = {
        name: f"{float(f'{half_life_row[name]:.2g}'):,.0f}" for name in ("estimate", "low", "high")
    }
    interval_days = (
        f"[{level_text(half_life_row, 'level')}: {day_texts['low']} to {day_texts['high']}]"
    )
    sentences.append(
        f"The half-life of the exponential fit is {day_texts['estimate']} days {interval_days}: a "
        "parameter, which may lie beyond the oldest fact."
    )
    return Conclusions(sentences)


def _default_beside_constant(losses: pl.DataFrame) -> list[str]:
    """Say where the default curve predicts worse than one chance at every age."""
    losses_by_family = dict(losses.select("family", "log_loss").iter_rows())
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


def cited(kept: pl.DataFrame) -> Conclusions:
    """Say how much of the evidence summaries still cite.

    :param kept: ``kind`` (of summary), ``form`` (``questions`` or ``turns``), ``n``, ``mean``,
        ``low`` and ``high``.
    """
    kind_texts = []
    for (kind,), rows in kept.group_by("kind", maintain_order=True):
        rows_by_form = {row["form"]: row for row in rows.to_dicts()}
        questions = rows_by_form["questions"]
        if _enough(questions):
            question_share = f"{share_text(questions, prefix='')} of {questions['n']:,} questions"
            turn_share = percent(rows_by_form["turns"]["mean"])
            kind_texts.append(f"of a {kind}, for {question_share} ({turn_share} of the turns)")
    if not kind_texts:
        too_few_text = f"fewer than {fewest_units()} questions have evidence"
        return Conclusions([f"What summaries keep cannot be said: {too_few_text}."])
    sentence = f"Summaries cite all evidence: {'; '.join(kind_texts)}."
    return Conclusions([sentence, *_note_of_sources(kept)])


def sizes(counted: pl.DataFrame) -> Conclusions:
    """Say how much shorter summaries are than what was said.

    :param counted: what :func:`memlab.evaluate.cited_evidence.summary_sizes` gave.
    """
    summary_rows = counted.filter(
        pl.col("kind") != "turn", pl.col("of_words").is_finite()
    ).to_dicts()
    if not summary_rows:
        return Conclusions()
    kind_texts = []
    for row in summary_rows:
        share_phrase = f"{percent(row['of_words'])} of the words of {row['turns']:,} turns"
        kind_texts.append(f"{row['n']:,} of a {row['kind']} ({share_phrase})")
    return Conclusions([f"There are these summaries: {listed(kind_texts)}."])


def _tested_list(rows: list[dict[str, Any]], tests: int) -> str:
    """List rankings with what changed, over how many questions and with which corrected p."""
    system_texts = []
    for row in rows:
        gain_text = f"{difference_text(row)} of {row['n']:,} questions ({p_text(row['p_holm'])})"
        system_texts.append(f"{_code(row['system'])} {gain_text}")
    return "; ".join(system_texts) + _correction(tests)


def _correction(tests: int) -> str:
    if tests == 1:
        return ""
    return f"; p is corrected for {tests} tests"


def fused(judged: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say whether rankings that are fused with a baseline find more than it.

    :param judged: what :func:`memlab.evaluate.verdicts` gave, of one or several data sets beside
        each other: ``over`` names each.
    """
    tested_rows = judged.drop_nulls("p")
    n_tests = tested_rows.height
    if not judged["n"].sum():
        return Conclusions([nothing_measured()])
    largest = tested_rows.sort("n", descending=True, maintain_order=True).row(0, named=True)
    if not _enough(largest, n_tests):
        too_few_text = too_few(largest, n_tests, "whether a search through summaries finds more")
        return Conclusions([too_few_text])
    better_rows = tested_rows.filter(verdict="better").to_dicts()
    answer_text = f"None of {count_noun(n_tests, 'rankings')} through summaries"
    if better_rows:
        system_texts = []
        for row in better_rows:
            gain_text = f"{difference_text(row)} of {row['n']:,} questions"
            system_texts.append(f"{_code(row['system'])} ({gain_text})")
        answer_text = listed(system_texts)
    plural_verb = "find" if len(better_rows) > 1 else "finds"
    sentences = [
        f"{answer_text} {plural_verb} {_measure_phrase(measure)} for significantly more questions "
        "than `best`."
    ]
    worse_rows = tested_rows.filter(verdict="worse").to_dicts()
    if worse_rows:
        sentences.append(
            "Rankings through summaries that do so for significantly fewer questions than `best`: "
            f"{_tested_list(worse_rows, n_tests)}."
        )
    other_rows = tested_rows.filter(pl.col("verdict").is_in(["better", "worse"]).not_())
    unclear_rows = [row for row in other_rows.to_dicts() if _enough(row, n_tests)]
    if unclear_rows:
        sentences.append(
            "Rankings through summaries without a significant difference to `best`: "
            f"{_tested_list(unclear_rows, n_tests)}."
        )
    return Conclusions([*sentences, *_note_of_sources(judged)])


def follow_ups(table: pl.DataFrame, *, k: int, data: str) -> Conclusions:
    """Say what follow-up questions lose as they are asked, and what brings it back.

    :param table: of one depth, as :func:`memlab.experiments.follow_up_forms_table` gives it.
    :param data: the name of the conversations.
    """
    rows_by_form = {row["form"]: row for row in table.filter(kind="all").to_dicts()}
    if not rows_by_form:
        return Conclusions([f"Nothing can be said: {data} has no follow-up question."])
    standalone_row = rows_by_form.pop("standalone")
    n_tests = len(rows_by_form)
    if not _enough(standalone_row, n_tests):
        too_few_text = too_few(standalone_row, n_tests, "what a follow-up loses", noun="follow-up")
        return Conclusions([too_few_text])
    as_asked_row = rows_by_form.pop("as asked")
    loss = "significantly fewer" if _is_loss(as_asked_row) else "not significantly fewer"
    sentences = [
        f"As asked, follow-ups in {data} have all evidence among the first {k} for {loss} of "
        f"{standalone_row['n']:,} than in the form that stands alone: {share_text(as_asked_row)} "
        f"against {share_text(standalone_row)}, {_gain_and_p(as_asked_row, n_tests)}."
    ]
    for form, row in rows_by_form.items():
        comparison = "not significantly different from"
        if _is_loss(row):
            comparison = "significantly less than"
        sentences.append(
            f"Rewritten by `{form}`, follow-ups have all evidence among the first {k} for "
            f"{share_text(row)}, {comparison} the form that stands alone "
            f"({_gain_and_p(row, n_tests)})."
        )
    return Conclusions([*sentences, *_worst_kind(table)])


def _worst_kind(table: pl.DataFrame) -> list[str]:
    """Name the kind of follow-up that loses most as asked, of those with enough questions."""
    testable_kinds = table.filter(
        pl.col("kind") != "all", pl.col("n") >= fewest_units(), form="as asked"
    )
    if testable_kinds.is_empty():
        return []
    worst_row = testable_kinds.sort("difference", maintain_order=True).row(0, named=True)
    return [
        f"The kind that loses most as asked is `{worst_row['kind']}`: {share_text(worst_row)} of "
        f"{worst_row['n']:,}, {difference_text(worst_row)}, not corrected for the choice among "
        f"{testable_kinds.height} kinds."
    ]


def memories(
    systems: pl.DataFrame, tests: pl.DataFrame, *, baseline: str, measure: str
) -> Conclusions:
    """Say which memories find all evidence of more questions than the baseline, and which of fewer.

    :param systems: :attr:`memlab.experiments.compare_systems.Comparison.systems`.
    :param tests: :attr:`memlab.experiments.compare_systems.Comparison.tests`.
    """
    baseline_row = systems.row(by_predicate=pl.col("system") == baseline, named=True)
    n_questions = baseline_row["n"]
    if not n_questions:
        return Conclusions([nothing_measured()])
    test_rows = tests.filter(measure=measure).to_dicts() if tests.height else []
    if test_rows and not _enough(test_rows[0], len(test_rows)):
        open_question = f"whether another system finds more than {_code(baseline)}"
        return Conclusions([too_few(test_rows[0], len(test_rows), open_question)])
    better_rows = list(filter(_is_gain, test_rows))
    worse_rows = list(filter(_is_loss, test_rows))
    undecided_rows = [row for row in test_rows if row["p_holm"] >= ALPHA]
    baseline_share = ""
    if f"{measure}_low" in baseline_row:
        baseline_share = f" ({share_text(baseline_row, measure, f'{measure}_')})"
    if not test_rows:
        return Conclusions([f"There is nothing to compare {_code(baseline)} with{baseline_share}."])
    answer = "At least one system finds" if better_rows else "No system finds"
    comparison_text = (
        f"significantly more of {n_questions:,} questions than {_code(baseline)}{baseline_share}"
    )
    sentences = [f"{answer} {_measure_phrase(measure)} for {comparison_text}."]
    rows_by_outcome = {
        f"Systems that do so for significantly more questions than {_code(baseline)}": better_rows,
        f"Systems that do so for significantly fewer questions than {_code(baseline)}": worse_rows,
        f"Systems without a significant difference to {_code(baseline)}": undecided_rows,
    }
    for outcome_name, outcome_rows in rows_by_outcome.items():
        if outcome_rows:
            system_texts = [f"{_code(row['system'])} ({_gain_and_p(row)})" for row in outcome_rows]
            sentences.append(
                f"{outcome_name}: {listed(system_texts)}{_correction(len(test_rows))}."
            )
    return Conclusions(sentences)


def budgets(per_query: pl.DataFrame, *, system: str, unit: Unit = "auto") -> Conclusions:
    """Say what a memory finds in few tokens and in many.

    :param per_query: :attr:`memlab.experiments.compare_systems.Comparison.per_query`.
    :param unit: what intervals take as independent, as in the comparison.
    """
    system_rows = per_query.filter(system=system)
    budget_columns = [
        column_name for column_name in system_rows.columns if _BUDGET.fullmatch(column_name)
    ]
    end_columns = [budget_columns[0], budget_columns[-1]]
    scopes = clustering_scopes(system_rows["scope"], unit)
    shares = np.array([True, True])
    intervals = mean_intervals(
        system_rows.select(end_columns).to_numpy(), scopes=scopes, shares=shares
    ).to_dicts()
    budget_texts = []
    for column_name, interval in zip(end_columns, intervals, strict=True):
        budget_row = {"n": system_rows.height, "mean": system_rows[column_name].mean(), **interval}
        if not _enough(budget_row):
            return Conclusions()
        tokens = int(column_name.removeprefix("recall_all@").removesuffix(" tokens"))
        budget_texts.append(f"in {tokens:,} tokens for {share_text(budget_row, prefix='')}")
    first_text = (
        f"{_code(system)} finds all evidence {budget_texts[0]} of the {system_rows.height:,} "
        "questions"
    )
    return Conclusions([f"{first_text}, {budget_texts[1]}."])


def missed_by(missed: pl.DataFrame, *, system: str) -> Conclusions:
    """Count how much of what a memory misses is not among its texts at all.

    :param missed: what :func:`memlab.evaluate.misses` gave.
    """
    if missed.is_empty():
        return Conclusions()
    n_absent = missed["rank"].null_count()
    return Conclusions(
        [
            f"{_code(system)} misses {missed.height:,} evidence items; {n_absent:,} of them are in "
            "none of its texts."
        ]
    )
