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
# # What does each step of retrieval add, and what is still missed?
#
# On the committed sample, which is four invented memories:
#
# - From BM25 to the learned reranker, questions with evidence in several sessions are completed several times as often.
# - Few single steps are significant: the learned reranker, and over all questions dense retrieval and late interaction.
# - The last step still misses part of the evidence of most questions, most of it worded otherwise than the question.
# - How much a language model adds that grades the first turns, and at what price, shows the figure of its section.
#
# ![Complete recall, one change a step](../figures/gallery/sample-ladder-turns.png)
#
# From BM25 to `best | learned`, one change a step: what each adds to the step before, with the paired interval and test;
# then why `best | learned` still misses evidence. What a step costs in time is in [speed](../docs/evaluation/speed.md).

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
part = {}  # of the dataset: pool, scopes
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
k = 10

# %%
import polars as pl

import memlab
from memlab import evaluate
from memlab.evaluate import conclusions, system_comparison
from memlab.evaluate.causes_of_misses import HOW_CAUSES_ARE_FOUND, count_by_cause_in_the_order_tried
from memlab.evaluate.printed_tables import select_columns_with_sources
from memlab.figures import bars, curves, export, intervals

evaluate.show_tables()

# %% [markdown]
# ## The steps
#
# Where an assistant speaks, its turns resemble the questions and hold few answers: one step lowers their scores. The learned
# reranker is the bundled model, which learned from other conversations. Runs are kept in the store, so a second call reads
# them back.

# %%
steps = {
    "BM25": "bm25",
    "+ dense, ranks fused": "hybrid",
    "scores instead of ranks": "combsum(turn=(1, 1, 0), session=(0, 0, 0))",
    "+ evidence of the session": "combsum",
    "+ late interaction": "combsum(turn=(1, 1, 2), session=(1, 1, 2))",
    "+ assistant's turns lowered": "best",
    "+ learned reranker": "best | learned",
}

# %%
data = memlab.datasets.load(dataset, **part, seed=seed, language=language)
about = {"store": store, "encoder": encoder, "seed": seed, "name": f"steps-{data.name}"}
done = memlab.run(steps, data, levels=["turn"], **about)
bench = memlab.Bench.of(data, encoder=encoder, store=store)

# %% [markdown]
# ## What each step adds
#
# All steps in both groups of questions are one family of tests.

# %%
measure = f"recall_all@{k}"
tested = system_comparison.compare_reports_by_group(done.reports, measure=measure, stepwise=True)
whole = system_comparison.compare_reports_by_group([done.reports[0], done.reports[-1]], measure=measure)
select_columns_with_sources(tested, "group", "system", "mean", "difference", "low", "high", "p_holm", "verdict")

# %%
fig = intervals.ablation(tested, measure=measure)
caption = f"Complete recall in the first {k} turns, one change a step ({data.name}; Holm's correction)."
made = {"provenance": dict(bench.provenance), "directory": figures}
export(fig, "ladder-turns", data=tested, caption=caption, **made)

# %% [markdown]
# ## What is still missed
#
# Each missed item gets the first cause, from the top, whose rule holds; the rules compare words, so that anyone can check them.

# %%
missed = done.misses(k=k)
causes = count_by_cause_in_the_order_tried(missed)
share = f"share of the {missed.height:,} missed evidence items (k = {k}), their number beside the bar"
fig = bars.share_bars(causes, xlabel=share, note=HOW_CAUSES_ARE_FOUND)
caption = f"Why “{list(steps)[-1]}” misses evidence in the first {k} turns ({data.name}, n = {missed.height:,} items)."
export(fig, "ladder-misses", data=causes, caption=caption, **made)

# %% [markdown]
# ## What a language model adds, and what it costs
#
# It wrote facts when the conversations were stored, other words and parts for each question, and it grades the first turns,
# 50 to 150 of them. Its answers are recorded for the sample; elsewhere name a service in the stages. Every step alone:
# [what a language model buys](../docs/evaluation/language-model.md). Prices are those of a large hosted model, US$ 3 for a
# million tokens read and 15 for a million written, without what is written once.

# %%
found = "best | learned | expand | decompose(service='recorded') | second_keys(of='facts')"
asked = ["best | learned", found, *(f"{found} | rerank_llm(candidates={n})" for n in (50, 100, 150))]
with_model = memlab.run(asked, data, levels=["turn"], bench=bench, measures=[measure])
points = with_model.price_points(price=(3.0, 15.0), measure=measure)
work = dict(enumerate(["no model", "words and facts", "50", "100", "150"]))  # of a model, from the cheapest on
points = points.with_columns(point=pl.int_range(pl.len()).over("system").replace_strict(work))
note = "words and facts: words and parts for questions, facts as keys of turns; a number: so many turns graded too"
fig = curves.recall_curves(points, log_x=False, measure=measure, axis="US$ for 1,000 questions", note=note)
caption = f"Complete recall against the price of a language model (US$ 3 and 15 a million tokens; {data.name})."
export(fig, "model-price", data=points, caption=caption, **made)

# %% [markdown]
# ## Answer

# %% tags=["answer"]
conclusions.on_ablation_steps(tested, whole, measure=measure) + conclusions.on_missed_evidence(missed, causes, k=k)
