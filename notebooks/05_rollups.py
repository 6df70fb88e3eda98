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
# # What do summaries of sessions, weeks and themes keep, and do they help to find the evidence?
#
# On the committed sample (four memories over eight months; summaries recorded from a language model; 95 % intervals):
#
# - 2,644 turns (52,937 words) became 169 summaries of sessions (18,848 words), 125 of weeks (13,799 words) and 31 of
#   months (5,015 words). The weeks carry on 65 matters from the week before.
# - Every evidence item of a question is cited by summaries of sessions for 95.5% of the questions, by weeks for 84.5%
#   and by months for 39.9%. They cite 63.4%, 52.4% and 26.4% of the turns.
# - That a search through them finds more is not shown: fused with weeks, `best` changes by +2.1% [-1.0%, +5.2%] of 291
#   questions, with the cosines of the turns alone by +1.7% [-1.0%, +4.8%]. With clusters, of two memories, it is +6.0%
#   [+1.3%, +11.3%] of 150 questions, p = 0.108, and +4.0% [-1.3%, +9.3%] with the turns alone.
#
# ![The weeks of a memory with their topics](../figures/gallery/sample-rollups-time.png)
#
# A language model has summarised each session, each week from its sessions and the week before, each month from its weeks,
# and clusters of turns on one theme wherever they stand. Every sentence names the turns that it stands on. This notebook
# reads them, counts how much of the evidence they still cite, and searches through them.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
service = "recorded"  # who writes the summaries: recorded answers, a service of the settings, or None for no model
themes_of = ["nadia", "owen"]  # memories of which clusters of turns are summarised too
k = 10

# %%
from dataclasses import replace

import polars as pl
from IPython.display import Markdown, display
from scipy.stats import binomtest

import memlab
from memlab import evaluate, summaries
from memlab.figures import export, icicle, intervals

evaluate.show_tables()

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
nodes = summaries.summary_tree(bench, "weeks", service=service).nodes
about = {"provenance": dict(bench.provenance) | {"service": service}, "directory": figures}
weeks = nodes.filter(kind="week").sort(pl.col("carried_on").list.len(), descending=True, maintain_order=True)
scope = weeks["scope"][0]
data

# %% [markdown]
# ## A memory in time
#
# The memory with the week that carries on most: its months and weeks, each with its topics.

# %%
above = nodes.filter(pl.col("kind") != "session", scope=scope)
labels = [f"{summaries.period_name(row)}: {', '.join(row['topics'])}" for row in above.to_dicts()]
boxes = above.select("node_id", "parent", "kind", label=pl.Series(labels), n_turns=pl.col("turns").list.len())
fig = icicle.icicle(boxes)
caption = f"Months and weeks of {scope} with their topics ({data.name}; weeks begin on Monday, UTC)."
export(fig, "rollups-time", data=boxes, caption=caption, **about)

# %% [markdown]
# ## A week to read
#
# That week, as `memlab rollup --scope SCOPE --week DATE` prints it. The ids are those of the turns that a
# sentence stands on.

# %%
Markdown(summaries.to_markdown(weeks.row(0, named=True)))

# %% [markdown]
# What this memory carried on from one week to the next:

# %%
carried = nodes.filter(kind="week", scope=scope).explode("carried_on").drop_nulls("carried_on")
carried.select("carried_on", first_day=pl.col("start").dt.date()).head(12)

# %% [markdown]
# ## What the summaries still cite
#
# The share of questions whose every evidence item is cited by some sentence of a kind of summary, beside the share of all
# turns that are cited: a summary that cites every turn keeps all evidence and condenses nothing. Clusters are summarised
# for the memories of `themes_of`, layer upon layer.

# %%
part = data.take([scope for scope in data.scopes if scope in themes_of] or data.scopes[:1])
small = memlab.Bench.of(part, encoder=encoder, store=store)
themes = summaries.summary_tree(small, "clusters", service=service, seed=seed).nodes
made = pl.concat([nodes, themes.with_columns(kind=pl.format("cluster, layer {}", "level"))])
words = pl.col("text").str.count_matches(r"\w+").sum()
sizes = made.group_by("kind", maintain_order=True).agg(n=pl.len(), words=words)

