"""Answers from what systems return: contexts, the whole chain against a server, and the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from model_server import KEY, ModelServer, say, send
from talk import excerpt

import memlab
from memlab.errors import DataError
from memlab.experiments import answer_questions
from memlab.experiments.context_bounds import BOUNDS, make_system_contexts
from memlab.records import Dataset


@pytest.fixture(scope="module")
def data() -> Dataset:
    return excerpt(300)


def oracle(handler: Any, request: dict) -> None:
    """Answer "yes" where there are notes, and take "yes" for right."""
    asked = json.loads(request["messages"][1]["content"])
    if "right answer" in asked:
        made: dict[str, Any] = {"reason": "so", "correct": asked["answer"] == "yes"}
    else:
        made = {"answer": "yes" if "notes" in asked else "I don't know.", "known": "notes" in asked}
    say(json.dumps(made), usage={"prompt_tokens": 70, "completion_tokens": 5})(handler, request)


def latest(turns: pl.DataFrame, query: str, k: int) -> pl.Series:
    return turns["text"].tail(k)


def test_contexts_of_pipelines_memories_and_runs(data: Dataset, tmp_path: Path) -> None:
    bench = memlab.Bench.of(data, encoder=None)
    memlab.evaluate.trec_files.write_run(
        memlab.pipeline("bm25").run(bench), tmp_path / "theirs.trec"
    )
    made = make_system_contexts(
        ["bm25", latest], data, runs=[tmp_path / "theirs.trec"], encoder=None, budget=120
    )
    assert [*made.texts] == ["bm25", "latest", "theirs", *BOUNDS]
    assert all(
        0 < made.texts[name]["n_tokens"].max() <= 120 for name in ("bm25", "latest", "theirs")
    )
    assert made.texts["bm25"].equals(made.texts["theirs"])
    assert made.texts["nothing"]["text"].unique().to_list() == [""]
    assert (made.texts["another's"]["text"] != made.texts["bm25"]["text"]).mean() > 0.9
    assert sorted(made.texts["another's"]["text"]) == sorted(made.texts["bm25"]["text"])
    assert all(
        texts["query_id"].equals(made.questions["query_id"]) for texts in made.texts.values()
    )


def test_without_a_service_contexts_are_measured(data: Dataset) -> None:
    done = answer_questions(["bm25", latest], data, encoder=None)
    share = dict(done.table.select("system", "holds").iter_rows())
    assert share["whole history"] >= share["bm25"] > share["latest"] >= share["nothing"] == 0
    assert share["evidence"] > share["another's"]
    assert done.costs.is_empty()
    assert "Contexts that hold the answer" in str(done)


def test_the_whole_chain_fails_is_mended_and_then_asks_nothing(
    data: Dataset, server: ModelServer, tmp_path: Path
) -> None:
    one = data.take(data.scopes[:1])
    n, (first, second) = one.questions.height, one.questions["text"][:2]

    def faulty(handler: Any, request: dict) -> None:
        asked = json.loads(request["messages"][1]["content"])
        if "notes" in asked and asked["question"] == first:
            send(500, {"error": {"message": "the answer does not fit into memory"}})(
                handler, request
            )
        elif "notes" in asked and asked["question"] == second:
            say("no JSON")(handler, request)
        else:
            oracle(handler, request)

    settings = {"record": str(tmp_path / "a.jsonl"), "max_retries": 0}
    service = server.service(name="one", input_price=1.0, output_price=2.0, **settings)
    judge = server.service(name="two", model="j", **settings)

    def ask(mode: Any) -> memlab.experiments.answered_questions.Answers:
        server.modes = [mode]
        return answer_questions(
            "bm25", one, service=service, judge_by=judge, encoder=None, bounds=["nothing"]
        )

    done = ask(faulty)
    assert done.costs.filter(system="bm25")["failed"].to_list() == [2, 0]
    assert done.per_query["correct"].to_list()[:3] == [None, False, True], (
        "what never came is not judged"
    )
    assert done.table["judged"].to_list() == [n - 1, n]
    assert {request["model"] for request in server.requests} == {"m", "j"}
    again = ask(oracle)
    assert dict(again.table.select("system", "correct").iter_rows()) == {"bm25": 1, "nothing": 0}
    cost, judged = again.costs.filter(system="bm25").to_dicts()
    assert (cost["task"], judged["task"], judged["price"]) == ("answer", "judge", None)
    assert cost["price"] == pytest.approx(n * 80 / 1e6)
    # Two were asked; the times of the others, which are recorded, are none.
    assert cost["p50 ms"] == pytest.approx(1000 * again.per_query["seconds"].head(2).median())
    asked = len(server.requests)
    third = ask(oracle)
    times = ("seconds", "judge_seconds")
    assert third.per_query.drop(times).equals(again.per_query.drop(times))
    assert (len(server.requests), third.costs["p50 ms"].null_count()) == (asked, third.costs.height)
    place = again.export(tmp_path / "out")
    kept = json.loads((place / "answers.json").read_text())
    assert (kept["about"]["service"]["name"], kept["about"]["judge"]["model"]) == ("one", "j")
    assert kept["about"]["prompts"]["judge"] in (place / "answers.md").read_text()
    assert KEY not in json.dumps(kept)
    assert pl.read_parquet(place / "answers.parquet").height == 2 * n


def test_orders_of_events_are_compared_with_the_right_one(
    data: Dataset, server: ModelServer
) -> None:
    one = data.take(data.scopes[:1])
    kinds = (
        pl.when(pl.int_range(pl.len()) < 4)
        .then(pl.lit("event-ordering"))
        .otherwise(pl.lit("single"))
    )
    one = replace(one, questions=one.questions.with_columns(question_type=kinds))
    named = iter(([1, 2, 3], [3, 2, 1, 9, 3], [], "no order"))

    def read_order(handler: Any, request: dict) -> None:
        if not request["messages"][0]["content"].startswith("You compare the order of events"):
            oracle(handler, request)
            return
        say(json.dumps({"events": ["one", "two", "three"], "named": next(named, "no order")}))(
            handler, request
        )

    server.modes = [read_order]
    service = server.service(name="one", concurrency=1, max_retries=0)
    with pytest.warns(UserWarning, match="1 of 4 orders of events came from no model"):
        done = answer_questions("bm25", one, service=service, encoder=None, bounds=[])
    assert done.per_query["kendall_tau"].head(4).to_list() == [1, -1, 0, None]
    assert done.per_query["kendall_tau"].null_count() == one.questions.height - 3
    assert (done.table["kendall_tau"].item(), done.costs["task"].to_list()[-1]) == (0, "order")
    assert done.costs["failed"].to_list() == [0, 0, 1]
    # The server counts tokens of answers and verdicts, and none of orders.
    assert done.costs["estimated"].to_list() == [0, 0, 4]


def test_bad_input(data: Dataset) -> None:
    for systems, options, message in (
        (
            "bm25",
            {"bounds": ["everything"]},
            "choose of evidence, whole history, nothing, another's",
        ),
        ("bm25", {"budget": 0}, "the budget 0"),
        ([], {"bounds": []}, "at least one"),
        (["bm25", "bm25"], {}, "its own name"),
        ("bm25", {"judge_by": "lab"}, "there is a judge, and no service"),
    ):
        with pytest.raises(DataError, match=message):
            answer_questions(systems, data, encoder=None, **options)
