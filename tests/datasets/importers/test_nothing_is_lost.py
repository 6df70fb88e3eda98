"""The law of imports: what a file says is a turn, or its message is counted in ``data.issues``.

The strings of a file are found by a walk of its own, which knows no key and no importer. A string that no turn has is
taken out with the part or the message that holds it: less must be counted then, and no turn be another.
"""

from __future__ import annotations

import copy
import csv
import html
import io
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
from memlab.registry import formats

DATASETS = Path(__file__).parents[1]
BENCHMARKS = {name for name in formats if formats.describe(name).kind == "benchmark"}
PLACEHOLDERS = {"(File not included)", "Why is this here?", "Used an Assistant feature"}
"""What a tool writes in place of a file, and beside what is said."""
Place = tuple[Any, ...]

FILES = sorted(
    path
    for folder in ("golden", "exports")
    for path in (DATASETS / folder).rglob("*.*")
    if path.suffix in (".json", ".jsonl", ".af", ".csv", ".html", ".txt")
    and BENCHMARKS.isdisjoint(path.parts)
    and not (path.parent.parent.name == "golden" and path.suffix == ".json")
)
ABOUT = {
    *("title", "name", "summary", "description"),  # of a conversation or an agent, not of a message
    *("system_prompt", "persona", "instructions"),
}
"""Keys of strings that stand beside messages, not in one."""


SPEAKER = re.compile(r"(?:\s*### |\n\n)(?:Human|Assistant): ?")
HEAD = re.compile(r"(\u200e?\[?\d[^-\]]*(?:\]| -) (?:[^:\n]{1,40}: )?)(.*)")
"""What stands before a message of WhatsApp: its time and its sender."""


def read_values(path: Path) -> Any:
    """Give the values of a file: of JSON, the rows of a table, the lines of a chat, the pieces of a page."""
    text = path.read_text("utf-8-sig")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if path.suffix == ".csv":
        return [dict(row) for row in csv.DictReader(io.StringIO(text))]
    if path.suffix == ".txt":
        return [split_line(line) for line in re.split("\r?\n", text)]
    if path.suffix == ".html":
        cells = re.split(r'(?=<div class="outer-cell)', text)
        return [re.split(r"(<[^<>]*>)", cell) for cell in cells]
    return json.loads(text)


def split_line(line: str) -> dict[str, str]:
    found = HEAD.fullmatch(line)
    head, said = found.groups() if found else ("", line)
    return {"<head>": head, "said": said}


