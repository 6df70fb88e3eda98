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
# # What do summaries of summaries keep, and what do they buy?
#
# On the committed sample (two of the four memories, 258 evidence items, 95 % intervals over these; two memories are too
# few to resample):
#
# - Extractive summaries of sessions are 3.0 times shorter and stand on 60.5 % [54.4 %, 66.2 %] of the evidence,
#   clusters 2.7 times and 65.9 % [59.9 %, 71.4 %]; sentences drawn at random would keep 69.5 % and 74.6 %.
# - Searching the summaries finds no more than searching the turns at equal tokens: of 40 tests 0 are better, 2 are
#   worse, 37 are inconclusive (in 1,000 tokens the turns alone complete 42.8 %).
# - Picked sentences invent nothing: 0 of 699 and 0 of 972 hold a value that their turns do not.
#
# ![Evidence that each layer still stands on](../figures/gallery/sample-rollups-kept.png)
#
# Two ways to roll a memory up: by likeness (clusters of turns, clusters of their summaries, and so on) and by time
# (sessions, weeks, months). Here both are drawn and read; it is measured what each layer still holds of the evidence,
# whether its sentences are true to their turns, what it costs to write, and whether a search over the summaries finds
# more than a search over the turns at the same number of tokens.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
n_scopes = 2  # those with the most questions; None for all
drawn_scope = None  # the scope that is drawn and read; the one with the most questions where not given
tokens = [250, 500, 1000, 2000]
tz = "UTC"  # where days and weeks begin

# %% jupyter={"source_hidden": true}
import numpy as np
import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import evaluate
from memlab.embed.text import turn_texts
from memlab.explorer import panels
from memlab.figures import export, selection, sweeps
from memlab.figures import rollup as drawn
from memlab.knowledge.calibration import wilson
from memlab.language.tokens import PIECE
from memlab.rollup import cost, grow, kept, letter, rollup, trees_of
from memlab.rollup.nodes import turn_nodes
from memlab.select import budget
from memlab.summarize import share, split, unsupported

evaluate.show_tables()

# %% jupyter={"source_hidden": true}
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
most_asked = data.questions.group_by("scope", maintain_order=True).len()
most_asked = most_asked.sort("len", descending=True, maintain_order=True)["scope"].to_list()
order = [*([drawn_scope] if drawn_scope else []), *most_asked, *data.scopes]
order = list(dict.fromkeys(order))
data = data.take(order[:n_scopes])
bench = memlab.Bench.of(data, encoder=encoder, store=store)
scope = order[0]
data

# %% [markdown]
# ## The rollup of one memory in time
#
# Read it from the left: months and their weeks. Every box says what sets it apart.

