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
# On the committed sample (four invented memories; hybrid retrieval, the first ten turns, 95 % intervals):
#
# - Of the 178 questions with evidence in two or more sessions, *some* is found for 48.9 % [41.6 %, 56.2 %] and *all* of
#   it for 7.3 % [3.4 %, 11.2 %].
# - Each evidence item is hard to find: of answers with several items 22.6 % of the items are found, of answers with one
#   55.1 %. Were they as easy as these, 15.9 % of the 184 answers with several items would be complete; it is 7.6 % [4.6
#   %, 12.4 %].
# - Items tend to be found together: found independently of each other they would complete 4.5 % [2.7 %, 6.5 %] of these
#   answers, p = 0.004.
#
# ![Complete recall by number of pieces](../figures/gallery/sample-independent-hits.png)
#
# Below: what the conversations and the questions hold, how often the first k turns hold all the evidence, and why.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"

# %% jupyter={"source_hidden": true}
import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import evaluate
from memlab.figures import corpus, curves, export
from memlab.terminal import markdown

evaluate.show_tables()

# %% jupyter={"source_hidden": true}
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
data

# %% [markdown]
# What was odd in the source, and what was done about it:

# %% jupyter={"source_hidden": true}
data.issues

# %% [markdown]
# ## The questions
#
# Kinds are the source's own; forms are read off the words of the question.

# %% jupyter={"source_hidden": true}
questions = evaluate.describe_questions(data, "turn")
source = {"dataset": data.name, "fingerprint": data.fingerprint(), "n": questions.height}
kinds = questions.group_by("question_type", "evidence_sessions", maintain_order=True).len("count")
fig = corpus.question_kinds(kinds)
caption = f"Questions with evidence in {data.name} by kind and number of evidence sessions (n = {questions.height:,})."
export(fig, "corpus-question-kinds", caption=caption, provenance=source, directory=figures)

# %% jupyter={"source_hidden": true}
several = pl.col("n_evidence_sessions") >= 2
questions.group_by("form").agg(
    questions=pl.len(),
    several_sessions=several.mean(),
    mean_pieces=pl.col("n_relevant").mean(),
).sort("questions", descending=True)

# %% jupyter={"source_hidden": true}
fig = corpus.evidence_histogram(questions.select(n_evidence="n_relevant"))
caption = f"Pieces of evidence (turns) that a question of {data.name} needs (n = {questions.height:,})."
export(fig, "corpus-evidence", caption=caption, provenance=source, directory=figures)

# %% [markdown]
# ## The conversations

# %% jupyter={"source_hidden": true}
data.sessions.group_by("scope", maintain_order=True).agg(
    sessions=pl.len(), turns=pl.col("n_turns").sum(), first=pl.col("start").min(), last=pl.col("start").max()
)

# %% jupyter={"source_hidden": true}
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

# %% jupyter={"source_hidden": true}
cutoffs = [1, 2, 3, 5, 10, 20, 50]
measures = [f"{name}@{k}" for name in ("recall_any", "recall", "recall_all") for k in cutoffs]
done = memlab.run(["dense", "bm25", "hybrid"], data, bench=bench, levels=["turn"], measures=measures, seed=seed)
by, group = evaluate.hard_group(done.reports[0].per_query)
hard = evaluate.curve(done.reports, by=by, group=group)
fig = curves.recall_curves(hard)
n_hard = hard["n"][0]
which = "with evidence in two or more sessions" if by == "evidence_sessions" else "with evidence"
caption = (
    f"Share of the questions {which} whose every piece of evidence is among the first k turns "
    f"({data.name}, n = {n_hard:,}; bands: 95 % bootstrap intervals)."
)
export(fig, "corpus-recall-all", data=hard, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% jupyter={"source_hidden": true}
hybrid = done.reports[-1]
hybrid.summary(by, measures=["recall_any@10", "recall@10", "recall_all@10"]).filter(pl.col("group") == group)

# %% [markdown]
# Two things can make complete recall rare: each piece of such an answer is harder to find, or the pieces are found
# independently of each other, so that one is always missing. The dash is complete recall were they as easy as single
# pieces. The open marks are the null hypothesis: hits permuted among the pieces of questions with as many pieces,
# with the middle 95 % of permutations. What is measured lies above them where pieces are found together.

# %% jupyter={"source_hidden": true}
hits = evaluate.independent_hits(hybrid, k=10, most=4)
fig = curves.independent_hits(hits, label="hybrid, measured")
caption = (
    f"Complete recall in the first ten turns by number of pieces (hybrid, {data.name}, n = {questions.height:,}; 95 % "
    "Wilson intervals); permuted within questions of as many pieces, with 95 % of permutations; and were the pieces "
    "found independently and as often as single ones."
)
export(fig, "corpus-independent-hits", data=hits, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% jupyter={"source_hidden": true}
hits.select(
    "n_evidence",
    "n",
    "found",
    "measured",
    "low",
    "high",
    "predicted",
    "predicted_low",
    "predicted_high",
    "p",
    "as_single",
)

# %% [markdown]
# ## Answer

# %% jupyter={"source_hidden": true}
of_hard = hybrid.summary(by, measures=["recall_any@10", "recall_all@10"]).filter(pl.col("group") == group)
some, complete = (f"{row['mean']:.1%} [{row['low']:.1%}, {row['high']:.1%}]" for row in of_hard.to_dicts())
lines = [
    f"- {markdown(data.name)}, hybrid retrieval, the first ten turns: of the {n_hard:,} questions {which}, some evidence is found for "
    f"{some}, and all of it for {complete}."
]
single = hits["found"][0] if hits["n_evidence"][0] == "1" else None
several = hits.row(-1, named=True)
if several["n_evidence"] == "≥ 2" and single is not None:
    together = several["p"] < 0.05
    lines += [
        f"- Of answers of several pieces {several['found']:.1%} of the pieces are found, of single ones {single:.1%}. As easy "
        f"as these, {several['as_single']:.1%} of the {several['n']:,} answers of several pieces would be complete; it is "
        f"{several['measured']:.1%} [{several['low']:.1%}, {several['high']:.1%}].",
        f"- Found independently of each other, their pieces would complete {several['predicted']:.1%} "
        f"[{several['predicted_low']:.1%}, {several['predicted_high']:.1%}], p = {several['p']:.3f}: that pieces are found "
        f"together is {'shown' if together else 'not shown'} here.",
    ]
display(Markdown("\n".join(lines)))
