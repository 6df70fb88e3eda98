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
# # What does the memory of a chat assistant miss, and what helps?
#
# On the committed sample (four invented memories; the first ten turns; 95 % intervals):
#
# - `bm25` finds all evidence for 3.9 % [1.7 %, 6.7 %] of the 178 questions with evidence in two or more sessions, `best |
#   learned` for 19.7 % [14.0 %, 25.8 %].
# - `bm25` finds some evidence for 37.6 % [30.9 %, 44.9 %] of them; `best | learned` finds all in twenty turns for 32.0 %
#   [25.3 %, 39.3 %].
# - With `best | learned` answers with one evidence item are complete for 78.5 %, the 184 answers with several for 21.2 %.
#
# ![Complete recall over k](../figures/gallery/sample-recall-all.png)
#
# Someone asks about their own past conversations, and a memory returns the first k turns that it finds relevant. An answer
# often stands on several turns of several sessions. Below: the data, complete recall of the usual pipelines, why it is rare,
# and one question that loses its evidence.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"

# %%
import polars as pl
from IPython.display import Markdown

import memlab
from memlab import evaluate
from memlab.evaluate import groups
from memlab.figures import anatomy, curves, export

evaluate.show_tables()

# %% [markdown]
# ## The data
#
# Each question names the turns that answer it, its evidence.

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
data

# %% [markdown]
# ## Complete recall
#
# `recall_any@k` asks whether one evidence item is among the first k turns, `recall_all@k` whether all are. Questions with
# evidence in two or more sessions are the hard ones. BM25 compares words, `dense` sentence vectors, `hybrid` both; `best` adds
# late interaction and evidence of the session; `learned` reranks with the bundled model, which learned from other
# conversations.

# %%
cutoffs = (1, 2, 3, 5, 10, 20, 50)
measures = [f"{name}@{k}" for name in ("recall_any", "recall", "recall_all") for k in cutoffs]
about = {"store": store, "encoder": encoder, "seed": seed}
done = memlab.run(None, data, levels=["turn"], measures=measures, name=f"tour-{data.name}", **about)
reports = done.reports
by, group = groups.multi_session_group(reports[0].per_query)
wanted = ["recall_any@10", "recall@10", "recall_all@10", "recall_all@20"]
evaluate.results_table(reports, measures=wanted, by=by, group=group)

# %%
curve = evaluate.cutoff_curve(reports, by=by, group=group)
n = curve["n"][0]
which = "with evidence in two or more sessions" if group == groups.MULTI_SESSION else "with evidence"
fig = curves.recall_curves(curve)
caption = (
    f"Share of the questions {which} whose every evidence item is among the first k turns ({data.name}, n = {n:,})."
)
made = {"provenance": dict(done.runs[0].provenance), "directory": figures}
export(fig, "recall-all", data=curve, caption=f"{caption} Bands: 95 % bootstrap intervals.", **made)

# %% [markdown]
# ## Why complete recall is rare
#
# The more items an answer needs (the last row: four or more), the rarer are all of them. `independent` is complete recall if
# items were found as often as the item of an answer that needs one, each for itself.

# %%
best = reports[-1]
several = best.per_query.group_by(items=pl.col("n_relevant").clip(upper_bound=4)).agg(
    n=pl.len(), found=pl.mean("recall@10"), complete=pl.mean("recall_all@10")
)
parts = (pl.col("n_relevant") == 1, pl.col("n_relevant") > 1)
single, more = (best.per_query.filter(part)["recall_all@10"] for part in parts)
several.sort("items").with_columns(independent=pl.col("found").first().pow("items"))

# %% [markdown]
# ## One question that loses its evidence
#
# Of the questions that the best pipeline answers worst, the one with most evidence: the rank of each item after each stage, and
# what stands above it. `done.worst(5)` lists such questions.

# %%
why = done.why(done.worst(1)["query_id"][0])
fig = anatomy.evidence_ranks_by_stage(why.stages, title=why.question["text"])
caption = f"Rank of each evidence item of one question of {data.name} after each stage; shaded: the first ten."
export(fig, "through-stages", data=why.stages, caption=caption, **made)

# %%
why

# %% [markdown]
# ## Answer

# %%
rows = [report.summary(by, measures=wanted).filter(group=group).to_dicts() for report in (reports[0], best)]
share = "{mean:.1%} [{low:.1%}, {high:.1%}]".format_map
some, every, first = share(rows[0][0]), share(rows[0][2]), reports[0].name
lines = [f"- {first} completes {every} of the {n:,} questions {which}, {best.name} {share(rows[-1][2])}."]
lines += [f"- {first} finds some evidence for {some}; {best.name} completes {share(rows[-1][3])} in twenty turns."]
if len(single) and len(more):
    several = f"{single.mean():.1%} with {best.name}, with several items for {more.mean():.1%} of {len(more):,}"
    lines += [f"- Answers with one item are complete for {several}."]
Markdown("\n".join(lines))
