"""Compare conclusions from proposed questions with those from gold ones: scripts/proposed_questions.py PROPOSALS DATA.

Several pairs of files are measured together. PROPOSALS is what `memlab questions` wrote, DATA the conversations with gold questions. Every strategy of
strategies.txt ranks for both sets over the scopes that have proposals, turns, complete recall at 10; printed are:

- Kendall's tau-b of the two orders of strategies, and the middle 95 % of what it is when the questions of both sets
  are drawn again within each scope (a draw has fewer different questions than its set, so that its orders agree
  less: tau itself lies in the upper part of the draws, or above them); for all questions, for those with evidence
  in two or more sessions, and for each collection;
- how many pairs of strategies change sign, and how many of those differ significantly on either set (paired bootstrap);
- the shift of the level: mean over strategies of proposed minus gold;
- with --search, of the gold questions with several items of evidence: how often the search of the checks finds an
  item that is hidden from it, among 30, 60 and 100 candidates;
- with --verdicts FILE, the share of proposals that a reader calls right with complete evidence, and its Wilson
  interval: JSON lines of query_id, right and complete, from a reader who saw the conversation and no check.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import kendalltau

import memlab
from memlab.evaluate import Table
from memlab.evaluate.confidence_intervals import wilson_interval
from memlab.questions.evidence_checks import search_candidate_turns
from memlab.questions.proposal_screening import Proposal, share_of_texts_sharing_no_word_or_zero
from memlab.records import Dataset

ROOT = Path(__file__).parents[1]
K = 10
DRAWS = 2_000
SEVERAL = "in two or more sessions"


def read_strategies(path: Path) -> list[str]:
    """Give the pipelines of a file, one a line."""
    lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def complete_recall(data: Dataset, strategies: Iterable[str], encoder: str) -> pl.DataFrame:
    """Give recall_all@10 of each question by each strategy: a row a question, a column a strategy."""
    bench = memlab.Bench.of(data, encoder=encoder, progress=False)
    asked = data.questions.filter(~pl.col("abstention"), pl.col("evidence").list.len() > 0)
    table = asked.select("query_id", "scope", several=pl.col("evidence_sessions").list.len() > 1)
    needed = asked.select("query_id", turn="evidence").explode("turn")
    for text in strategies:
        first = memlab.pipeline(text).run(bench).top(K).frame
        found = needed.join(
            first.select("query_id", turn="doc_id", hit=pl.lit(value=True)),
            on=["query_id", "turn"],
            how="left",
        )
        complete = found.group_by("query_id").agg(
            pl.col("hit").fill_null(value=False).all().cast(pl.Float64).alias(text)
        )
        table = table.join(complete, on="query_id", how="left", maintain_order="left")
    return table


def tau(first: np.ndarray, second: np.ndarray) -> float:
    """Give Kendall's tau-b of two lists of means; NaN where one has no order."""
    return float(kendalltau(first, second).statistic)


