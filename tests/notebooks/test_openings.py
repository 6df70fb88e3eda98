"""A notebook opens with what it found on the committed sample, and each number of it is one that it computes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
NUMBER = r"[-+<]?\d[\d,]*(?:\.\d+)?"
BY_UMAP = ("01_cluster_map",)
"""What depends on UMAP's layout, which differs between machines and numbers of threads."""
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def opening(path: Path) -> str:
    return "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])


def findings(text: str) -> list[str]:
    """The points of a text, each on one line."""
    return [" ".join(point.split()) for point in re.findall(r"^- (.*(?:\n +.*)*)", text, re.MULTILINE)]


@each
def test_it_opens_with_three_findings_on_data_that_it_names_and_a_figure(path: Path) -> None:
    text = opening(path)
    assert text.splitlines()[0].endswith("?")
    assert len(findings(text)) == 3
    assert re.search(r"^On the committed sample\b.*", text, re.MULTILINE), "on other data the numbers are the sample's"
    assert all(re.search(r"\d", finding) for finding in findings(text))
    [picture] = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert (path.parent / picture).resolve().is_file()


@each
def test_its_numbers_are_those_of_its_answer(path: Path) -> None:
    """The demo's run on the sample is what is compared."""
    executed = ROOT / "results" / "notebooks" / path.name
    if not executed.exists():
        pytest.skip("make demo was not run")
    if findings(opening(executed)) != findings(opening(path)):
        pytest.skip("make demo ran an older notebook")
    answer = "".join(
        json.loads(executed.read_text(encoding="utf-8"))["cells"][-1]["outputs"][-1]["data"]["text/markdown"]
    )
    stated, computed = (
        {n.strip(",") for n in re.findall(NUMBER, text)} for text in ("\n".join(findings(opening(path))), answer)
    )
    missing = stated - computed
    if path.stem in BY_UMAP:
        missing = {number for number in missing if not any(_near(number, other) for other in computed)}
    assert not missing, f"not in the answer:\n{answer}"


def _near(number: str, other: str) -> bool:
    """Within eight points of a percentage (one place), and a fifth of all else; both are written to as many places."""
    a, b = (float(text.replace(",", "").lstrip("<")) for text in (number, other))
    places, theirs = (len(text.partition(".")[2]) for text in (number, other))
    slack = {0: max(1.5, abs(a) / 5), 1: 8.0}.get(places, abs(a) / 5)
    return places == theirs and abs(a - b) <= slack
