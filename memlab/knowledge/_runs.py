"""From keyed statements to runs of one value, and what closes each: frames in, frames out."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import polars as pl

from memlab.knowledge._text import ASSERT, CORRECT, DENIAL, END, HINT, UPDATE
from memlab.knowledge.cardinality import ONE, UNKNOWN

GROUP = ["scope", "subject_key", "predicate_key"]
VALUE = [*GROUP, "object_key"]
COMPUTED = (
    "status", "superseded", "superseded_by", "repeats", "valid_from", "valid_to", "n_reinforced", "last_access",
    "accesses",
)  # fmt: skip
_WINDOW_DAYS = 7
_NOT = "not "


def compute(
    keyed: pl.DataFrame, undone: pl.DataFrame, *, now: datetime | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give every statement its state, and list the closings: ``old``, ``new``, ``at``, ``rule``.

    :param now: what has lasted its days by then has expired; ``None``: by the latest statement of its scope.
    """
    rows = keyed.with_row_index("i").sort("said_at", "recorded_at", maintain_order=True).with_row_index("o")
    denied = pl.col("kind") == DENIAL
    # What is denied is a relation of its own, of which there may be many.
    rows = rows.with_columns(
        one=(pl.col("cardinality") == ONE) & ~denied,
        predicate_key=pl.when(denied).then(pl.lit(_NOT) + pl.col("predicate_key")).otherwise("predicate_key"),
    )
    said = rows.filter(pl.col("kind") != END).with_columns(
        kind=pl.when(pl.col("kind") != HINT).then("kind").when("one").then(pl.lit(CORRECT)).otherwise(pl.lit(ASSERT))
    )
    said = said.with_columns(stretch=_changes("object_key").over(GROUP))
    corrected, said = _corrections(said, undone)
    ends = _ends(rows, said, undone)
    runs = _runs(said.join(corrected, on="o", how="anti"), ends)
    closings = _closings(runs, ends, undone)
    return _status(keyed, rows, runs, closings, corrected, now), _log(rows, closings, corrected)


def _changes(*columns: str) -> pl.Expr:
    return pl.any_horizontal(pl.col(c).ne_missing(pl.col(c).shift()) for c in columns).cast(pl.Int32).cum_sum()


