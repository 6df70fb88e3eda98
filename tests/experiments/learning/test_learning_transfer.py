"""Models measured beside the untrained sum that they reorder."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memlab import pipeline
from memlab.evaluate import evaluate
from memlab.experiments.learning import UNTRAINED, transfer
from memlab.records import Dataset
from memlab.retrieve import Bench


def test_models_stand_beside_the_untrained_sum(asked: Dataset, read: Bench, folds: Path) -> None:
    found = transfer({"itself": folds}, read, asked)
    cells = found.filter(trained="itself").select("level", "measure", "questions").rows()
    assert cells == [
        (level, measure, questions)
        for level, measure in (("turn", "recall_all@10"), ("session", "recall_all@5"), ("session", "recall_all@10"))
        for questions in ("all", "≥ 2")
    ]
    assert found["trained"].to_list() == ["nothing", "itself"] * 6
    assert found["measured"].unique().to_list() == [asked.name]
    plain = evaluate(pipeline(UNTRAINED).run(read), asked, measures=["recall_all@10"]).summary()
    own = found.filter(level="turn", questions="all")
    assert own["mean"][0] == pytest.approx(plain["mean"][0])
    assert own["difference"][1] == pytest.approx(own["mean"][1] - own["mean"][0])
    assert found.filter(trained="nothing")["difference"].null_count() == 6


def test_without_questions_of_several_sessions_there_is_one_subset(asked: Dataset, read: Bench, folds: Path) -> None:
    from dataclasses import replace

    few = asked.questions.filter(pl.col("evidence_sessions").list.n_unique() < 2)
    found = transfer({}, read, replace(asked, questions=few))
    assert found["questions"].unique().to_list() == ["all"]
