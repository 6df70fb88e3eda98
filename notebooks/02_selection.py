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
# - No other choice is significantly better than the first ten of `combsum`, which complete 6.7 % of 178 questions: of 38 tests
#   0 are better, 0 worse, 28 equivalent and 10 inconclusive.
# - The best setting, `expand_cluster` with cluster_size = 2, brings +2.8 % [-0.6 %, +6.7 %], p = 0.227 before correction.
#   `by_cluster` against `mmr`: -2.8 % [-6.2 %, +0.6 %].
# - Evidence items of different sessions are similar (median cosine 0.44, with a random turn 0.23): a rule against similar turns
#   works against the answer.
#
# ![Paired differences of every selector to the plain ranking](../figures/gallery/sample-selection-tests.png)
#
# The same candidates, chosen in many ways: by relevance less similarity (MMR, DPP, MSD), by clusters (the best of each, or
# all that resembles a hit), and by sessions; with paired tests against the plain ranking.

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

# %%
import polars as pl
from IPython.display import Markdown

import memlab
from memlab import cluster, evaluate
from memlab.experiments import sweep
from memlab.figures import export, intervals, sweep_panels

evaluate.show_tables()

# %% [markdown]
# ## Every way to choose, with its defaults
#
# Nothing is tuned to these questions. Questions are resampled: of four conversations too little is known, so intervals and
# tests speak of questions to these people, not of other people. `detectable` is the difference that a comparison would have
# shown in four of five cases. `equivalent`: two one-sided tests exclude differences beyond ± 5 %; what is neither different nor
# equivalent is inconclusive. Holm's correction is over all rows.

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
selectors = ["mmr", "dpp", "msd", "by_cluster", "by_cluster(clustering='hdbscan')", "expand_cluster"]
selectors += ["expand_cluster(clustering='hdbscan')", "fill_sessions"]
pipelines = [base, *(f"{base} | {selector}" for selector in selectors)]
measures = [f"recall_all@{k}", f"recall_all@{2 * k}"]
about = {"store": store, "encoder": encoder, "levels": ["turn"], "measures": measures, "seed": seed}
done = memlab.run(pipelines, data, name=f"selection-{data.name}", **about)

# %%
per_query = done.reports[0].per_query
several = pl.col("n_evidence_sessions") >= 2
where = several if per_query.filter(several).height else None
short = pl.col("system").str.strip_prefix(f"{base} | ")
tested = [done.compare(measure, where=where).with_columns(measure=pl.lit(measure)) for measure in measures]
tested = evaluate.verdicts(tested).with_columns(short)
versus = done.compare(measures[0], where=where, baseline=f"{base} | mmr").with_columns(short)
brief = ["system", "difference", "low", "high", "p_holm", "detectable", "verdict"]
tested.drop_nulls("p").select("measure", *brief)

# %%
fig = intervals.forest(tested.with_columns(baseline=pl.lit(base)), measure="recall_all@k")
n = tested["n"][0]
caption = f"Every selector with its defaults: paired differences to {base} ({data.name}, n = {n:,}; 95 % intervals)."
made = {"provenance": dict(bench.provenance), "directory": figures}
export(fig, "selection-tests", data=tested, caption=caption, **made)

# %% [markdown]
# ## Every setting
#
# Each parameter over its range, one family of tests. Bars are intervals of the paired difference to the plain ranking (grey),
# drawn about the mean: a bar that crosses the grey line shows no difference.

# %%
swept = {"mmr(lambda_={lambda_})": [0.3, 0.5, 0.7, 0.9], "dpp(diversity={diversity})": [0.1, 0.3, 0.5, 0.7]}
swept |= {"msd(diversity={diversity})": [0.02, 0.05, 0.1, 0.3], "by_cluster(n_clusters={n_clusters})": [2, 5, 20]}
swept |= {"expand_cluster(cluster_size={cluster_size})": [2, 5, 10], "fill_sessions(sessions={sessions})": [2, 3, 5, 8]}
parts = [
    sweep(f"{base} | {text}", values, done.reports[0], bench, data, measure=measures[0]).cast({"value": pl.Float64})
    for text, values in swept.items()
]
tuned = evaluate.verdicts(parts)

# %%
drawn = tuned.with_columns(low=pl.col("baseline") + pl.col("low"), high=pl.col("baseline") + pl.col("high"))
fig = sweep_panels.sweep(drawn, measure=measures[0], reference=f"{base} alone")
caption = f"{measures[0]} over a parameter of each selector ({data.name}, n = {n:,}); bars: paired 95 % intervals."
export(fig, "selection-sweep", data=tuned, caption=caption, **made)

# %% [markdown]
# ## Why: how similar the evidence items are
#
# If the items of an answer resemble each other more than other turns do, a rule against similar turns works against the answer.

# %%
turns = bench.documents("turn")
asked = {"question_embeddings": bench.query_vectors, "turns": data.turns, "seed": seed}
pairs = cluster.pair_similarity(turns.vectors(), turns.ids.tolist(), data.questions, **asked)
hard = pairs.join(per_query.filter(True if where is None else where), on="query_id", how="semi", maintain_order="left")
cosine = pl.col("similarity")
alike = hard.group_by("kind", maintain_order=True).agg(
    pl.len().alias("n"), mean=cosine.median(), low=cosine.quantile(0.25), high=cosine.quantile(0.75)
)
fig = intervals.mean_intervals(alike.with_columns(form=pl.lit("all")), measure="cosine: median, quartiles", digits=2)

# %%
caption = f"Cosine of {encoder} vectors by kind of pair: median and quartiles ({data.name}, questions as above)."
export(fig, "pair-similarity", data=alike, caption=caption, **made)

# %% [markdown]
# ## Answer

# %%
judged = pl.concat([tested.select("verdict"), tuned.select("verdict")]).drop_nulls()["verdict"]
count = ", ".join(f"{(judged == each).sum()} {each}" for each in ("better", "worse", "equivalent", "inconclusive"))
lines = [f"- {base} completes {tested['mean'][0]:.1%} of {n:,} questions. {len(judged)} tests of others: {count}."]
best = "- Best setting: {system}, {parameter} = {value:g}, {difference:+.1%} [{low:+.1%}, {high:+.1%}], p = {p:.3f}."
lines += [best.format(**tuned.sort("difference", descending=True, maintain_order=True).row(0, named=True))]
told = "- {system} ({mean:.1%}) against mmr: {difference:+.1%} [{low:+.1%}, {high:+.1%}], p = {p_holm:.3f}."
lines += [told.format(**row) for row in versus.to_dicts() if row["system"] in ("by_cluster", "expand_cluster")]
cosines = [f"{kind} {middle:.2f}" for kind, middle in alike.select("kind", "mean").iter_rows()]
lines += [f"- Median cosines: {', '.join(cosines)}."]
Markdown("\n".join(lines))
