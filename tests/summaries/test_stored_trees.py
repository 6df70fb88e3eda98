"""Trees in the store: what is read again, what a model is asked for, and what a deleted message takes with it."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from markdown_it import MarkdownIt
from summarised import Model

from memlab.embed import load
from memlab.errors import DataError, ModelError, StoreError
from memlab.explorer.map_scene import summaries_standing_on_turns
from memlab.indexing import index
from memlab.indexing.tree_refreshing import rewrite_outdated_trees
from memlab.records import Dataset, Node, Turn, frame, schema
from memlab.retrieve import Bench
from memlab.sessions import sessions_of
from memlab.store import MemoryStore
from memlab.summaries import build_raptor_tree, rollup, summary_tree, tree
from memlab.summaries.raptor_trees import MAX_ADDED
from memlab.summaries.stored_trees import (
    TreeDesign,
    choose_service_of_design,
    read_or_write_period,
    read_or_write_tree,
)
from memlab.summaries.tree_pages import tree_html, tree_markdown

THINGS = ("boat", "piano", "lease", "tulips", "marathon", "dentist")
BEGIN = datetime(2026, 1, 5, 10, tzinfo=UTC)
NAME = "made"
SECRET = "the code of the safe is 4711"


def session(number: int, scope: str = "u", *, first: int = 0, count: int = 10) -> list[Turn]:
    """Give the messages of one session: the first on a Monday, one every three days."""
    rows = []
    for place in range(first, count):
        said = number * 10 + place
        text = f"I paid ${said % 90 + 5} for the {THINGS[said * said % 6]}, visit {said}."
        when = BEGIN + timedelta(days=3 * number, minutes=place)
        name = f"{scope}/{number}"
        rows.append(Turn(f"{name}/{place}", scope, name, place, "Mel", "user", text, None, when))
    return rows


def sessions(count: int, scope: str = "u") -> list[Turn]:
    return [turn for number in range(count) for turn in session(number, scope)]


def bench_of(store: MemoryStore | None, turns: list[Turn] | pl.DataFrame) -> Bench:
    rows = turns if isinstance(turns, pl.DataFrame) else frame(Turn, turns)
    data = Dataset(NAME, "chatlog", rows, sessions_of(rows))
    return Bench.of(data, encoder="hashing:64", store=store, progress=False)


def ask_both(store: MemoryStore, turns: list[Turn] | pl.DataFrame) -> Counter[str]:
    """Give what is asked of a model for weeks and clusters, by task."""
    lab = Model()
    for over in ("weeks", "clusters"):
        summary_tree(bench_of(store, turns), over, service=lab)  # type: ignore[arg-type]
    return Counter(request.task for request in lab.asked)


@pytest.mark.slow
def test_a_tree_is_read_again_without_a_model_and_as_it_was(store: MemoryStore) -> None:
    turns = [*sessions(8), *sessions(3, "v")]
    for over in ("weeks", "clusters"):
        first = summary_tree(bench_of(store, turns), over)
        at = store.versions()
        again = summary_tree(bench_of(store, turns), over)
        alone = summary_tree(bench_of(None, turns), over)
        assert store.versions() == at
        assert again.nodes.equals(first.nodes)
        assert again.nodes.equals(alone.nodes)
        np.testing.assert_array_equal(again.vectors, alone.vectors)
        asked = pl.DataFrame({"scope": ["u", "v"], "text": ["What did the boat cost?"] * 2})
        ranked = [
            tree(bench_of(place, turns).with_queries(asked), over=over) for place in (store, None)
        ]
        assert ranked[0].frame.equals(ranked[1].frame)
    # Another time zone, another encoder or another writer is another tree.
    assert store.nodes.rows(NAME)["tree"].n_unique() == 2
    summary_tree(bench_of(store, turns), "weeks", tz="Asia/Tokyo")
    assert store.nodes.rows(NAME)["tree"].n_unique() == 3


@pytest.mark.slow
def test_ten_new_messages_ask_for_their_session_week_and_month_and_the_clusters_they_touch(
    store: MemoryStore,
) -> None:
    first = ask_both(store, sessions(20))
    weeks = summary_tree(bench_of(store, sessions(20)), "weeks", service=Model()).nodes  # type: ignore[arg-type]
    assert (first["summary"], first["rollup"]) == (20, weeks.filter(pl.col("level") > 0).height)
    assert ask_both(store, sessions(20)) == {}
    before = store.nodes.rows(NAME).filter(over="clusters")
    new = {turn.turn_id for turn in session(20)}
    later = ask_both(store, sessions(21))
    assert (later["summary"], later["rollup"]) == (1, 2)
    after = store.nodes.rows(NAME).filter(over="clusters")
    touched = after.filter(pl.col("turns").list.set_intersection(list(new)).list.len() > 0)
    made = after.join(before, on="node_id", how="anti")
    assert later["cluster"] == made.height < first["cluster"] / 2
    assert set(made["node_id"]) == set(touched["node_id"])
    # Ten more messages of a session that was there: that one alone.
    longer = [*sessions(20), *session(20, count=14)]
    more = ask_both(store, longer)
    assert (more["summary"], more["rollup"]) == (1, 2)


@pytest.mark.nightly
def test_groups_are_formed_anew_once_a_quarter_of_the_turns_joined_them(store: MemoryStore) -> None:
    lab = Model()
    before = build_raptor_tree(bench_of(store, sessions(10)), service=lab)
    few, many = 12, round(10 * (1 + MAX_ADDED)) + 5
    kept = build_raptor_tree(bench_of(store, sessions(few)), service=lab, known=before)
    assert kept.nodes.filter(level=1)["added"].sum() == 20
    anew = build_raptor_tree(bench_of(store, sessions(many)), service=lab, known=before)
    scratch = build_raptor_tree(bench_of(store, sessions(many)), service=lab)
    assert anew.nodes.equals(scratch.nodes)
    # Without a model nothing is saved, and a tree is that of its turns alone.
    plain = build_raptor_tree(bench_of(store, sessions(few)), known=before)
    assert plain.nodes.equals(build_raptor_tree(bench_of(store, sessions(few))).nodes)


def said_everywhere(store: MemoryStore) -> str:
    """Give all that the table of nodes holds now, as text."""
    return str(store.table("nodes").to_arrow().to_pylist())


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.slow
def test_a_deleted_or_edited_message_takes_its_sentences_with_it(
    store: MemoryStore, edited: bool
) -> None:
    turns = frame(Turn, sessions(8))
    is_secret = pl.col("turn_id") == "u/3/0"
    text = pl.when(is_secret).then(pl.lit(SECRET)).otherwise("text")
    turns = turns.with_columns(text=text)

    def cite_each(value: dict[str, object]) -> dict[str, object]:
        last = value["sentences"][0]["ids"][-1]  # type: ignore[index]
        points = [{"text": f"Of entry {last}.", "ids": [last]}]
        return value | {"sentences": [*value["sentences"], *points], "topics": [SECRET]}  # type: ignore[misc]

    lab = Model(cite_each)
    for over in ("weeks", "clusters"):
        summary_tree(bench_of(store, turns), over, service=lab)  # type: ignore[arg-type]
        summary_tree(bench_of(store, turns), over)
    at = store.versions()
    assert SECRET in said_everywhere(store)
    left = turns.filter(~is_secret)
    if edited:
        left = turns.with_columns(text=pl.when(is_secret).then(pl.lit("Gone.")).otherwise("text"))
    bench = bench_of(store, left)
    stood_on = pl.col("turns").list.contains("u/3/0")
    rows = store.nodes.rows(NAME)
    assert rows.filter("stale").height > 0
    assert not rows.filter(stood_on).height
    stale = rows.filter("stale", service="lab")
    assert stale["topics"].list.len().sum() == 0
    assert stale["sentences"].list.len().min() == 1, "what cites other messages stays"
    fresh = rows.filter(~pl.col("stale"), service="lab")["topics"].explode()
    assert set(fresh) == {SECRET}, "the model's topics of other messages stay"
    cited = store.table("nodes").to_arrow().to_pylist()
    assert not any(SECRET in row["text"] for row in cited)
    # As it was then it is read as it was then, as the messages are.
    then = store.at(at)
    assert SECRET in str(then.nodes.rows(NAME)["text"].to_list())
    assert not then.nodes.rows(NAME)["stale"].any()
    # Made again, nothing is stale.
    for over in ("weeks", "clusters"):
        summary_tree(bench, over, service=lab)  # type: ignore[arg-type]
        summary_tree(bench, over)
    again = store.nodes.rows(NAME, emptied=True)
    assert not again["stale"].any()
    assert again.filter(over="weeks", kind="session", asked="lab").height == 8


def test_a_memory_that_is_gone_leaves_no_sentence(store: MemoryStore) -> None:
    both = [*sessions(4), *sessions(4, "v")]
    summary_tree(bench_of(store, both), "weeks")
    rows = frame(Turn, sessions(4))
    data = Dataset(NAME, "chatlog", rows.clear(), sessions_of(rows.clear()))
    assert store.nodes.rows(NAME)["scope"].unique().sort().to_list() == ["u", "v"]
    one_left = [turn for turn in both if turn.scope == "u" or turn.turn_id == "v/0/0"]
    bench_of(store, one_left)
    left = store.nodes.rows(NAME, scopes=["v"])
    assert set(left["turns"].explode()) <= {"v/0/0"}
    assert data.turns.is_empty()


def test_part_of_a_tree_is_kept_and_does_not_count_as_the_whole(store: MemoryStore) -> None:
    turns, lab = sessions(20), Model()
    bench, design = bench_of(store, turns), TreeDesign("weeks", lab, "UTC")
    whole = rollup(bench.turns, service=Model())
    month = read_or_write_period(bench, design, "month", date(2026, 2, 3))
    asked = Counter(request.task for request in lab.asked)
    assert asked["summary"] < 20
    expected = whole.filter(kind="month").row(1, named=True)
    own = month.filter(kind="month").row(0, named=True)
    assert (own["text"], own["node_id"]) == (expected["text"], expected["node_id"])
    assert set(month.filter(kind="week")["node_id"]) == set(expected["children"])
    lab.asked.clear()
    read_or_write_period(bench, design, "month", date(2026, 2, 3))
    assert lab.asked == []
    assert (store.nodes.rows(NAME)["digest"] == "").all()
    nodes = read_or_write_tree(bench, design).nodes
    assert Counter(request.task for request in lab.asked)["summary"] == 20 - asked["summary"]
    columns = [name for name in schema(Node) if name != "parent"]
    assert nodes.select(columns).equals(whole.select(columns))
    with pytest.raises(DataError, match="no session in the month of 2020-01-01"):
        read_or_write_period(bench, design, "month", date(2020, 1, 1))


def test_what_a_model_left_unanswered_is_asked_again(store: MemoryStore) -> None:
    silent = Model(lambda value: None if "carried_on" in value else value)
    summary_tree(bench_of(store, sessions(5)), "weeks", service=silent)  # type: ignore[arg-type]
    lab = Model()
    summary_tree(bench_of(store, sessions(5)), "weeks", service=lab)  # type: ignore[arg-type]
    assert {request.task for request in lab.asked} == {"rollup"}
    lab.asked.clear()
    summary_tree(bench_of(store, sessions(5)), "weeks", service=lab)  # type: ignore[arg-type]
    assert lab.asked == []


def test_a_service_that_is_not_set_any_more_is_read_and_not_asked(store: MemoryStore) -> None:
    with pytest.raises(ModelError, match="no language model 'lab' is set"):
        summary_tree(bench_of(store, sessions(5)), "weeks", service="lab")
    made = summary_tree(bench_of(store, sessions(5)), "weeks", service=Model())  # type: ignore[arg-type]
    again = summary_tree(bench_of(store, sessions(5)), "weeks", service="lab")
    assert again.nodes.equals(made.nodes)
    bench = bench_of(store, sessions(5))
    chosen = choose_service_of_design(bench, TreeDesign("weeks", tz="UTC"), None, "recorded")
    assert chosen.service == "lab"
    assert (
        choose_service_of_design(bench, TreeDesign("weeks", tz="UTC"), "extractive", "lab").service
        is None
    )


@pytest.mark.slow
def test_the_index_brings_whole_trees_up_to_date(store: MemoryStore) -> None:
    encoder = load("hashing:64")
    summary_tree(bench_of(store, sessions(6)), "weeks")
    assert rewrite_outdated_trees(store, NAME, service=None, encoder=encoder) == []
    bench_of(store, sessions(7))
    index(store, NAME)
    lines = rewrite_outdated_trees(store, NAME, service=None, encoder=encoder)
    assert lines == [f"{NAME}: 1 rollup brought up to date"]
    below = store.nodes.rows(NAME).filter(kind="month")["turns"].explode()
    assert len(below) == 70
    assert rewrite_outdated_trees(store, NAME, service="lab", encoder=encoder) == []


def test_a_bench_of_some_turns_and_a_view_leave_the_store_as_it_is(store: MemoryStore) -> None:
    bench = bench_of(store, sessions(6))
    at = store.versions()
    few = bench.with_changes(turns=bench.turns.head(30))
    summary_tree(few, "weeks")
    assert store.nodes.rows(NAME).is_empty()
    view = store.at(at)
    old = Bench.of(view.dataset(NAME), encoder="hashing:64", store=view, progress=False)
    summary_tree(old, "weeks")
    assert store.versions() == at
    with pytest.raises(StoreError, match="read-only"):
        view.nodes.remove_text_on_changed_turns(NAME)


def test_a_store_and_a_run_from_before_the_table(store: MemoryStore) -> None:
    bench_of(store, sessions(3))
    noted = store.versions()
    del noted["nodes"]
    store.database.connection.drop_table("nodes")
    # A memlab without the table had not noted that it made it.
    store.database.connection.open_table("store").delete("key = 'table nodes'")
    again = MemoryStore.open(store.uri)
    assert again.nodes.rows(NAME).is_empty()
    summary_tree(bench_of(again, sessions(3)), "weeks")
    assert again.nodes.rows(NAME).height > 0
    assert again.at(noted).nodes.rows(NAME).is_empty()
    assert "nodes" not in again.at(noted).versions()


def test_pages_hold_every_sentence_with_its_messages_and_no_markup_of_them() -> None:
    hostile = "<script>alert(1)</script> [me](javascript:alert(2)) costs $12 in Oslo"
    turns = frame(Turn, sessions(5))
    text = pl.when(pl.col("turn_id") == "u/1/1").then(pl.lit(hostile)).otherwise("text")
    turns = turns.with_columns(text=text)
    nodes = rollup(turns, service=Model())
    page = tree_html(nodes, turns)
    assert page.count('<details class="node">') == nodes.height
    assert page.count("<details") == page.count("</details>")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    texts = tree_markdown(nodes, turns)
    shown = MarkdownIt("commonmark", {"html": True}).render(texts)
    tags = {"h1", "h2", "h3", "h4", "p", "ul", "li", "strong", "a"}
    assert set(re.findall(r"<(\w+)", shown)) <= tags
    links = re.findall(r'<a href="#(m\d+)">', shown)
    anchors = re.findall(r'<a id="(m\d+)"></a>', shown)
    assert set(links) == set(anchors)
    assert len(set(anchors)) == len(anchors), "each message once"
    assert shown.count("<a ") == len(links) + len(anchors), "and no link of a message"
    for row in nodes.to_dicts():
        for ids in row["evidence"]:
            for turn in ids:
                assert texts.count(f"{turn} (2026-") == 1
                assert f"{turn} (2026-" in page
    assert texts.splitlines()[0] == "# u: 1 month, 2 weeks, 5 sessions"
    headings = [line for line in texts.splitlines() if line.startswith("## ")]
    assert headings == ["## January 2026", "## Messages"]


def test_the_explorer_reads_what_stands_on_a_selection(store: MemoryStore) -> None:
    bench = bench_of(store, sessions(6))
    assert summaries_standing_on_turns(bench, "u", ["u/1/1"]).is_empty()
    summary_tree(bench, "weeks")
    above = summaries_standing_on_turns(bench, "u", ["u/1/1", "u/4/2"])
    assert above["kind"].to_list()[-1] == "month"
    assert above["picked"].to_list()[-1] == 2
    assert set(above["kind"]) == {"session", "week", "month"}
    assert summaries_standing_on_turns(bench_of(None, sessions(6)), "u", ["u/1/1"]).is_empty()
