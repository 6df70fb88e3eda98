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
# - A difference of 7.0 % to 9.0 % would have been seen with the default settings, in the sweep of 64 tests one of 8.5 %
#   to 10.0 %. The best setting, `expand_cluster` with cluster_size = 2, brings +2.8 % [-0.6 %, +6.7 %], p = 0.227
#   before correction.
# - More evidence comes in than goes out of the first 10 with `by_cluster(clustering='hdbscan')` and `fill_sessions`,
#   less with MMR, DPP, MSD, k-means and both forms of `expand_cluster`.
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
limit = 100

# %% jupyter={"source_hidden": true}
import math
from dataclasses import replace

import numpy as np
import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import cluster, evaluate
from memlab.evaluate.exchange import exchange, exchanged
from memlab.evaluate.kept import kept
from memlab.experiments import sweep
from memlab.figures import export, selection, sweeps
from memlab.select import budget, kept_text

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
# is neither shown to differ nor shown to be as good is open.

# %% jupyter={"source_hidden": true}
measures = [f"recall_all@{k}", f"recall_all@{2 * k}"]
cutoffs = sorted({1, 2, 3, 5, k, 2 * k, 50})
short = pl.col("system").str.strip_prefix(f"{base} | ")
done = memlab.run_pipelines(
    [base, *(f"{base} | {selector}" for selector in selectors)],
    bench,
    data,
    levels=["turn"],
    measures=[f"recall_all@{n}" for n in cutoffs],
    seed=seed,
)
plain, plain_run = done.reports[0], done.runs[0]
by, _ = evaluate.hard_group(plain)
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
    evaluate.compare(rivals, measure=f"recall_all@{cut}", where=where, seed=seed).with_columns(
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
        evaluate.compare(done.reports, measure=measure, where=where, unit=unit, seed=seed).with_columns(
            measure=pl.lit(measure)
        )
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
swept = pl.concat(parts).with_columns(
    low=pl.col("baseline") + pl.col("difference_low"),
    high=pl.col("baseline") + pl.col("difference_high"),
)
swept = evaluate.verdicts([swept.with_columns(n=pl.lit(n))], margin=margin)
heads = {
    template: f"({chr(97 + i)}) {name}"
    for i, (template, name) in enumerate(swept.select("panel", "system").unique(maintain_order=True).iter_rows())
}
swept = swept.with_columns(pl.col("panel").replace(heads))
beside = pl.format("{}, {} = {}", "system", "parameter", "value").alias("system")
of_all = swept.select("measure", beside, "difference", "difference_low", "difference_high", *brief[4:])
of_all.sort("p_holm", "difference", maintain_order=True).head(12)

# %% jupyter={"source_hidden": true}
fig = sweeps.sweep(swept, panel="panel", series="measure", measure="recall_all@k", reference=f"{base} alone")
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
        held = evaluate.compare([fixed, dealt], measure=deep, where=rows, unit=unit, seed=seed)
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
    held = evaluate.compare(reports, measure=deep, where=where, unit=unit, seed=seed)
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
# ## Whole turns, their beginnings, or their best sentences
#
# A shortened turn lets others in, and may lose what it was found for: complete recall by id does not see that. The last
# panel looks, over all questions whose evidence says the answer word for word, for these words in what is kept.

# %% jupyter={"source_hidden": true}
contents = {
    "whole": "whole turns",
    "head": f"first {limit} characters",
    "sentences": f"best sentences, {limit} characters",
}
parts = []
for content, said in contents.items():
    for t in tokens:
        run = budget(plain_run, bench, tokens=t, content=content, limit=limit)
        table = kept(kept_text(run, bench, content=content, limit=limit), data)
        parts.append(table.with_columns(system=pl.lit(said), value=pl.lit(t)))
questions = pl.concat(parts)
answerable = questions.filter(pl.col("answer").is_not_null())["query_id"].n_unique()
kinds = {
    "sessions": ("sessions that fit", "sessions", where),
    "recall_all": ("all evidence, by id", "share of questions", where),
    "whole": ("all evidence, uncut", "share of questions", where),
    "answer": (f"answer in it (n = {answerable:,})", "share of questions", pl.col("answer").is_not_null()),
}
parts = []
for column, (head, ylabel, rows) in kinds.items():
    for (said, t), part in questions.filter(rows).group_by("system", "value", maintain_order=True):
        against = questions.filter(rows & (pl.col("system") == contents["whole"]) & (pl.col("value") == t))
        pair = part.select("query_id", column).join(against.select("query_id", whole=column), on="query_id")
        values, gain = (
            part[column].cast(pl.Float64).to_numpy(),
            (pair[column].cast(pl.Float64) - pair["whole"]).to_numpy(),
        )
        low, high = evaluate.bootstrap_interval(values[:, None], np.ones(len(values)), seed=seed)
        parts.append((column, head, ylabel, said, t, len(values), values.mean(), low[0], high[0], gain.mean(),
                      evaluate.randomisation_test(gain, seed=seed)))  # fmt: skip
names = ["kind", "panel", "ylabel", "system", "value", "n", "mean", "low", "high", "difference", "p"]
shortened = pl.DataFrame(parts, schema=names, orient="row").with_columns(parameter=pl.lit("tokens"))
of_others = pl.col("system") != contents["whole"]
shortened = shortened.join(
    shortened.filter(of_others).with_columns(
        p_holm=pl.Series(evaluate.holm(shortened.filter(of_others)["p"].to_numpy()))
    ).select("kind", "system", "value", "p_holm"),
    on=["kind", "system", "value"], how="left", maintain_order="left",
)  # fmt: skip
shortened.filter(of_others).select("panel", "system", "value", "mean", "low", "high", "difference", "p_holm").head(24)

# %% jupyter={"source_hidden": true}
fig = sweeps.sweep(shortened, panel="panel", log_x=True)
caption = (
    f"Whole turns of {base}, their first {limit} characters, and their best sentences at an equal token budget: "
    f"sessions that fit, complete recall by id and by uncut text ({data.name}, questions {which}, n = {n:,}), and "
    f"whether the answer still stands in what is kept (all questions whose evidence says it word for word, n = "
    f"{answerable:,}); bars: 95 % bootstrap intervals."
)
export(fig, "selection-content", data=shortened, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Why: how alike the pieces are
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
# ## Why: what is thrown out, and what comes in
#
# Any choice exchanges turns of the first k for deeper ones, which hold less evidence. It gains only where it knows
# better than the rank: where what comes in holds more evidence than those ranks do on average.

# %% jupyter={"source_hidden": true}
swaps = pl.concat(
    exchange(exchanged(plain_run, run, asked, bench, k=k), seed=seed).with_columns(system=pl.lit(run.name))
    for run in done.runs[1:]
).with_columns(short)
swaps.select("system", "side", "n", "share", "low", "high", "expected", "likeness")

# %% jupyter={"source_hidden": true}
fig = selection.exchange(swaps, k=k)
caption = (
    f"Evidence among the turns that each selector throws out of the first {k} of {base} and those that it brings in, with "
    f"95 % bootstrap intervals over questions; ticks: what the ranks that they come from hold on average; cosine to the "
    f"nearest turn that stays ({data.name}, questions {which}, n = {n:,})."
)
export(fig, "selection-exchange", data=swaps, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Finding

# %% jupyter={"source_hidden": true}
families = {"defaults": tested, "every setting": swept, "equal tokens": budgeted, "adaptive k": dealt_out}
judged = evaluate.count_verdicts(families)
judged

# %% jupyter={"source_hidden": true}
default = tested.filter(pl.col("measure") == measures[0])
top = swept.sort("difference", descending=True, maintain_order=True).row(0, named=True)
needed = evaluate.least_agreeing(swept.height)
cut = shortened.filter((pl.col("kind") == "answer") & of_others).group_by("system", maintain_order=True)
cut = cut.agg(
    least=pl.col("difference").min(),
    most=pl.col("difference").max(),
    lower=((pl.col("p_holm") < 0.05) & (pl.col("difference") < 0)).sum(),
)
sides = swaps.pivot("side", index="system", values="share")
lines = [
    f"- {data.name}, {n:,} questions {which}: plain {base} completes {default['mean'][0]:.1%} in the first {k}. Of "
    f"{judged['tests'].sum()} tests in {judged.height} families {judged['better'].sum()} ways to choose are shown to be better, "
    f"{judged['worse'].sum()} worse, {judged['as good'].sum()} as good within ± {margin:.0%}, {judged['open'].sum()} stay open.",
    f"- Open is not “no difference”: with defaults ({tested['p'].count()} tests) differences {evaluate.seen_from(tested)} would "
    f"have been seen, in the sweep ({swept.height} tests) {evaluate.seen_from(swept)}; there {needed} questions must change, "
    "all to one side.",
    f"- The best of all settings, `{top['system']}` with {top['parameter']} = {top['value']:g}, changes {top['measure']} by "
    f"{top['difference']:+.1%} [{top['difference_low']:+.1%}, {top['difference_high']:+.1%}], p = {top['p_holm']:.3f} after "
    f"correction ({top['p']:.3f} before).",
    "- Shortened turns: "
    + "; ".join(
        f"{row['system']} change the share of {answerable:,} answers that still stand there by {row['least']:+.1%} to "
        f"{row['most']:+.1%}, shown to be lower at {row['lower']} of {len(tokens)} budgets"
        for row in cut.to_dicts()
    )
    + "."
    if answerable
    else "- No evidence says an answer word for word, so that what shortened turns lose cannot be said.",
    f"- Of the first {k}, more evidence comes in than goes out with "
    f"{', '.join(f'`{name}`' for name in sides.filter(pl.col('in') > pl.col('out'))['system']) or 'no selector'}; less with "
    f"{', '.join(f'`{name}`' for name in sides.filter(pl.col('in') < pl.col('out'))['system']) or 'none'}.",
]
display(Markdown("\n".join(lines)))
