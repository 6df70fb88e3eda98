"""On real conversations the plain pipelines reach what other code reached; skipped where they are absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab import Bench, Experiment, datasets, run
from memlab.evaluate.groups_of_questions import MULTI_SESSION

pytestmark = [pytest.mark.slow, pytest.mark.shared_data]

# all@k over all 1,155 questions with evidence, and over the 201 with evidence in several sessions.
LOCOMO = [
    ("turn", "dense", [10, 20], [0.416, 0.506], [0.075, 0.129]),
    ("turn", "bm25", [10, 20], [0.590, 0.649], [0.129, 0.214]),
    ("turn", "hybrid", [10, 20], [0.537, 0.644], [0.129, 0.209]),
    ("session", "bm25", [5, 10], [0.835, 0.904], [0.279, 0.562]),
]
WITHIN = 0.01
# Sessions all@5 on pooled LongMemEval, 205 questions. The distractors are drawn: over the seeds 0
# to 3 bm25 gave .844 to .868 and dense .824 to .839, so four questions (.02) are within the draw.
POOLED = {"bm25": 0.859, "dense": 0.835}
POOLED_MARGIN = 0.02


@pytest.fixture(scope="module")
def locomo(locomo_path: Path) -> Experiment:
    data = datasets.load(locomo_path)
    return run(["bm25", "dense", "hybrid"], data, bench=Bench.of(data, progress=False))


@pytest.mark.nightly
@pytest.mark.parametrize(("level", "name", "cutoffs", "whole", "several"), LOCOMO)
def test_controls_on_locomo(
    locomo: Experiment,
    level: str,
    name: str,
    cutoffs: list[int],
    whole: list[float],
    several: list[float],
) -> None:
    report = next(
        report for report in locomo.reports if (report.name, report.level) == (name, level)
    )
    wanted = [f"recall_all@{k}" for k in cutoffs]
    rows = report.summary("evidence_sessions", measures=wanted).filter(group=MULTI_SESSION)
    for table, n, known in ((report.summary(measures=wanted), 1155, whole), (rows, 201, several)):
        assert table["n"].unique().to_list() == [n]
        missed = [
            each
            for each in zip(wanted, table["mean"], known, strict=True)
            if each[1] < each[2] - WITHIN
        ]
        assert missed == []


@pytest.mark.parametrize("name", ["bm25", pytest.param("dense", marks=pytest.mark.nightly)])
def test_controls_on_pooled_longmemeval(name: str, longmemeval_path: Path, tmp_path: Path) -> None:
    data = datasets.load(longmemeval_path, pool=48, seed=0)
    assert data.sessions.group_by("scope").len()["len"].unique().to_list() == [48]
    # The store keeps one vector for each text, and a session stands in many haystacks.
    bench = Bench.of(data, store=str(tmp_path / "store"), progress=False)
    report = run([name], data, bench=bench, levels=["session"], measures=["recall_all@5"]).reports[
        0
    ]
    row = report.summary().row(0, named=True)
    assert row["n"] == 205
    assert row["mean"] >= POOLED[name] - POOLED_MARGIN, f"{name}: all@5 is {row['mean']:.3f}"