def drawn_means(scores: np.ndarray, scopes: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Give the means of strategies over questions that are drawn again within each scope: (draws, strategies)."""
    draw = np.random.default_rng(seed)
    weights = np.zeros((draws, len(scores)))
    for scope in np.unique(scopes):
        rows = np.flatnonzero(scopes == scope)
        weights[:, rows] = draw.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), draws)
    return weights @ scores / len(scores)


def interval(values: np.ndarray) -> str:
    """Write the middle 95 % of values."""
    low, high = np.nanquantile(values, [0.025, 0.975])
    return f"[{low:.3f}, {high:.3f}]"


def compare_sets(gold: pl.DataFrame, proposed: pl.DataFrame, names: list[str]) -> dict[str, str]:
    """Compare the order, the signs and the level of strategies on two sets of questions."""
    both = [part.select(names).to_numpy() for part in (gold, proposed)]
    scopes = [part["scope"].to_numpy() for part in (gold, proposed)]
    means = [scores.mean(axis=0) for scores in both]
    drawn = [
        drawn_means(*pair, DRAWS, seed) for seed, pair in enumerate(zip(both, scopes, strict=True))
    ]
    taus = np.array([tau(*pair) for pair in zip(*drawn, strict=True)])
    changed = list[str]()
    significant = list[str]()
    for left, right in combinations(range(len(names)), 2):
        differences = [mean[left] - mean[right] for mean in means]
        if differences[0] * differences[1] >= 0:
            continue
        changed.append(f"{names[left]} / {names[right]}")
        for draw in drawn:
            low, high = np.quantile(draw[:, left] - draw[:, right], [0.025, 0.975])
            if low > 0 or high < 0:
                significant.append(changed[-1])
                break
    pairs = len(names) * (len(names) - 1) // 2
    shifts = drawn[1].mean(axis=1) - drawn[0].mean(axis=1)
    return {
        "gold": f"{gold.height:,}",
        "proposed": f"{proposed.height:,}",
        "tau@10": f"{tau(*means):.3f}",
        "tau of draws": f"{np.nanmedian(taus):.3f} {interval(taus)}",
        "pairs that change sign": f"{len(changed)} of {pairs}",
        "of them significant on either": "; ".join(significant) or "none",
        "level, proposed minus gold": f"{means[1].mean() - means[0].mean():+.3f} {interval(shifts)}",
    }


def halves(gold: pl.DataFrame, names: list[str], draws: int = 200) -> str:
    """Give tau between random halves of the gold questions: what two sets of this size agree by at best."""
    scores = gold.select(names).to_numpy()
    draw = np.random.default_rng(0)
    found = list[float]()
    for _ in range(draws):
        order = draw.permutation(len(scores))
        middle = len(scores) // 2
        found.append(tau(scores[order[:middle]].mean(axis=0), scores[order[middle:]].mean(axis=0)))
    return f"{np.nanmean(found):.3f} {interval(np.array(found))}"


def hidden_items(gold: Dataset, encoder: str) -> str:
    """Say how often the search for further messages finds an item of the evidence that it is not given."""
    bench = memlab.Bench.of(gold, encoder=encoder, progress=False)
    proposals, hidden = list[Proposal](), dict[str, str]()
    for row in gold.questions.iter_rows(named=True):
        if len(row["evidence"]) < 2:
            continue
        missing = random.Random(row["query_id"]).choice(row["evidence"])
        hidden[row["query_id"]] = missing
        known = tuple(turn for turn in row["evidence"] if turn != missing)
        reasons = tuple("" for _ in known)
        about = (
            row["query_id"],
            row["scope"],
            row["question_type"],
            row["text"],
            row["answer"] or "",
        )
        stale = tuple(row["stale"] or ())
        proposals.append(Proposal(*about, known, reasons, stale, (), row["timestamp"]))
    found = search_candidate_turns(proposals, bench, 100)
    place = dict[str, int]()
    for (query,), part in found.group_by("query_id", maintain_order=True):
        listed = part["doc_id"].to_list()
        if hidden[query] in listed:
            place[query] = listed.index(hidden[query]) + 1
    shares = []
    for most in (30, 60, 100):
        hits = sum(at <= most for at in place.values())
        shares.append(f"{most}: {wilson(hits, len(hidden))}")
    return "; ".join(shares)


def wilson(right: int, n: int) -> str:
    """Write a share with its 95 % interval."""
    share = right / n
    low, high = wilson_interval(np.array([right]), n)
    return f"{share:.3f} [{low[0]:.3f}, {high[0]:.3f}] (n = {n:,})"


def score_sets(
    proposals: Path, data: Path, names: list[str], encoder: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Score the gold and the proposed questions of the scopes that have proposals."""
    scopes = {json.loads(line)["scope"] for line in proposals.open(encoding="utf-8")}
    every = memlab.load(data)
    gold = every.take([scope for scope in every.scopes if scope in scopes])
    both = memlab.load(data, questions=proposals, sources=["proposed", "accepted"])
    proposed = both.take(gold.scopes)
    scored = list[pl.DataFrame]()
    for each in (gold, proposed):
        texts = dict(each.turns.select("turn_id", "text").iter_rows())
        overlaps = list[tuple[str, float]]()
        for query_id, text, evidence in each.questions.select(
            "query_id", "text", "evidence"
        ).iter_rows():
            said = [texts[turn] or "" for turn in evidence]
            if said:
                apart = share_of_texts_sharing_no_word_or_zero(text, said, language=each.language)
                overlaps.append((query_id, apart))
        shares = pl.DataFrame(overlaps, schema=["query_id", "apart"], orient="row")
        scores = complete_recall(each, names, encoder)
        items = each.questions.select("query_id", items=pl.col("evidence").list.len())
        scored.append(
            scores.join(shares, on="query_id")
            .join(items, on="query_id")
            .with_columns(collection=pl.lit(data.stem))
        )
    return scored[0], scored[1]


def compare_groups(gold: pl.DataFrame, proposed: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Compare all questions, those of several sessions, and each collection for itself."""
    rows = list[dict[str, str]]()
    groups = {"all": pl.lit(value=True), SEVERAL: pl.col("several")}
    collections = gold["collection"].unique(maintain_order=True).to_list()
    if len(collections) > 1:
        for collection in collections:
            groups[collection] = pl.col("collection") == collection
    for group, condition in groups.items():
        parts = [each.filter(condition) for each in (gold, proposed)]
        rows.append({"questions": group} | compare_sets(*parts, names))
    return pl.DataFrame(rows)


def describe_sets(gold: pl.DataFrame, proposed: pl.DataFrame) -> pl.DataFrame:
    """Say what may make one set easier: items of evidence, and items that share no word."""
    rows = list[dict[str, str]]()
    for name, each in {"gold": gold, "proposed": proposed}.items():
        rows.append(
            {
                "set": name,
                "n": f"{each.height:,}",
                "items of evidence, mean": f"{each['items'].mean():.2f}",
                "in two or more sessions": f"{each['several'].mean():.3f}",
                "items without a word of the question": f"{each['apart'].mean():.3f}",
            }
        )
    return pl.DataFrame(rows)


def shares_right(path: Path) -> pl.DataFrame:
    """Give the share of proposals that a reader calls right with complete evidence, by scope."""
    verdicts = pl.read_ndjson(path).with_columns(
        scope=pl.col("query_id").str.split("/").list.first()
    )
    rows = list[dict[str, str]]()
    parts = {"all": verdicts}
    for scope in verdicts["scope"].unique(maintain_order=True):
        parts[scope] = verdicts.filter(scope=scope)
    for name, part in parts.items():
        both = part.filter(pl.col("right") & pl.col("complete")).height
        rows.append(
            {
                "scope": name,
                "right, with complete evidence": wilson(both, part.height),
                "right": wilson(int(part["right"].sum()), part.height),
                "complete": wilson(int(part["complete"].sum()), part.height),
            }
        )
    return pl.DataFrame(rows)


def main() -> None:
    """Print the comparison."""
    read = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    read.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="PROPOSALS DATA",
        help="pairs of files, their questions measured together; none DATA with --search alone",
    )
    read.add_argument("--encoder", default="minilm")
    read.add_argument("--verdicts", type=Path)
    read.add_argument("--search", action="store_true")
    given = read.parse_args()
    if len(given.paths) % 2:
        read.error("a file of proposals and one of conversations, in pairs")
    pairs = list(zip(given.paths[::2], given.paths[1::2], strict=True))
    if given.search:
        for _, data in pairs:
            found = hidden_items(memlab.load(data), given.encoder)
            print(f"{data.stem}: hidden items of evidence found among {found}\n")
    pairs = [pair for pair in pairs if str(pair[0]) != "none"]
    if not pairs:
        return
    names = read_strategies(ROOT / "strategies.txt")
    scored = [score_sets(*pair, names, given.encoder) for pair in pairs]
    gold = pl.concat(part for part, _ in scored)
    proposed = pl.concat(part for _, part in scored)
    n_scopes = gold["scope"].n_unique()
    print(f"{len(names)} strategies, {n_scopes} scopes, turns, recall_all@{K}, {DRAWS:,} draws\n")
    print(Table(describe_sets(gold, proposed)))
    print(Table(compare_groups(gold, proposed, names)))
    print(f"\ntau of halves of the gold questions, mean: {halves(gold, names)}\n")
    levels: dict[str, Sequence[object]] = {"strategy": names}
    for title, each in {"gold": gold, "proposed": proposed}.items():
        levels[title] = each.select(names).mean().row(0)
    print(Table(pl.DataFrame(levels, strict=False)))
    if given.verdicts:
        print(Table(shares_right(given.verdicts)))


if __name__ == "__main__":
    main()
