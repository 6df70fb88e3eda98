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
# # How far does each step climb, and what is still missed?
#
# On the committed sample (four invented memories, 178 questions with evidence in several sessions; the learned step is
# cross-validated over the memories, intervals over questions):
#
# - The first ten turns are complete for 3.9 % of the questions with BM25 and for 22.5 % with the learned reranker:
#   +18.5 % [+12.9 %, +24.7 %].
# - Three steps are significant over all questions: dense scores beside BM25 (+5.5 %, p = 0.049), late interaction (+7.2
#   %, p = 0.001) and the learned reranker (+8.2 %, p = 0.003; with evidence in several sessions +11.8 %, p = 0.003).
# - The last step still loses 165 of 291 answers; of the 347 evidence items that it misses 24 % stand within rank 20.
#   With evidence in several sessions 62 % of what is missed is worded otherwise than the question.
#
# ![Complete recall, one change a step](../figures/gallery/sample-ladder-turns.png)
#
# From BM25 to the best pipeline, one change a step: what it gains on the step before, with the paired interval and
# test, and what it costs in time. Then the steps that lead aside, what a weak first result looks like, and why the best
# pipeline still misses evidence.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
models = "../results/cross-validated"
k = 10
scores = "combsum(turn=(1, 1, 0), session=(0, 0, 0))"
late = "combsum(turn=(1, 1, 2), session=(1, 1, 2))"
steps = {
    "BM25": "bm25",
    "+ dense, ranks fused": "hybrid",
    "scores instead of ranks": scores,
    "+ evidence of the session": "combsum",
    "+ late interaction": late,
    "+ assistant held back": "best",
    "+ learned reranker": "best | learned",
}
aside = ["prf", "decompose", "multi_hop", "negative_feedback"]
threshold = -3.0
timed = 10

# %% jupyter={"source_hidden": true}
from dataclasses import replace

import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import evaluate
from memlab.experiments import latency, train_folds, untrained, with_models
from memlab.figures import export, ladder
from memlab.retrieve.expansion import weakness
from memlab.retrieve.two_stage import summary_storage
from memlab.terminal import markdown

evaluate.show_tables()

# %% jupyter={"source_hidden": true}
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
memory = memlab.MemoryStore.open(store)
bench = memlab.Bench.of(data, encoder=encoder, store=memory)
if "assistant" not in data.turns["role"]:
    steps.pop("+ assistant held back", None)
data

# %% [markdown]
# ## The steps
#
# Where an assistant speaks, its turns resemble the questions and hold few answers: one step holds them back. A learned step is
# cross-validated: each conversation is ranked by a model that learned from others. What cannot run on this data is left out
# and named: late interaction needs token embeddings, cross-validation a second conversation.

# %% jupyter={"source_hidden": true}
one_question = bench.with_queries(bench.queries.head(1))
pipelines, left_out = {}, {}
for name, text in steps.items():
    stages = [memlab.pipeline(text)]
    try:
        if untrained(stages):
            train_folds(bench, data, models, seed=seed)
            stages = with_models(stages, models)
        stages[0].run(one_question)
        pipelines[name] = stages[0]
    except memlab.DataError as error:
        left_out[name] = str(error)
left_out

# %% [markdown]
# The experiment keeps each run in the store, so a second call reads it back, and the comparison can be opened again later.

# %% jupyter={"source_hidden": true}
done = memlab.run(
    list(pipelines.values()), data, store=memory, encoder=bench.encoder, name=f"ladder-{data.name}", seed=seed
)
runs = memlab.reopen(memory, done.name).runs
reports = {
    level: [
        evaluate.evaluate(replace(run, name=name), data, measures=[f"recall_all@{n}" for n in cutoffs], seed=seed)
        for name, run in zip(pipelines, [run for run in runs if run.level == level], strict=True)
    ]
    for level, cutoffs in {"turn": (k, 2 * k), "session": (5, k)}.items()
}
times = latency(list(pipelines.values()), bench, queries=timed, seed=seed)
times = times.select("n", "batch_ms", "single_ms", system=pl.Series(list(pipelines)))
times

# %% jupyter={"source_hidden": true}
measure = f"recall_all@{k}"
asked = reports["turn"][0].per_query
groups = {"all questions": None}
if (asked["n_evidence_sessions"] >= 2).any():
    groups["evidence in ≥ 2 sessions"] = pl.col("n_evidence_sessions") >= 2
climbs = {}
for level, shown in (("turn", measure), ("session", "recall_all@5")):
    parts = []
    for group, where in groups.items():
        by, label = ("all", "all") if where is None else ("evidence_sessions", evaluate.MULTI_SESSION)
        bounds = reports[level][0].summary(by, measures=shown).filter(pl.col("group") == label)
        table = evaluate.compare(reports[level], measure=shown, where=where, stepwise=True)
        chance, ceiling = bounds["chance"].item(), bounds["ceiling"].item()
        parts.append(table.select(pl.lit(group).alias("group"), pl.all(), chance=chance, ceiling=ceiling))
    # One claim, one family: every step in either group of questions.
    climbs[level] = evaluate.verdicts(parts).join(
        times.select("system", "batch_ms", ms="single_ms"), on="system", how="left", maintain_order="left"
    )
