"""The pipeline language: what is written is what is run."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import memlab
from memlab import retrieve, select
from memlab.errors import DataError, ModelError, PipelineError
from memlab.pipelines import MAX_REMEMBERED, Pipeline, Stage, pipeline
from memlab.records import Level, Run
from memlab.registry import (
    Clustering,
    ClusterSize,
    Count,
    ModelFile,
    Seed,
    Share,
    Weight,
    clusterers,
    is_retriever,
)
from memlab.registry import stages as registry
from memlab.rerank.llm_grades import GradeNumber
from memlab.retrieve import Bench
from memlab.retrieve.multi_hop import Hops
from memlab.retrieve.query_expansion import KINDS, Kinds
from memlab.retrieve.rank_fusion import ScorerWeights
from memlab.select.outdated_turns_later import Cosine

SHARES = st.floats(0, 1) | st.integers(0, 1)
WEIGHTS = st.floats(0, allow_nan=False, allow_infinity=False) | st.integers(0, 1_000)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    Count: st.integers(1),
    ClusterSize: st.integers(2),
    ClusterSize | None: st.none() | st.integers(2),
    Seed: st.integers(0, 2**32 - 1),
    Share: SHARES,
    Share | None: st.none() | SHARES,
    Weight: WEIGHTS,
    Weight | None: st.none() | WEIGHTS,
    Clustering: st.sampled_from(sorted(clusterers)),
    ModelFile: st.text(),
    ScorerWeights: st.lists(WEIGHTS, min_size=3, max_size=3) | st.tuples(*[WEIGHTS] * 3),
    Kinds: st.lists(st.sampled_from(KINDS), min_size=1, unique=True),
    Hops: st.integers(1, 3),
    Cosine: st.floats(-1, 1),
    GradeNumber: st.integers(0, 3),
    str: st.text(),
    bool: st.booleans(),
    str | None: st.none() | st.text(),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Give values that a parameter takes, by its type."""
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if hint not in VALUES:
        bounds = get_args(hint)[1].metadata
        lowest = next(bound.ge for bound in bounds if hasattr(bound, "ge"))
        return st.integers(max(1, lowest), 1_000)
    return VALUES[hint]


RETRIEVERS = [name for name, function in registry.items() if is_retriever(function)]
TRANSFORMS = [name for name in registry if name not in RETRIEVERS]


def stages(names: list[str]) -> st.SearchStrategy[Stage]:
    def of(name: str) -> st.SearchStrategy[Stage]:
        hints = get_type_hints(registry[name], include_extras=True)
        parameters = inspect.signature(registry[name]).parameters
        keys = [p for p in parameters if p not in ("run", "bench", "level")]
        wanted = {
            key: values_of(hints[key]) if key != "reranker" else st.just("light(window=2)")
            for key in keys
        }
        needed = {
            key: wanted.pop(key)
            for key in keys
            if parameters[key].default is inspect.Parameter.empty
        }
        values = st.fixed_dictionaries(needed, optional=wanted)
        return values.map(lambda held: Stage(name, held))

    return st.sampled_from(sorted(names)).flatmap(of)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench.of(memlab.sample(["owen"], turns=60), encoder="hashing:32")


