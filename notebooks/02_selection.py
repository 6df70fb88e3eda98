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
# The same candidates, three ways to choose: the plain top k, MMR over λ, and the best of each cluster over cluster
# counts. At an equal number of turns and at an equal token budget, with paired tests against the plain ranking.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
base = "hybrid"
k = 10
tokens = 400
lambdas = [0.3, 0.5, 0.7, 0.8, 0.9, 0.95]
cluster_counts = [2, 3, 5, 10, 20]

# %%
import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import cluster, evaluate
from memlab.experiment import sweep
from memlab.figures import curves, export, selection

_ = pl.Config(float_precision=3, fmt_str_lengths=80, tbl_rows=20)

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
data

# %% [markdown]
# ## The plain ranking

# %%
measure = f"recall_all@{k}"
cutoffs = sorted({1, 2, 3, 5, k, 20, 50})
measures = [f"recall_all@{n}" for n in cutoffs]
systems = [base, f"{base} | mmr(lambda_=0.7)", f"{base} | by_cluster(n_clusters=10)"]
done = memlab.run_pipelines(systems, bench, data, levels=["turn"], measures=measures, seed=seed)
plain = done.reports[0]
by, group = evaluate.hard_group(plain)
where = pl.col("n_evidence_sessions") >= 2 if by == "evidence_sessions" else pl.lit(True)
which = "with evidence in two or more sessions" if by == "evidence_sessions" else "with evidence"
points = evaluate.curve(done.reports, by=by, group=group)
n = points["n"][0]
fig = curves.recall_curves(points)
caption = (
    f"Complete recall over k for the plain ranking, MMR and best-of-each-cluster ({data.name}, questions {which}, "
    f"n = {n:,}; bands: 95 % bootstrap intervals)."
)
export(fig, "selection-recall", data=points, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## At an equal number of turns

# %%
over_lambda = sweep(f"{base} | mmr(lambda_={{lambda_}})", lambdas, plain, bench, data, measure=measure)
over_counts = sweep(
    f"{base} | by_cluster(n_clusters={{n_clusters}})", cluster_counts, plain, bench, data, measure=measure
)
swept = pl.concat([over_lambda, over_counts.with_columns(pl.col("value").cast(pl.Float64))])
swept

# %%
fig = selection.sweep(swept, measure=measure, reference=base)
caption = (
    f"{measure} of MMR over λ and of best-of-each-cluster over the number of clusters ({data.name}, questions {which}, "
    f"n = {n:,}); grey: {base} alone."
)
export(fig, "selection-sweep", data=swept, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %%
fixed = [
    base,
    *(f"{base} | mmr(lambda_={value})" for value in (0.5, 0.7, 0.9)),
    *(f"{base} | by_cluster(n_clusters={value})" for value in (3, 10)),
]
at_k = memlab.run_pipelines(fixed, bench, data, levels=["turn"], measures=[measure], seed=seed)
tested = evaluate.compare(at_k.reports, measure=measure, where=where, seed=seed)
tested

# %%
fig = selection.forest(tested.with_columns(baseline=pl.lit(base)), measure=measure)
caption = (
    f"Paired differences to {base} in {measure} ({data.name}, questions {which}, n = {n:,}): 95 % bootstrap intervals, "
    "filled where significant after Holm's correction."
)
export(fig, "selection-tests", data=tested, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## At an equal token budget
#
# A model's context is paid in tokens, not in turns: short turns let more evidence in.

# %%
whole = "recall_all@1000"
budgeted = [f"{text} | budget(tokens={tokens})" for text in fixed]
at_budget = memlab.run_pipelines(budgeted, bench, data, levels=["turn"], measures=[whole], seed=seed)
kept = [run.frame.group_by("query_id").len()["len"].mean() for run in at_budget.runs]
tested_budget = evaluate.compare(at_budget.reports, measure=whole, where=where, seed=seed)
tested_budget.with_columns(turns_kept=pl.Series(kept))

# %%
fig = selection.forest(
    tested_budget.with_columns(baseline=pl.lit(budgeted[0])), measure=f"recall_all in {tokens} tokens"
)
caption = f"The same at an equal budget of {tokens} tokens ({data.name}, questions {which}, n = {n:,})."
export(
    fig, "selection-budget", data=tested_budget, caption=caption, provenance=dict(bench.provenance), directory=figures
)

# %% [markdown]
# ## Finding

# %%
lines = []
for title, table in ((f"first {k} turns", tested), (f"{tokens} tokens", tested_budget)):
    others = table[1:].with_columns(shown=pl.col("p_holm") < 0.05)
    better = others.filter(pl.col("shown") & (pl.col("difference") > 0))["system"].to_list()
    worse = others.filter(pl.col("shown") & (pl.col("difference") < 0))["system"].to_list()
    lines.append(
        f"**{title}**: plain {base} completes {table['mean'][0]:.1%} of the {table['n'][0]:,} questions {which}. "
        f"Shown to be better: {', '.join(f'`{s}`' for s in better) or 'none'}; shown to be worse: "
        f"{', '.join(f'`{s}`' for s in worse) or 'none'} (p < .05 after Holm's correction).\n"
    )
    lines.extend(
        f"- `{row['system']}`: {row['mean']:.3f}, difference {row['difference']:+.3f} "
        f"[{row['low']:+.3f}, {row['high']:+.3f}], win/tie/loss {row['win']}/{row['tie']}/{row['loss']}, "
        f"p {'< 0.001' if row['p_holm'] < 0.001 else '= ' + format(row['p_holm'], '.3f')}"
        for row in others.iter_rows(named=True)
    )
    lines.append("")
turns = bench.documents("turn")
pairs = cluster.pair_similarity(turns.vectors(), turns.ids.tolist(), data.questions, seed=seed)
median = dict(pairs.group_by("kind").agg(pl.col("similarity").median()).iter_rows())
together, apart = median.get("evidence, other session"), median["evidence – random"]
if together is not None:
    lines.append(
        f"Why: two pieces of one answer in different sessions have a median cosine of {together:.2f}, a piece and a "
        f"random turn {apart:.2f}. "
        + (
            "A rule that keeps alike turns apart keeps the pieces of an answer apart too."
            if together > apart
            else "Here the pieces are no more alike than random turns, so spreading the choice costs nothing by itself."
        )
    )
display(Markdown("\n".join(lines)))
