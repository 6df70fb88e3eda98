"""What groups of sentences are about, in noun phrases."""

from __future__ import annotations

import polars as pl

from memlab.cluster import cluster_terms


def topics(sentences: pl.DataFrame, *, by: str = "session_id", n_topics: int = 6) -> pl.DataFrame:
    """Name what each group is about: noun phrases of up to four words, most telling first.

    They set a group apart from the other groups of its scope, and what several people speak of counts more
    (:func:`memlab.cluster.cluster_terms`). Words of courtesy and of time, and the names of those who take part, are no
    topics; nor is what an assistant says, unless nobody else does.

    :param sentences: what :func:`memlab.summarize.split` gives; ``by`` is the column that names the group.
    :returns: the group and ``topics``, a list that may be empty.

    >>> import polars as pl
    >>> said = ["I joined a pottery class in Oslo.", "The pottery class is on Mondays.", "Pottery calms my nerves."]
    >>> rows = pl.DataFrame({"session_id": "u/s", "scope": "u", "speaker": "Mel", "role": "user", "text": said})
    >>> topics(rows)["topics"].to_list()[0][0]
    'pottery class'
    """
    parts = [pl.DataFrame(schema={by: sentences.schema[by], "topics": pl.List(pl.String)})]
    person = pl.col("role") != "assistant"
    told = sentences.filter(pl.col(by).is_not_null() & (person | ~person.any().over(by)))
    for rows in told.partition_by("scope", maintain_order=True):
        groups = rows[by].unique(maintain_order=True)
        labels = rows[by].replace_strict(groups, range(len(groups)), return_dtype=pl.Int64).to_numpy()
        named = cluster_terms(rows["text"].to_list(), labels, n_terms=n_topics, speakers=rows["speaker"].to_list())
        parts.append(pl.DataFrame({by: groups, "topics": named["terms"]}))
    return pl.concat(parts)