@given(stages(RETRIEVERS), st.lists(stages(TRANSFORMS), max_size=4))
@example(
    Stage("combsum", {"turn": (1, 0, 2)}), [Stage("cross_encoder", {"model": "a | b'\"\n)\ud800"})]
)
def test_what_is_written_can_be_read(first: Stage, rest: list[Stage]) -> None:
    made = Pipeline((first, *rest))
    read = pipeline(str(made))
    assert read == made
    assert str(pipeline(str(read))) == str(read)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hybrid | mrr",
            r"no stage is called 'mrr' \(did you mean 'mmr'\?\); after the first come .*expand, .*mmr, ",
        ),
        (
            "hibrid",
            r"'hibrid' \(did you mean 'hybrid'\?\); a pipeline begins with best, bm25, .*dense, ",
        ),
        (
            "hybrid | cross_encoder",
            r"stage 'cross_encoder' needs model: write cross_encoder\(model=…\)",
        ),
        ("hybrid | blend(reranker='lite')", "no stage is called 'lite'"),
        ("mmr | hybrid", "'mmr' retrieves nothing and cannot come first"),
        ("hybrid | dense", "'dense' retrieves and can only come first"),
        ("hybrid(kk=3)", "stage 'hybrid' has no parameter 'kk'; it has k"),
        ("hybrid | mmr(lambda=0.7)", "lambda is a word of Python; write lambda_="),
        ("hybrid(200)", "stage 'hybrid': write '200' as key=value"),
        ("hybrid(k=1, k=2)", "k is given twice"),
        ("hybrid(k=n)", "stage 'hybrid': k=n is not a literal"),
        ("hybrid(k=__import__('os').getpid())", "is not a literal"),
        ("", "'' is not a pipeline .* join stages with |"),
        ("hybrid(k=1", "is not a pipeline"),
        (
            "hybrid | (mmr | budget)",
            r"'mmr \| budget' is not a stage; a stage is name or name\(key=value",
        ),
        ("-" * 50_000 + "1", "is not a pipeline"),
        ("(" * 5_000 + "hybrid" + ")" * 5_000, "is not a pipeline"),
        ("hybrid(k=" + "[" * 250 + "]" * 250 + ")", "is not a pipeline"),
        ("hybrid(" + "1" * 3_000 + ")", "write '1"),
        ("hybrid(k=" + "9" * 10_000 + ")", "is not a pipeline"),
    ],
)
def test_what_is_no_pipeline(text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message) as caught:
        pipeline(text)
    assert len(str(caught.value)) < 1_000


@given(st.text(st.sampled_from("hybrid mmr|(),=[]{}'\"01.:*\n#"), max_size=40))
def test_nonsense_is_read_or_refused(text: str) -> None:
    try:
        made = pipeline(text)
    except PipelineError:
        return
    assert pipeline(str(made)) == made