# %%
rows, cited = [], made.select("kind", turn_id="evidence").explode("turn_id").explode("turn_id").drop_nulls()
for (kind,), its in cited.unique(maintain_order=True).group_by("kind", maintain_order=True):
    among = part if kind.startswith("cluster") else data
    items = among.questions.select("query_id", turn_id="evidence").explode("turn_id").drop_nulls()
    whole = items.group_by("query_id").agg(pl.col("turn_id").is_in(its["turn_id"].implode()).all())["turn_id"]
    for form, n, hits in (("questions", len(whole), whole.sum()), ("turns", among.turns.height, its.height)):
        interval = binomtest(hits, n).proportion_ci(0.95, "wilson")
        rows.append({"kind": kind, "form": form, "n": n, "mean": hits / n, "low": interval.low, "high": interval.high})

# %%
share = "share of questions whose every evidence item is cited, and of turns that are"
fig = intervals.mean_intervals(pl.DataFrame(rows), measure=share)
caption = "Questions whose every evidence item is cited, and turns that are cited, by kind of summary (95 % intervals)."
export(fig, "rollups-kept", data=pl.DataFrame(rows), caption=caption, **about)

# %% [markdown]
# ## Searching through the summaries
#
# `tree` ranks a turn by the cosine of the question with it or with a summary that stands on it. It is fused with `best` by
# reciprocal ranks (weights 2 and 1). `best + dense` is the control: the same fusion with the cosines of the turns alone.

# %%
parts, measure = [], f"recall_all@{k}"
for over, its, on in (("weeks", data, bench), ("clusters", part, small)):
    texts = ("best", "dense", f"tree(over={over!r}, service={service!r}, seed={seed})")
    best, dense, tree = (memlab.pipeline(text).run(on) for text in texts)
    runs, others = {"best": best, f"tree, {over}": tree}, {"dense": dense, over: tree}
    runs |= {f"best + {name}": memlab.retrieve.rrf([best, run], weights=(2, 1)) for name, run in others.items()}
    ranked = [replace(run, name=f"{name} ({len(its.scopes)} memories)") for name, run in runs.items()]
    reports = [evaluate.evaluate(run, its, measures=[measure], seed=seed) for run in ranked]
    parts.append(evaluate.compare_reports(reports, measure=measure).drop("p", "win", "tie", "loss"))

# %%
tested = pl.concat(parts)
tested

# %%
fig = intervals.forest(tested.with_columns(baseline=pl.lit("best")), measure=measure)
caption = f"Paired differences in complete recall to `best` ({data.name}; 95 % intervals, p after Holm's correction)."
export(fig, "rollups-tests", data=tested, caption=caption, **about)

# %% [markdown]
# ## Answer

# %%
few = ", ".join(f"{n:,} × {kind} ({words:,} words)" for kind, n, words in sizes.iter_rows())
total, matters = data.turns.select(words).item(), weeks["carried_on"].list.len().sum()
lines = [f"- {data.turns.height:,} turns ({total:,} words) became {few}.", f"- Weeks carry on {matters:,} matters."]
said = "; ".join(f"{a['kind']} {a['mean']:.1%} ({b['mean']:.1%})" for a, b in zip(rows[::2], rows[1::2], strict=True))
lines += [f"- Questions whose every evidence item is cited (in brackets: turns that are), by kind of summary: {said}."]
point = "- {system}: recall_all@{k} {mean:.1%} of {n:,} questions, {difference:+.1%} [{low:+.1%}, {high:+.1%}] to best"
lines += [point.format(k=k, **row) + f", p = {row['p_holm']:.3f}." for row in tested.drop_nulls().to_dicts()]
display(Markdown("\n".join([line for line in lines if not line.startswith("- tree")])))