def _corrections(said: pl.DataFrame, undone: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Find what each correction corrects; give the corrected statements, and all with the time that they speak for."""
    first = pl.col("stretch") != pl.col("stretch").shift().over(GROUP)
    before = said.with_columns(
        target=pl.col("o").shift().over(GROUP), since=pl.col("said_at").shift().over(GROUP)
    ).filter((pl.col("kind") == CORRECT) & pl.col("instead_of_key").is_null() & first)
    recent = pl.col("said_at") - pl.col("since") <= pl.duration(days=_WINDOW_DAYS)
    before = before.filter(pl.col("one") | recent).select("o", "target")
    named = said.filter((pl.col("kind") == CORRECT) & pl.col("instead_of_key").is_not_null())
    named = (
        named.select(*GROUP, "o", object_key="instead_of_key")
        .sort("o")
        .join_asof(
            said.select(*VALUE, "o", target="o").sort("o"),
            on="o", by=VALUE, strategy="backward", allow_exact_matches=False, check_sortedness=False,
        )
        .drop_nulls("target")
        .select("o", "target")
    )  # fmt: skip
    pairs = pl.concat([before, named]).rename({"o": "by_o"})
    # With one value at a time a stretch is what is corrected; else every statement of that value.
    part = pl.when("one").then("stretch").otherwise(-1)
    spans = said.select(*VALUE, "o", "fact_id", part=part)
    targets = pairs.join(spans.select(*VALUE, "part", target="o"), on="target").join(
        said.select("fact_id", by_o="o").rename({"fact_id": "by"}), on="by_o"
    )
    hit = targets.drop("target").join(spans, on=[*VALUE, "part"]).filter(pl.col("o") < pl.col("by_o")).sort("o")
    hit = hit.with_columns(head_o=pl.col("o").first().over("by_o"), head=pl.col("fact_id").first().over("by_o"))
    hit = hit.join(undone.select(head="old", by="new"), on=["head", "by"], how="anti")
    corrected = (
        hit.sort("by_o").unique("o", keep="first", maintain_order=True).select("o", "by", "by_o", "head", "head_o")
    )
    return corrected, _speaks_for(said, corrected)


def _speaks_for(said: pl.DataFrame, corrected: pl.DataFrame) -> pl.DataFrame:
    """A correction speaks for the time of what it corrects, through corrections of corrections."""
    position = {o: at for at, o in enumerate(said["o"].to_list())}
    head = np.arange(said.height)
    for by_o, head_o in corrected.select("by_o", "head_o").unique().iter_rows():
        head[position[by_o]] = min(position[head_o], head[position[by_o]])
    while not np.array_equal(head, head[head]):
        head = head[head]
    return said.with_columns(since=said["said_at"].gather(head))


def _ends(rows: pl.DataFrame, said: pl.DataFrame, undone: pl.DataFrame) -> pl.DataFrame:
    """List what is said to be over: by an end, by "B instead of A", by "is now B" where the cardinality is unknown."""
    columns = [*VALUE, "o", "fact_id", "since", "rule"]
    plain = rows.filter(pl.col("kind").is_in([END, DENIAL])).with_columns(
        since="said_at", rule=pl.lit("said to be over"), predicate_key=pl.col("predicate_key").str.strip_prefix(_NOT)
    )
    after_all = said.filter(pl.col("kind") != DENIAL).with_columns(
        predicate_key=pl.lit(_NOT) + pl.col("predicate_key"), rule=pl.lit("said to be so")
    )
    after_all = after_all.join(said.filter(pl.col("kind") == DENIAL), on=VALUE, how="semi")
    everything = plain.filter(pl.col("object_key") == "").drop("object_key")
    everything = everything.join(said.select(VALUE).unique(maintain_order=True), on=GROUP)
    replaced = said.filter((pl.col("kind") == UPDATE) & pl.col("instead_of_key").is_not_null()).with_columns(
        object_key="instead_of_key", rule=pl.lit("said to be replaced")
    )
    new = said.with_columns(before=pl.col("object_key").shift().over(GROUP)).filter(
        (pl.col("kind") == UPDATE) & (pl.col("cardinality") == UNKNOWN) & pl.col("instead_of_key").is_null()
    )
    new = new.filter(pl.col("before") != pl.col("object_key")).with_columns(
        object_key="before", rule=pl.lit("said to be new")
    )
    closing = rows.filter(pl.col("closes").list.len() > 0).select("o", "fact_id", "said_at", "kind", old="closes")
    closing = (
        closing.explode("old")
        .join(rows.select(*VALUE, old="fact_id"), on="old")
        .with_columns(
            since="said_at",
            rule=pl.when(pl.col("kind").is_in([END, DENIAL]))
            .then(pl.lit("said to be over"))
            .otherwise(pl.lit("another value")),
        )
    )
    kinds = (plain.filter(pl.col("object_key") != ""), everything, after_all, replaced, new, closing)
    ends = pl.concat([kind.select(columns) for kind in kinds])
    told = rows.select(*VALUE, old="fact_id")
    taken_back = undone.select("old", fact_id="new").join(told, on="old").select(*VALUE, "fact_id")
    return ends.join(taken_back, on=[*VALUE, "fact_id"], how="anti")


def _runs(said: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Number the runs of one value: statements in the order of the time they speak for, split by ends and changes."""
    both = pl.concat(
        [
            said.select(*VALUE, "o", "since", "fact_id", "one", "said_at", over=pl.lit(0)),
            ends.select(*VALUE, "o", "since", "fact_id", one=None, said_at=None, over=pl.lit(1)),
        ],
        how="vertical_relaxed",
    ).sort("since", "o", "over", maintain_order=True)
    both = both.with_columns(episode=pl.col("over").cum_sum().over(VALUE)).filter(pl.col("over") == 0)
    run = pl.when("one").then(_changes("object_key", "episode").over(GROUP)).otherwise(-1)
    return both.with_columns(run=run).with_columns(
        head=pl.col("fact_id").first().over(*VALUE, "episode", "run"),
        start=pl.col("since").first().over(*VALUE, "episode", "run"),
    )


def _closings(runs: pl.DataFrame, ends: pl.DataFrame, undone: pl.DataFrame) -> pl.DataFrame:
    heads = runs.unique("head", keep="first", maintain_order=True).select(
        *VALUE, "episode", "run", "one", "start", old="head"
    )
    single = heads.filter("one")
    following = single.select(*GROUP, new="old", at="start", later="run")
    taken_back = (
        single.join(undone, on="old", how="semi").join(following, on=GROUP).filter(pl.col("later") > pl.col("run"))
    )
    nexts = single.with_columns(
        new=pl.col("old").shift(-1).over(GROUP), at=pl.col("start").shift(-1).over(GROUP)
    ).drop_nulls("new")
    columns = ["old", "new", "at", "rule", "order"]
    another = pl.concat([nexts, taken_back.select(nexts.columns)]).with_columns(
        rule=pl.lit("another value"), order=pl.lit(1)
    )
    over = (
        ends.sort("since")
        .select(*VALUE, "rule", since="since", new="fact_id", at="since", order=pl.lit(0))
        .join_asof(
            heads.sort("start").select(*VALUE, "old", "start"),
            left_on="since", right_on="start", by=VALUE, strategy="backward", check_sortedness=False,
        )
        .drop_nulls("old")
    )  # fmt: skip
    return (
        pl.concat([another.select(columns), over.select(columns)])
        .filter(pl.col("old") != pl.col("new"))
        .join(undone, on=["old", "new"], how="anti")
        .sort("at", "order", maintain_order=True)
        .unique("old", keep="first", maintain_order=True)
    )


def _status(
    keyed: pl.DataFrame,
    rows: pl.DataFrame,
    runs: pl.DataFrame,
    closings: pl.DataFrame,
    corrected: pl.DataFrame,
    now: datetime | None,
) -> pl.DataFrame:
    wrong = corrected.join(rows.select("o", "fact_id", "said_at"), on="o").select("fact_id", "by", gone="said_at")
    # Two readings of one message, such as a rule's and an annotator's, are heard once.
    heard = keyed.select("fact_id", heard=pl.coalesce(pl.col("evidence").list.first(), "fact_id"))
    mentions = runs.join(heard, on="fact_id", maintain_order="left").unique(
        ["head", "heard"], keep="first", maintain_order=True
    )
    totals = mentions.group_by("head").agg(
        n_reinforced=(pl.len() - 1).cast(pl.Int32),
        last_access=pl.col("said_at").max(),
        accesses=pl.col("said_at").sort(),
    )
    state = (
        keyed.join(runs.select("fact_id", "head", "start"), on="fact_id", how="left", maintain_order="left")
        .join(closings.rename({"old": "head"}), on="head", how="left", maintain_order="left")
        .join(totals, on="head", how="left", maintain_order="left")
        .join(wrong, on="fact_id", how="left", maintain_order="left")
    )
    is_head = pl.col("head") == pl.col("fact_id")
    until = pl.col("last_access") + pl.duration(days=pl.col("lasts"))
    present = pl.lit(now) if now is not None else pl.col("said_at").max().over("scope")
    status = (
        pl.when(pl.col("by").is_not_null()).then(pl.lit("corrected"))
        .when(pl.col("kind") == END).then(pl.lit("closing"))
        .when(~is_head).then(pl.lit("repeat"))
        .when(pl.col("new").is_null() & (until <= present)).then(pl.lit("expired"))
        .when(pl.col("new").is_null()).then(pl.lit("active"))
        .when(pl.col("rule") == "said to be over").then(pl.lit("ended"))
        .otherwise(pl.lit("superseded"))
    )  # fmt: skip
    return (
        state.with_columns(status=status)
        .with_columns(
            superseded=pl.col("status").is_in(["superseded", "corrected", "ended", "closing", "expired"])
            | ((pl.col("status") == "repeat") & pl.col("new").is_not_null()),
            superseded_by=pl.coalesce("by", "new"),
            repeats=pl.when(pl.col("status") == "repeat").then("head"),
            valid_from=pl.coalesce("start", "gone", "said_at"),
            valid_to=pl.coalesce(
                "gone",
                "at",
                pl.when(pl.col("status") == "expired").then(until),
                pl.when(pl.col("status") == "closing").then("said_at"),
            ),
            n_reinforced=pl.when(is_head).then("n_reinforced").otherwise(0).fill_null(0),
            last_access=pl.coalesce("last_access", "said_at"),
            accesses=pl.coalesce("accesses", pl.concat_list("said_at")),
        )
        .select(*keyed.columns, *COMPUTED)
    )


def _log(rows: pl.DataFrame, closings: pl.DataFrame, corrected: pl.DataFrame) -> pl.DataFrame:
    times = rows.select("o", at="said_at")
    wrong = (
        corrected.unique("head", keep="first", maintain_order=True)
        .join(times, left_on="head_o", right_on="o")
        .select(old="head", new="by", at="at", rule=pl.lit("corrected"))
    )
    return pl.concat([closings.select("old", "new", "at", "rule"), wrong])
