"""A failed call says which argument was wrong; what works, and what is the caller's own fault, passes."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

import memlab
from memlab import DataError, MemlabError, StoreError
from memlab.argument_errors import evaluate_parameter_types, fits_type
from memlab.errors import explained
from memlab.knowledge import active_facts, confidence, resolve
from memlab.records import Dataset, Fact, frame
from memlab.records.dataset import convert_to_polars


@pytest.fixture(scope="module")
def data() -> Dataset:
    return memlab.sample(["owen"], turns=60)


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (np.int64(3), int, True),
        (2, float, True),
        (2.5, int, False),
        ("tea", Sequence[str], False),  # letters are never meant
        (["tea"], Sequence[str], True),
        (["tea", 5], Sequence[str], False),
        (pl.Series(["tea"]), Sequence[str], True),
        (np.zeros(2), list[Fact], False),
        (np.array(3), Sequence[int], False),
        ({"a": 1}, Mapping[str, int], True),
        ({"a": None}, Mapping[str, int], False),
        (("a", 1), tuple[str, int], True),
        ((1, "a"), tuple[str, int], False),
        (None, str | None, True),
        ("week", Literal["day", "week"], True),
        ([], Literal["day", "week"], False),
        (print, Iterable[int], False),
    ],
)
def test_a_value_fits_a_type_where_a_call_could_use_it(
    value: Any, hint: Any, expected: bool
) -> None:
    assert fits_type(value, hint) is expected


def test_a_type_that_is_imported_for_the_checker_alone_is_known(data: Dataset) -> None:
    hints = evaluate_parameter_types(memlab.search)
    assert fits_type(data, hints["data"])
    assert fits_type("log.jsonl", hints["data"])
    assert not fits_type(5, hints["data"])


OWN: dict[str, Any] = {"__name__": "memlab.counting", "explained": explained}
exec(  # as code of memlab: what others raise passes
    """
from __future__ import annotations
from collections.abc import Iterable, Iterator

class PanicException(BaseException):
    pass

@explained
def count_words(text: str, *, least: int = 1) -> int:
    return sum(len(word) >= least for word in text.split())

