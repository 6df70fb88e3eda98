"""Tables say exactly what the frames hold, in characters that Markdown and LaTeX take."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.evaluate import Table, compare, evaluate, results_table
from memlab.evaluate.printing import format_number, latex_escape, short_names, to_latex, to_markdown


@pytest.fixture(scope="module")
def reports(made, run_on):
    helped = (("random", 0.0), ("hybrid | mmr(lambda_=0.7)", 0.5))
    return [evaluate(run_on(made, "session", seed=1, help_=h, name=n), made) for n, h in helped]


@settings(deadline=None)
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


def test_results_table(reports):
    n = reports[0].per_query.height
    table = results_table(reports, measures=["recall_all@5", "mrr"])
    assert table.columns == [f"system (n = {n})", "recall_all@5", "mrr"]
    assert table.to_series(0).to_list() == ["random", "hybrid | mmr(lambda_=0.7)", "ceiling", "chance"]
    for i, report in enumerate(reports):
        assert table["mrr"][i] == pytest.approx(report.per_query["mrr"].mean(), rel=1e-14)
    assert table["mrr"][2] == 1.0
    several = results_table(reports, by="evidence_sessions", group="≥ 2")
    assert several.columns[0] == f"system (n = {reports[0].per_query.filter(pl.col('n_evidence_sessions') > 1).height})"
    with pytest.raises(DataError, match=r"no group '9'.*1, 2, 3, 4\+, ≥ 2"):
        results_table(reports, by="evidence_sessions", group="9")


def test_markdown(reports):
    lines = to_markdown(results_table(reports, measures=["recall_all@5", "mrr"])).split("\n")
    assert lines[1] == "|:---|---:|---:|"
    assert lines[3].startswith(r"| hybrid \| mmr(lambda_=0.7) | **0.")
    assert re.search(r"\*\*\d\.\d{3}\*\*", lines[3])
    assert "**" not in lines[2] + lines[4] + lines[5]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4}


def test_markdown_survives_hostile_names():
    text = to_markdown(pl.DataFrame({"name": ["a|b\n**c** <b> \\|"], "n": [1234], "x": [None]}))
    assert text.split("\n")[2] == r"| a\|b \*\*c\*\* &lt;b> \\\| | 1,234 | – |"


def test_bold_is_shown_to_be_best_and_never_a_tie(made, run_on):
    helped = [evaluate(run_on(made, "session", seed=1, help_=h, name=n), made) for n, h in (("a", 0.0), ("b", 0.6))]
    table = results_table(helped, measures="mrr")
    p = compare(helped, measure="mrr")["p"][1]
    assert p < 0.05
    assert dict(table.best) == {"mrr": "b"}
    assert [("**" in line) for line in to_markdown(table).split("\n")] == [False, False, False, True, False, False]
    twin = evaluate(run_on(made, "session", seed=1, help_=0.6, name="twin"), made)
    assert not results_table([*helped, twin], measures="mrr").best, "a tie"
    assert not results_table(helped[:1], measures="mrr").best, "alone"
    few = [replace(report, per_query=report.per_query.head(4)) for report in helped]
    assert not results_table(few).best, "four questions"
    assert "**" not in to_markdown(table.head(2))


@given(st.lists(st.text("ab|= ", min_size=1, max_size=30), min_size=1, max_size=6, unique=True), st.integers(5, 20))
def test_short_names_stay_different_and_keep_their_ends(names: list[str], width: int) -> None:
    short = short_names(names, width=width)
    assert len(set(short.values())) == len(names)
    for name, cut in short.items():
        head, _, tail = cut.partition("…")
        assert name.startswith(head)
        assert name.endswith(tail)


def test_a_table_prints_intervals_in_their_cells_and_pipelines_that_differ() -> None:
    names = [f"best | by_cluster(clustering='hdbscan', min_cluster_size={n}) | budget" for n in (2, 5)]
    columns = {"n": 1234, "mean": 0.5, "difference": [None, 0.1], "low": [None, 0.02], "high": [None, 0.18]}
    table = Table(pl.DataFrame({"system": names, **columns}))
    first, second = str(table).splitlines()[2:]
    assert len({re.split(r"(?<!\\)\|", line)[1] for line in (first, second)}) == 2
    assert second.endswith("| 1,234 | 0.500 | 0.100 [0.020, 0.180] |")
    assert "0.100 [0.020, 0.180]" in table._repr_html_()


def test_latex(reports):
    text = to_latex(results_table(reports), caption="≥ 2 sessions & 95 %", label="tab:x y_z")
    for piece in (r"\toprule", r"\bottomrule", r"\caption{$\geq$ 2 sessions \& 95 \%}", r"\label{tab:x-y-z}"):
        assert piece in text
    assert text.count(r"\midrule") == 2
    assert r"hybrid \textbar{} mmr(lambda\_=0.7) & \textbf{" in text
    rows = [line for line in text.split("\n") if line.endswith(r" \\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(reports[0].measures)}
    assert all(ord(c) < 128 for c in text)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_latex_escape_leaves_no_special_character(text):
    escaped = latex_escape(text)
    bare = re.sub(r"\\(?:[&%$#_{}]|text\w+\{\}|ldots\{\})|\$[<>]\$|\$-\$|\$\\\w+\$", "", escaped)
    assert not re.search(r"[&%$#_{}\\^<>|]", bare)
    assert "\n" not in escaped