brief = ["group", "system", "mean", "difference", "low", "high", "p_holm", "detectable", "verdict"]
climbs["turn"].select(brief)

# %% jupyter={"source_hidden": true}
fig = ladder.climb(climbs["turn"], measure=measure)
caption = (
    f"Complete recall in the first {k} turns, one change a step ({data.name}, n = {asked.height:,}; bars: 95 % bootstrap "
    "intervals). Beside each step: its gain on the step before, with the paired interval and p after Holm's correction over all "
    "steps and groups."
)
export(fig, "ladder-turns", data=climbs["turn"], caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% jupyter={"source_hidden": true}
fig = ladder.climb(climbs["session"], measure="recall_all@5")
caption = (
    f"Complete recall in the first 5 sessions, as in the figure of turns ({data.name}, n = {asked.height:,}); times are "
    "those of ranking turns."
)
export(
    fig,
    "ladder-sessions",
    data=climbs["session"],
    caption=caption,
    provenance=dict(bench.provenance),
    directory=figures,
)

# %% jupyter={"source_hidden": true}
deeper = evaluate.compare(
    reports["turn"], measure=f"recall_all@{2 * k}", where=list(groups.values())[-1], stepwise=True
)
deeper.select("system", "n", "mean", "difference", "low", "high", "p_holm")

# %% [markdown]
# ## Steps aside
#
# What did not become a step: expansions after the best step that needs no training, and retrieval in two stages. All
# against that step.

# %% jupyter={"source_hidden": true}
hard = list(groups.values())[-1]
plain = climbs["turn"].filter(
    (pl.col("group") == list(groups)[-1])
    & pl.col("system").is_in([name for name, text in steps.items() if not untrained([memlab.pipeline(text)])])
)
best_plain = plain.sort("mean", descending=True, maintain_order=True)["system"][0]
base = str(pipelines[best_plain])
tried = [base, *(f"{base} | {stage}" for stage in aside), "two_stage(k=200)"]
turns = memlab.run(tried, data, bench=bench, levels=["turn"], measures=[measure], seed=seed)
compared = [
    evaluate.compare(turns.reports, measure=measure, where=where).select(pl.lit(group).alias("group"), pl.all())
    for group, where in groups.items()
]
beside = evaluate.verdicts(compared)
beside = beside.join(
    latency(tried, bench, queries=max(timed // 3, 1), seed=seed).drop("n"), on="system", maintain_order="left"
).with_columns(pl.col("system").str.replace(base, "…", literal=True))
beside.select(*brief[:2], "single_ms", *brief[3:])

# %% jupyter={"source_hidden": true}
sessions = memlab.run(
    [base, "two_stage"], data, bench=bench, levels=["session"], measures=["recall@5", "recall_all@5"], seed=seed
)
of_sessions = evaluate.compare(sessions.reports, measure="recall@5")
of_sessions.select("system", "n", "mean", "difference", "low", "high", "p")

# %% jupyter={"source_hidden": true}
storage = summary_storage(bench)
storage

# %% [markdown]
# ## Weak first results
#
# A language model that writes a hypothetical answer (HyDE) costs seconds, and can lead away from what was found. So
# `hyde` asks for one only where the first turns score little above the average of the scope: weakness is minus their
# mean standardised score. Does that tell wrong first results from right ones?

# %% jupyter={"source_hidden": true}
run = turns.runs[0]
first = evaluate.evaluate(run, data, measures=["precision@1", measure], seed=seed).per_query
weak = (
    weakness(run, bench).join(first, on="query_id", maintain_order="left").with_columns(right=pl.col("precision@1") > 0)
)
n_right, n_wrong = weak["right"].sum(), (~weak["right"]).sum()
ranks = weak.with_columns(place=pl.col("value").rank()).filter(~pl.col("right"))["place"].sum()
auc = (ranks - n_wrong * (n_wrong + 1) / 2) / (n_right * n_wrong) if n_right and n_wrong else None
called = (
    weak.with_columns(called=pl.col("value") > threshold)
    .group_by("called")
    .agg(questions=pl.len(), first_right=pl.col("right").mean(), complete=pl.col(measure).mean())
    .sort("called")
)
called

# %% [markdown]
# ## What is still missed
#
# Each missed piece gets the first cause whose rule holds. The rules compare words, so that anyone can check them:

# %% jupyter={"source_hidden": true}
of_hard = climbs["turn"].filter(pl.col("group") == list(groups)[-1]).sort("mean", descending=True, maintain_order=True)
best = of_hard["system"][0]
best_run = [run for run in runs if run.level == "turn"][list(pipelines).index(best)]
missed = evaluate.misses(best_run, data, k=k)
display(Markdown("\n".join(f"1. **{cause}**: {rule}" for cause, rule in evaluate.CAUSES.items())))
missed.select("cause", "rank", "question", "answer", pl.col("text").str.slice(0, 160)).head(8)

# %% jupyter={"source_hidden": true}
causes = pl.concat(
    [
        evaluate.by_cause(missed if where is None else missed.filter(where)).select(
            pl.lit(group).alias("group"), pl.all()
        )
        for group, where in groups.items()
    ]
)
causes

# %% jupyter={"source_hidden": true}
fig = ladder.causes(causes)
caption = (
    f"Why “{best}” misses evidence in the first {k} turns ({data.name}): {missed.height:,} pieces of "
    f"{missed['query_id'].n_unique():,} lost answers by cause (bars, with counts), and the share of lost answers that "
    "would be complete if that cause alone were solved (marks)."
)
export(fig, "ladder-misses", data=causes, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# Some of each:

# %% jupyter={"source_hidden": true}
cut = [
    pl.col(c).str.slice(0, n) + pl.when(pl.col(c).str.len_chars() > n).then(pl.lit("…")).otherwise(pl.lit(""))
    for c, n in (("question", 120), ("answer", 80), ("text", 200))
]
examples = missed.sample(fraction=1, shuffle=True, seed=seed).group_by("cause", maintain_order=True).head(2)
order = pl.Enum(list(evaluate.CAUSES))
display(
    Markdown(
        evaluate.to_markdown(
            examples.sort(pl.col("cause").cast(order), maintain_order=True)
            .with_columns(*cut)
            .select("cause", "rank", "question", "answer", "text")
        )
    )
)

# %% [markdown]
# ## Finding

# %% jupyter={"source_hidden": true}
hard_rows = climbs["turn"].filter(pl.col("group") == list(groups)[-1])
top = hard_rows["mean"].arg_max()
whole = evaluate.compare(reports["turn"], measure=measure, where=hard).row(top, named=True)
steps_of = {
    verdict: ", ".join(
        f"{row['system']} ({row['group']}, {row['difference']:+.1%}, p = {row['p_holm']:.3f})"
        for row in climbs["turn"].filter(pl.col("verdict") == verdict).to_dicts()
    )
    for verdict in ("better", "worse")
}
aside_of = {v: beside.filter(pl.col("verdict") == v).height for v in ("better", "worse", "equivalent", "inconclusive")}
near = (missed["rank"] <= 2 * k).sum() / max(missed.height, 1)
ordered = causes.filter(pl.col("group") == list(groups)[-1]).sort("n", descending=True, maintain_order=True)
least = climbs["turn"]["detectable"].min()
smallest = "no size" if least is None else f"{least:.1%}"
lines = [
    f"- {markdown(data.name)}, {list(groups)[-1]} (n = {hard_rows['n'][0]:,}): {measure} is {hard_rows['mean'][0]:.1%} for "
    f"{hard_rows['system'][0]} and {hard_rows['mean'][top]:.1%} for {hard_rows['system'][top]}"
    + (
        f"; the whole climb is {whole['difference']:+.1%} [{whole['low']:+.1%}, {whole['high']:+.1%}]."
        if whole["low"] is not None
        else "; no step reaches more."
    ),
    f"- Single steps (one family of {climbs['turn']['p'].count()} tests): shown to help {steps_of['better'] or 'none'}; to hurt "
    f"{steps_of['worse'] or 'none'}. Steps from {smallest} would have been seen; the rest is "
    "inconclusive.",
    f"- Aside, against “{best_plain}” ({sum(aside_of.values())} tests): {aside_of['better']} shown to help, {aside_of['worse']} to "
    f"hurt, {aside_of['equivalent']} equivalent within ± 5%, {aside_of['inconclusive']} inconclusive.",
]
if missed.height:
    lines.append(
        f"- “{best}” loses {missed['query_id'].n_unique():,} of {asked.height:,} answers, {missed.height:,} pieces, of which "
        f"{near:.0%} rank up to {2 * k}. By cause ({list(groups)[-1]}): "
        + ", ".join(f"{row['cause']} {row['share']:.0%}" for row in ordered.filter(pl.col("n") > 0).head(4).to_dicts())
        + "."
    )
lines.append(
    f"- A weak first result tells a wrong one from a right one in {auc:.0%} of pairs (a coin: 50%); HyDE would be called for "
    f"{(weak['value'] > threshold).mean():.0%} of the questions."
    if auc is not None
    else "- All first results are right or all wrong: how well weakness tells them apart cannot be said."
)
if left_out:
    lines.append("- Left out: " + "; ".join(f"“{name}”, {why}" for name, why in left_out.items()))
display(Markdown("\n".join(lines)))
