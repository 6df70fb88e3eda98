"""The synthetic generator: exact sizes, exact answers and evidence, known hazard, the same bytes everywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from memlab import datasets, records
from memlab.datasets import synthetic
from memlab.datasets._synthetic_language import Slot, amount_answer, language, when_phrase
from memlab.datasets._synthetic_plan import build, exponential
from memlab.datasets._synthetic_questions import UNKNOWN, Draft, ask
from memlab.datasets._synthetic_talk import write_turns
from memlab.errors import DataError, ExportError

SAMPLE = Path(__file__).parents[2] / "data" / "sample" / "sample.jsonl"
TYPES = {
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
    "abstention",
}


@pytest.fixture(scope="module")
def data() -> records.Dataset:
    return synthetic.generate(4_000, seed=11)


@pytest.fixture(scope="module")
def truth() -> pl.DataFrame:
    return synthetic.facts(4_000, seed=11)


def _worlds(n: int, turns: int = 400, hazard: float = 1.5, *, standing: bool = False):
    return [build(f"user-{i:04d}", turns, 5, hazard, language(), standing=standing) for i in range(n)]


@settings(max_examples=25, deadline=None)
@given(turns=st.integers(50, 1_500), seed=st.integers(0, 2**40))
def test_size_is_exact_and_sessions_are_well_formed(turns: int, seed: int) -> None:
    made = synthetic.generate(turns, seed=seed)
    assert made.turns.height == turns
    assert made.turns["turn_id"].is_unique().all()
    assert made.sessions["n_turns"].is_between(4, 24).all()
    assert made.sessions["n_turns"].sum() == turns
    expected = pl.format("{}/{}", "session_id", "n")
    assert made.turns.filter(pl.col("turn_id") != expected).is_empty()
    alternates = (pl.col("n") % 2 == 1) == (pl.col("role") == "user")
    assert made.turns.select(alternates.all()).item()
    waits = made.turns.select(
        pl.col("timestamp").diff().over("scope").alias("wait"),
        (pl.col("session_id") != pl.col("session_id").shift().over("scope")).alias("new"),
    ).drop_nulls()
    assert waits.filter("new")["wait"].min() is None or waits.filter("new")["wait"].min() > timedelta(minutes=30)
    assert waits.filter(~pl.col("new"))["wait"].is_between(timedelta(0), timedelta(minutes=30), closed="right").all()
    assert set(made.questions["evidence"].explode().drop_nulls()) <= set(made.turns["turn_id"])


def test_every_kind_of_question_is_there(data: records.Dataset) -> None:
    assert set(data.questions["question_type"]) == TYPES
    multi = data.questions.filter(question_type="multi-session")
    assert (multi["evidence_sessions"].list.len() >= 2).all()
    single = data.questions.filter(pl.col("question_type").str.starts_with("single-session"))
    assert (single["evidence_sessions"].list.len() == 1).all()
    unknown = data.questions.filter("abstention")
    assert set(unknown["question_type"]) == {"abstention"}
    assert (unknown["evidence"].list.len() == 0).all()
    assert set(unknown["answer"]) == {UNKNOWN}
    for form in ("how many", "total", "all", "different", "each", "list"):
        assert multi["text"].str.to_lowercase().str.contains(rf"\b{form}\b").any(), form


def _derive(question: records.Question, draft: Draft, facts: pl.DataFrame) -> str:
    """Answer from the fact table alone."""
    order = pl.DataFrame({"fact_id": pl.Series([f.fact_id for f in draft.facts], dtype=pl.String)}).with_row_index("i")
    rows = order.join(facts, on="fact_id", how="left").sort("i")
    by_time = rows.sort("valid_from")
    days = by_time["valid_from"].dt.date().to_list()
    unit = rows["unit"][0] if rows.height else None

    def amount(value: float) -> str:
        return amount_answer(int(value), unit or "")

    answers = {
        "count": lambda: str(rows["object"].n_unique()),
        "times": lambda: str(rows.height),
        "list": lambda: ", ".join(rows["object"].unique(maintain_order=True)),
        "sum": lambda: amount(rows["value"].sum()),
        "each": lambda: ", ".join(f"{r['object']}: {amount(r['value'])}" for r in rows.iter_rows(named=True)),
        "between": lambda: f"{(days[1] - days[0]).days} days",
        "ago": lambda: f"{(question.timestamp.date() - days[0]).days} days",
        "value": lambda: rows["object"][0],
        "sequence": lambda: ", then ".join(by_time["object"]),
        "summary": lambda: "; ".join(by_time.select(pl.format("{}: {}", _day("valid_from"), "object")).to_series()),
        "none": lambda: UNKNOWN,
    }
    return answers[draft.operation]()


def _day(column: str) -> pl.Expr:
    return pl.col(column).dt.strftime("%-d %B %Y")


@pytest.mark.parametrize("beam", [False, True])
def test_every_answer_follows_from_the_fact_table_and_evidence_is_exactly_its_turns(beam: bool) -> None:
    operations = set()
    for world in _worlds(12, standing=beam):
        facts = pl.DataFrame(world.facts, schema=synthetic.FACT_SCHEMA, orient="row")
        evidence_of = dict(facts.select("fact_id", "evidence").iter_rows())
        for question, draft in ask(world, beam=beam):
            used = [f.fact_id for f in draft.facts]
            operations.add(draft.operation)
            if draft.operation in ("first", "order"):
                ordered = sorted(used, key=lambda f: facts.row(by_predicate=pl.col("fact_id") == f)[8])
                spoken = [question.answer.lower().find(world.refs[f].lower()) for f in ordered]
                assert spoken[0] == 0
                assert draft.operation == "first" or spoken == sorted(spoken)
            else:
                assert question.answer == _derive(question, draft, facts), question
            assert set(question.evidence) == {t for f in used for t in evidence_of[f]}
            if question.question_type == "multi-session":
                events = facts.filter(kind="event").filter(pl.col("fact_id").is_in(used))
                every = facts.filter(pl.col("predicate").is_in(events["predicate"].unique().to_list()))
                if draft.since is not None:
                    every = every.filter(pl.col("valid_from") >= draft.since)
                assert set(every["fact_id"]) == set(used), "a counted event is missing"
    assert operations >= {"count", "list", "sum", "each", "first", "order", "between", "ago", "value", "none"}
    assert (operations >= {"sequence", "summary"}) == beam


def _longest(line: tuple[object, ...]) -> str:
    """The longest part of a template that is said as it stands."""
    return max((part for part in line if isinstance(part, str)), key=len).lower()


def test_what_beam_asks_stands_in_turns_of_sessions_of_their_own() -> None:
    data = synthetic.generate(1_500, seed=5, beam=True)
    text_of = dict(data.turns.select("turn_id", "text").iter_rows())
    entries = {entry.values["a"]: entry for entry in (*language().instructions, *language().contradictions)}
    kinds = data.questions.partition_by("question_type", as_dict=True)
    for kind, pieces in (("instruction-following", 1), ("contradiction-resolution", 2)):
        for row in kinds[kind,].iter_rows(named=True):
            assert len(row["evidence"]) == len(row["evidence_sessions"]) == pieces
            lines = entries[row["answer"]].lines
            for turn in row["evidence"]:
                said = [line for key in ("say", "yes", "no") for line in lines.get(key, ())]
                assert any(_longest(line) in text_of[turn].lower() for line in said), text_of[turn]
    for kind in ("event-ordering", "summarization"):
        assert kinds[kind,]["evidence_sessions"].list.len().min() >= 2
    facts = synthetic.facts(1_500, seed=5, beam=True)
    assert set(facts["kind"]) >= {"instruction", "contradiction"}
    known = set(facts["evidence"].explode())
    assert known >= set(data.questions["evidence"].explode().drop_nulls())


def test_current_and_previous_values_are_the_last_two_true_ones() -> None:
    seen = 0
    for world in _worlds(12):
        for question, draft in ask(world):
            if question.question_type == "knowledge-update":
                predicate = draft.facts[0].predicate
                true = [f for f in world.facts if f.predicate == predicate and f.status == "true"]
                assert draft.facts == true[-len(draft.facts) :]
                assert true[-1].valid_to is None
                assert all(a.valid_to == b.valid_from for a, b in pairwise(true))
                seen += 1
    assert seen > 20


def test_evidence_says_what_the_fact_table_holds(data: records.Dataset, truth: pl.DataFrame) -> None:
    text = dict(data.turns.select("turn_id", "text").iter_rows())
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    stated = truth.filter(pl.col("evidence").list.len() > 0)
    assert stated.height > 500
    for fact in stated.iter_rows(named=True):
        said = " ".join(text[turn] for turn in fact["evidence"])
        if fact["value"] is not None:
            number = int(fact["value"])
            forms = [str(number), words[number] if number < len(words) else str(number)]
            assert any(re.search(rf"\b{form}\b", said, re.IGNORECASE) for form in forms), (fact, said)
        if fact["kind"] in ("state", "detail", "reply"):
            assert fact["object"].lower() in said.lower(), (fact, said)


def test_each_event_is_stated_by_its_evidence_and_nowhere_else() -> None:
    for world in _worlds(10):
        stating = {world.turn_id(*at) for at, placed in world.placed.items() if placed.kind == "event"}
        events = [f for f in world.facts if f.kind == "event"]
        assert stating == {f.evidence[-1] for f in events}
        assert len(stating) == len(events)
        own = {(f.predicate, f.object) for f in events}
        for collection, names in world.strangers.items():
            assert not {(collection, name) for name in names} & own
        answers = [turn.text for turn in write_turns(world) if turn.role == "assistant"]
        for fact in events:
            if fact.predicate in ("book", "gig", "restaurant", "wedding", "race"):
                assert not any(fact.object in answer for answer in answers if "rainy" not in answer)


def test_answers_are_drawn_out_and_nothing_else() -> None:
    short, long = (synthetic.generate(150, seed=4, answers=n) for n in (0, 1_500))
    assert long.name == "synthetic-150-seed4-answers1500"
    assert short.questions.equals(long.questions)
    assert short.turns.drop("text").equals(long.turns.drop("text"))
    places = []
    for role, before, after in zip(short.turns["role"], short.turns["text"], long.turns["text"], strict=True):
        assert before in after
        if role == "assistant":
            assert 1_500 <= len(after) < 2_000
            places.append(after.index(before) / len(after))
        else:
            assert before == after
    assert min(places) == 0
    assert max(places) > 0.8


def test_statements_follow_the_truth_in_time(data: records.Dataset, truth: pl.DataFrame) -> None:
    times = data.turns.select("turn_id", "timestamp")
    rows = truth.filter(pl.col("kind").is_in(["event", "state"])).explode("evidence").drop_nulls("evidence")
    rows = rows.join(times, left_on="evidence", right_on="turn_id")
    assert rows.height > 300
    assert (rows["timestamp"] >= rows["valid_from"]).all()
    held = rows.filter(pl.col("kind") == "state", pl.col("status") == "true", pl.col("valid_to").is_not_null())
    assert (held["timestamp"] - timedelta(hours=4) < held["valid_to"]).all()


@pytest.mark.parametrize("hazard", [0.5, 3.0])
def test_changes_come_at_the_stated_hazard(hazard: float) -> None:
    """Exact Poisson interval of the number of changes, given the years watched and the hazards in the table."""
    expected, changes = 0.0, 0
    for world in _worlds(60, hazard=hazard):
        for name in {f.predicate for f in world.facts if f.kind == "state"}:
            true = [f for f in world.facts if f.predicate == name and f.status == "true"]
            years = (world.starts[-1] - true[0].valid_from) / timedelta(days=365.25)
            expected += years * true[0].hazard_per_year
            changes += len(true) - 1
    low = chi2.ppf(0.0005, 2 * changes) / 2
    high = chi2.ppf(0.9995, 2 * changes + 2) / 2
    assert changes > 50
    assert low <= expected <= high


def test_no_hazard_no_change() -> None:
    states = synthetic.facts(2_000, seed=1, hazard_per_year=0).filter(kind="state", status="true")
    assert states.select("scope", "predicate").is_unique().all()
    assert states["valid_to"].is_null().all()


def test_exponential_has_mean_and_spread_one() -> None:
    import random

    draw = random.Random(4).random
    values = pl.Series([exponential(draw) for _ in range(20_000)])
    assert values.mean() == pytest.approx(1, abs=0.03)
    assert values.std() == pytest.approx(1, abs=0.03)
    assert (values > 2).mean() == pytest.approx(0.1353, abs=0.01)


@given(day=st.dates(), lag=st.integers(0, 400), u=st.floats(0, 0.999), since=st.booleans())
def test_a_when_phrase_names_one_day(day, lag: int, u: float, since: bool) -> None:
    from datetime import datetime, time

    if day.year > 9990:
        return
    phrase = when_phrase(day, datetime.combine(day + timedelta(days=lag), time(9)), lambda: u, since=since)
    assert ("since" in phrase or "as of" in phrase) == since
    if lag > 11 and (since or " ago" not in phrase):
        assert re.search(rf"\b{day.day}(st|nd|rd|th)?\b", phrase)
        assert f"{day:%B}" in phrase


def test_every_template_binds_only_names_that_are_given() -> None:
    lang = language()

    def unbound(node) -> set[str]:
        if isinstance(node, Slot):
            return {node.name} if node.lines is None else set()
        if isinstance(node, (list, tuple)):
            return set().union(*map(unbound, node)) if node else set()
        return set()

    for entry in lang.collections:
        given = {"name", "item", "the", "when", "since", "span"} | ({"amt"} if "unit" in entry.values else set())
        lines = [*entry.lines.items(), *((i.name, i.say) for i in entry.items)]
        assert set().union(*(unbound(ls) for _, ls in lines)) <= given, entry.name
        for item in entry.items:
            assert all("when" in unbound(m) or "since" in unbound(m) for m in item.say), item.name
            assert "unit" not in entry.values or all("amt" in unbound(m) for m in item.say), item.name
    for entry in (*lang.details, *lang.replies, *lang.tastes):
        names = {name for name, _ in entry.lets}
        assert not names & set(lang.rules), f"{entry.name}: a bound name is shadowed by a rule"
        assert set().union(*(unbound(ls) for ls in entry.lines.values())) <= names | {"v"} & names, entry.name
    for entry in lang.states:
        assert set().union(*(unbound(ls) for ls in entry.lines.values())) <= {"v", "since"}, entry.name


def test_the_file_reads_back_as_the_same_dataset(tmp_path: Path) -> None:
    path = synthetic.write(tmp_path / "made.jsonl", 900, seed=5)
    read = datasets.load(path)
    made = synthetic.generate(900, seed=5)
    assert read.format == "synthetic"
    assert read.turns.equals(made.turns)
    assert read.questions.equals(made.questions)
    assert read.fingerprint() == made.fingerprint()
    facts = [json.loads(line)["fact"] for line in path.read_text().splitlines() if line.startswith('{"fact"')]
    assert [f["fact_id"] for f in facts] == synthetic.facts(900, seed=5)["fact_id"].to_list()


def test_the_committed_sample_is_made_again_byte_for_byte(tmp_path: Path) -> None:
    """In another process with another hash seed and locale, too."""
    code = "import sys; from memlab.datasets import synthetic; synthetic.write(sys.argv[1], 1600, seed=7)"
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "LC_ALL": "C"}
    target = tmp_path / "sample.jsonl"
    subprocess.run([sys.executable, "-c", code, str(target)], check=True, env=environment)
    assert target.read_bytes() == SAMPLE.read_bytes()
    assert SAMPLE.stat().st_size < 700_000


def test_the_sample_holds_enough_of_everything() -> None:
    sample = synthetic.generate(1_600, seed=7)
    assert len(sample.scopes) in (3, 4)
    assert sample.questions.height >= 120
    assert (sample.questions["evidence_sessions"].list.len() >= 2).sum() >= 50
    assert (sample.questions["question_type"].value_counts()["count"] >= 12).all()


@pytest.mark.slow
def test_few_turns_are_said_twice() -> None:
    texts = synthetic.generate(20_000, seed=9).turns["text"]
    assert 1 - texts.n_unique() / len(texts) < 0.02


def test_place_and_length_do_not_give_evidence_away(data: records.Dataset) -> None:
    """Ids are counters, and evidence sessions are neither longer nor later than others beyond chance."""
    assert data.turns["turn_id"].str.contains(r"^user-\d{4}/s\d{4}/\d+$").all()
    assert data.questions["query_id"].str.contains(r"^user-\d{4}/q\d+$").all()
    gold = data.questions.filter(question_type="multi-session").explode("evidence_sessions")
    hit = data.sessions.join(gold, left_on="session_id", right_on="evidence_sessions")
    turns_weighted = (data.sessions["n_turns"] ** 2).sum() / data.sessions["n_turns"].sum()
    assert abs(hit["n_turns"].mean() - turns_weighted) < 0.2 * turns_weighted
    assert abs(hit["n"].mean() - data.sessions["n"].mean()) < 0.2 * data.sessions["n"].mean()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"turns": 49}, "turns"), ({"turns_per_scope": 3}, "turns_per_scope"), ({"hazard_per_year": -1}, "hazard")],
)
def test_a_wrong_parameter_is_named(wrong: dict[str, float], field: str) -> None:
    with pytest.raises(DataError, match=field):
        synthetic.generate(**{"turns": 100, **wrong})


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot be written"):
        synthetic.write(tmp_path / "file" / "out.jsonl", 100)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(synthetic, "_records", full)
    (tmp_path / "out.jsonl").write_text("old")
    with pytest.raises(ExportError, match="No space left"):
        synthetic.write(tmp_path / "out.jsonl", 100)
    assert (tmp_path / "out.jsonl").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "out.jsonl"]


@pytest.mark.slow
def test_large_logs_are_written_in_linear_time_and_flat_memory(tmp_path: Path) -> None:
    code = (
        "import resource, sys, time\n"
        "from memlab.datasets import synthetic\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "def taken(n):\n"
        "    t = time.process_time(); synthetic.write(sys.argv[1], n)\n"
        "    return (time.process_time() - t) / n\n"
        "taken(1000); few = taken(20_000); small = peak(); many = taken(100_000)\n"
        "print(many / few, peak() - small)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "large.jsonl")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    slower, growth = map(float, done.stdout.split())
    assert slower < 2, "a turn of many takes as long as one of few; how long is the machine's affair"
    assert growth < 60


def test_former_values_must_not_come_back() -> None:
    data, facts = synthetic.generate(turns=1600, seed=0), synthetic.facts(turns=1600, seed=0)
    made = synthetic.with_stale(data, facts)
    assert made.questions.drop("stale").equals(data.questions.drop("stale"))
    named = made.questions.filter(pl.col("stale").list.len() > 0)
    assert set(named["question_type"]) == {"knowledge-update"}
    assert named.height > 5
    told = facts.explode("evidence")
    for row in named.iter_rows(named=True):
        assert not set(row["stale"]) & set(row["evidence"])
        former = told.filter(pl.col("evidence").is_in(row["stale"]) & (pl.col("kind") == "state"))
        ended = former.filter(pl.col("valid_to").is_not_null())
        assert set(ended["evidence"]) == set(row["stale"])
        assert row["answer"] not in set(ended.filter(pl.col("predicate") == ended["predicate"][0])["object"])
