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
# # What is in the data, and why is complete recall hard?
#
# A question such as "how many doctors did I see this year?" needs every mention. This notebook counts what the
# conversations and the questions hold, measures how often the first k turns hold *all* the evidence, and sets that
# beside what independent hits would give.

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
from IPython.display import Markdown, display

import memlab
from memlab import evaluate
from memlab.figures import corpus, curves, export

_ = pl.Config(float_precision=3, fmt_str_lengths=80, tbl_rows=20)

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
data

# %% [markdown]
# What was odd in the source, and what was done about it:

# %%
data.issues

# %% [markdown]
# ## The questions
#
# Kinds are the source's own; forms are read off the words of the question.

# %%
questions = evaluate.describe_questions(data, "turn")
source = {"dataset": data.name, "fingerprint": data.fingerprint(), "n": questions.height}
kinds = questions.group_by("question_type", "evidence_sessions", maintain_order=True).len("count")
fig = corpus.question_kinds(kinds)
caption = f"Questions with evidence in {data.name} by kind and number of evidence sessions (n = {questions.height:,})."
export(fig, "corpus-question-kinds", caption=caption, provenance=source, directory=figures)

# %%
several = pl.col("n_evidence_sessions") >= 2
questions.group_by("form").agg(
    questions=pl.len(),
    several_sessions=several.mean(),
    mean_pieces=pl.col("n_relevant").mean(),
).sort("questions", descending=True)

# %%
fig = corpus.evidence_histogram(questions.select(n_evidence="n_relevant"))
caption = f"Pieces of evidence (turns) that a question of {data.name} needs (n = {questions.height:,})."
export(fig, "corpus-evidence", caption=caption, provenance=source, directory=figures)

# %% [markdown]
# ## The conversations

# %%
if data.sessions["start"].is_not_null().any():
    fig = corpus.sessions_over_time(data.sessions)
    caption = f"Sessions of {data.name} over time; a dot's area is its number of turns."
    export(fig, "corpus-sessions", caption=caption, provenance=source, directory=figures)
else:
    display(Markdown("No session of these conversations has a date."))

# %%
bench = memlab.Bench.of(data, encoder=encoder, store=store)
turns = bench.documents("turn")
roles = data.turns.select("turn_id", "role")
lengths = pl.DataFrame({"turn_id": pl.Series(turns.ids, dtype=pl.String), "tokens": turns.n_tokens})
lengths = lengths.join(roles, on="turn_id", how="left").filter(pl.col("tokens") > 0)
fig = corpus.token_lengths(lengths)
caption = f"Length of the turns of {data.name} in words and punctuation marks (n = {lengths.height:,})."
export(fig, "corpus-lengths", caption=caption, provenance=source, directory=figures)

# %% [markdown]
# ## Complete recall
#
# `recall_any@k` asks whether one piece of evidence is among the first k turns, `recall_all@k` whether all are.

# %%
cutoffs = [1, 2, 3, 5, 10, 20, 50]
measures = [f"{name}@{k}" for name in ("recall_any", "recall", "recall_all") for k in cutoffs]
done = memlab.run_pipelines(["dense", "bm25", "hybrid"], bench, data, levels=["turn"], measures=measures, seed=seed)
by, group = evaluate.hard_group(done.reports[0])
hard = evaluate.curve(done.reports, by=by, group=group)
fig = curves.recall_curves(hard)
n_hard = hard["n"][0]
which = "with evidence in two or more sessions" if by == "evidence_sessions" else "with evidence"
caption = (
    f"Share of the questions {which} whose every piece of evidence is among the first k turns "
    f"({data.name}, n = {n_hard:,}; bands: 95 % bootstrap intervals)."
)
export(fig, "corpus-recall-all", data=hard, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %%
hybrid = done.reports[-1]
hybrid.summary(by, measures=["recall_any@10", "recall@10", "recall_all@10"]).filter(pl.col("group") == group)

# %% [markdown]
# If each piece were found on its own with probability p, a question with n pieces would be complete with
# probability pⁿ. Where the measured bar stands above it, pieces are found together or not at all.

# %%
hits = evaluate.independent_hits(hybrid, k=10)
fig = curves.independent_hits(hits, label="hybrid")
caption = (
    f"Complete recall in the first ten turns by number of pieces, measured (hybrid, {data.name}, "
    f"n = {questions.height:,}) and as pⁿ for independent hits."
)
export(fig, "corpus-independent-hits", data=hits, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Answer

# %%
at10 = {
    name: hybrid.summary(by, measures=[f"{name}@10"]).filter(pl.col("group") == group)["mean"].item()
    for name in ("recall_any", "recall", "recall_all")
}
best = hard.filter(pl.col("k") == 10).sort("mean", descending=True).row(0, named=True)
complete, alone = ((hits[column] * hits["n"]).sum() / hits["n"].sum() for column in ("measured", "predicted"))
pieces = hybrid.summary(measures=["recall@10"])["mean"].item()
display(
    Markdown(
        f"Of the {n_hard:,} questions {which}, hybrid retrieval finds *some* evidence in the first ten turns for "
        f"{at10['recall_any']:.1%}, finds {at10['recall']:.1%} of the pieces, and finds *all* of them for "
        f"{at10['recall_all']:.1%}. The best of the three plain rankings, {best['system']}, reaches "
        f"{best['mean']:.1%} [{best['low']:.1%}, {best['high']:.1%}]; chance is {best['chance']:.1%} and the ceiling "
        f"at ten {best['ceiling']:.1%}. Over all {questions.height:,} questions, {pieces:.1%} of a question's pieces "
        f"are found and {complete:.1%} of the questions are complete; independent hits would complete {alone:.1%}."
    )
)
