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
# # What do summaries of sessions, weeks and themes buy?
#
# The findings on the committed sample stand here once its recorded answers are there and the notebook was run on them.
#
# ![A memory in time](../figures/gallery/sample-rollups-kept.png)
#
# Sessions are summarised, weeks are written of their sessions, months of their weeks, and clusters of turns that are similar
# wherever they stand. Every sentence names the turns that it stands on. The summaries are read, and then searched: does a
# search through them find more of the evidence than a search over the turns alone, at the same number of tokens?

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
service = "recorded"  # who writes the summaries: recorded answers, a service of the settings, or None for no model
n_scopes = 2  # those with the most questions; None for all
tokens = [500, 1000, 2000]
tz = "UTC"  # where weeks begin

# %%
import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import evaluate, summaries
from memlab.explorer import panels
from memlab.figures import export, rollup, selection, sweeps
from memlab.select import budget

evaluate.show_tables()

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
most = data.questions.group_by("scope", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
data = data.take([*dict.fromkeys([*most["scope"], *data.scopes])][:n_scopes])
bench = memlab.Bench.of(data, encoder=encoder, store=store)
scope = data.scopes[0]
weeks = summaries.trees_of(bench, "weeks", service=service, tz=tz)
nodes = weeks[scope].nodes
data

# %% [markdown]
# ## A memory in time
#
# Months and their weeks, each with its topics.

# %%
above = nodes.filter(pl.col("kind") != "session")
named = [f"{summaries.period_name(row, tz=tz)}: {', '.join(row['topics'])}" for row in above.to_dicts()]
boxes = above.select("node_id", "parent", "kind", label=pl.Series(named), n_turns=pl.col("turns").list.len())
fig = rollup.icicle(boxes)
caption = f"Months and weeks of {scope} with their topics ({data.name}; weeks begin on Monday, {tz})."
about = {"provenance": dict(bench.provenance), "directory": figures}
export(fig, "rollups-time", data=boxes, caption=caption, **about)

# %% [markdown]
# ## A week
#
# The last week with the most sessions, as `memlab rollup SCOPE --week DATE` prints it.

# %%
week = nodes.filter(kind="week").sort(pl.col("children").list.len(), maintain_order=True).row(-1, named=True)
Markdown(summaries.to_markdown(week, tz=tz))

# %% [markdown]
# Open a node: its sentences with the turns that they stand on, and what is below it.

# %%
panels.unfold(nodes, data.turns.filter(pl.col("scope") == scope))

# %% [markdown]
# ## Found at an equal number of tokens
#
# Turns in order of their own cosine (`turns alone`), or of the best of theirs and of the summaries that stand on them.
# Each ranking is cut at the same number of tokens; complete recall is compared question by question.

# %%
over = {name: f"tree(over={name!r}, service={service!r}, tz={tz!r})" for name in ("weeks", "clusters", "both")}
runs = {name: memlab.pipeline(text).run(bench) for name, text in {"turns alone": "dense", **over}.items()}

# %%
parts = []
for n in tokens:
    cut = [budget(run, bench, tokens=n) for run in runs.values()]
    reports = [evaluate.evaluate(run, data, measures=["recall_all@1000"], seed=seed) for run in cut]
    tested = evaluate.compare(reports, measure="recall_all@1000", seed=seed)
    parts.append(tested.with_columns(system=pl.Series(list(runs)), value=pl.lit(n), alone=tested["mean"][0])[1:])
found = evaluate.verdicts(parts)
found.select("value", "system", "mean", "difference", "low", "high", "p_holm", "verdict")

# %%
shown = found.with_columns(
    parameter=pl.lit("tokens"), series=pl.lit("all questions"), baseline=pl.col("alone"),
    low=pl.col("alone") + pl.col("low"), high=pl.col("alone") + pl.col("high"),
)  # fmt: skip
fig = sweeps.sweep(shown, panel="system", series="series", measure="recall_all", reference="turns alone", log_x=True)
n_asked = f"{data.name}, n = {found['n'][0]:,} questions"
caption = f"Complete recall in a budget of tokens, found through summaries ({n_asked}); grey: turns alone."
export(fig, "rollups-recall", data=shown, caption=caption, **about)

# %%
tested = found.with_columns(baseline=pl.lit("turns alone"), measure=pl.format("{} tokens", "value"))
tested = tested.sort("system", maintain_order=True)
fig = selection.forest(tested, measure="complete recall at equal tokens")
caption = (
    f"Paired differences in complete recall to turns alone ({n_asked}); 95 % intervals, p after Holm's correction."
)
export(fig, "rollups-tests", data=tested, caption=caption, **about)

# %% [markdown]
# ## Answer

# %%
made = pl.concat(tree.nodes for tree in weeks.values())
by_model = made.filter(pl.col("service") != summaries.EXTRACTIVE).height
best = found.sort("difference", descending=True, maintain_order=True).row(0, named=True)
few = made.group_by("kind", maintain_order=True).agg(n=pl.len(), sentences=pl.col("sentences").list.len().sum())
written = ", ".join(f"{n:,} {kind}s in {sentences:,} sentences" for kind, n, sentences in few.iter_rows())
lines = [
    f"- {data.turns.height:,} turns become {written}; {by_model:,} of these {made.height:,} summaries are by a model."
]
lines += [f"- {made['carried_on'].list.len().sum():,} matters were carried on from one week or month to the next."]
lines += [f"- The largest difference: `{best['system']}` in {best['value']:,} tokens completes {best['mean']:.1%} of "
          f"{best['n']:,} questions, turns alone {best['alone']:.1%} ({best['verdict']})."]  # fmt: skip
display(Markdown("\n".join(lines)))
