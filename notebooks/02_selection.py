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
adaptive_k = [3, 5, 10, 20, 30]
tokens = [200, 400, 800, 1600]
limit = 100

# %%
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
from memlab.figures import curves, export, selection, similarity, sweeps
from memlab.select import budget, kept_text

_ = pl.Config(float_precision=3, fmt_str_lengths=80, tbl_rows=60)

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
data

# %% [markdown]
# ## The first k turns
#
# Each way of choosing with its default settings: nothing is tuned to these questions.

# %%
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
by, group = evaluate.hard_group(plain)
several = by == "evidence_sessions"
where = pl.col("n_evidence_sessions") >= 2 if several else pl.lit(True)
which = "with evidence in two or more sessions" if several else "with evidence"
hard = plain.per_query.filter(where)
n = hard.height

# %%
drawn = [base, *(f"{base} | {name}" for name in ("mmr", "by_cluster", "expand_cluster", "fill_sessions"))]
points = evaluate.curve([report for report in done.reports if report.name in drawn], by=by, group=group)
fig = curves.recall_curves(points.with_columns(short))
caption = (
    f"Complete recall over k of {base} and of four ways to choose among its candidates ({data.name}, questions {which}, "
    f"n = {n:,}; bands: 95 % bootstrap intervals)."
)
export(fig, "selection-recall", data=points, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %%
tested = pl.concat(
    evaluate.compare(done.reports, measure=measure, where=where, seed=seed).with_columns(measure=pl.lit(measure))
    for measure in measures
).with_columns(short)
tested

# %%
fig = selection.forest(tested.with_columns(baseline=pl.lit(base)), measure="recall_all@k")
caption = (
    f"Every selector with its defaults: paired differences to {base} in {' and '.join(measures)} ({data.name}, "
    f"questions {which}, n = {n:,}); 95 % bootstrap intervals, p of paired randomisation tests after Holm's correction."
)
export(fig, "selection-tests", data=tested, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Every setting
#
# The bars are intervals of the paired difference to the plain ranking, drawn about the mean: a bar that crosses the
# grey line shows no difference.

# %%
parts = []
for template, values in swept_over.items():
    part = sweep(f"{base} | {template}", values, plain, bench, data, measure=measures)
    name = template.partition("(")[0] + (", hdbscan" if "hdbscan" in template else "")
    parts.append(part.with_columns(pl.col("value").cast(pl.Float64), system=pl.lit(name), panel=pl.lit(template)))
swept = pl.concat(parts).with_columns(
    low=pl.col("baseline") + pl.col("difference_low"),
    high=pl.col("baseline") + pl.col("difference_high"),
)
swept = swept.with_columns(p_holm=pl.Series(evaluate.holm(swept["p"].to_numpy())))
heads = {
    template: f"({chr(97 + i)}) {name}"
    for i, (template, name) in enumerate(swept.select("panel", "system").unique(maintain_order=True).iter_rows())
}
swept = swept.with_columns(pl.col("panel").replace(heads))
swept

# %%
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

# %%
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
        held = evaluate.compare([fixed, dealt], measure=deep, where=rows, seed=seed)
        kept_of = dealt.per_query.filter(rows)["n_retrieved"].mean()
        parts.append(
            held[1:].with_columns(
                group=pl.lit(said), value=pl.lit(mean_k), baseline=held["mean"][0], turns=pl.lit(kept_of)
            )
        )
dealt_out = pl.concat(parts)
dealt_out = dealt_out.with_columns(p_holm=pl.Series(evaluate.holm(dealt_out["p"].to_numpy())))
dealt_out

# %%
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

# %%
parts = []
for t in tokens:
    cut = [budget(run, bench, tokens=t) for run in done.runs]
    reports = [evaluate.evaluate(run, data, measures=[deep], seed=seed) for run in cut]
    held = evaluate.compare(reports, measure=deep, where=where, seed=seed)
    parts.append(
        held[1:].with_columns(
            system=pl.Series(selectors),
            value=pl.lit(t),
            baseline=held["mean"][0],
            turns=pl.Series([report.per_query.filter(where)["n_retrieved"].mean() for report in reports[1:]]),
        )
    )
budgeted = pl.concat(parts).with_columns(
    parameter=pl.lit("tokens"),
    bar_low=pl.col("baseline") + pl.col("low"),
    bar_high=pl.col("baseline") + pl.col("high"),
)
budgeted

# %%
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
# A shortened turn lets others in, and may lose what it was found for. So complete recall by id is an upper bound. The
# last panel looks, over all questions whose evidence says the answer word for word, for these words in what is kept.

# %%
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
shortened

# %%
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
# answer.

# %%
turns = bench.documents("turn")
rows = data.questions.with_row_index("row").join(hard.select("query_id"), on="query_id", how="semi")["row"].to_numpy()
asked = data.questions[rows]
pairs = cluster.pair_similarity(
    turns.vectors(), turns.ids.tolist(), asked, question_embeddings=bench.query_vectors[rows], seed=seed
)
fig = similarity.evidence_similarity(pairs)
caption = (
    f"Cosine of {encoder} embeddings: two pieces of one answer, a piece and a random turn, the question and its evidence "
    f"or the nearest other turn ({data.name}, questions {which}, n = {n:,})."
)
export(fig, "selection-similarity", data=pairs, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Why: what is thrown out, and what comes in
#
# Any choice exchanges turns of the first k for deeper ones, which hold less evidence. It gains only where it knows
# better than the rank: where what comes in holds more evidence than those ranks do on average.

# %%
swaps = pl.concat(
    exchange(exchanged(plain_run, run, asked, bench, k=k), seed=seed).with_columns(system=pl.lit(run.name))
    for run in done.runs[1:]
).with_columns(short)
swaps

# %%
fig = selection.exchange(swaps, k=k)
caption = (
    f"Evidence among the turns that each selector throws out of the first {k} of {base} and those that it brings in, with "
    f"95 % bootstrap intervals over questions; ticks: what the ranks that they come from hold on average; cosine to the "
    f"nearest turn that stays ({data.name}, questions {which}, n = {n:,})."
)
export(fig, "selection-exchange", data=swaps, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Finding

# %%
better = (pl.col("p_holm") < 0.05) & (pl.col("difference") > 0)
worse = (pl.col("p_holm") < 0.05) & (pl.col("difference") < 0)
said = pl.format("`{}` ({})", "system", pl.col("difference").map_elements("{:+.3f}".format, return_dtype=pl.String))
lines = [f"All on {data.name}, {n:,} questions {which}; “shown” means p < .05 after Holm's correction.\n"]
for measure in measures:
    of = tested.filter(pl.col("measure") == measure)
    others = of.filter(pl.col("difference").is_not_null())
    lines.append(
        f"- **{measure}**, defaults: plain {base} completes {of['mean'][0]:.1%}. Shown to help: "
        f"{', '.join(others.filter(better).select(said).to_series()) or 'none'}; shown to hurt: "
        f"{', '.join(others.filter(worse).select(said).to_series()) or 'none'}; not told apart: "
        f"{', '.join(others.filter(~better & ~worse).select(said).to_series()) or 'none'}."
    )
told = [
    "; ".join(
        f"`{row['system']}`, {row['parameter']} = {row['value']:g}: {row['difference']:+.3f} in {row['measure']}"
        for row in swept.filter(those).iter_rows(named=True)
    )
    for those in (better, worse)
]
top = swept.sort("difference", descending=True, maintain_order=True).row(0, named=True)
lines.append(
    f"- **Every setting** ({swept.height} tests): shown to help: {told[0] or 'none'}. Shown to hurt: {told[1] or 'none'}. "
    f"The best is `{top['system']}` with {top['parameter']} = {top['value']:g}: {top['difference']:+.3f} in "
    f"{top['measure']}, p = {top['p']:.3f} before and {top['p_holm']:.3f} after correction."
)
for said, rows in dealt_out.group_by("group", maintain_order=True):
    lines.append(
        f"- **Adaptive k** against a fixed k of the same mean, {said[0]}: differences of {rows['difference'].min():+.3f} "
        f"to {rows['difference'].max():+.3f} over {rows.height} sizes; {rows.filter(better).height} shown to help, "
        f"{rows.filter(worse).height} shown to hurt."
    )
helped, hurt = (
    ", ".join(f"`{name}`" for name in budgeted.filter(those)["system"].unique(maintain_order=True))
    for those in (better, worse)
)
lines.append(
    f"- **Equal tokens** ({budgeted.height} tests, corrected within each of {len(tokens)} budgets): shown to help at some "
    f"budget: {helped or 'none'}; shown to hurt at some budget: {hurt or 'none'}."
)
for content in list(contents.values())[1:]:
    of = {
        kind: shortened.filter((pl.col("kind") == kind) & (pl.col("system") == content)).sort("value") for kind in kinds
    }
    whole = shortened.filter((pl.col("kind") == "sessions") & ~of_others).sort("value")
    shown_id, shown_answer = (
        f"{of[kind].filter(better).height} of {len(tokens)} budgets shown higher, {of[kind].filter(worse).height} lower"
        for kind in ("recall_all", "answer")
    )
    lines.append(
        f"- **{content.capitalize()}** let {of['sessions']['mean'][1]:.1f} sessions into {tokens[1]:,} tokens instead of "
        f"{whole['mean'][1]:.1f}. By id complete recall changes by {of['recall_all']['difference'].min():+.3f} to "
        f"{of['recall_all']['difference'].max():+.3f} ({shown_id}); all evidence uncut is left for "
        f"{of['whole']['mean'].max():.1%} at most"
        + (
            f"; the share of {answerable:,} questions whose answer's own words stand in what is kept changes by "
            f"{of['answer']['difference'].min():+.3f} to {of['answer']['difference'].max():+.3f} ({shown_answer})."
            if answerable
            else "; no evidence says an answer word for word."
        )
    )
median = dict(pairs.group_by("kind").agg(pl.col("similarity").median()).iter_rows())
together, apart = median.get("evidence, other session"), median["evidence – random"]
if together is not None:
    lines.append(
        f"- **Why**: two pieces of one answer in different sessions have a median cosine of {together:.2f}, a piece and a "
        f"random turn {apart:.2f}: a rule that wants unlike turns works {'against' if together > apart else 'with'} that."
    )
lines.append(
    f"- **What is exchanged** in the first {k}: evidence among the turns that leave and among those that come, and in "
    "brackets what the ranks that they come from hold on average. A choice that knows nothing beyond the rank loses as "
    "the ranks do."
)
brought = swaps.pivot("side", index="system", values="share").filter(pl.col("in") > pl.col("out"))
lines[-1] += f" More evidence comes than leaves with: {', '.join(f'`{name}`' for name in brought['system']) or 'none'}."
for system, sides in swaps.filter(pl.col("n") > 0).group_by("system", maintain_order=True):
    told = [
        f"{row['share']:.1%} of {row['n']:,} {row['side']}"
        + (f" ({row['expected']:.1%})" if row["expected"] is not None else "")
        for row in sides.iter_rows(named=True)
    ]
    lines.append(f"    - `{system[0]}`: {', '.join(told)}")
display(Markdown("\n".join(lines)))
