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
# On the committed sample (four invented memories, 178 questions with evidence in several sessions; the learned step is the
# bundled reranker, intervals over questions):
#
# - The first 10 turns are complete for 3.9 % of the questions with BM25 and for 19.7 % with the learned reranker: +15.7 %
#   [+10.7 %, +21.3 %].
# - Three steps are significant over all questions: dense scores beside BM25 (+5.5 %, p = 0.049), late interaction (+7.2 %,
#   p = 0.001) and the learned reranker (+7.2 %, p = 0.001; with evidence in several sessions +9.0 %, p = 0.001).
# - The last step still loses 168 of 291 answers; of the 347 evidence items that it misses 28 % stand up to rank 20. With evidence
#   in several sessions 71 % of what is missed is worded otherwise than the question.
#
# ![Complete recall, one change a step](../figures/gallery/sample-ladder-turns.png)
#
# From BM25 to the best pipeline, one change a step: what each adds to the step before, with the paired interval and test,
# and what it costs in time; then why the best pipeline still misses evidence.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
k = 10
timed = 5

# %%
from dataclasses import replace

import polars as pl
from IPython.display import Markdown

import memlab
from memlab import evaluate
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
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
about = {"store": store, "encoder": encoder, "seed": seed, "name": f"steps-{data.name}"}
done = memlab.run(list(steps.values()), data, levels=["turn"], **about)
reports = [replace(report, name=name) for name, report in zip(steps, done.reports, strict=True)]
bench = memlab.Bench.of(data, encoder=encoder, store=store)
times = memlab.experiments.latency(done.cells["pipeline"].to_list(), bench, queries=timed, seed=seed)
times = times.select(system=pl.Series(list(steps)), ms="single_ms")

# %% [markdown]
# ## What each step adds
#
# All steps in both groups of questions are one family of tests.

# %%
measure, several = f"recall_all@{k}", pl.col("n_evidence_sessions") >= 2
groups = {"all questions": pl.lit(True), "evidence in ≥ 2 sessions": several}
groups = {name: where for name, where in groups.items() if reports[0].per_query.filter(where).height}
parts = [
    evaluate.compare_reports(reports, measure=measure, where=where, stepwise=True).with_columns(group=pl.lit(name))
    for name, where in groups.items()
]
tested = evaluate.verdicts(parts).join(times, on="system", how="left", maintain_order="left")
tested.select("group", "system", "mean", "difference", "low", "high", "p_holm", "verdict")

# %%
fig = intervals.ablation(tested, measure=measure)
caption = f"Complete recall in the first {k} turns, one change a step ({data.name}; 95 % intervals; Holm's correction)."
made = {"provenance": dict(bench.provenance), "directory": figures}
export(fig, "ladder-turns", data=tested, caption=caption, **made)

# %% [markdown]
# ## What is still missed
#
# Each missed item gets the first cause whose rule holds; the rules compare words, so that anyone can check them.

# %%
missed = done.misses(k=k)
parts = [evaluate.count_by_cause(missed.filter(part)).with_columns(group=pl.lit(name)) for name, part in groups.items()]
causes = pl.concat(parts)
fig = bars.share_bars(causes, xlabel="share of the missed evidence items (their number beside the bar)")
caption = f"Why “{list(steps)[-1]}” misses evidence in the first {k} turns ({data.name}, n = {missed.height:,} items)."
export(fig, "ladder-misses", data=causes, caption=caption, **made)

# %% [markdown]
# ## What a language model adds, and what it costs
#
# It wrote facts when the conversations were stored, other words and parts for each question, and it grades the first turns,
# 50 to 150 of them. Its answers are recorded for the sample; elsewhere name a service in the stages. Every step alone:
# [what a language model buys](../docs/evaluation/language-model.md). Prices are those of a large hosted model, 3 for a million
# tokens read and 15 for a million written, without what is written once.

# %%
found = "best | learned | expand | decompose(service='recorded') | second_keys(of='facts')"
asked = ["best | learned", found, *(f"{found} | rerank_llm(candidates={n})" for n in (50, 100, 150))]
with_model = memlab.run(asked, data, levels=["turn"], bench=bench, measures=[measure])
prices = zip(with_model.reports, with_model.costs(prices=[(3.0, 15.0)])[:, -1], strict=True)
points = [r.summary(by).with_columns(k=pl.lit(c)) for r, c in prices for by in ("all", "evidence_sessions")]
points = pl.concat(points).filter(pl.col("group").is_in(["all", "≥ 2"])).drop("ceiling", "chance")
points = points.rename({"group": "system"})
fig = curves.recall_curves(points, measure=measure, axis="price of 1,000 questions", log_x=False)
caption = f"Complete recall against the price of a language model: all, and ≥ 2 sessions ({data.name}; 95 % intervals)."
export(fig, "model-price", data=points, caption=caption, **made)

# %% [markdown]
# ## Answer

# %%
hard = list(groups)[-1]
first, last = tested.filter(group=hard)[[0, -1]].to_dicts()
whole = evaluate.compare_reports(reports, measure=measure, where=groups[hard]).row(-1, named=True)
total = "{:.1%} with {} and {:.1%} with {}: {:+.1%} [{:+.1%}, {:+.1%}].".format
gain = total(first["mean"], "BM25", last["mean"], last["system"], *(whole[c] for c in ("difference", "low", "high")))
lines = [f"- {hard} (n = {first['n']:,}): the first {k} turns are complete for {gain}"]
step = "{system} {difference:+.1%} over {group}, p = {p_holm:.3f}".format
significant = tested.filter(pl.col("verdict").is_in(["better", "worse"])).to_dicts()
lines += [f"- Significant: {'; '.join(step(**row) for row in significant) or 'no step'}."]

# %%
near, lost = (missed["rank"] <= 2 * k).sum() / max(missed.height, 1), missed["query_id"].n_unique()
n = reports[0].per_query.height
lines += [f"- It loses {lost:,} of {n:,} answers, {missed.height:,} items, {near:.0%} of them up to rank {2 * k}."]
top = causes.filter(pl.col("n") > 0, group=hard).sort("n", descending=True, maintain_order=True).head(4)
shares = [f"{cause} {share:.0%}" for cause, share in top.select("cause", "share").iter_rows()]
lines += [f"- By cause: {', '.join(shares)}."]
Markdown("\n".join(lines))
