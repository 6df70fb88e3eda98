"""Notebooks run on data with few questions or none, and say what cannot be said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.helpers.notebook_cells import run_cells, write_log
from tests.helpers.stand_in import StandIn

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data" / "cases" / "notebooks"
CASES = {
    "none": {"questions": 0},
    "one": {"questions": 1, "several": 1},
    "five": {"questions": 5, "several": 1},
    "single sessions": {"questions": 6},
    "twelve": {"questions": 12, "several": 1},
    "japanese": {"questions": 12, "several": 6, "name": "花子"},
    "long name": {"questions": 12, "several": 12, "name": "Maximiliane|$x_1^2$<b>&\\frac " * 12},
}
CANNOT = {
    "none": "Nothing can be said",
    "one": "This one question cannot say",
    "five": "These 5 questions cannot say",
    "single sessions": "about such questions nothing can be said",
}


def check_and_join_answer(answer: str, case: str) -> None:
    assert CANNOT.get(case, "- ") in answer, answer
    assert not re.search(r"\b(nan|None|inf|null)\b", answer), answer
    for sentence in answer.splitlines():
        # A share of few questions never stands without its interval.
        if re.search(r"\d %(?! of the)", re.sub(r"\[[^\]]*\]|\([^)]*\)", "", sentence)):
            assert re.search(r"\d % \[\d", sentence), sentence


def run_case(
    name: str, case: str, folder: Path, patch: pytest.MonkeyPatch, **parameters: object
) -> str:
    path = write_log(folder / "log.jsonl", **CASES[case])  # type: ignore[arg-type]
    about = {"dataset": str(path), "store": str(folder / "store"), "encoder": StandIn()}
    return run_cells(name, patch, **{**about, "figures": str(folder), **parameters})


@pytest.mark.parametrize("case", ["none", "one", "five", "twelve"])
@pytest.mark.slow
def test_the_tour_says_what_few_questions_cannot(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run_case("00", case, tmp_path, monkeypatch, encoder="hashing:64")
    check_and_join_answer(answer, case)
    if case == "twelve":
        assert "The one question with evidence in two or more sessions cannot say" in answer
        assert "of all 12 questions" in answer
        assert "All questions are about one memory" in answer


EVERY_CASE = [(name, case) for name in ("00", "02", "03", "05", "07") for case in CASES]
HARDEST = {("00", "long name"), ("02", "five"), ("03", "one"), ("05", "japanese"), ("07", "none")}
"""One of each notebook in `make slow`, all of them in `make nightly`."""


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(*each, marks=pytest.mark.slow if each in HARDEST else pytest.mark.nightly)
        for each in EVERY_CASE
    ],
)
def test_notebooks_say_what_few_questions_cannot(
    name: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = {"00": "hashing:64", "03": "minilm", "07": "hashing:64"}.get(name, StandIn())
    parameters = {"baseline": "hybrid"} if name == "07" else {}
    answer = run_case(name, case, tmp_path, monkeypatch, encoder=encoder, **parameters)
    check_and_join_answer(
        answer, case if name not in ("05", "07") or case != "single sessions" else ""
    )


@pytest.mark.slow
@pytest.mark.parametrize("asked", [0, 1, 5])
def test_the_notebook_on_follow_ups_says_what_few_cannot(
    asked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (ROOT / "data/sample/follow-ups.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [(json.loads(line)["kind"], line) for line in lines]
    first = next(line for kind, line in kinds if kind == "first")
    others = [line for kind, line in kinds if kind != "first"][:asked]
    path = tmp_path / "follow-ups.jsonl"
    path.write_text("\n".join([first, *others]), encoding="utf-8")
    about = {"follow_up_file": str(path), "store": str(tmp_path / "store"), "encoder": StandIn()}
    answer = run_cells("06", monkeypatch, figures=str(tmp_path), **about)
    said = {0: "no follow-up question", 1: "This one follow-up cannot", 5: "These 5 follow-ups"}
    assert said[asked] in answer
    assert not re.search(r"\b(nan|None|inf)\b", answer)


@pytest.mark.nightly
def test_the_notebook_on_decay_says_that_it_asks_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run_case("04", "five", tmp_path, monkeypatch)
    assert answer.startswith("- log has no question about a value that has changed")
    assert "90 %: " in answer


@pytest.mark.slow
@pytest.mark.parametrize("name", ["none", "one", "five", "single", "ja2", "long"])
def test_the_tour_runs_on_the_shared_cases(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = SHARED / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip("the shared cases are not here")
    about = {"store": str(tmp_path / "store"), "encoder": "hashing:64", "figures": str(tmp_path)}
    answer = run_cells("00", monkeypatch, dataset=str(path), **about)
    assert answer.startswith("- ")
    assert not re.search(r"\b(nan|None|inf)\b", answer)
