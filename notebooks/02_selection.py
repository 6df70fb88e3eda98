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
# On the committed sample, which is four invented memories:
#
# - No. No selector with its defaults, on `combsum` or `best`, and none of their settings on `combsum` completes significantly
#   more than the first ten of the ranking that it chooses from.
# - `by_cluster`, which spreads the choice over clusters, does harm: over all questions it completes significantly less.
# - Evidence items of different sessions resemble each other more than they do a random turn of the same speaker: a rule
#   against similar turns works against what belongs together.
#
# ![Paired differences of every selector to the plain ranking](../figures/gallery/sample-selection-tests.png)
#
# The same candidates, chosen in many ways: by relevance less similarity (MMR, DPP, MSD), by clusters (the best of each, or
# all that resembles a hit), and by sessions; with paired tests against the plain ranking.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
part = {}  # of the dataset: pool, scopes
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
unit = "auto"  # what intervals and tests take as independent: question, scope, or auto
k = 10

# %%
import polars as pl

import memlab
from memlab import evaluate
from memlab.evaluate import cluster_spread, conclusions, system_comparison
from memlab.evaluate.printed_tables import select_columns_with_sources
from memlab.experiments import sweep
from memlab.figures import export, intervals, sweep_panels

evaluate.show_tables()

# %% [markdown]
# ## Every way to choose, with its defaults
#
# Nothing is tuned to these questions. Each selector chooses among the candidates of `combsum` and of `best`, and is compared
# with the first of that ranking, over all questions and over those with evidence in several sessions. Of fewer than five
# memories, as in the sample, questions are taken as independent: intervals and tests speak of questions to these people, not
# of other people. From five on memories are, so that with a few of them no test of so many can be significant; `unit` chooses.
# `detectable` is the difference that a comparison would have shown in four of five cases. `equivalent`: two
# one-sided tests exclude differences beyond the margin; what is neither different nor equivalent is inconclusive. Holm's
# correction is over all rows, those of the settings below included.

# %%
data = memlab.datasets.load(dataset, **part, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
bases, measure = ("combsum", "best"), f"recall_all@{k}"
selectors = ["mmr", "dpp", "msd", "by_cluster", "by_cluster(clustering='hdbscan')", "expand_cluster"]
selectors += ["expand_cluster(clustering='hdbscan')", "fill_sessions"]
pipelines = {base: [base, *(f"{base} | {selector}" for selector in selectors)] for base in bases}
about = {"store": store, "encoder": encoder, "levels": ["turn"], "measures": [measure], "seed": seed, "unit": unit}
done = {base: memlab.run(texts, data, name=f"{base}-{data.name}", **about) for base, texts in pipelines.items()}

# %% [markdown]
# ## Every setting
#
# Each parameter over its range, on `combsum`, over the questions with evidence in several sessions where there are any. The
# defaults are tested above.

# %%
swept = {"mmr(lambda_={lambda_})": [0.3, 0.5, 0.9], "dpp(diversity={diversity})": [0.1, 0.3, 0.5, 0.7]}
swept |= {"msd(diversity={diversity})": [0.02, 0.1, 0.3], "by_cluster(n_clusters={n_clusters})": [2, 5, 20]}
swept |= {"expand_cluster(cluster_size={cluster_size})": [2, 10], "fill_sessions(sessions={sessions})": [2, 3, 8]}
plain = done["combsum"].reports[0]
parts = (sweep(f"combsum | {text}", own, plain, bench, data, measure=measure) for text, own in swept.items())
settings = pl.concat(parts)

# %% [markdown]
# ## All tests
#
# The first rows of the table, by p:

# %%
reports = {base: its.reports for base, its in done.items()}
tested = system_comparison.judge_selectors_and_settings(reports, settings, measure=measure, swept_base="combsum")
brief = ["base", "group", "system", "difference", "low", "high", "p_holm", "detectable", "verdict"]
select_columns_with_sources(tested.drop_nulls("p").sort("p", maintain_order=True), *brief)

# %% [markdown]
# Bars are intervals of the mean, the band is that of the plain ranking (grey); a mark is filled where the paired difference
# between them is significant among all tests of the table.

# %%
drawn = tested.drop_nulls("parameter").with_columns(system=pl.format("combsum | {}", "selector"))
fig = sweep_panels.sweep(drawn, measure=measure, reference="combsum alone")
asked = f"{data.name}, {drawn['group'][0]}, n = {drawn['n'][0]:,}; p corrected for {tested['p'].count()} tests"
caption = f"{measure} over a parameter of each selector, which chooses from combsum ({asked})."
made = {"provenance": dict(bench.provenance), "directory": figures}
export(fig, "selection-sweep", data=drawn, caption=caption, **made)

# %%
shown = tested.filter(pl.col("system").is_in(selectors), base="best").with_columns(measure="group")
fig = intervals.forest(shown, measure=measure, baseline="best")
caption = f"Selectors with their defaults, and with hdbscan where named: paired differences to best ({data.name})."
export(fig, "selection-tests", data=shown, caption=caption, **made)

# %% [markdown]
# ## Why: how similar the evidence items are
#
# If the items of an answer resemble each other more than they do other turns, a rule against similar turns pushes them apart.
# Cosines between turns are speaker-centred, those with the question as encoded.

# %%
similar = cluster_spread.evidence_similarity_quartiles(bench, data.questions, seed=seed)
cosine = "cosine: median (mark) and quartiles (bar); between turns speaker-centred, with the question as encoded"
fig = intervals.mean_intervals(similar, measure=cosine, digits=2)
caption = f"Cosine of {encoder} vectors by kind of pair: median and quartiles ({data.name}, all questions)."
export(fig, "pair-similarity", data=similar, caption=caption, **made)

# %% [markdown]
# ## Answer

# %% tags=["answer"]
conclusions.on_selection(tested, measure=measure) + conclusions.on_evidence_similarity(similar)
