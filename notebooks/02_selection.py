# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does choosing differently among the candidates complete the answer?
#
# On the committed sample (four invented memories, 178 questions with evidence in several sessions, 95 % intervals):
#
# - Of 128 tests of other ways to choose among the candidates, 0 are significantly better than taking the first ten (6.7
#   % complete), 3 are worse, 79 are equivalent within ± 5 %, and 46 are inconclusive.
# - Differences from 7.0 % would have been seen with the default settings, in the sweep of 64 tests from 8.5 %.
# - The best setting, `expand_cluster` with cluster_size = 2, brings +2.8 % [-0.6 %, +6.7 %], p = 0.227 before
#   correction.
#
# ![Paired differences of every selector to the plain ranking](../figures/gallery/sample-selection-tests.png)
#
# The same candidates, chosen in many ways: by relevance less similarity (MMR, DPP, MSD), by clusters (the best of each,
# or all that resembles a hit), by sessions, and by what covers the question. At an equal number of turns and at an
# equal token budget, with paired tests against the plain ranking.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
base = "combsum"
k = 10
selectors = [
    "mmr",
    "dpp",
    "msd",
    "by_cluster",
    "by_cluster(clustering='hdbscan')",
    "expand_cluster",
    "expand_cluster(clustering='hdbscan')",
    "fill_sessions",
    "coverage",
]
swept_over = {
    "mmr(lambda_={lambda_})": [0.3, 0.5, 0.7, 0.9],
    "dpp(diversity={diversity})": [0.1, 0.3, 0.5, 0.7],
    "msd(diversity={diversity})": [0.02, 0.05, 0.1, 0.3],
    "by_cluster(n_clusters={n_clusters})": [2, 5, 20],
    "by_cluster(clustering='hdbscan', min_cluster_size={min_cluster_size})": [2, 5, 10],
    "expand_cluster(seeds={seeds})": [1, 3, 5],
    "expand_cluster(cluster_size={cluster_size})": [2, 5, 10],
    "fill_sessions(sessions={sessions})": [2, 3, 5, 8, 10],
    "coverage(lambda_={lambda_})": [0.1, 0.5, 0.9],
}
margin = 0.05  # a difference in the share of complete answers that does not matter
adaptive_k = [3, 5, 10, 20, 30]
tokens = [200, 400, 800, 1600]

# %% jupyter={"source_hidden": true}
import math
from dataclasses import replace

import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import cluster, evaluate
from memlab.experiments import sweep
from memlab.figures import export, selection, sweeps
from memlab.select import budget
from memlab.terminal import markdown

evaluate.show_tables()

# %% jupyter={"source_hidden": true}
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
data

# %% [markdown]
# ## The first k turns
#
# Each way of choosing with its default settings: nothing is tuned to these questions. All tests here are one family, so
# Holm's correction is over all of them. `detectable` is the difference that a comparison would have shown in four of five
# cases, given how many questions it changes; `p_equal` tests the claim that there is no difference beyond the margin. What
# is neither significantly different nor significantly equivalent is inconclusive.

# %% jupyter={"source_hidden": true}
measures = [f"recall_all@{k}", f"recall_all@{2 * k}"]
cutoffs = sorted({1, 2, 3, 5, k, 2 * k, 50})
short = pl.col("system").str.strip_prefix(f"{base} | ")
done = memlab.run(
    [base, *(f"{base} | {selector}" for selector in selectors)],
    data,
    bench=bench,
    levels=["turn"],
    measures=[f"recall_all@{n}" for n in cutoffs],
    seed=seed,
)
plain, plain_run = done.reports[0], done.runs[0]
by, _ = evaluate.hard_group(plain.per_query)
several = by == "evidence_sessions"
where = pl.col("n_evidence_sessions") >= 2 if several else pl.lit(True)
which = "with evidence in two or more sessions" if several else "with evidence"
hard = plain.per_query.filter(where)
n, n_scopes = hard.height, hard["scope"].n_unique()
# Questions on one conversation hang together: where there are conversations enough, they are resampled, not questions.
unit = "scope" if n_scopes >= evaluate.ENOUGH_SCOPES else "query"
Markdown(
    f"{n:,} questions {which}, of {n_scopes} conversations. "
    + (
        "Conversations are resampled."
        if unit == "scope"
        else f"Questions are resampled: of fewer than {evaluate.ENOUGH_SCOPES} conversations too little is known, so that "
        "intervals and tests speak of questions to these people, not of other people."
    )
)

