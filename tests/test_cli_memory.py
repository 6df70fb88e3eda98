"""The verbs that ask a memory what it knows: what they print, what they write, and how they refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from talk import dialogue, write

from memlab.records import Entity, Fact, IndexEvent, IndexState, Summary, frame
from memlab.store import MemoryStore
from memlab.terminal_text import count_noun

HASHING = ("--encoder", "hashing:64", "--store", "store")
DAYS = [datetime(2023, 5, 1, 9, tzinfo=UTC) + timedelta(days=40 * n) for n in range(3)]


def fact(number: int, session: int, stated: tuple[str, str, str], **parts: Any) -> Fact:
    """Make a fact that the first turn of a session states."""
    about, slot, value = stated
    return Fact(
        f"home-f{number}",
        "home",
        about,
        slot,
        value,
        parts.pop("source", "stated"),
        [f"home/{session}.1"],
        DAYS[session - 1],
        said_by=about,
        session_id=f"home/s{session}",
        **parts,
    )


FACTS = [
    fact(0, 1, ("Ann", "home", "Oslo"), sentence="Ann lives in Oslo."),
    fact(1, 2, ("Ann", "hobby", "sailing with her brother on the fjord"), values="many"),
    fact(2, 2, ("Bo", "trade", "baker"), sentence="Bo is a baker."),
    fact(3, 3, ("Ann", "home", "Bergen"), sentence="Ann lives in Bergen."),
    fact(4, 3, ("Ann", "purchase", "a kayak"), kind="event", since="2023-07"),
    fact(5, 1, ("Bo", "driving test", "booked"), kind="plan", since="2023-06-02"),
    fact(6, 2, ("Cy", "diet", "meat"), source="reported", holds=False),
    fact(7, 2, ("Cy", "rent", "900"), since="2023-08", until="2024-01"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, memlab_cli: Callable[..., Any]) -> Path:
    """A store with two memories of three sessions of 2023, of which the first has facts."""
    place = tmp_path_factory.mktemp("memory")
    said = [
        f"== {scope} {day:%Y-%m-%d}\nAnn: Hello\nBo: Hello"
        for scope in ("home", "work")
        for day in DAYS
    ]
    write(place / "talk.jsonl", dialogue("\n".join(said)))
    done = memlab_cli("ingest", "talk.jsonl", *HASHING, cwd=place)
    assert done.code == 0, done.err
    empty: list[Any] = []
    said = {n: [f"They spoke in home/s{n}."] for n in (1, 2, 3)}
    summaries = [
        Summary(
            f"home/s{n}", "home", f"They spoke in home/s{n}.", said[n], [[f"home/{n}.1"]], ["tea", "sails"],
            ["Ann: Oslo it is."] * (n == 1), [[f"home/{n}.1"]] * (n == 1), ["Bo: I'll call."], [[f"home/{n}.2"]],
            empty, empty, empty, day, DAYS[0], ["Ann"], 2, "x",
        )
        for n, day in enumerate(DAYS, 1)
    ]  # fmt: skip
    towns = [
        Entity(f"e{n}", "home", f"home/s{n}", "Bergen", "place", "", [f"home/{n}.1"])
        for n in (1, 3)
    ]
    parts = {
        "facts": frame(Fact, FACTS),
        "summaries": frame(Summary, summaries),
        "entities": frame(Entity, towns),
    }
    states = [
        IndexState(f"home/s{n}", "home", "indexed", "1", "", "g", 1, None, "x", DAYS[0])
        for n in (1, 2, 3)
    ]
    knowledge = MemoryStore.open(place / "store").knowledge
    knowledge.commit_sessions(
        "talk", rows_by_kind=parts, states=frame(IndexState, states), events=frame(IndexEvent)
    )
    return place


@pytest.fixture
def ask(folder: Path, memlab_cli: Callable[..., Any]) -> Callable[..., str]:
    def run(*arguments: object) -> str:
        done = memlab_cli(*arguments, "--scope", "home", *HASHING, cwd=folder)
        assert done.code == 0, done.err
        assert "--json" in arguments or max(map(len, done.out.splitlines())) <= 100
        return str(done.out)

    return run


@pytest.mark.slow
def test_facts_that_hold_the_latest_first(ask: Any) -> None:
    lines = ask("facts").splitlines()
    assert lines[0].startswith("now: 2023-07-20, the last time in the memory (home ended ")
    assert lines[1] == "7 facts; 1 no longer hold: --all shows them"
    assert lines[2:6] == [
        "1.00  since 2023-07-20",
        "      Ann lives in Bergen.",
        "      Ann, home: Bergen",
        "      home-f3: home/3.1",
    ]
    assert "Oslo" not in "".join(lines)
    ended = ask("facts", "--all", "--slot", "Home")
    assert "[superseded until 2023-07-20]\n      Ann lives in Oslo.\n" in ended
    assert "2 facts" in ended
    assert "… and 6 more; --k prints them" in ask("facts", "--k", 1)
    assert "baker" not in ask("facts", "--person", "ann")
    assert "2 facts" in ask("facts", "--since", "2023-07-20")
    shown = ask("facts", "--session", "s2", "--evidence")
    assert "home/2.1 (Ann): Hello" in shown
    rows = [json.loads(line) for line in ask("facts", "--json", "--all").splitlines()]
    assert [row["status"] for row in rows].count("superseded") == 1
    sentences = {row["fact_id"]: row["sentence"] for row in rows}
    assert sentences["home-f3"] == "Ann lives in Bergen."
    assert sentences["home-f4"] == "Ann purchase a kayak"
    assert {row["kind"] for row in rows} == {"state", "event", "plan"}


def test_events_plans_and_words_of_others_are_told_apart(ask: Any) -> None:
    shown = ask("facts")
    assert "1.00  happened 2023-07\n      Ann purchase a kayak\n      home-f4" in shown
    assert "planned for 2023-06-02  [due 2023-06-02]\n      Bo driving test booked" in shown
    assert "since 2023-08 until 2024-01  [upcoming]\n      Cy rent 900" in shown
    assert "since 2023-08 until 2024-01\n      Cy rent 900" in ask("facts", "--now", "2023-09-02")
    assert "Cy rent" not in ask("facts", "--now", "2024-02-02")
    before = ask("facts", "--as-of", "2023-05-20")
    assert "planned for 2023-06-02\n      Bo driving test booked" in before
    assert "0.40  since 2023-06-10  [denied, words of others]\n      Cy diet" in ask(
        "facts", "--now", "2023-06-11"
    )
    found = ask("recall", "What about the driving test of Bo?", "--k", 1)
    assert "said 2023-05-01  [due 2023-06-02]" in found
    assert "planned for 2023-06-02\n" in found


def test_what_was_active_then_and_how_sure_it_is_now(ask: Any) -> None:
    out = ask("facts", "--as-of", "2023-06-30")
    assert "now: 2023-06-30, as asked" in out
    assert "Ann lives in Oslo." in out
    assert "Bergen" not in out
    # The end of that day: what was said on it counts.
    assert "Bergen" in ask("facts", "--as-of", "2023-07-20")
    assert "0.50  since 2023-07-20" in ask("facts", "--now", "2026-01-01")


def test_facts_of_an_earlier_layout_are_named(memlab_cli: Any, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", dialogue(f"== home {DAYS[0]:%Y-%m-%d}\nAnn: Hello"))
    assert memlab_cli("ingest", "talk.jsonl", *HASHING, cwd=tmp_path).code == 0
    store = MemoryStore.open(tmp_path / "store")
    session = {"session_id": "home/s1", "generation": "g"}
    for name in ("f1", "f2"):
        earlier = {"scope": "home", "fact_id": name, "subject": "Ann", "predicate": "lives in"}
        store.database.upsert_row("facts", name, dataset="talk", **session, **earlier)
    state = IndexState("home/s1", "home", "indexed", "1", "", "g", 1, None, "x", DAYS[0])
    rows = {"states": frame(IndexState, [state]), "events": frame(IndexEvent)}
    store.knowledge.commit_sessions("talk", rows_by_kind={}, **rows)

    line = "2 facts of an earlier layout await memlab index"
    for verb in (["facts"], ["recall", "Where?"]):
        refused = memlab_cli(*verb, *HASHING, cwd=tmp_path)
        assert refused.code == 2
        assert refused.messages[0].endswith(f"nothing was found; {line}")
    info = memlab_cli("info", "--store", "store", cwd=tmp_path).out
    assert f"talk: {line}\n" in info

    store.knowledge.commit_sessions("talk", rows_by_kind={"facts": frame(Fact, FACTS[:1])}, **rows)
    shown = memlab_cli("facts", *HASHING, cwd=tmp_path)
    assert "Ann lives in Oslo." in shown.out
    assert line in shown.err
    assert memlab_cli("index", *HASHING, cwd=tmp_path).code == 0
    assert "earlier layout" not in memlab_cli("info", "--store", "store", cwd=tmp_path).out


@pytest.mark.slow
def test_the_log_and_undo_and_redo(ask: Any, folder: Path, memlab_cli: Any) -> None:
    log = ask("facts", "--log")
    assert "2023-07-20  another value, said by Ann" in log
    assert "      Ann, home: Oslo → Bergen\n" in log
    assert "old: Ann lives in Oslo.  (home-f0)" in log
    assert "evidence: home/3.1" in log
    assert "1 supersession, 0 undone" in log
    assert "home/3.1 (Ann): Hello" in ask("facts", "--log", "--evidence", "--session", "s3")
    assert "0 supersessions" in ask("facts", "--log", "--since", "2023-07-21")
    assert json.loads(ask("facts", "--log", "--json"))["old"] == "home-f0"
    assert "home-f3 ends home-f0 no longer counts" in ask(
        "facts", "--undo", "home-f0", "home-f3", "--why", "two homes"
    )
    # Again, as after a kill: what was noted stays.
    assert "no longer counts" in ask("facts", "--undo", "home-f0", "home-f3")
    assert "8 facts" in ask("facts")
    assert "home-f3 ends home-f0: two homes" in ask("facts", "--log")
    assert "home-f3 ends home-f0 counts again" in ask("facts", "--redo", "home-f0", "home-f3")
    assert "home-f3 ends home-f0 counts again" in ask("facts", "--redo", "home-f0", "home-f3")
    assert "7 facts" in ask("facts")


def test_recall(ask: Any) -> None:
    lines = ask("recall", "Where does Ann live?", "--k", 2).splitlines()
    assert lines[1] == "the question names: Ann"
    assert re.match(
        r"  1  0\.\d+  vector 0\.\d+  graph 0\.\d+  confidence 1\.00  said 2023-07-20", lines[2]
    )
    assert lines[3].strip() == "Ann lives in Bergen."
    assert "Oslo" in ask("recall", "Where does Ann live?", "--all")
    shown = ask("recall", "Why?", "--k", 1, "--sessions", 2)
    assert "nothing that the graph knows" in shown
    assert [rank for rank, _ in re.findall(r"^  (\d)  0\.\d+  \S+  (home/\S+)$", shown, re.M)] == [
        "1",
        "2",
    ]
    then = ask("recall", "Why?", "--as-of", "2023-06-12", "--sessions", 9)
    assert re.findall("spoke in (home/s.)", then) == ["home/s1", "home/s2"]


def test_recall_under_two_settings_side_by_side(ask: Any, tmp_path: Path) -> None:
    question = ("recall", "Where does Ann live?", "--k", 3)
    plain = re.findall(r"^ +(\d+)  0\.\d+ .*\n +(.*)$", ask(*question), re.M)
    assert len(plain) == 3
    same, other = tmp_path / "same.toml", tmp_path / "other.toml"
    same.write_text("")
    shown = ask(*question, "--compare", same)
    pairs = re.findall(r"^ +(\d+) → (\d+) .*\n +(.*)$", shown, re.M)
    assert pairs == [(rank, rank, sentence) for rank, sentence in plain]
    assert "3 of the first 3 are among them by both; 0 of 3 facts change their rank" in shown
    other.write_text("seed = 3\n[confidence]\nbase = {stated = 0.25}\n[recall]\nvector = 0.0\n")
    shown = ask(*question, "--compare", other)
    assert "confidence 1.00 → 0.25" in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is not there; name a file of settings"),
        ("[confidence", "is not valid TOML"),
        ("[confidence]\nbasis = 1", "'confidence.basis'"),
        ("[recall]\nvector = -1", "recall.vector"),
        ("colour = 1", "'colour'"),
    ],
)
def test_settings_that_recall_cannot_compare(
    folder: Path, memlab_cli: Any, tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "other.toml"
    if text is not None:
        file.write_text(text)
    asked = ("recall", "Where does Ann live?", "--scope", "home", "--compare", file)
    done = memlab_cli(*asked, *HASHING, cwd=folder)
    assert done.code == 2
    assert len(done.messages) == 1
    assert said in done.messages[0]


def test_settings_beside_those_that_recall_compares_are_said(
    folder: Path, memlab_cli: Any, tmp_path: Path
) -> None:
    file = tmp_path / "other.toml"
    file.write_text("seed = 3")
    asked = ("recall", "Where does Ann live?", "--scope", "home", "--compare", file)
    done = memlab_cli(*asked, *HASHING, cwd=folder)
    assert done.code == 0
    assert "[confidence] and [recall] are compared, not seed" in done.err


@pytest.mark.parametrize(
    ("kind", "first", "n"),
    [
        ("summaries", ["2023-07-20  home/s3", "      They spoke in home/s3.", "        home/3.1 (Ann): Hello"], 3),
        ("entities", ["2023-07-20  home/s3", "      Bergen (place), 2 sessions since 2023-05-01",
                      "        home/1.1 (Ann): Hello"], 1),
    ],
)  # fmt: skip
def test_what_the_index_made_of_each_kind(ask: Any, kind: str, first: list[str], n: int) -> None:
    lines = ask("list", kind, "--evidence").splitlines()
    assert lines[:4] == [f"{count_noun(n, kind)} of home", *first]


def test_lists_of_a_session_and_a_time_and_as_json(ask: Any) -> None:
    rows = [json.loads(line) for line in ask("list", "topics", "--json", "--k", 1).splitlines()]
    assert len(rows) == 3
    assert all({"at", "session_id", "text", "evidence"} <= row.keys() for row in rows)
    assert ask("list", "topics", "--session", "s1", "--json") == ask(
        "list", "topics", "--session", "home/s1", "--json"
    )
    out = ask("list", "timeline", "--since", "2023-06-01")
    closing = "supersession Ann, home: Oslo → Bergen (another value)"
    assert out.index(closing) < out.index("2023-06-10")
    assert "summary      They spoke in home/s2." in out
    assert "1 entity" in ask(
        "list", "entities", "--session", "s1"
    )  # which a later session names too
    assert "2023-05-01" not in out


def test_a_dry_run_of_the_index_prints_what_it_would_cost(folder: Path, memlab_cli: Any) -> None:
    done = memlab_cli("index", "--dry-run", *HASHING, cwd=folder)
    assert [cell.strip() for cell in done.out.splitlines()[-1].split("|")][1:3] == [
        "talk",
        "6",
    ]  # facts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("facts", "--scope", "work"), "is not indexed"),
        (("facts", "--scope", "home", "--as-of", "2020-01-01"), "said nothing before 2020-01-01"),
        (("facts", "--scope", "home", "--now", "May"), "'May' is no date; write it as 2023-06-30"),
        (("facts", "--scope", "home", "--undo", "home-f1", "home-f2"), "the log has no row"),
        (("facts", "--scope", "home", "--redo", "home-f1", "home-f2"), "was not undone"),
        (("list", "questions", "--scope", "home"), "is indexed, and nothing was found"),
        (
            ("list", "actions", "--scope", "home", "--session", "s9"),
            "has no session 's9'; it has home/s1, home/s2",
        ),
        (("rollup", "--scope", "home"), "name one period"),
        (("rollup", "--scope", "home", "--tree", "--out", "a.pdf"), "end it in .html or .md"),
        (("rollup", "--scope", "home", "--tree", "--over", "days"), "choose weeks or clusters"),
        (("rollup", "--scope", "home", "--month", "2023-05", "--over", "clusters"), "leave --week"),
        (("rollup", "--scope", "work", "--tree", "--over", "clusters"), "too few messages"),
        (("list", "weeks", "--scope", "work"), "memlab rollup --tree writes them"),
        (
            ("list", "clusters", "--scope", "work"),
            "memlab rollup --tree --over clusters writes them",
        ),
        (
            ("recall", "a\udcffb", "--scope", "home"),
            "the question is not valid text: '\\udcff' at 1",
        ),
    ],
)
def test_refusals_are_one_line(
    folder: Path, memlab_cli: Any, arguments: tuple[str, ...], message: str
) -> None:
    done = memlab_cli(*arguments, *HASHING, cwd=folder)
    assert done.code == 2, (done.out, done.err)
    assert len(done.messages) == 1
    assert message in done.messages[0]


@pytest.mark.slow
def test_a_rollup_is_printed_kept_and_written_as_a_page(
    memlab_cli: Callable[..., Any], tmp_path: Path
) -> None:
    said = [f"== home {day:%Y-%m-%d}\nAnn: I saw {day:%B}\nBo: Hello" for day in DAYS]
    write(tmp_path / "talk.jsonl", dialogue("\n".join(said)))

    def run(*arguments: object) -> Any:
        done = memlab_cli(*arguments, *HASHING, cwd=tmp_path)
        assert done.code == 0, done.err
        return done

    run("ingest", "talk.jsonl")
    month = run("rollup", "--month", "2023-05")
    assert month.out.splitlines()[0] == "# home: May 2023"
    part = run("list", "months")
    assert "1 month of home" in part.out
    assert "4 messages of home stand in none of them; memlab rollup --tree writes what" in part.err
    for name in ("home.html", "home.md"):
        assert run("rollup", "--tree", "--out", name).out.strip() == f"9 summaries: {name}"
    assert (tmp_path / "home.html").read_text().count('<details class="node">') == 9
    printed = run("rollup", "--tree").out.strip()
    assert printed == (tmp_path / "home.md").read_text().strip()
    lines = printed.splitlines()
    assert lines[0] == "# home: 3 months, 3 weeks, 3 sessions"
    sentence = next(line for line in lines if line.startswith("- Ann: I saw June [3](#m3)"))
    assert sentence.count("](#m") == 1
    (message,) = [line for line in lines if '<a id="m3"></a>' in line]
    assert message.endswith("(2023-06-10 09:01, Ann): I saw June")
    whole = run("list", "months", "--evidence")
    assert "3 months of home" in whole.out
    assert "(Ann): I saw June" in whole.out
    assert "none of them" not in whole.err
    assert run("rollup", "--month", "2023-05").out == month.out
    assert "May" in run("rollup", "--month", "2023-05", "--tree").out
    # A later message, and the index brings the whole tree up to date.
    said.append("== home 2023-08-29\nAnn: I saw August\nBo: Hello")
    write(tmp_path / "talk.jsonl", dialogue("\n".join(said)))
    run("ingest", "talk.jsonl")
    assert "1 rollup brought up to date" in run("index").out
    assert "4 months of home" in run("list", "months").out


@pytest.mark.slow
def test_a_list_names_the_command_that_wrote_its_tree(
    memlab_cli: Callable[..., Any], tmp_path: Path
) -> None:
    texts = [f"I saw {n} seals by the pier and {n + 3} gulls" for n in range(15)]
    texts += [f"The oven needs {n} bricks for its {n + 2} walls" for n in range(15)]
    said = [f"== home {DAYS[0]:%Y-%m-%d}", *(f"Ann: {text}" for text in texts)]
    write(tmp_path / "talk.jsonl", dialogue("\n".join(said)))

    def run(*arguments: object) -> Any:
        done = memlab_cli(*arguments, *HASHING, cwd=tmp_path)
        assert done.code == 0, done.err
        return done

    run("ingest", "talk.jsonl")
    run("rollup", "--tree", "--tz", "Asia/Tokyo")
    run("rollup", "--tree", "--over", "clusters")
    said += [f"== home {DAYS[2]:%Y-%m-%d}", "Ann: A kayak it is"]
    write(tmp_path / "talk.jsonl", dialogue("\n".join(said)))
    run("ingest", "talk.jsonl")
    missing = "1 message of home stand in none of them"
    weeks = run("list", "weeks").err
    assert f"{missing}; memlab rollup --tree --tz Asia/Tokyo writes what is new" in weeks
    clusters = run("list", "clusters").err
    assert f"{missing}; memlab rollup --tree --over clusters writes what is new" in clusters


@pytest.mark.slow
def test_a_dry_run_asks_no_service_for_vectors_and_loads_an_encoder_once(
    memlab_cli: Callable[..., Any], tmp_path: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memlab.cli import shared_options

    table = f'[llm.services.lab]\nbase_url = "{server.url}"\nmodel = "m"\n'
    (tmp_path / "memlab.toml").write_text(table)
    for name in ("first", "second"):
        said = [f"== {name} {day:%Y-%m-%d}\nAnn: I saw {day:%B}\nBo: Hello" for day in DAYS]
        write(tmp_path / f"{name}.jsonl", dialogue("\n".join(said)))
        for arguments in (("ingest", f"{name}.jsonl"), ("rollup", "--tree", "--dataset", name)):
            assert memlab_cli(*arguments, *HASHING, cwd=tmp_path).code == 0

    loaded = list[str]()
    load_encoder = shared_options.load_encoder

    def counted(chosen: Any, *arguments: Any) -> Any:
        loaded.append(chosen.encoder)
        return load_encoder(chosen, *arguments)

    monkeypatch.setattr(shared_options, "load_encoder", counted)
    dry_run = ("index", "--dry-run", "--store", "store")
    done = memlab_cli(*dry_run, "--encoder", "hashing:64", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert loaded == ["hashing:64"]
    done = memlab_cli(*dry_run, "--encoder", "endpoint:lab", cwd=tmp_path)
    assert done.code == 0
    assert "weeks, months and clusters of 2 datasets are not counted" in done.err
    assert loaded == ["hashing:64"]
    assert server.requests == []
