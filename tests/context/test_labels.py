"""Judges against answers that were labelled by hand."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from chat_server import ChatServer, said

from memlab.context import agreement, labelled
from memlab.context.by_model import RUBRICS, rubrics
from memlab.context.labels import verdicts_of
from memlab.errors import DataError


def test_the_hundred_are_of_every_kind() -> None:
    rows = labelled()
    assert rows.height == rows["item"].n_unique() == 100
    assert set(rubrics(rows.rename({"question": "text"}))) == set(RUBRICS)
    assert 40 <= rows["right"].sum() <= 60


def test_agreement_counts() -> None:
    rows = labelled().head(4).with_columns(right=pl.Series([True, True, False, False]))
    verdicts = pl.DataFrame({"query_id": rows["item"][:3], "correct": [True, False, True]})
    row = agreement(rows, {"lab": verdicts}).row(0, named=True)
    assert (row["n"], row["undecided"]) == (3, 1)
    assert row["accuracy"] == pytest.approx(1 / 3)
    assert row["kappa"] == pytest.approx((1 / 3 - 5 / 9) / (1 - 5 / 9))
    assert (row["false_accept"], row["false_reject"]) == (1.0, 0.5)
    perfect = rows.select(query_id="item", correct="right")
    assert agreement(rows, {"lab": perfect})["kappa"].to_list() == [1.0]
    none = perfect.with_columns(correct=pl.lit(None, pl.Boolean))
    assert agreement(rows, {"lab": none}).select("n", "accuracy", "kappa").row(0) == (0, None, None)


def test_a_service_judges_beside_the_rules() -> None:
    server = ChatServer(lambda request: said(json.dumps({"reason": "so", "correct": True})))
    service = server.service(api_key_env=None)
    try:
        given = verdicts_of(labelled().head(5), [service])
    finally:
        server.close()
    assert list(given) == ["contains", "token F1", "values", "lab"]
    assert given["lab"]["correct"].to_list() == [True] * 5
    shown = [request["messages"][-1]["content"] for request in server.requests]
    assert all("Right answer:" in text for text in shown)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "Q?", "candidate": "a"}', "no field 'answer'"),
        ("nothing", "no JSON lines"),
        ('{"question": "Q?", "answer": "a", "candidate": null, "right": true}', "lacks question, candidate or right"),
        ('{"question": "Q?", "answer": "a", "candidate": "b", "right": "perhaps"}', "of another kind"),
    ],
)
def test_bad_labels_are_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "mine.jsonl").write_text(line)
    with pytest.raises(DataError, match=message):
        labelled(tmp_path / "mine.jsonl")
    with pytest.raises(DataError, match="no JSON lines"):
        labelled(tmp_path / "none.jsonl")
