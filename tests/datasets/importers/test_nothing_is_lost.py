"""The law of imports: what a file says is a turn, or its message is counted in ``data.issues``.

The strings of a file are found by a walk of its own, which knows no key and no importer. A string that no turn has is
taken out with the part or the message that holds it: less must be counted then, and no turn be another.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import memlab
from memlab.records import Dataset

DATASETS = Path(__file__).parents[1]
EXPORTS = (
    "chatgpt",
    "claude_ai",
    "claude_code",
    "discord",
    "langfuse",
    "langsmith",
    "letta",
    "mem0",
)
EXPORTS += ("openai_messages", "sharegpt", "slack", "telegram")
PLACEHOLDERS = {"(File not included)"}
"""What a tool writes in place of a file."""
Place = tuple[Any, ...]

FILES = sorted(
    path
    for name in EXPORTS
    for folder in (DATASETS / "golden" / name, DATASETS / "exports")
    for path in folder.rglob("*.json*")
    if name in path.parts and not (path.parent.parent.name == "golden" and path.suffix == ".json")
)
ABOUT = {
    *("title", "name", "summary", "description"),  # of a conversation or an agent, not of a message
    *("system_prompt", "persona", "instructions"),
}
"""Keys of strings that stand beside messages, not in one."""


def read_values(path: Path) -> Any:
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return json.loads(text)


def write_values(path: Path, values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    is_lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, values)) if is_lines else json.dumps(values))
    return path


def words(text: str) -> list[str]:
    """Give the words of a text, without the marks by which tools mention people, places and pages."""
    plain = re.sub(r"<[@#!:][^<>]*>|<\w+:[^<>]*>|&\w+;|</?think>", " ", text)
    return [word for word in plain.split() if re.search(r"[^\W\d_]", word)]


def walk(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Give every string of three words or more with its place, also in JSON that is a string."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        with suppress(ValueError):
            yield from ((place, text) for _, text in walk(json.loads(value)))
            return
    if isinstance(value, str) and value not in PLACEHOLDERS and len(words(value)) >= 3:
        yield place, value
    inner = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else inner:
        yield from walk(each, (*place, key))


def is_told(data: Dataset, text: str) -> bool:
    """Say whether the words of a string stand in one turn, in their order."""
    wanted = " ".join(words(text))
    if data.issues["found"].str.contains("thought").any():
        wanted = " ".join(words(re.sub("<think>.*</think>", "", text)))
    columns = data.turns.select("text", "caption", "speaker", "session_id").iter_rows()
    return any(wanted in " ".join(words(" ".join(filter(None, row)))) for row in columns)


def count_issues(data: Dataset) -> int:
    """Count what is left out, replaced or kept in another form."""
    numbers = (re.match(r"[\d,]+", found) for found in data.issues["found"])
    return sum(int(number[0].replace(",", "")) for number in numbers if number)


def list_around(place: Place) -> Iterator[Place]:
    """Give the elements of lists, or the nodes of trees, around a place, the smallest first."""
    for end in range(len(place), 0, -1):
        if isinstance(place[end - 1], int) or place[end - 2 : end - 1] == ("mapping",):
            yield place[:end]


def without(values: Any, place: Place) -> Any:
    """Give the values without what stands at a place."""
    changed = copy.deepcopy(values)
    around = changed
    for key in place[:-1]:
        around = around[key]
    del around[place[-1]]
    return changed


def is_counted(data: Dataset, path: Path, values: Any, place: Place) -> bool:
    """Say whether a string's part, or its message, is counted: without it less is, and the turns are the same."""
    for element in list_around(place):
        try:
            rest = memlab.load(write_values(path, without(values, element)))
        except memlab.DataError:
            return count_issues(data) > 0  # nothing is left without it
        same = rest.turns["text"].equals(data.turns["text"])
        if same and count_issues(rest) < count_issues(data):
            return True
    return False


def find_silently_lost(path: Path, folder: Path, values: Any) -> list[Place]:
    """Give the places of strings that no turn has and whose message nothing counts."""
    beside = [each for each in path.parent.rglob("*") if each.is_file() and each != path]
    for each in beside if len(beside) < 6 else ():
        copied = folder / each.relative_to(path.parent)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(each.read_bytes())
    data = memlab.load(write_values(folder / path.name, values))
    return [
        place
        for place, text in walk(values)
        if not ABOUT.intersection(place)
        and not is_told(data, text)
        and not is_counted(data, folder / path.name, values, place)
    ]


def is_alone(path: Path) -> bool:
    """Say whether a file is an export by itself."""
    try:
        return memlab.load(path).turns.height > 0
    except memlab.DataError:
        return False


ALONE = [path for path in FILES if is_alone(path)]


@pytest.mark.parametrize("path", ALONE, ids=lambda path: "/".join(path.parts[-3:]))
def test_what_a_file_says_is_a_turn_or_counted(tmp_path: Path, path: Path) -> None:
    assert find_silently_lost(path, tmp_path, read_values(path)) == []


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Give every string with its place."""
    if isinstance(value, str):
        yield place, value
    inner = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else inner:
        yield from leaves(each, (*place, key))


def mutate(values: Any, said: set[str], random: Random, *, tagged: bool = True) -> Any:
    """Give a file in which one thing that is said is another: longer, with thoughts, by a stranger, or twice."""
    changed = copy.deepcopy(values)
    times = Counter(text for _, text in leaves(changed))
    told = [place for place, text in leaves(changed) if text.strip() in said and times[text] == 1]
    if not told:
        return changed
    place = random.choice(told)
    holder = follow(changed, place[:-1])
    longer = f"{holder[place[-1]]} kelp {random.choice(WORDS)} fern"
    way = random.choice(["longer", "stranger", "twice", *["thoughts"] * tagged])
    holder[place[-1]] = f"<think>a guess at it</think>{longer}" if way == "thoughts" else longer
    message = next(iter(list_around(place)), ())
    around = follow(changed, message[:-1])
    if way == "stranger" and message:
        for inner, text in list(leaves(around[message[-1]])):
            if inner and text in ("user", "human", "assistant"):
                follow(around[message[-1]], inner[:-1])[inner[-1]] = "harbour"
    if way == "twice" and message and isinstance(around, list):
        again = copy.deepcopy(around[message[-1]])
        for inner, text in list(leaves(again)):
            if inner and text == longer:
                follow(again, inner[:-1])[inner[-1]] = f"{longer} once more"
        around.insert(message[-1] + 1, again)
    return changed


WORDS = ("moss", "reed", "alder", "birch")


def follow(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


@pytest.mark.parametrize("rounds", [3, pytest.param(200, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("path", ALONE, ids=lambda path: "/".join(path.parts[-3:]))
def test_what_a_mutated_file_says_is_a_turn_or_counted(
    tmp_path: Path, path: Path, rounds: int
) -> None:
    values, random = read_values(path), Random(0)
    said = {text.strip() for text in memlab.load(path).turns["text"] if text.strip()}
    is_slack = memlab.datasets.detect(path) == "slack"  # which escapes angle brackets
    for _ in range(rounds):
        changed = mutate(values, said, random, tagged=not is_slack)
        with suppress(memlab.DataError):  # refused by name
            lost = find_silently_lost(path, tmp_path, changed)
            assert lost == [], json.dumps(changed)
