"""Tables say exactly what the frames hold, in characters that Markdown and LaTeX take."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.evaluate import results_table
from memlab.evaluate.printed_tables import (
    escape_latex,
    format_number,
    select_columns_with_sources,
    to_html,
    to_latex,
    to_markdown,
    to_notebook_html,
)
from memlab.system_names import shorten_names_distinctly


@given(st.floats(0, 1))
def test_numbers_never_flatter(value):
    text = format_number(value)
    if text.startswith("<"):
        assert 0 < value < 0.001
    elif text.startswith(">"):
        assert 0.999 < value < 1
    else:
        assert Decimal(text) == Decimal(value).quantize(Decimal("0.001"), rounding=ROUND_HALF_EVEN)
        assert (text == "1.000") == (value == 1)
        assert (text == "0.000") == (value == 0)


def test_results_table_and_its_markdown(reports):
    table = results_table(reports[:2], measures=["recall_all@5", "mrr"])
    assert table.columns == [f"system (n = {reports[0].per_query.height})", "recall_all@5", "mrr"]
    assert table.to_series(0).to_list() == [
        "random",
        "hybrid | mmr(lambda_=0.7)",
        "ceiling",
        "chance",
    ]
    assert table["mrr"][0] == pytest.approx(reports[0].per_query["mrr"].mean(), rel=1e-14)
    assert table["mrr"][2] == 1.0
    several = results_table(reports, by="evidence_sessions", group="≥ 2")
    assert (
        several.columns[0]
        == f"system (n = {reports[0].per_query.filter(pl.col('n_evidence_sessions') > 1).height})"
    )
    with pytest.raises(DataError, match=r"no group '9'.*1, 2, 3, 4\+, ≥ 2"):
        results_table(reports, by="evidence_sessions", group="9")
    lines = to_markdown(table).split("\n")
    assert lines[1] == "|:---|---:|---:|"
    assert lines[3].startswith(r"| hybrid \| mmr(lambda_=0.7) | ")
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4}
    hostile = to_markdown(pl.DataFrame({"name": ["a|b\n**c** <b> \\|"], "n": [1234], "x": [None]}))
    assert hostile.split("\n")[2] == r"| a\|b \*\*c\*\* &lt;b> \\\| | 1,234 | – |"


def test_bold_is_significantly_best_and_never_a_tie(reports):
    first, _, best = reports
    table = results_table([first, best], measures="mrr")
    assert dict(table.best) == {"mrr": "best"}
    assert [("**" in line) for line in to_markdown(table).split("\n")] == [
        False,
        False,
        False,
        True,
        False,
        False,
    ]
    assert not results_table([first, best, replace(best, name="twin")], measures="mrr").best, (
        "a tie"
    )
    assert not results_table([first], measures="mrr").best, "alone"
    few = [replace(report, per_query=report.per_query.head(4)) for report in (first, best)]
    assert not results_table(few).best, "four questions"
    assert "**" not in to_markdown(table.head(2))


@given(
    st.lists(st.text("ab|= ", min_size=1, max_size=30), min_size=1, max_size=6, unique=True),
    st.integers(5, 20),
)
def test_short_names_stay_different_and_keep_their_ends(names: list[str], width: int) -> None:
    short = shorten_names_distinctly(names, width=width)
    assert len(set(short.values())) == len(names)
    for name, cut in short.items():
        head, _, tail = cut.partition("…")
        assert name.startswith(head)
        assert name.endswith(tail)


def test_latex(reports):
    text = to_latex(results_table(reports), caption="≥ 2 sessions & 95 %", label="tab:x y_z")
    for part in (
        r"\toprule",
        r"\bottomrule",
        r"\caption{$\geq$ 2 sessions \& 95 \%}",
        r"\label{tab:x-y-z}",
    ):
        assert part in text
    assert r"hybrid \textbar{} mmr(lambda\_=0.7) & " in text
    rows = [line for line in text.split("\n") if line.endswith(r" \\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(reports[0].measures)}
    assert all(ord(c) < 128 for c in text)
    assert "{}[a] & 1" in to_latex(pl.DataFrame({"[x": ["[a]"], "n": [1]}), caption="", label="")
    assert [format_number(value) for value in (float("nan"), -0.0, -1e-44)] == [
        "–",
        "0.000",
        "0.000",
    ]
    assert escape_latex("-0.039 [-0.092, -0.001] of a-b") == "$-$0.039 [$-$0.092, $-$0.001] of a-b"


@given(st.text("ab1&%$#_{}\\^~<>|–—…“”≥λ- \n\u00a0", max_size=40))
def test_latex_escape_leaves_no_special_character(text):
    escaped = escape_latex(text)
    bare = re.sub(r"\\(?:[&%$#_{}]|text\w+\{\}|ldots\{\})|\$[<>]\$|\$-\$|\$\\\w+\$", "", escaped)
    assert not re.search(r"[&%$#_{}\\^<>|\n]", bare)


def test_the_level_in_a_columns_name_is_the_intervals_own():
    row = {"parameter": "half_life", "estimate": 80.0, "low": 60.0, "high": 100.0}
    ninety = pl.DataFrame([row | {"level": 0.9}])
    assert to_markdown(ninety).splitlines() == [
        "| parameter | estimate [90 %] |",
        "|:---|---:|",
        "| half_life | 80.000 [60.000, 100.000] |",
    ]
    assert "estimate [low, high]" in to_markdown(ninety.drop("level")), "nothing is guessed"
    mixed = pl.DataFrame(
        [
            row | {"level": 0.95, "unit": "question", "units": 40},
            row | {"level": 0.95, "unit": "scope", "units": 6},
            row | {"level": 0.9974, "unit": "scope", "units": 6, "low": None, "high": None},
        ]
    )
    head, _, *lines = to_markdown(mixed).splitlines()
    assert head == "| parameter | estimate [level in the row] |"
    assert lines == [
        "| half_life | 80.000 [60.000, 100.000; 95 %, questions] |",
        "| half_life | 80.000 [60.000, 100.000; 95 %, 6 scopes] |",
        "| half_life | 80.000 [–] |",
    ]
    for show in (to_html, to_notebook_html):
        assert "estimate [90 %]" in show(ninety)
    assert r"estimate [90 \%]" in to_latex(ninety, caption="", label="")


def test_two_intervals_of_one_row_have_levels_of_their_own():
    row = {"mean": 0.5, "mean_low": 0.4, "mean_high": 0.6, "mean_level": 0.95}
    row |= {"difference": 0.1, "low": -0.1, "high": 0.3, "level": 1 - 0.05 / 19}
    row |= {"unit": "scope", "units": 6, "method": "t over scopes", "p": 0.5, "p_holm": 1.0}
    head, _, line, _, note = to_markdown(pl.DataFrame([row])).splitlines()
    assert (
        head
        == "| mean [95 %, 6 scopes] | difference [99.7 %, 6 scopes] | p, uncorrected | p_holm |"
    )
    assert line == "| 0.500 [0.400, 0.600] | 0.100 [-0.100, 0.300] | 0.500 | 1.000 |"
    assert note == '6 scopes: no p below .031; unit="question" takes questions as independent.'
    assert "no p below .031" in to_latex(pl.DataFrame([row]), caption="Tests.", label="")
    many = pl.DataFrame([row | {"units": 40}])
    assert "no p below" not in to_markdown(many)
    # What is called alike and is something else stays where it is.
    other = pl.DataFrame(
        [{"level": "turn", "method": "model", "mean": 0.5, "low": 0.4, "high": 0.6}]
    )
    assert to_markdown(other).startswith("| level | method | mean [low, high] |")


def test_a_caption_without_a_full_stop_gets_one() -> None:
    frame = pl.DataFrame({"dataset": ["sample"], "n": [12]})
    text = to_latex(frame, caption="MMR against clusters", label="tab")
    assert r"\caption{MMR against clusters. Dataset: sample.}" in text


def test_latex_has_words_for_its_columns_and_says_in_the_caption_which_dataset_it_is():
    row = {"dataset": "sample", "system": "bm25", "n": 10, "p": 0.02, "p_holm": 0.04}
    text = to_latex(pl.DataFrame([row]), caption="Tests.", label="")
    assert r"system & n & p, uncorrected & p, Holm \\" in text
    assert r"\caption{Tests. Dataset: sample.}" in text
    two = to_latex(pl.DataFrame([row, row | {"dataset": "other"}]), caption="", label="")
    assert r"dataset & system" in two


def test_columns_are_taken_with_who_wrote_the_questions():
    frame = pl.DataFrame({"n": [3], "p": [0.2]})
    assert select_columns_with_sources(frame, "p").columns == ["p"]
    named = frame.with_columns(question_sources=pl.lit("all proposed"))
    assert select_columns_with_sources(named, "p", "question_sources").columns == [
        "p",
        "question_sources",
    ]
