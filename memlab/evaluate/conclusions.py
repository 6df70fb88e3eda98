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
from memlab.evaluate.groups import (
    ALL_QUESTIONS,
    MULTI_SESSION,
    SEVERAL_SESSIONS,
    multi_session_group,
    with_sources,
)
from memlab.evaluate.report import Report
from memlab.evaluate.significance import ALPHA, fewest_units
from memlab.interval_labels import format_level
from memlab.source_labels import source_note

_PHRASES = {
    ALL_QUESTIONS: "all {n:,} questions with evidence",
    SEVERAL_SESSIONS: "the {n:,} questions with evidence in two or more sessions",
}
_BUDGET = re.compile(r"recall_all@\d+ tokens")


class Conclusions(tuple[str, ...]):
    """Sentences, the answer first; printed or shown by a notebook, each is a point.

    >>> from memlab.evaluate.conclusions import Conclusions
    >>> print(Conclusions(["No: nothing is better.", "It costs more."]))
    - No: nothing is better.
    - It costs more.
    """

    __slots__ = ()

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
    whole = round(100 * share)
    if whole == 0 and share > 0:
        return "under 1 %"
    if whole == 100 and share < 1:
        return "over 99 %"
    return f"{whole} %"


def points(difference: float) -> str:
    """Write a difference of shares in whole points, with its sign.

    >>> from memlab.evaluate.conclusions import points
    >>> points(0.157), points(-0.093), points(-0.001)
    ('+16', '−9', '0')
    """
    whole = round(100 * difference)
    if whole == 0:
        return "0"
    return f"{whole:+d}".replace("-", "−")


def share_text(row: Mapping[str, Any], value: str = "mean", prefix: str = "mean_") -> str:
    """Write a share with its interval and the level of it: ``20 % [95 %: 14 to 26]``.

    :param row: of a table: ``value``, and its ends ``low`` and ``high`` after the prefix.
    """
    low = row[f"{prefix}low"]
    high = row[f"{prefix}high"]
    if low is None or high is None:
        return f"{round(row[value] * row['n']):,} of {row['n']:,}"
    level = level_text(row, f"{prefix}level")
    return f"{percent(row[value])} [{level}: {round(100 * low)} to {round(100 * high)}]"


def difference_text(row: Mapping[str, Any]) -> str:
    """Write a paired difference with its interval and the level of it.

    ``+16 points [95 %: +11 to +21]``
    """
    low = row["low"]
    high = row["high"]
    if low is None or high is None:
        return f"{row['win']:,} won and {row['loss']:,} lost"
    difference = row["difference"]
    gain = points(difference)
    # Beside two equal shares a whole point would contradict them.
    if 0 < abs(difference) < 0.0095:
        gain = f"{difference * 100:+.1f}".replace("-", "−")
    unit = "point" if gain.strip("+−") == "1" else "points"
    return f"{gain} {unit} [{level_text(row, 'level')}: {points(low)} to {points(high)}]"


def p_text(p: float, tests: int = 1) -> str:
    """Write a p value to two decimals, and what it is corrected for.

    >>> from memlab.evaluate.conclusions import p_text
    >>> p_text(0.0004, 8), p_text(0.0312), p_text(0.049)
    ('p < .001, corrected for 8 tests', 'p = .03', 'p = .049')
    """
    if p < 0.001:
        text = "p < .001"
    elif p < 0.01 or round(p, 2) == ALPHA:
        # Two decimals would not say on which side of .05 it lies.
        text = f"p = {p:.3f}".replace("0.", ".")
    elif p < 0.995:
        text = f"p = {p:.2f}".replace("0.", ".")
    else:
        text = "p = 1"
    if tests > 1:
        text = f"{text}, corrected for {tests} tests"
    return text


