"""Nodes written by a language model; what it does not manage is picked from the sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import polars as pl
from pydantic import BaseModel, Field

from memlab.llm import Service, answers
from memlab.rollup.nodes import INSTEAD
from memlab.rollup.summarisers import WRITTEN, Extractive
from memlab.summarize.by_model import Point, prompts, supported

SYSTEM = (
    "You summarise numbered sentences from conversations, or from summaries of them. Use only what they say: add "
    "nothing, guess nothing. Keep names, numbers, amounts and dates as they are written. Say what was done, what was "
    "decided and what is open, the most important first, in two to six short sentences in the third person. With each "
    "sentence give the numbers of the sentences that it stands on."
)


class Rolled(BaseModel, extra="forbid"):
    """What a model answers about a group."""

    sentences: Annotated[list[Point], Field(min_length=1, max_length=8)]


@dataclass(frozen=True)
class ByModel:
    """Asks a language-model service about each group, all of a layer at once.

    A sentence stands on the turns of the sentences that the model names for it; where it names none, on those that
    share most of its words; one without either is left out. A group without a good answer is written by
    :class:`Extractive`, and its ``service`` says so: "extractive instead of NAME".

    :param service: see :class:`memlab.llm.Service`; its ``max_input`` cuts the longest sentences of a long group.
    """

    service: Service

    @property
    def recipe(self) -> str:
        known = self.service
        return f"{known.name} {known.model} {known.max_input} {known.max_output} {SYSTEM}; {Extractive().recipe}"

    def write(self, pool: pl.DataFrame) -> pl.DataFrame:
        """Ask about each group.

        :raises ModelError: when the service cannot be asked at all: no client, no address, no key.
        """
        lines = pool.with_row_index("line").with_columns(
            turn_id=pl.col("line").cast(pl.String), session_id="group", caption=pl.lit(None, pl.String)
        )
        asked = prompts(lines, max_chars=self.service.max_input)
        outcomes = answers(self.service, asked["prompt"].to_list(), Rolled, system=SYSTEM)
        of_groups = lines.partition_by("group", as_dict=True)
        evidence = pool["evidence"].to_list()
        rows = []
        for group, outcome in zip(asked["session_id"], outcomes, strict=True):
            sentences = supported(outcome.answer.sentences, of_groups[(group,)]) if outcome.answer else None
            if sentences and sentences.texts:
                ids = [list(dict.fromkeys(t for n in named for t in evidence[int(n)])) for named in sentences.evidence]
                rows.append((group, sentences.texts, ids, self.service.name))
        written = pl.DataFrame(rows, schema=WRITTEN, orient="row")
        rest = pool.filter(~pl.col("group").is_in(written["group"].implode()))
        if rest.height:
            other = Extractive().write(rest)
            instead = pl.format("{}{}{}", "service", pl.lit(INSTEAD), pl.lit(self.service.name))
            written = pl.concat([written, other.with_columns(service=instead)])
        return pool.select("group").unique(maintain_order=True).join(written, on="group", maintain_order="left")