# %% jupyter={"source_hidden": true}
drawn = [base, *(f"{base} | {name}" for name in ("mmr", "by_cluster", "expand_cluster", "fill_sessions"))]
rivals = [report for report in done.reports if report.name in drawn]
points = pl.concat(
    evaluate.compare(rivals, measure=f"recall_all@{cut}", where=where).with_columns(
        value=pl.lit(cut), parameter=pl.lit("k"), baseline=pl.col("mean").first(), line=pl.lit("chosen")
    )[1:]
    for cut in cutoffs
)
points = points.with_columns(short, low=pl.col("baseline") + pl.col("low"), high=pl.col("baseline") + pl.col("high"))
fig = sweeps.sweep(points, panel="system", series="line", measure="recall_all@k", reference=f"{base} alone", log_x=True)
caption = (
    f"Complete recall over k of four ways to choose among the candidates of {base} ({data.name}, questions {which}, n = "
    f"{n:,}); grey: {base} alone; bars: 95 % intervals of the paired difference to it, about the mean."
)
export(fig, "selection-recall", data=points, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% jupyter={"source_hidden": true}
tested = evaluate.verdicts(
    [
        evaluate.compare(done.reports, measure=measure, where=where, unit=unit).with_columns(measure=pl.lit(measure))
        for measure in measures
    ],
    margin=margin,
).with_columns(short)
brief = ["system", "difference", "low", "high", "p_holm", "detectable", "p_equal", "verdict"]
tested.drop_nulls("p").select("measure", *brief)

# %% jupyter={"source_hidden": true}
fig = selection.forest(tested.with_columns(baseline=pl.lit(base)), measure="recall_all@k")
caption = (
    f"Every selector with its defaults: paired differences to {base} in {' and '.join(measures)} ({data.name}, "
    f"questions {which}, n = {n:,}); 95 % bootstrap intervals, p of paired randomisation tests after Holm's correction "
    f"over all {tested['p'].count()} tests."
)
export(fig, "selection-tests", data=tested, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Every setting
#
# The bars are intervals of the paired difference to the plain ranking, drawn about the mean: a bar that crosses the
# grey line shows no difference.

# %% jupyter={"source_hidden": true}
parts = []
for template, values in swept_over.items():
    part = sweep(f"{base} | {template}", values, plain, bench, data, measure=measures)
    name = template.partition("(")[0] + (", hdbscan" if "hdbscan" in template else "")
    parts.append(part.with_columns(pl.col("value").cast(pl.Float64), system=pl.lit(name), panel=pl.lit(template)))
swept = evaluate.verdicts(parts, margin=margin)
heads = {
    template: f"({chr(97 + i)}) {name}"
    for i, (template, name) in enumerate(swept.select("panel", "system").unique(maintain_order=True).iter_rows())
}
swept = swept.with_columns(pl.col("panel").replace(heads))
beside = pl.format("{}, {} = {}", "system", "parameter", "value").alias("system")
of_all = swept.select("measure", beside, *brief[1:])
of_all.sort("p_holm", "difference", maintain_order=True).head(12)

# %% jupyter={"source_hidden": true}
drawn = swept.with_columns(low=pl.col("baseline") + pl.col("low"), high=pl.col("baseline") + pl.col("high"))
fig = sweeps.sweep(drawn, panel="panel", series="measure", measure="recall_all@k", reference=f"{base} alone")
caption = (
    f"{' and '.join(measures)} over the parameters of every selector ({data.name}, questions {which}, n = {n:,}); grey: "
    f"{base} alone; bars: 95 % intervals of the paired difference to it, about the mean, not corrected for their number."
)
export(fig, "selection-sweep", data=swept, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## As many turns on average, dealt out by question
#
# `adaptive` keeps the order and gives more turns to questions that count or list, or whose scores do not stand out. It
# is held against a fixed k that is its mean over all questions: where that lies between two whole numbers, against both
# in proportion, as if each question drew one of them.

# %% jupyter={"source_hidden": true}
deep = "recall_all@1000"
asked_of = {"all questions": pl.lit(True)} | ({"evidence in ≥ 2 sessions": where} if several else {})
parts = []
for wanted in adaptive_k:
    dealt = evaluate.evaluate(
        memlab.pipeline(f"{base} | adaptive(k={wanted})").run(bench), data, measures=[deep], seed=seed
    )
    mean_k = dealt.per_query["n_retrieved"].mean()
    least, most = (
        evaluate.evaluate(plain_run.top(whole), data, measures=[deep], seed=seed)
        for whole in (math.floor(mean_k), math.ceil(mean_k))
    )
    share = mean_k % 1
    mixed = (1 - share) * least.per_query[deep] + share * most.per_query[deep]
    fixed = replace(least, per_query=least.per_query.with_columns(mixed.alias(deep)))
    for said, rows in asked_of.items():
        held = evaluate.compare([fixed, dealt], measure=deep, where=rows, unit=unit)
        kept_of = dealt.per_query.filter(rows)["n_retrieved"].mean()
        parts.append(
            held[1:].with_columns(
                group=pl.lit(said), value=pl.lit(mean_k), baseline=held["mean"][0], turns=pl.lit(kept_of)
            )
        )
dealt_out = evaluate.verdicts(parts, margin=margin)
dealt_out.select("group", "value", "baseline", *brief[1:])

# %% jupyter={"source_hidden": true}
shown = dealt_out.with_columns(
    parameter=pl.lit("mean number of turns kept"),
    system=pl.lit("adaptive"),
    low=pl.col("baseline") + pl.col("low"),
    high=pl.col("baseline") + pl.col("high"),
    panel=pl.format("{} (n = {})", "group", "n"),
    # Two groups of questions at two heights: each its own axis.
    ylabel=pl.format("recall_all, {}", pl.col("group").str.replace("evidence in ", "").str.replace(" questions", "")),
)
fig = sweeps.sweep(shown, panel="panel", reference="a fixed k of the same mean")
caption = (
    f"Complete recall of adaptive k over the mean number of turns that it keeps, and of {base} at a fixed k of the same "
    f"mean ({data.name}); bars: 95 % intervals of the paired difference, about the mean."
)
export(fig, "selection-adaptive", data=shown, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## At an equal token budget
#
# A model's context is paid in tokens, not in turns: short turns let more evidence in.

# %% jupyter={"source_hidden": true}
parts = []
for t in tokens:
    cut = [budget(run, bench, tokens=t) for run in done.runs]
    reports = [evaluate.evaluate(run, data, measures=[deep], seed=seed) for run in cut]
    held = evaluate.compare(reports, measure=deep, where=where, unit=unit)
    parts.append(
        held[1:].with_columns(
            system=pl.Series(selectors),
            value=pl.lit(t),
            baseline=held["mean"][0],
            turns=pl.Series([report.per_query.filter(where)["n_retrieved"].mean() for report in reports[1:]]),
        )
    )
budgeted = evaluate.verdicts(parts, margin=margin).with_columns(
    parameter=pl.lit("tokens"),
    bar_low=pl.col("baseline") + pl.col("low"),
    bar_high=pl.col("baseline") + pl.col("high"),
)
budgeted.select("value", *brief).sort("p_holm", "difference", maintain_order=True).head(12)

# %% jupyter={"source_hidden": true}
shown = budgeted.with_columns(
    low="bar_low",
    high="bar_high",
    panel=pl.col("system").str.replace(r"\(clustering='hdbscan'\)", ", hdbscan"),
    line=pl.lit("chosen"),
)
fig = sweeps.sweep(
    shown, panel="panel", series="line", measure="recall_all", reference=f"{base} alone, same tokens", log_x=True
)
caption = (
    f"Complete recall in a budget of tokens, for every selector with its defaults ({data.name}, questions {which}, n = "
    f"{n:,}); grey: {base} alone; bars: 95 % intervals of the paired difference to it, about the mean."
)
export(fig, "selection-budget", data=shown, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Why: how similar the evidence items are
#
# If the pieces of an answer resemble each other more than other turns do, a rule against likeness works against the
# answer. (`similarity-structure` of `01` draws these pairs.)

# %% jupyter={"source_hidden": true}
turns = bench.documents("turn")
rows = data.questions.with_row_index("row").join(hard.select("query_id"), on="query_id", how="semi")["row"].to_numpy()
asked = data.questions[rows]
pairs = cluster.pair_similarity(
    turns.vectors(),
    turns.ids.tolist(),
    asked,
    question_embeddings=bench.query_vectors[rows],
    turns=data.turns,
    seed=seed,
)
pairs.group_by("kind", maintain_order=True).agg(pl.len(), median=pl.col("similarity").median())

# %% [markdown]
# ## Finding

# %% jupyter={"source_hidden": true}
families = {"defaults": tested, "every setting": swept, "equal tokens": budgeted, "adaptive k": dealt_out}
judged = pl.concat(
    table.drop_nulls("verdict").select(pl.lit(name).alias("family"), "verdict") for name, table in families.items()
)
kinds = ["better", "worse", "equivalent", "inconclusive"]
judged.group_by("family", maintain_order=True).agg((pl.col("verdict") == kind).sum().alias(kind) for kind in kinds)

# %% jupyter={"source_hidden": true}
default = tested.filter(pl.col("measure") == measures[0])
top = swept.sort("difference", descending=True, maintain_order=True).row(0, named=True)
n_of = {kind: (judged["verdict"] == kind).sum() for kind in kinds}
least = [table["detectable"].min() for table in (tested, swept)]
seen = ["no size" if size is None else f"{size:.1%}" for size in least]
lines = [
    f"- {markdown(data.name)}, {n:,} questions {which}: plain {base} completes {default['mean'][0]:.1%} in the first {k}. Of "
    f"{judged.height} tests in {len(families)} families {n_of['better']} ways to choose are significantly better, "
    f"{n_of['worse']} worse, {n_of['equivalent']} equivalent within ± {margin:.0%}, {n_of['inconclusive']} inconclusive.",
    f"- Inconclusive is not “no difference”: with defaults ({tested['p'].count()} tests) differences from "
    f"{seen[0]} would have been seen, in the sweep ({swept.height} tests) from {seen[1]}.",
    f"- The best of all settings, `{top['system']}` with {top['parameter']} = {top['value']:g}, changes {top['measure']} by "
    f"{top['difference']:+.1%} [{top['low']:+.1%}, {top['high']:+.1%}], p = {top['p_holm']:.3f} after "
    f"correction ({top['p']:.3f} before).",
]
display(Markdown("\n".join(lines)))