def listed(words: Iterable[str]) -> str:
    """Join words as a sentence does.

    >>> from memlab.evaluate.conclusions import listed
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *before, last = words
    if not before:
        return last
    return f"{', '.join(before)} and {last}"


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


def _asked(group: str, n: int) -> str:
    """Name the questions of a group: ``the 178 questions with evidence in two sessions``."""
    if n == 1:
        phrase = _PHRASES.get(group, "").partition("questions")[2]
        return f"the one question{phrase}"
    return _PHRASES.get(group, f"the {{n:,}} questions ({group})").format(n=n)


def _code(name: str) -> str:
    return f"`{name}`"


def _found(measure: str) -> str:
    """Say what a measure counts."""
    name, _, depth = measure.partition("@")
    what = {"recall_all": "all evidence", "recall_any": "some evidence"}.get(name)
    if what is None:
        return measure
    if depth.isdigit():
        return f"{what} among the first {depth}"
    return f"{what} within {depth}"


# What cannot be said.


def nothing_measured(n_questions: int = 0) -> str:
    """Say that no question has evidence, so that nothing can be said."""
    asked = "no question has"
    if n_questions:
        asked = f"none of the {n_questions:,} questions has"
    return (
        f"Nothing can be said: {asked} evidence. "
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
    counted = "one test" if tests == 1 else f"{tests} tests"
    those = _those_questions(row["n"], noun, group)
    units = f"{noun}s"
    if row.get("unit") == "scope":
        those = f"{those}, about {row['units']} memories,"
        units = "memories"
    return (
        f"{those} cannot say {what}: with {counted}, no difference is significant below "
        f"{fewest_units(tests)} {units}."
    )


def _those_questions(n: int, noun: str, group: str) -> str:
    """Name the questions of a group at the beginning of a sentence: ``These 5 questions``."""
    if group == SEVERAL_SESSIONS:
        where = "with evidence in two or more sessions"
        if n == 1:
            return f"The one {noun} {where}"
        return f"The {n:,} {noun}s {where}"
    if n == 1:
        return f"This one {noun}"
    return f"These {n:,} {noun}s"


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
    counted = pl.DataFrame({"n": [per_query.height]})
    return _note_of_sources(with_sources(counted, per_query))


def asked_elsewhere(wanted: str, used: str, *, lacking: str) -> list[str]:
    """Say that the questions are those of other data, where the data that were wanted have none.

    >>> from memlab.evaluate.conclusions import asked_elsewhere
    >>> asked_elsewhere("mine", "sample", lacking="question about a changed value")
    ['mine has no question about a changed value, so nothing can be said about it; what follows is
    of sample.']
    """
    if wanted == used:
        return []
    line = f"{wanted} has no {lacking}, so nothing can be said about it; what follows is of {used}."
    return [line]


# What is found.


def recall(judged: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say which system finds all evidence of more questions than the baseline.

    :param judged: what :func:`memlab.evaluate.comparison.compare_by_group` gave.

    >>> import memlab
    >>> from memlab.evaluate import conclusions
    >>> from memlab.evaluate.comparison import compare_by_group
    >>> options = {"encoder": None, "store": None, "levels": ["turn"]}
    >>> done = memlab.run(["bm25(b=0)", "bm25"], memlab.sample(), **options)
    >>> compared = compare_by_group(done.reports, measure="recall_all@10")
    >>> said = conclusions.recall(compared, measure="recall_all@10")
    >>> said[0].partition(":")[0]
    'No'
    """
    tests = judged["p"].count()
    if not judged["n"].sum():
        return Conclusions([nothing_measured()])
    said: list[str] = []
    largest = judged.sort("n", descending=True, maintain_order=True).row(0, named=True)
    if tests and not _enough(largest, tests):
        few = too_few(largest, tests, "whether another system finds more")
        return Conclusions([few, *without_several_sessions(judged["group"])])
    for (group,), rows in reversed([*judged.group_by("group", maintain_order=True)]):
        n = rows["n"][0]
        base = rows.filter(pl.col("p").is_null()).row(0, named=True)
        others = rows.drop_nulls("p").sort("mean", descending=True, maintain_order=True)
        if others.is_empty():
            found = f"{share_text(base)} of {_asked(group, n)}"
            said.append(f"{_code(base['system'])} finds {_found(measure)} for {found}.")
        elif not _enough(base, tests):
            what = f"whether another system finds more than {_code(base['system'])}"
            said.append(too_few(base, tests, what, group=group))
        else:
            said.append(_best_of(others.row(0, named=True), base, group, tests, measure))
            said += _significantly_worse(others, group)
    return Conclusions([*said, *without_several_sessions(judged["group"])])


def _best_of(
    best: Mapping[str, Any], base: Mapping[str, Any], group: str, tests: int, measure: str
) -> str:
    """Answer for one group whether the best of the other systems is better than the baseline."""
    asked = _asked(group, best["n"])
    gain = f"{difference_text(best)}, {p_text(best['p_holm'], tests)}"
    first = _code(base["system"])
    other = _code(best["system"])
    if best["verdict"] == "better":
        return (
            f"Yes: {other} finds {_found(measure)} for {share_text(best)} of {asked}, {first} for "
            f"{share_text(base)}: {gain}."
        )
    return (
        f"No: of {asked}, {first} finds {_found(measure)} for {share_text(base)}, and no other "
        f"system significantly more; the highest, {other}: {gain}."
    )


def _significantly_worse(tested: pl.DataFrame, group: str) -> list[str]:
    worse = tested.filter(verdict="worse").to_dicts()
    if not worse:
        return []
    lost = listed(f"{_code(row['system'])} ({difference_text(row)})" for row in worse)
    return [f"Significantly less over {_asked(group, worse[0]['n'])}: {lost}."]


def some_and_all(report: Report, *, measure: str) -> Conclusions:
    """Set the questions of which some evidence is found beside those of which all is.

    :param report: one that has ``recall_any`` at the depth of ``measure``, else there is no
        sentence.
    """
    some = measure.replace("recall_all", "recall_any")
    if some == measure or some not in map(str, report.measures):
        return Conclusions()
    by, group = multi_session_group(report.per_query)
    rows = report.summary(by, measures=[some, measure]).filter(group=group).to_dicts()
    if not rows or not _enough(rows[0]):
        return Conclusions()
    some_row, all_row = rows
    asked_group = ALL_QUESTIONS if by == "all" else SEVERAL_SESSIONS
    return Conclusions(
        [
            f"{_code(report.name)} finds {_found(some)} for {share_text(some_row, prefix='')} of "
            f"{_asked(asked_group, some_row['n'])}, and all of it for "
            f"{share_text(all_row, prefix='')}."
        ]
    )


def sessions_apart(report: Report, *, measure: str) -> Conclusions:
    """Set questions with evidence in one session beside those with evidence in several."""
    summary = report.summary("evidence_sessions", measures=measure)
    rows = {row["group"]: row for row in summary.to_dicts()}
    texts = []
    for group, where in (("1", "one session"), (MULTI_SESSION, "several")):
        row = rows.get(group)
        if row is None or not _enough(row):
            return Conclusions()
        share = share_text(row, prefix="")
        texts.append(f"{share} of the {row['n']:,} questions with evidence in {where}")
    return Conclusions(
        [f"{_code(report.name)} finds {_found(measure)} for {texts[0]}, and for {texts[1]}."]
    )


def steps(judged: pl.DataFrame, whole: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say which steps of an ablation are significant, and what all of them bring.

    :param judged: what :func:`memlab.evaluate.comparison.compare_by_group` gave, stepwise.
    :param whole: the same, of the first and the last step alone.
    """
    tests = judged["p"].count()
    if not judged["n"].sum():
        return Conclusions([nothing_measured()])
    said: list[str] = []
    able: list[pl.DataFrame] = []
    for (group,), rows in judged.group_by("group", maintain_order=True):
        first_row = rows.row(0, named=True)
        if _enough(first_row, tests):
            able.append(rows)
        else:
            said.append(too_few(first_row, tests, "which step adds", group=group))
    if able:
        said.insert(0, _significant_steps(pl.concat(able), tests))
    ends = whole["p"].count()
    for row in reversed(whole.drop_nulls("p").to_dicts()):
        if _enough(row, ends):
            first = whole.filter(pl.col("p").is_null(), group=row["group"]).row(0, named=True)
            gain = f"{difference_text(row)}, {p_text(row['p_holm'], ends)}"
            said.append(
                f"From {_code(first['system'])} to {_code(row['system'])}, {_found(measure)} goes "
                f"from {share_text(first)} to {share_text(row)} of "
                f"{_asked(row['group'], row['n'])}: {gain}."
            )
    said += without_several_sessions(judged["group"])
    return Conclusions([*said, *_note_of_sources(judged)])


def _note_of_sources(judged: pl.DataFrame) -> list[str]:
    """Say who wrote the questions of a table, where not all are by a person or a benchmark."""
    note = source_note(judged)
    if not note:
        return []
    return [note]


def _significant_steps(judged: pl.DataFrame, tests: int) -> str:
    significant = judged.filter(pl.col("verdict").is_in(["better", "worse"])).to_dicts()
    if not significant:
        return f"No: not one step alone adds significantly ({tests} tests)."
    texts = []
    answer = "No"
    for row in significant:
        asked = _asked(row["group"], row["n"])
        texts.append(f"{_code(row['system'])} over {asked} ({_gain_and_p(row)})")
        if row["verdict"] == "better":
            answer = "Yes"
    which = "is" if len(texts) == 1 else "are"
    return (
        f"{answer}: of {tests} tests of single steps {len(texts)} {which} significant after "
        f"correction, {listed(texts)}."
    )


def still_missed(missed: pl.DataFrame, causes: pl.DataFrame, *, k: int) -> Conclusions:
    """Count what the last pipeline misses, and name the most frequent causes.

    :param missed: what :func:`memlab.evaluate.misses` gave.
    :param causes: what :func:`memlab.evaluate.count_by_cause` gave of them, with the ``group`` of
        questions.
    """
    if missed.is_empty():
        return Conclusions()
    near = (missed["rank"] <= 2 * k).sum()
    lost = missed["query_id"].n_unique()
    first = (
        f"{missed.height:,} evidence items of {lost:,} questions are not among the first {k}; "
        f"{near:,} of them rank from {k + 1} to {2 * k}."
    )
    of_all = causes.filter(pl.col("n") > 0, group=ALL_QUESTIONS)
    counted = of_all.sort("n", descending=True, maintain_order=True).head(3)
    names = listed(f"{cause} ({n:,})" for cause, n in counted.select("cause", "n").iter_rows())
    return Conclusions([first, f"Most frequent causes of the {missed.height:,}: {names}."])


def selection(judged: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say whether choosing otherwise among the candidates completes more, or less.

    :param judged: all tests of one family, as :func:`memlab.evaluate.verdicts` gives them, with the
        columns ``group`` and ``base`` (the ranking that is chosen from).
    """
    tested = judged.drop_nulls("p")
    tests = tested.height
    if not judged["n"].sum():
        return Conclusions([nothing_measured()])
    largest = tested.sort("n", descending=True, maintain_order=True).row(0, named=True)
    if not _enough(largest, tests):
        few = too_few(largest, tests, "whether choosing differently completes more")
        return Conclusions([few, *without_several_sessions(judged["group"])])
    said = [_choice_answer(tested, tests)]
    worse = tested.filter(verdict="worse")
    better = tested.filter(verdict="better")
    if worse.height:
        said.append(f"Largest loss: {_tested_text(_extreme(worse, highest=False), tests)}.")
    if better.height:
        said.append(f"Largest gain: {_tested_text(_extreme(better, highest=True), tests)}.")
    else:
        largest_gain = _tested_text(_extreme(tested, highest=True), tests)
        said.append(f"Largest gain, not significant: {largest_gain}.")
    for (group,), rows in tested.group_by("group", maintain_order=True):
        first = rows.row(0, named=True)
        if not _enough(first, tests):
            said.append(too_few(first, tests, "whether it completes more", group=group))
    said += without_several_sessions(judged["group"])
    return Conclusions([*said, *_note_of_sources(judged)])


def _choice_answer(tested: pl.DataFrame, tests: int) -> str:
    """Answer whether any choice is better or worse than the ranking that it chooses from."""
    better = tested.filter(verdict="better")
    worse = tested.filter(verdict="worse")
    n_equivalent = tested.filter(verdict="equivalent").height
    n_inconclusive = tested.filter(verdict="inconclusive").height
    bases = listed(map(_code, tested["base"].unique(maintain_order=True)))
    answer = "Yes" if better.height else "No"
    return (
        f"{answer}: of {tests} comparisons with {bases}, {better.height or 'none'} completes "
        f"significantly more{_systems_in_brackets(better)}, {worse.height or 'none'} significantly "
        f"less{_systems_in_brackets(worse)}, {n_equivalent} are equivalent and {n_inconclusive} "
        "inconclusive."
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
        f"{_code(row['system'])} on {_code(row['base'])} over {_asked(row['group'], row['n'])}, "
        f"{difference_text(row)}, {p_text(row['p_holm'], tests)}"
    )


def similarity(pairs: pl.DataFrame) -> Conclusions:
    """Say whether the evidence items of an answer resemble each other more than other turns do.

    :param pairs: a row a kind of :data:`memlab.cluster.evidence_spread.PAIR_KINDS`: ``kind``, ``n``
        (questions), ``mean`` (the median cosine), ``low`` and ``high`` (the quartiles).
    """
    rows = {row["kind"]: row for row in pairs.to_dicts()}
    own = rows.get("evidence, other session")
    controls = [row for kind, row in rows.items() if "random" in kind]
    if own is None or not controls or own["n"] < fewest_units():
        n_questions = own["n"] if own else 0
        few = (
            f"{n_questions} questions have evidence in two sessions, "
            f"and {fewest_units()} are the fewest."
        )
        return Conclusions(
            [f"How similar the evidence items of one answer are cannot be said: {few}"]
        )
    highest_control = max(row["mean"] for row in controls)
    answer = "resemble" if own["low"] > highest_control else "do not clearly resemble"
    texts = []
    for row in (own, *controls):
        quartiles = f"quartiles {row['low']:.2f} and {row['high']:.2f}"
        texts.append(f"{row['mean']:.2f} ({row['kind']}; {quartiles}, {row['n']:,} questions)")
    sentence = (
        f"Evidence items of different sessions {answer} each other more than they do a random "
        f"turn: median speaker-centred cosine {listed(texts)}."
    )
    return Conclusions([sentence.replace("-0.", "−0.")])


def conditions(compared: pl.DataFrame, *, asked: str, what: str, source: str = "") -> Conclusions:
    """Say which conditions hold for more questions than the first one.

    :param compared: what :func:`memlab.evaluate.comparison.compare_outcomes` gave.
    :param asked: of what questions, such as ``questions about a changed value``.
    :param what: what holds, such as ``the current value ranks first``.
    :param source: what was searched, where several sources stand beside each other.
    """
    if compared.is_empty():
        return Conclusions([f"Whether {what} cannot be said: there are no {asked}."])
    tested = compared.drop_nulls("p").to_dicts()
    n = compared["n"][0]
    base = compared.filter(pl.col("p").is_null()).row(0, named=True)
    if not _enough(base, len(tested)):
        others = listed(f"with {row['system']}" for row in tested)
        question = f"whether {what} for more of them {others}"
        noun = asked.partition(" ")[0].removesuffix("s")
        return Conclusions([too_few(base, len(tested), question, noun=noun)])
    answer = "Not significantly more"
    texts = []
    for row in tested:
        gain = _gain_and_p(row, len(tested))
        texts.append(f"with {row['system']} for {share_text(row)} ({gain})")
        if _is_gain(row):
            answer = "Yes"
    if source:
        answer = f"{answer}, from {source}"
    head = f"{answer}: with {base['system']} {what} for {share_text(base)} of {n:,} {asked}"
    return Conclusions([f"{head}; {listed(texts)}."])


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
    half = exponential.row(0, named=True)
    ordered = losses.sort("log_loss", maintain_order=True)
    fitted = ordered.filter(~pl.col("family").is_in(["constant", "default"]))
    best = fitted["family"][0]
    n = losses["n"][0]
    beyond = ordered.filter(pl.col("difference_low") > 0)["family"].to_list()
    worse = [family for family in fitted["family"] if family in beyond]
    level = percent(losses["level"][0])
    text = f"the {level} interval of the paired difference to it holds 0 for every other of them"
    if worse:
        text = (
            f"the {level} interval of the paired difference to it excludes 0 for "
            f"{listed(map(_code, worse))}"
        )
    said = [
        f"On {n:,} labelled facts, of the fitted decay curves {_code(best)} has the lowest "
        f"log-loss; {text}."
    ]
    controls = [family for family in ("default", "constant") if family in beyond]
    if controls:
        are = "are" if len(controls) > 1 else "is"
        least = (
            f"It predicts better than {listed(map(_code, controls))}, which {are} not fitted to age"
        )
        said.append(f"{least} (the {level} interval excludes 0, not corrected).")
    said += _default_beside_constant(ordered)
    days = {name: f"{float(f'{half[name]:.2g}'):,.0f}" for name in ("estimate", "low", "high")}
    ends = f"[{level_text(half, 'level')}: {days['low']} to {days['high']}]"
    said.append(
        f"The half-life of the exponential fit is {days['estimate']} days {ends}: a parameter, "
        "which may lie beyond the oldest fact."
    )
    return Conclusions(said)


def _default_beside_constant(losses: pl.DataFrame) -> list[str]:
    """Say where the default curve predicts worse than one chance at every age."""
    known = dict(losses.select("family", "log_loss").iter_rows())
    if not {"default", "constant"} <= known.keys() or known["default"] <= known["constant"]:
        return []
    values = [f"{known[name]:.3f}".removeprefix("0") for name in ("default", "constant")]
    return [
        "The default curve predicts worse than one chance at every age (log-loss "
        f"{values[0]} against "
        f"{values[1]}, not tested); `memlab.knowledge.recommend(labels)` names a fitted one."
    ]


def cited(kept: pl.DataFrame) -> Conclusions:
    """Say how much of the evidence summaries still cite.

    :param kept: ``kind`` (of summary), ``form`` (``questions`` or ``turns``), ``n``, ``mean``,
        ``low`` and ``high``.
    """
    texts = []
    for (kind,), rows in kept.group_by("kind", maintain_order=True):
        by_form = {row["form"]: row for row in rows.to_dicts()}
        questions = by_form["questions"]
        if _enough(questions):
            asked = f"{share_text(questions, prefix='')} of {questions['n']:,} questions"
            turns = percent(by_form["turns"]["mean"])
            texts.append(f"of a {kind}, for {asked} ({turns} of the turns)")
    if not texts:
        least = f"fewer than {fewest_units()} questions have evidence"
        return Conclusions([f"What summaries keep cannot be said: {least}."])
    return Conclusions([f"Summaries cite all evidence: {'; '.join(texts)}."])


def sizes(counted: pl.DataFrame) -> Conclusions:
    """Say how much shorter summaries are than what was said.

    :param counted: what :func:`memlab.evaluate.cited_evidence.summary_sizes` gave.
    """
    made = counted.filter(pl.col("kind") != "turn", pl.col("of_words").is_finite()).to_dicts()
    if not made:
        return Conclusions()
    texts = []
    for row in made:
        share = f"{percent(row['of_words'])} of the words of {row['turns']:,} turns"
        texts.append(f"{row['n']:,} of a {row['kind']} ({share})")
    return Conclusions([f"There are these summaries: {listed(texts)}."])


def _tested_list(rows: list[dict[str, Any]], tests: int) -> str:
    """List rankings with what changed, over how many questions and with which corrected p."""
    texts = []
    for row in rows:
        gain = f"{difference_text(row)} of {row['n']:,} questions ({p_text(row['p_holm'])})"
        texts.append(f"{_code(row['system'])} {gain}")
    return "; ".join(texts) + _correction(tests)


def _correction(tests: int) -> str:
    if tests == 1:
        return ""
    return f"; p is corrected for {tests} tests"


def fused(judged: pl.DataFrame, *, measure: str) -> Conclusions:
    """Say whether rankings that are fused with a baseline find more than it.

    :param judged: what :func:`memlab.evaluate.verdicts` gave, of one or several data sets beside
        each other: ``over`` names each.
    """
    tested = judged.drop_nulls("p")
    tests = tested.height
    if not judged["n"].sum():
        return Conclusions([nothing_measured()])
    largest = tested.sort("n", descending=True, maintain_order=True).row(0, named=True)
    if not _enough(largest, tests):
        few = too_few(largest, tests, "whether a search through summaries finds more")
        return Conclusions([few])
    better = tested.filter(verdict="better").to_dicts()
    head = f"Not shown: of {tests} rankings none"
    if better:
        texts = []
        for row in better:
            gain = f"{difference_text(row)} of {row['n']:,} questions"
            texts.append(f"{_code(row['system'])} ({gain})")
        head = f"Yes: {listed(texts)}"
    many = "find" if len(better) > 1 else "finds"
    said = [f"{head} {many} {_found(measure)} for significantly more questions than `best`."]
    worse = tested.filter(verdict="worse").to_dicts()
    if worse:
        said.append(f"Significantly fewer: {_tested_list(worse, tests)}.")
    others = tested.filter(pl.col("verdict").is_in(["better", "worse"]).not_())
    unclear = [row for row in others.to_dicts() if _enough(row, tests)]
    if unclear:
        said.append(f"No significant change: {_tested_list(unclear, tests)}.")
    return Conclusions(said)


def follow_ups(table: pl.DataFrame, *, k: int, data: str) -> Conclusions:
    """Say what follow-up questions lose as they are asked, and what brings it back.

    :param table: of one depth, as :func:`memlab.experiments.follow_up_forms_table` gives it.
    :param data: the name of the conversations.
    """
    overall = {row["form"]: row for row in table.filter(kind="all").to_dicts()}
    if not overall:
        return Conclusions([f"Nothing can be said: {data} has no follow-up question."])
    alone = overall.pop("standalone")
    tests = len(overall)
    if not _enough(alone, tests):
        few = too_few(alone, tests, "what a follow-up loses", noun="follow-up")
        return Conclusions([few])
    asked = overall.pop("as asked")
    answer = "Yes, it loses" if _is_loss(asked) else "No significant loss"
    said = [
        f"{answer}: as asked, all evidence is among the first {k} for {share_text(asked)} of "
        f"{alone['n']:,} follow-ups in {data}, in the form that stands alone for "
        f"{share_text(alone)}: {_gain_and_p(asked, tests)}."
    ]
    for form, row in overall.items():
        comparison = "not significantly different from"
        if _is_loss(row):
            comparison = "significantly less than"
        said.append(
            f"Rewritten by `{form}`: {share_text(row)}, {comparison} the form that stands alone "
            f"({_gain_and_p(row, tests)})."
        )
    return Conclusions([*said, *_worst_kind(table)])


def _worst_kind(table: pl.DataFrame) -> list[str]:
    """Name the kind of follow-up that loses most as asked, of those with enough questions."""
    enough = table.filter(pl.col("kind") != "all", pl.col("n") >= fewest_units(), form="as asked")
    if enough.is_empty():
        return []
    worst = enough.sort("difference", maintain_order=True).row(0, named=True)
    return [
        f"The kind that loses most as asked is `{worst['kind']}`: {share_text(worst)} of "
        f"{worst['n']:,}, {difference_text(worst)}, not corrected for the choice among "
        f"{enough.height} kinds."
    ]


def memories(
    systems: pl.DataFrame, tests: pl.DataFrame, *, baseline: str, measure: str
) -> Conclusions:
    """Say which memories find all evidence of more questions than the baseline, and which of fewer.

    :param systems: :attr:`memlab.experiments.compare_systems.Comparison.systems`.
    :param tests: :attr:`memlab.experiments.compare_systems.Comparison.tests`.
    """
    base = systems.row(by_predicate=pl.col("system") == baseline, named=True)
    n = base["n"]
    if not n:
        return Conclusions([nothing_measured()])
    rows = tests.filter(measure=measure).to_dicts() if tests.height else []
    if rows and not _enough(rows[0], len(rows)):
        what = f"whether another system finds more than {_code(baseline)}"
        return Conclusions([too_few(rows[0], len(rows), what)])
    better = list(filter(_is_gain, rows))
    worse = list(filter(_is_loss, rows))
    level = [row for row in rows if row["p_holm"] >= ALPHA]
    found = ""
    if f"{measure}_low" in base:
        found = f" ({share_text(base, measure, f'{measure}_')})"
    if not rows:
        return Conclusions([f"There is nothing to compare {_code(baseline)} with{found}."])
    answer = "Yes: some system finds" if better else "No: none finds"
    more = f"significantly more of {n:,} questions than {_code(baseline)}{found}"
    said = [f"{answer} {_found(measure)} for {more}."]
    parts = {
        "Significantly more": better,
        "Significantly fewer": worse,
        "No significant difference": level,
    }
    for which, part in parts.items():
        if part:
            texts = [f"{_code(row['system'])} ({_gain_and_p(row)})" for row in part]
            said.append(f"{which}: {listed(texts)}{_correction(len(rows))}.")
    return Conclusions(said)


def budgets(per_query: pl.DataFrame, *, system: str, unit: Unit = "auto") -> Conclusions:
    """Say what a memory finds in few tokens and in many.

    :param per_query: :attr:`memlab.experiments.compare_systems.Comparison.per_query`.
    :param unit: what intervals take as independent, as in the comparison.
    """
    own = per_query.filter(system=system)
    names = [name for name in own.columns if _BUDGET.fullmatch(name)]
    ends = [names[0], names[-1]]
    scopes = clustering_scopes(own["scope"], unit)
    shares = np.array([True, True])
    spans = mean_intervals(own.select(ends).to_numpy(), scopes=scopes, shares=shares).to_dicts()
    texts = []
    for name, span in zip(ends, spans, strict=True):
        row = {"n": own.height, "mean": own[name].mean(), **span}
        if not _enough(row):
            return Conclusions()
        tokens = int(name.removeprefix("recall_all@").removesuffix(" tokens"))
        texts.append(f"in {tokens:,} tokens for {share_text(row, prefix='')}")
    found = f"{_code(system)} finds all evidence {texts[0]} of the {own.height:,} questions"
    return Conclusions([f"{found}, {texts[1]}."])


def missed_by(missed: pl.DataFrame, *, system: str) -> Conclusions:
    """Count how much of what a memory misses is not among its texts at all.

    :param missed: what :func:`memlab.evaluate.misses` gave.
    """
    if missed.is_empty():
        return Conclusions()
    absent = missed["rank"].null_count()
    return Conclusions(
        [
            f"{_code(system)} misses {missed.height:,} evidence items; {absent:,} of them are in "
            "none of its texts."
        ]
    )