def write_values(path: Path, values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        text = "\n".join(map(json.dumps, values))
    elif path.suffix == ".csv":
        table = io.StringIO()
        columns = dict.fromkeys(key for row in values for key in row)
        writer = csv.DictWriter(table, list(columns))
        writer.writeheader()
        writer.writerows(values)
        text = table.getvalue()
    elif path.suffix == ".txt":
        text = "\n".join(line.get("<head>", "") + line.get("said", "") for line in values)
    elif path.suffix == ".html":
        text = "".join("".join(cell) for cell in values)
    else:
        text = json.dumps(values)
    path.write_text(text, "utf-8")
    return path


def words(text: str) -> list[str]:
    """Give the words of a text, without the marks by which tools mention people, places and pages."""
    plain = re.sub(
        r"<[@#!:][^<>]*>|<\w+:[^<>]*>|&\w+;|</?think>|<This message was edited>", " ", text
    )
    return [word for word in plain.split() if re.search(r"[^\W\d_]", word)]


def walk(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Give every string of three words or more with its place, also in JSON that is a string."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        with suppress(ValueError):
            yield from ((place, text) for _, text in walk(json.loads(value)))
            return
    if isinstance(value, str):
        # What several say in one text is several strings.
        yield from ((place, text) for text in SPEAKER.split(value) if is_said(text, place))
    inner = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else inner:
        yield from walk(each, (*place, key))


def is_said(text: str, place: Place) -> bool:
    """Say whether a string is three words or more, and no mark of a page or time on one."""
    beside = "<head>" in place or text.startswith("<div") or text in PLACEHOLDERS
    on_page = re.search(r"\d:\d\d:\d\d", text) and len(place) == 2 and isinstance(place[1], int)
    return not beside and not on_page and len(words(text)) >= 3


def is_told(data: Dataset, text: str) -> bool:
    """Say whether the words of a string stand in one turn, in their order."""
    text = re.sub(r"^(?:Prompted|Asked)\s+", "", html.unescape(text))
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
    """Give a place under a key, and the elements of lists, or the nodes of trees, around it, the smallest first."""
    if isinstance(place[-1], str):
        yield place
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
    """Give a file in which one thing that is said is another, or stands in another form."""
    changed = copy.deepcopy(values)
    times = Counter(text for _, text in leaves(changed))
    told = [
        place
        for place, text in leaves(changed)
        if times[text] == 1 and (text.strip() in said or holds_said(text, said))
    ]
    if not told:
        return changed
    place = random.choice(told)
    holder = follow(changed, place[:-1])
    longer = f"{holder[place[-1]]} kelp {random.choice(WORDS)} fern"
    holder[place[-1]] = longer
    ways = [*WAYS_OF_TEXTS, *["thoughts"] * tagged]
    if isinstance(holder, dict) and "<head>" not in holder:
        ways += WAYS_OF_VALUES
    message = next((around for around in list_around(place) if around != place), ())
    if message:
        ways += WAYS_OF_MESSAGES
    if "same id" in ways and "<@" in json.dumps(values):
        # Of two messages with one id the one that is left out may name who is mentioned.
        ways.remove("same id")
    way = random.choice(ways)
    if way == "thoughts":
        holder[place[-1]] = f"<think>a guess at it</think>{longer}"
    elif way in WAYS_OF_VALUES:
        change_value(holder, place[-1], way, random)
    elif way in WAYS_OF_MESSAGES:
        around = follow(changed, message[:-1])
        change_message(around, message[-1], way, said=longer)
    return changed


WAYS_OF_TEXTS = ("longer",)
WAYS_OF_VALUES = ("aside", "renamed", "in an object", "in parts", "in a list")
WAYS_OF_MESSAGES = ("stranger", "twice", "without time", "without id", "same id")
TIME = re.compile(r"time|^date|_date|created|updated|ts$|_at$|sent", re.IGNORECASE)
IDS = ("id", "uuid", "message_id", "_id", "messageId")


def change_value(holder: dict[str, Any], key: str, way: str, random: Random) -> None:
    """Put what is said under another key, into another form, or something beside it."""
    text = holder[key]
    beside = f"an {random.choice(WORDS)} grows beside it"
    if way == "aside":
        holder["marginalia"] = beside
    elif way == "renamed":
        holder["utterance"] = holder.pop(key)
    elif way == "in an object":
        holder[key] = {"value": text}
    elif way == "in parts":
        holder[key] = [{"type": "text", "text": text}, {"type": "leaf", "text": beside}]
    else:
        holder[key] = [text, beside]


def change_message(around: Any, key: Any, way: str, *, said: str) -> None:
    """Change who says a message, when, and under which id, or say it once more."""
    message = around[key]
    if way == "stranger":
        for inner, text in list(leaves(message)):
            if inner and text in ("user", "human", "assistant"):
                follow(message, inner[:-1])[inner[-1]] = "harbour"
    if way == "twice" and isinstance(around, list):
        again = copy.deepcopy(message)
        for inner, text in list(leaves(again)):
            if inner and text == said:
                follow(again, inner[:-1])[inner[-1]] = f"{said} once more"
        around.insert(key + 1, again)
    if not isinstance(message, dict):
        return
    if way == "without time":
        for name in [name for name in message if TIME.search(name)]:
            del message[name]
    if way == "without id":
        for name in [name for name in IDS if name in message]:
            del message[name]
    neighbour = around[key - 1] if isinstance(around, list) and key else None
    if way == "same id" and isinstance(neighbour, dict):
        neighbour.update(
            {name: message[name] for name in IDS if {name} <= {*message} & {*neighbour}}
        )


def holds_said(text: str, said: set[str]) -> bool:
    """Say whether a string is a prompt behind its verb, as Gemini has it, or what several say in one text."""
    if SPEAKER.search(text):
        return any(text.endswith(each) for each in said)
    return text.startswith("Prompted") and any(html.unescape(text).endswith(each) for each in said)


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
    # Slack escapes angle brackets, and a page has its own.
    tagged = path.suffix != ".html" and memlab.datasets.detect(path) != "slack"
    for _ in range(rounds):
        changed = mutate(values, said, random, tagged=tagged)
        with suppress(memlab.DataError):  # refused by name
            lost = find_silently_lost(path, tmp_path, changed)
            assert lost == [], json.dumps(changed)


def swapped_times(values: Any) -> Iterator[Any]:
    """Give the values once for each two neighbours of a list, with the times of these two swapped."""
    for place in {place[:-1] for place, _ in leaves(values)}:
        if not place or not isinstance(place[-1], int):
            continue
        neighbour = (*place[:-1], place[-1] + 1)
        length = len(follow(values, place[:-1]))
        # Of two messages the times may say that the list begins with the newest.
        if length < 3 or neighbour[-1] == length:
            continue
        one, other = follow(values, place), follow(values, neighbour)
        if not (isinstance(one, dict) and isinstance(other, dict)):
            continue
        keys = [key for key in one if TIME.search(key) and key in other and one[key] != other[key]]
        if not keys:
            continue
        changed = copy.deepcopy(values)
        for key in keys:
            follow(changed, place)[key], follow(changed, neighbour)[key] = other[key], one[key]
        yield changed


@pytest.mark.parametrize("path", ALONE, ids=lambda path: "/".join(path.parts[-3:]))
def test_messages_whose_clocks_are_swapped_keep_their_places(tmp_path: Path, path: Path) -> None:
    """But for what a time decides: which branch is the newest, and where a chat without sessions rests."""
    data = memlab.load(path)
    for changed in swapped_times(read_values(path)):
        with suppress(memlab.DataError):
            again = memlab.load(write_values(tmp_path / path.name, changed))
            before, after = data.turns["text"].to_list(), again.turns["text"].to_list()
            same_branch = sorted(before) == sorted(after)
            if same_branch and again.turns["session_id"].equals(data.turns["session_id"]):
                assert before == after


ASIDES = ("description", "instructions", "summary", "system_prompt", "title", "gloss")
"""Keys that stand around messages too, where nobody said their texts."""
UNSPACED = (
    "去年我们搬到奥斯陆",
    "来週また電話して",
    "ปีที่แล้วเราย้ายไปออสโล",
    "我们\u3000搬到了奥斯陆",
    "iPhone是我买的",
)


def add_asides(value: Any, texts: dict[str, str]) -> int:
    """Put texts under other keys into each message, which names its role, and say into how many."""
    count = 0
    for each in value if isinstance(value, list) else ():
        count += add_asides(each, texts)
    if isinstance(value, dict):
        for each in list(value.values()):
            count += add_asides(each, texts)
        if {"role", "from", "sender", "source", "is_user", "isCreatedByUser"} & value.keys():
            value |= texts
            count += 1
    return count


def count_of_keys(data: Dataset, key: str) -> int:
    found = data.issues["found"].str.extract(rf"^([\d,]+) texts? under the key '{key}'$", 1)
    return int(found.drop_nulls().str.replace(",", "").cast(int).sum())


@pytest.mark.parametrize(
    "tool",
    ["openai_messages", "sharegpt", "librechat", "silly_tavern", "chatlog", "claude_ai"],
)
def test_a_text_beside_what_a_message_says_is_counted_whatever_its_key_is(
    tmp_path: Path, tool: str
) -> None:
    paths = [path for path in ALONE if tool in path.parts and path.suffix in (".json", ".jsonl")]
    assert paths, tool
    path = paths[0]
    before = memlab.load(path)
    for text in ("an alder grows here", *UNSPACED):
        values = read_values(path)
        assert add_asides(values, dict.fromkeys(ASIDES, text)) >= before.turns.height
        data = memlab.load(write_values(tmp_path / path.name, values))
        assert data.turns["text"].equals(before.turns["text"])
        for key in ASIDES:
            assert count_of_keys(data, key) >= before.turns.height, (key, text)
    for text in ("an alder", "你好 世界", "来週の", "オスロ 12 34 56"):
        values = read_values(path)
        add_asides(values, dict.fromkeys(ASIDES, text))
        data = memlab.load(write_values(tmp_path / path.name, values))
        assert [count_of_keys(data, key) for key in ASIDES] == [0] * len(ASIDES), text


@pytest.mark.parametrize("text", ["an alder grows here", *UNSPACED])
def test_a_message_whose_content_has_another_key_is_counted_in_every_script(
    tmp_path: Path, text: str
) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "gloss": text}]
    data = memlab.load(write_values(tmp_path / "x.json", [{"title": text, "messages": messages}]))
    assert data.turns["text"].to_list() == ["Hi"]
    assert data.issues["found"].to_list() == ["1 message whose content has an unknown key"]