@pytest.mark.parametrize(
    "text",
    [
        "dense(k='5')", "dense(k=None)", "dense(k=True)", "combsum(turn=3)", "combsum(turn='ab')",
        "combsum(turn=(None, 1, 1))", "hybrid | mmr(lambda_='high')",
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_names_its_stage_and_its_type(text: str) -> None:
    with pytest.raises(
        PipelineError, match=r"stage '\w+': \w+ is .*; expected (int|float|float \| None|Sequence)"
    ):
        pipeline(text)
    with pytest.raises(PipelineError, match="a pipeline is text such as"):
        pipeline([text])  # type: ignore[arg-type]


def test_a_value_out_of_range_names_its_stage(bench: Bench) -> None:
    with pytest.raises(PipelineError, match=r"stage 'mmr': lambda_ is 2; expected at most 1"):
        pipeline("hybrid | mmr(lambda_=2)")
    built = Pipeline((Stage("hybrid", {}), Stage("mmr", {"lambda_": 2})))
    with pytest.raises(DataError, match=r"stage 'mmr\(lambda_=2\)': lambda_ is 2"):
        built.run(bench)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("best | by_cluster(n_clusters=0)", "n_clusters is 0; expected at least 1"),
        ("best | by_cluster(min_cluster_size=1)", "min_cluster_size is 1; expected at least 2"),
        ("best | by_cluster(clustering='k')", "clustering is 'k'; choose from kmeans, "),
        ("best | by_cluster(n_clusters=1.5)", "n_clusters is 1.5; expected int"),
        ("best | expand_cluster(branch='x')", r"branch is 'x'; expected int \| None"),
        ("best | dpp(diversity=2)", "diversity is 2; expected at most 1"),
        ("best | blend(reranker='light(window=-1)')", "window is -1; expected at least 0"),
        ("best | second_keys(of='words')", "of is 'words'; expected 'facts', 'summaries' or "),
        ("best | expand(kinds=('lex', 'rm3'))", "kinds is .*; choose from lex, vec, hyde"),
        ("combsum(session=(1, 1))", "session is .*; expected three weights"),
        ("bm25(k=0)", "k is 0; expected at least 1"),
    ],
)
def test_a_value_that_no_stage_takes_is_refused_when_the_text_is_read(
    text: str, message: str
) -> None:
    with pytest.raises(PipelineError, match=message):
        pipeline(text)
    with pytest.raises(PipelineError, match=message):
        memlab.run([text], "no such file", encoder="no such encoder")
    with pytest.raises(PipelineError, match=message):
        memlab.search("no such file", "bread", pipeline=text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bm25 | multi_hop(service='nowhere')", r"no language model 'nowhere' is set"),
        ("bm25 | learned(model='nowhere')", "no model 'nowhere'; make one: memlab train"),
    ],
)
def test_what_is_missing_is_refused_before_anything_is_encoded(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Bench:
        raise AssertionError("a bench was made")

    data = memlab.sample(["owen"], turns=60)
    monkeypatch.setattr(Bench, "of", refuse)
    with pytest.raises(ModelError, match=message):
        memlab.run([text], data, encoder="hashing:32")
    with pytest.raises(ModelError, match=message):
        memlab.search(data, "bread", pipeline=text)
    with pytest.raises(ModelError, match=message):
        memlab.compare([text], data, encoder="hashing:32")


def test_huge_counts_mean_everything(bench: Bench) -> None:
    huge = 10**30
    text = (
        f"hybrid(k={huge}) | mmr(k={huge}) | by_cluster(candidates={huge}) | budget(tokens={huge})"
    )
    assert pipeline(text).run(bench).frame.height == bench.queries.height * bench.turns.height


def test_a_pipeline_is_its_stages_one_after_another_and_a_run_says_so(bench: Bench) -> None:
    by_hand = select.budget(
        select.mmr(retrieve.bm25(bench, k=30), bench, lambda_=0.4), bench, tokens=100
    )
    made = pipeline("bm25(k=30)|mmr(lambda_=0.4)|budget(tokens=100)")
    run = made.run(bench)
    assert run.frame.equals(by_hand.frame)
    assert run.name == str(made)
    assert run.provenance == {**bench.provenance, "pipeline": str(made), "level": "turn"}
    assert pipeline(run.provenance["pipeline"]) == made


def test_later_stages_choose_among_turns_and_sessions_follow(bench: Bench) -> None:
    text = "hybrid | mmr(lambda_=0.3) | budget(tokens=300)"
    chosen = pipeline(text).run(bench)
    of_turn = dict(bench.turns.select("turn_id", "session_id").iter_rows())
    got = pipeline(text).run(bench, level="session").frame
    for (query,), rows in chosen.frame.group_by("query_id", maintain_order=True):
        expected = list(dict.fromkeys(of_turn[d] for d in rows["doc_id"]))
        assert got.filter(query_id=query)["doc_id"].to_list() == expected


def test_what_is_remembered_is_never_stale(bench: Bench) -> None:
    texts = [f"bm25(k={k}) | mmr(lambda_={x}, k=4)" for k in (5, 9, 20) for x in (0.1, 0.5, 1)] * 2
    shared = [pipeline(text).run(bench).frame for text in texts]
    assert len(bench.remembered) <= MAX_REMEMBERED
    for text, frame in zip(texts[:9:2], shared[9::2], strict=True):
        assert pipeline(text).run(replace(bench)).frame.equals(frame)
    for other in (bench.with_query_rows(np.arange(2)), bench.with_queries(bench.queries[:2])):
        ranked = pipeline("hybrid").run(other).frame["query_id"].unique(maintain_order=True)
        assert ranked.to_list() == bench.queries["query_id"].to_list()[:2]


def test_what_comes_before_is_run_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Counter[str]()

    def counted(bench: Bench, *, level: Level = "turn", k: int = 200) -> Run:
        calls["hybrid"] += 1
        return retrieve.hybrid(bench, level=level, k=k)

    monkeypatch.setitem(registry, "hybrid", counted)
    fresh = replace(bench)
    for text in (
        "hybrid",
        "hybrid | mmr",
        "hybrid | mmr | budget",
        "hybrid",
        "hybrid | budget(tokens=50)",
    ):
        pipeline(text).run(fresh)
    assert calls == {"hybrid": 1}
    for _ in range(2):  # an error is not remembered as a ranking
        with pytest.raises(DataError):
            pipeline("hybrid(k=0)").run(fresh)