# %% jupyter={"source_hidden": true}
mine = data.turns.filter(pl.col("scope") == scope)
trees = {grouping: trees_of(bench, data.scopes, grouping, tz=tz, seed=seed) for grouping in ("clusters", "weeks")}
periods = trees["weeks"][scope].nodes
day = pl.col("start").dt.convert_time_zone(tz)
monday = day.dt.truncate("1w")
# A week belongs to the month of its Thursday.
sunday = monday.dt.offset_by("6d")
within = monday.dt.month() == sunday.dt.month()
begins = pl.when(within).then(monday.dt.strftime("%-d–")).otherwise(monday.dt.strftime("%-d %b – "))
named = (
    pl.when(pl.col("kind") == "month").then(monday.dt.offset_by("3d").dt.strftime("%B %Y"))
    .when(pl.col("kind") == "week").then(pl.format("{}{}", begins, sunday.dt.strftime("%-d %b")))
    .otherwise(day.dt.strftime("%-d %b"))
)  # fmt: skip
n_turns = pl.col("turns").list.len()
topics = pl.col("topics").list.join(", ")
periods = periods.with_columns(named=named.fill_null("undated"), n_turns=n_turns)
boxes = periods.with_columns(label=pl.format("{}: {}", "named", topics))
by_kind = periods.group_by("kind", maintain_order=True).len()
counted = ", ".join(f"{n:,} {kind}s" for kind, n in by_kind.reverse().iter_rows())
shown = boxes.filter(pl.col("kind") != "session").select("node_id", "parent", "kind", "label", "n_turns")
fig = drawn.icicle(shown)
caption = (
    f"The rollup of {scope} in time ({data.name}; {mine.height:,} turns in {counted}; weeks begin on Monday, {tz})."
)
export(fig, "rollups-time", data=shown, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# Open a node: its sentences with the turns that they stand on, and what is below it.

# %% jupyter={"source_hidden": true}
panels.unfold(periods, mine)

# %% [markdown]
# ## A week beside its sessions
#
# The week with the most sessions. Every sentence names the turns that it stands on; a question that is still open is
# carried on from week to week until someone answers it.

# %% jupyter={"source_hidden": true}
texts = {
    "sentence": ("sentences", "evidence"),
    "open question": ("open_questions", "open_question_evidence"),
}
told = pl.concat(
    periods.select("node_id", "kind", "named", "turns", what=pl.lit(what), text=pl.col(text), stands_on=pl.col(ids))
    .explode("text", "stands_on")
    .drop_nulls("text")
    for what, (text, ids) in texts.items()
)
before = (pl.col("what") == "open question") & (pl.col("stands_on").list.set_intersection("turns").list.len() == 0)
told = told.with_columns(what=pl.when(before).then(pl.lit("open from before")).otherwise("what"))
weeks = periods.filter(pl.col("kind") == "week")
week = weeks.filter(pl.col("children").list.len() == pl.col("children").list.len().max())[-1]
below = periods.filter(pl.col("node_id").is_in(week["children"].explode().implode()))
counts = mine.select("turn_id", "session_id", n=pl.col("text").str.count_matches(PIECE))
said = counts.filter(pl.col("turn_id").is_in(week["turns"].explode().implode()))["n"].sum()
wrote = week["text"].str.count_matches(PIECE)[0]
up = week["sentences"].explode()
Markdown(
    f"**{week['named'][0]}**: {below.height:,} sessions with {week['n_turns'][0]:,} turns and {said:,} tokens; the sessions' "
    f"rollups have {below['text'].str.count_matches(PIECE).sum():,} tokens, the week's has {wrote:,}. Of the "
    f"{below['sentences'].list.len().sum():,} sentences of the sessions {up.is_in(below['sentences'].explode().implode()).sum():,} "
    "went up into the week."
)

# %% jupyter={"source_hidden": true}
reading = ["kind", "named", "what", "text", "stands_on"]
told.filter(pl.col("node_id") == week["node_id"][0]).select(reading)

# %% jupyter={"source_hidden": true}
told.filter(pl.col("node_id").is_in(below["node_id"].implode())).select(reading)

# %% [markdown]
# ## “What did we work on last week?”
#
# Asked in the week of the last turn, and answered from the week before it that has any: nothing is searched.

# %% jupyter={"source_hidden": true}
last = weeks[-2] if weeks.height > 1 else weeks[-1]
when = last.select(pl.format("{} {}", "named", day.dt.strftime("%Y")).fill_null("undated")).item()
answered = told.filter(pl.col("node_id") == last["node_id"][0])
display(
    Markdown(
        f"**{when}**, {last['children'].list.len()[0]:,} sessions, {last['n_turns'][0]:,} turns (asked in the week "
        f"{weeks[-1]['named'][0]}). Topics: {', '.join(last['topics'][0])}."
    )
)
Markdown(letter(periods, mine, last["node_id"][0], tz=tz))

# %% jupyter={"source_hidden": true}
answered.select("what", "text", "stands_on")

# %% [markdown]
# ## What each layer keeps
#
# A piece of evidence is kept where a sentence of the layer stands on its turn. The grey line is what sentences drawn at
# random would keep at the same length. A layer that only some scopes have is measured on these alone.

# %% jupyter={"source_hidden": true}
built = {grouping: pl.concat(tree.nodes for tree in held.values()) for grouping, held in trees.items()}
given = data.sessions["summary"].drop_nulls().len() > 0
of_given = " Given weeks: sessions keep the summaries that the dataset has." if given else ""
if given:
    held = trees_of(bench, data.scopes, "weeks", given=True, tz=tz)
    built["given weeks"] = pl.concat(tree.nodes for tree in held.values())
wanted = data.questions.select("scope", turn_id="evidence").explode("turn_id").unique(maintain_order=True)
wanted = wanted.join(data.turns.select("scope", "turn_id"), on=["scope", "turn_id"], how="semi", maintain_order="left")
parts = []
for name, nodes in built.items():
    for (kind, level), layer in nodes.sort("level", maintain_order=True).group_by("kind", "level", maintain_order=True):
        here = pl.col("scope").is_in(layer["scope"].unique().implode())
        ids = wanted.filter(here)["turn_id"]
        its = kept(layer, data.turns.filter(here), ids)
        parts.append(
            its.with_columns(
                series=pl.lit(name),
                layer=pl.lit(f"layer {level}" if kind == "cluster" else kind),
                scopes=pl.lit(layer["scope"].n_unique()),
                evidence=pl.lit(len(ids)),
            )
        )
layers = pl.concat(parts).drop_nulls("evidence_kept")
ends = wilson((layers["evidence_kept"] * layers["evidence"]).to_numpy(), layers["evidence"].to_numpy(), confidence=0.95)
# A turn is kept at random where any of its sentences is drawn.
at_random = "sentences at random"
n_sentences = wanted.join(split(data.turns).group_by("turn_id").len("sentences"), on="turn_id")["sentences"].to_numpy()
shorter = np.geomspace(1, max(layers["compression"].max(), 2), 40).tolist()
chance = {times: (1 - (1 - 1 / max(times, 1)) ** n_sentences).mean() for times in [*shorter, *layers["compression"]]}
layers = layers.with_columns(
    low=pl.Series(ends[0]), high=pl.Series(ends[1]), at_random=pl.col("compression").replace_strict(chance)
)
layers.select(
    "series", "layer", "scopes", "nodes", "tokens", "compression", "evidence_kept", "low", "high", "at_random"
)

# %% jupyter={"source_hidden": true}
line = pl.DataFrame({"compression": shorter, "evidence_kept": [chance[times] for times in shorter]})
line = line.with_columns(series=pl.lit(at_random), layer=pl.lit(""))
shown = pl.concat([layers, line], how="diagonal")
fig = drawn.compression(shown, reference=at_random)
fewest = layers["evidence"].min()
of_few = f"; at least {fewest:,} where a layer is not in every scope" if fewest < wanted.height else ""
caption = (
    f"Evidence that each layer still stands on, over how much shorter it is ({data.name}, {len(data.scopes):,} scopes, n = "
    f"{wanted.height:,} turns that are evidence{of_few}; 95 % Wilson intervals).{of_given}"
)
export(fig, "rollups-kept", data=shown, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## True to the turns?
#
# The share of sentences with a number, a date or a name that stands in none of the turns that they name. Sentences
# that are picked and not written cannot have any; this shows it. A given summary names no turns: its sentences are
# traced to the turns that share most of their words, so that what counts against it is partly the tracing. So these are
# also held against all turns of their session.

# %% jupyter={"source_hidden": true}
parts = []
for name, nodes in built.items():
    for (kind, level), layer in nodes.sort("level", maintain_order=True).group_by("kind", "level", maintain_order=True):
        its = share(layer, data.turns)
        parts.append(
            its.select(pl.lit(name).alias("series"), pl.lit(kind).alias("kind"), pl.lit(level).alias("level"), pl.all())
        )
faithful = pl.concat(parts)
faithful.select("series", "kind", "level", "n_sentences", "n_unsupported")

# %% jupyter={"source_hidden": true}
invented = ""
if given:
    dated = data.turns["timestamp"].dt.strftime("%-d %B %Y, %A, %-I:%M %p. ").fill_null("")
    spoken = dict(zip(data.turns["turn_id"], dated + pl.Series(turn_texts(data.turns)), strict=True))
    theirs = built["given weeks"].filter((pl.col("kind") == "session") & (pl.col("service") == "given"))
    theirs = theirs.select("turns", text="sentences", stands_on="evidence").explode("text", "stands_on")
    theirs = theirs.drop_nulls("text").with_row_index("row")
    untraced = (theirs["stands_on"].list.len() == 0).sum()
    held_against = {"its turns": "stands_on", "its session": "turns"}
    found = pl.concat(
        unsupported(
            theirs["text"].to_list(), [[spoken[turn] for turn in ids or ()] for ids in theirs[column].to_list()]
        ).with_columns(against=pl.lit(name))
        for name, column in held_against.items()
    )
    beyond = found.filter(pl.col("against") == "its session")
    invented = (
        f" Of the {theirs.height:,} sentences of given summaries {untraced:,} are traced to no turn; "
        f"{beyond['row'].n_unique():,} hold a value that stands nowhere in their session."
    )
    by_value = found.group_by("against", "kind").agg(values=pl.len(), sentences=pl.col("row").n_unique())
    display(by_value.sort("against", "kind"))
    examples = beyond.group_by("row", maintain_order=True).agg("found").join(theirs, on="row").head(10)
    display(examples.select("found", "text"))

# %% [markdown]
# ## Found at an equal number of tokens
#
# Turns are ranked by their own cosine (flat), or found through the summaries above them: all nodes in one pool
# (collapsed) or from the top down (traversal). Each ranking is cut at the same number of tokens, and complete recall is
# compared question by question with the flat one.

# %% jupyter={"source_hidden": true}
systems = {
    "flat": "dense",
    "clusters, collapsed": f"tree(grouping='clusters', seed={seed})",
    "clusters, traversal": f"tree(grouping='clusters', search='traversal', seed={seed})",
    "weeks, collapsed": f"tree(grouping='weeks', tz='{tz}')",
    "weeks, traversal": f"tree(grouping='weeks', search='traversal', tz='{tz}')",
    "both, collapsed": f"tree(grouping='mixed', tz='{tz}', seed={seed})",
}
if given:
    systems["given weeks, collapsed"] = f"tree(grouping='weeks', given=True, tz='{tz}')"
done = memlab.run_pipelines(list(systems.values()), bench, data, levels=["turn"], seed=seed)
deep = "recall_all@1000"
several = (done.reports[0].per_query["n_evidence_sessions"] >= 2).any()
groups = {"all questions": pl.lit(True)}
if several:
    groups["evidence in ≥ 2 sessions"] = pl.col("n_evidence_sessions") >= 2
parts = []
for t in tokens:
    reports = [evaluate.evaluate(budget(run, bench, tokens=t), data, measures=[deep], seed=seed) for run in done.runs]
    for group, where in groups.items():
        held = evaluate.compare(reports, measure=deep, where=where, seed=seed)
        held = held.with_columns(
            system=pl.Series(list(systems)), group=pl.lit(group), value=pl.lit(t), flat=held["mean"][0]
        )
        parts.append(held[1:])
# One claim, one family: all systems, budgets and groups of questions.
tested = evaluate.verdicts(parts)
tested.sort("p_holm", maintain_order=True).select(
    "group", "value", "system", "mean", "difference", "low", "high", "p_holm", "detectable", "verdict"
)

# %% jupyter={"source_hidden": true}
sizes = ", ".join(
    f"{group} n = {n:,}" for group, n in tested.select("group", "n").unique(maintain_order=True).iter_rows()
)
shown = tested.with_columns(
    parameter=pl.lit("tokens"),
    baseline="flat",
    low=pl.col("flat") + pl.col("low"),
    high=pl.col("flat") + pl.col("high"),
)
fig = sweeps.sweep(
    shown, panel="system", series="group", measure="recall_all", reference="flat, same tokens", log_x=True
)
caption = (
    f"Complete recall in a budget of tokens, found through trees of summaries ({data.name}, {sizes}); grey: flat search over "
    f"turns; bars: 95 % intervals of the paired difference to it, about the mean.{of_given}"
)
export(fig, "rollups-recall", data=shown, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% jupyter={"source_hidden": true}
two = tokens[1::2][-2:] or tokens
of_all = tested.filter((pl.col("group") == "all questions") & pl.col("value").is_in(two)).with_columns(
    baseline=pl.lit("flat"), measure=pl.format("{} tokens", "value")
)
fig = selection.forest(of_all.sort("system", maintain_order=True), measure="complete recall at equal tokens")
caption = (
    f"Paired differences in complete recall to flat search at equal tokens ({data.name}, all questions, n = "
    f"{of_all['n'][0]:,}); 95 % bootstrap intervals, p of paired randomisation tests after Holm's correction over all budgets."
)
export(fig, "rollups-tests", data=of_all, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## What it would cost with a language model
#
# Nothing was asked of a model here: the sentences are picked. Had a service written the nodes, each would be one call,
# that reads what is right below it. What a new session costs is counted on the scope that is drawn: the nodes that are
# not the same with its last session as without.

# %% jupyter={"source_hidden": true}
whole = data.turns.height
leaves = turn_nodes(data.turns)
rows_of = {
    name: cost(pl.concat([leaves, nodes]).with_columns(service=pl.lit("a model")), data.turns)
    for name, nodes in built.items()
}
newest = periods.filter(pl.col("kind") == "session")["turns"][-1].to_list()
earlier = mine.filter(~pl.col("turn_id").is_in(newest))
now = trees["clusters"][scope].nodes
nodes_here = {"clusters": now.height, "weeks": periods.height}
again = dict(nodes_here)
if earlier.height:
    documents = bench.documents("turn")
    at = documents.at(earlier["turn_id"])
    order = np.argsort(at, kind="stable")
    old = grow(earlier[order], encoder=bench.embedder(), vectors=documents.vectors()[at[order]], seed=seed).nodes
    again["clusters"] = now.filter(~pl.col("node_id").is_in(old["node_id"].implode())).height
    old = rollup(earlier, sessions=data.sessions, tz=tz)
    again["weeks"] = periods.filter(~pl.col("node_id").is_in(old["node_id"].implode())).height
priced = pl.concat(
    rows.select(
        design=pl.lit(name),
        layers=pl.len(),
        calls=pl.col("calls").sum(),
        tokens_in=pl.col("tokens_in").sum(),
        tokens_out=pl.col("tokens_out").sum(),
        calls_per_1000_turns=1000 * pl.col("calls").sum() / whole,
        calls_for_a_new_session=pl.lit(again.get(name), pl.Int64),
        nodes_of_its_scope=pl.lit(nodes_here.get(name), pl.Int64),
    )
    for name, rows in rows_of.items()
)
priced.select(
    "design",
    "layers",
    "calls",
    "tokens_in",
    "tokens_out",
    "calls_per_1000_turns",
    "calls_for_a_new_session",
    "nodes_of_its_scope",
)

# %% [markdown]
# ## Answer

# %% jupyter={"source_hidden": true}
lines = []
for (name,), rows in layers.group_by("series", maintain_order=True):
    row = rows.sort("compression", maintain_order=True).row(0, named=True)
    lines.append(
        f"- Kept, {name} (n = {row['evidence']:,} pieces): the lowest layer ({row['layer']}) is {row['compression']:.1f} times "
        f"shorter and stands on {row['evidence_kept']:.1%} [{row['low']:.1%}, {row['high']:.1%}] of the evidence; sentences at "
        f"random {row['at_random']:.1%}."
    )
wrong = faithful.group_by("series", "service", maintain_order=True).agg(pl.col("n_sentences", "n_unsupported").sum())
lines.append(
    "- True to the turns: "
    + "; ".join(
        f"{series}, {service}: {bad:,} of {n:,} sentences hold a value that their turns do not"
        for series, service, n, bad in wrong.iter_rows()
    )
    + "."
    + invented
)
counted = evaluate.count_verdicts({"all": tested}).row(0, named=True)
mid = tested.filter((pl.col("value") == tokens[len(tokens) // 2]) & (pl.col("group") == "all questions"))
near = mid.sort("difference", descending=True, maintain_order=True).row(0, named=True)
lines.append(
    f"- Found at equal tokens ({counted['tests']} tests in one family): {counted['better']} shown to be better than flat search, "
    f"{counted['worse']} worse, {counted['as good']} as good within ± 5%, {counted['open']} open. In {near['value']:,} tokens flat "
    f"completes {near['flat']:.1%} (n = {near['n']:,}), the best tree ({near['system']}) {near['difference']:+.1%} "
    f"[{near['low']:+.1%}, {near['high']:+.1%}]."
)
lines.append(
    "- With a model, a call a summary: "
    + "; ".join(
        f"{row['design']} {row['calls']:,} calls, {row['tokens_in']:,} tokens read and {row['tokens_out']:,} written"
        for row in priced.to_dicts()
    )
    + f" ({whole:,} turns)."
)
display(Markdown("\n".join(lines)))