@explained
def shout_all(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield text.upper()

@explained
def parse(text: str) -> str:
    raise PanicException("called unwrap on None")
""",
    OWN,
)
count_words, shout_all, parse = OWN["count_words"], OWN["shout_all"], OWN["parse"]


def test_the_wrong_argument_is_named_and_the_cause_kept() -> None:
    with pytest.raises(DataError, match=r"^count_words: text is 7; expected str$") as raised:
        count_words(7)
    assert isinstance(raised.value.__cause__, AttributeError)
    with pytest.raises(DataError, match=r"^count_words: least is 'x'; expected int$"):
        count_words("a b", least="x")
    with pytest.raises(DataError, match=r"^shout_all: texts is a list; expected Iterable\[str\]$"):
        list(shout_all(["a", 5]))
    with pytest.raises(TypeError, match="unexpected keyword"):
        count_words("a", most=3)


def test_what_the_callers_own_code_raises_passes_as_it_is(data: Dataset) -> None:
    def texts() -> Iterator[str]:
        yield "a"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        list(shout_all(texts()))
    bench = memlab.Bench.of(data, encoder=None)
    with pytest.raises(ZeroDivisionError):
        bench.show(memlab.pipeline("bm25").run(bench, level="turn")).text_of(1 / 0)  # type: ignore[misc]


def test_a_panic_is_an_error_like_any_other() -> None:
    with pytest.raises(DataError, match="parse: PanicException: called unwrap"):
        parse("tea")
    with pytest.raises(MemlabError, match="text"):
        memlab.search(memlab.sample(["owen"], turns=60), "\ud800 tea", pipeline="bm25")


def test_an_explained_function_is_the_one_that_its_module_defines() -> None:
    assert inspect.signature(memlab.search).parameters["k"].default == 10
    assert memlab.evaluate.evaluate.__globals__["__name__"] == "memlab.evaluate.evaluation_report"
    assert pickle.loads(pickle.dumps(memlab.load)) is memlab.load
    assert pickle.loads(pickle.dumps(memlab.retrieve.bm25)) is memlab.retrieve.bm25


CALLS = {
    "a number for a file": (lambda: memlab.load(5), "load: path is 5"),  # type: ignore[arg-type]
    "a number for data": (lambda: memlab.search(5, "tea"), "search: data is 5"),  # type: ignore[arg-type]
    "a list for a place": (lambda: memlab.MemoryStore.open([]), "uri is a list"),  # type: ignore[arg-type]
    "no place": (lambda: memlab.MemoryStore.open(" "), "names no place"),
    "half a character": (lambda: memlab.load("a\ud800"), "a"),
    "settings": (lambda: memlab.config.Settings(seed="x"), "Settings: .*seed"),  # type: ignore[arg-type]
    "a level": (lambda: memlab.Run(pl.DataFrame(), "turns"), "has no column 'query_id'"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CALLS)
def test_public_calls_with_wrong_types_are_one_error(name: str) -> None:
    call, said = CALLS[name]
    with pytest.raises(MemlabError, match=said):
        call()


def test_frames_of_other_libraries_are_taken_and_others_refused(data: Dataset) -> None:
    from dataclasses import replace

    for turns in (data.turns.lazy(), data.turns.to_arrow()):
        taken = replace(data, turns=turns)
        assert taken.turns.equals(data.turns)
        assert taken.fingerprint() == data.fingerprint()
    with pytest.raises(DataError, match="turns has no column 'text'; it needs turn_id, scope"):
        replace(data, turns=data.turns.drop("text"))
    with pytest.raises(DataError, match="questions is a list; expected a frame"):
        replace(data, questions=[])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="language is 'ja'; choose from ar"):
        replace(data, language="ja")
    assert convert_to_polars(pl.LazyFrame({"a": [1]}), "rows", ["a"]).rows() == [(1,)]
    pandas = pytest.importorskip("pandas")
    assert convert_to_polars(pandas.DataFrame({"a": [1]}), "rows", ["a"]).rows() == [(1,)]


def test_a_time_may_be_in_any_zone() -> None:
    may = datetime(2026, 5, 1, tzinfo=UTC)
    june = datetime(2026, 6, 1, tzinfo=UTC)
    facts = frame(
        Fact,
        [
            Fact("f1", "u", "Ann", "flat", "Oslo", "stated", [], may),
            Fact("f2", "u", "Ann", "flat", "Bergen", "stated", [], june),
        ],
    )
    kiribati = timezone(timedelta(hours=14))
    for at in (datetime(2026, 6, 1, 13, tzinfo=kiribati), datetime(2026, 5, 31, 23)):
        known = memlab.knowledge.resolve(facts, as_of=at, now=at)
        assert known.facts["fact_id"].to_list() == ["f1"]
        known = memlab.knowledge.resolve(facts)
        active = memlab.knowledge.active_facts(known, as_of=at)
        assert active["value"].to_list() == ["Oslo"]
    rows = pl.DataFrame({"source": ["stated"], "n_reinforced": [0], "superseded": [False]})
    rows = rows.with_columns(last_access=pl.lit(may))
    aged = memlab.knowledge.score(rows, now=datetime(2026, 5, 2, 14, tzinfo=kiribati))
    assert aged["age_days"].to_list() == [1.0]


def test_a_file_is_searched_and_an_id_comes_before_a_name_of_its_form(tmp_path: Path) -> None:
    rows = [
        '{"scope": "a/b", "sender": "Ann", "text": "I like tea."}',
        '{"scope": "a%2Fb", "sender": "Bo", "text": "I like coffee."}',
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(rows))
    for given in (log, str(log)):
        found = memlab.search(given, "tea", pipeline="bm25", encoder="hashing:64")
        assert found["text"].to_list() == ["I like tea."]
    data = memlab.load(log)
    assert sorted(data.scopes) == ["a%252Fb", "a%2Fb"]
    store = memlab.MemoryStore.open(tmp_path / "store")
    store.ingest(data)
    for where in (data, store):
        for scope, text in (
            ("a%2Fb", "I like tea."),
            ("a/b", "I like tea."),
            ("a%252Fb", "I like coffee."),
        ):
            asked = {"scope": scope, "pipeline": "bm25", "encoder": "hashing:64"}
            assert memlab.search(where, "like", **asked)["text"].to_list() == [text]
    log.write_text(rows[1])
    again = memlab.search(log, "like", pipeline="bm25", encoder="hashing:64")
    assert again["text"].to_list() == ["I like coffee."]
    with pytest.raises(StoreError):
        memlab.MemoryStore.open("")


class ForeignFrame:
    """Stands for a frame of pandas, which may be missing: it has columns, and lists them."""

    columns = ("scope", "text")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __dataframe__(self) -> None:
        raise NotImplementedError


FRAMES = (pl.DataFrame({"text": ["tea"]}), pl.LazyFrame({"text": ["tea"]}), ForeignFrame())


@pytest.mark.parametrize("given", FRAMES, ids=lambda each: type(each).__name__)
def test_a_frame_where_a_dataset_is_meant_is_one_error_that_says_what_to_give(given: Any) -> None:
    calls = (
        lambda: memlab.search(given, "tea", encoder=""),
        lambda: memlab.run("bm25", given, encoder=None),
        lambda: memlab.run("bm25", [given], encoder=None),
        lambda: memlab.compare("bm25", given, encoder=None),
        lambda: memlab.answer_questions("bm25", given, encoder=None),
    )
    for call in calls:
        with pytest.raises(DataError, match=r"is a frame .*path of a file: write its rows"):
            call()


def test_a_path_is_taken_where_a_dataset_is_meant() -> None:
    path = "data/sample/sample.jsonl"
    whole = memlab.sample()
    for given in (path, Path(path)):
        found = memlab.search(given, "What did the bookcase cost?", scope="owen", pipeline="bm25")
        asked = memlab.search(whole, "What did the bookcase cost?", scope="owen", pipeline="bm25")
        assert found.equals(asked)
    done = memlab.run("bm25", path, encoder=None, levels="turn")
    assert done.data.fingerprint() == whole.fingerprint()


MAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
ZONES = (timezone(timedelta(hours=9)), timezone(timedelta(hours=-7)), ZoneInfo("America/New_York"))


@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_the_same_moment_in_any_zone_gives_the_same_facts_and_confidence(zone: Any) -> None:
    dates = [MAY - timedelta(hours=2), MAY + timedelta(hours=2)]
    rows = [
        Fact(f"f{n}", "u", "Ann", "key", f"k{n}", "stated", [], day) for n, day in enumerate(dates)
    ]
    facts, moment = frame(Fact, rows), MAY.astimezone(zone)
    for options in ({"as_of": moment}, {"now": moment}):
        in_utc = dict.fromkeys(options, MAY)
        assert resolve(facts, **options).facts.equals(resolve(facts, **in_utc).facts)
    known = resolve(facts)
    assert active_facts(known, as_of=moment)["value"].to_list() == ["k0"]
    scored = confidence.score(known.facts, now=MAY)
    assert confidence.score(known.facts, now=moment).equals(scored)
    local = known.facts.with_columns(pl.col("last_access").dt.convert_time_zone("Asia/Tokyo"))
    assert confidence.score(local, now=moment)["confidence"].equals(scored["confidence"])


def test_lazy_and_foreign_frames_of_facts_are_taken() -> None:
    facts = frame(Fact, [Fact("f1", "u", "Ann", "key", "k1", "stated", ["u/s/1"], MAY)])
    known = resolve(facts)
    assert resolve(facts.lazy()).facts.equals(known.facts)
    assert resolve(facts.to_arrow()).facts.equals(known.facts)
    scored = confidence.score(known.facts, now=MAY)
    assert confidence.score(known.facts.lazy(), now=MAY).equals(scored)
    with pytest.raises(DataError, match="facts is a list"):
        resolve([{"fact_id": "f1"}])
