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
#   learned` for 22.5 % [16.9 %, 28.7 %].
# - `bm25` finds some evidence for 37.6 % [30.9 %, 44.9 %] of them; `best | learned` finds all in twenty turns for 31.5 %
#   [24.7 %, 38.2 %].
# - With `best | learned` answers with one evidence item are complete for 78.5 %, the 184 answers with several for 22.8 %.
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
models = "../results/cross-validated"

# %%
from dataclasses import replace

from IPython.display import Markdown

import memlab
from memlab import evaluate
from memlab.evaluate import groups, views
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
# late interaction and evidence of the session; `learned` reranks, each memory by a model that learned from the others.

# %%
cutoffs = (1, 2, 3, 5, 10, 20, 50)
measures = [f"{name}@{k}" for name in ("recall_any", "recall", "recall_all") for k in cutoffs]
about = {"store": store, "encoder": encoder, "models": models, "seed": seed}
done = memlab.run(None, data, levels=["turn"], measures=measures, name=f"tour-{data.name}", **about)
reports = [replace(report, name=report.name.split("(model=")[0]) for report in done.reports]
by, group = groups.hard_group(reports[0].per_query)
wanted = ["recall_any@10", "recall@10", "recall_all@10", "recall_all@20"]
evaluate.results_table(reports, measures=wanted, by=by, group=group)

# %%
curve = evaluate.curve(reports, by=by, group=group)
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
# The more items an answer needs, the rarer are all of them. The dash is complete recall if items were found as often as the
# item of an answer that needs one. The open marks permute hits among the items of questions with as many items: a filled mark
# above them says that the items of one answer are found together.

# %%
best = reports[-1]
hits = views.independent_hits(best, k=10, most=4)
fig = curves.independent_hits(hits, label=f"{best.name}, measured")
caption = (
    f"Complete recall in the first ten turns by number of evidence items ({best.name}, {data.name}; 95 % intervals)."
)
export(fig, "recall-by-items", data=hits, caption=caption, **made)

# %% [markdown]
# ## One question that loses its evidence
#
# Of the questions that the best pipeline answers worst, the one with most evidence: its first ten turns, and what is missed,
# each with its rank. `done.worst(5)` lists such questions, and `done.why(query_id)` follows one through the pipeline.

# %%
query_id, text = done.worst(1).row(0)[:2]
found, missed = views.dissect(done.runs[-1], data, query_id, k=10)
fig = anatomy.question_anatomy(found, misses=missed, question=text, system=best.name)
caption = f"The first ten turns of {best.name} for one question of {data.name}, and the evidence that they lack."
export(fig, "question-anatomy", data=found, caption=caption, **made)

# %% [markdown]
# ## Answer

# %%
rows = [report.summary(by, measures=wanted).filter(group=group).to_dicts() for report in (reports[0], best)]
share = "{mean:.1%} [{low:.1%}, {high:.1%}]".format_map
some, every, first = share(rows[0][0]), share(rows[0][2]), reports[0].name
lines = [f"- {first} completes {every} of the {n:,} questions {which}, {best.name} {share(rows[-1][2])}."]
lines += [f"- {first} finds some evidence for {some}; {best.name} completes {share(rows[-1][3])} in twenty turns."]
single, several = hits.row(0, named=True), hits.row(-1, named=True)
items = "- Answers with one item are complete for {:.1%} with {}, with {} items for {:.1%} of {:,}."
lines += [items.format(single["measured"], best.name, several["n_evidence"], several["measured"], several["n"])]
Markdown("\n".join(lines))
